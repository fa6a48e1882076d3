"""Trials on two Ray nodes of simulated NPUs, of which one does not give its memory back."""

import json
import os
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

from autotune.ports import Deadlines, Placement, RankProgram, TrialRequest
from launch.cluster_settings import ClusterSettings
from launch.errors import DevicesUnavailable
from launch.ray_launcher import RayLauncher

# A table as npu-smi prints it, of what the files in $NPUS say is in use.
NPU_SMI = """#!/bin/sh
for file in "$NPUS"/*; do
echo "| $(basename "$file")  910B3  | OK            | 90.0   40           0    / 0      |"
echo "| 0                         | 0000:C1:00.0  | 0      0    / 0     $(cat "$file")/ 65536  |"
done
"""
PROGRAM = """
import json, os, sys, time
mine = os.environ["ASCEND_RT_VISIBLE_DEVICES"].split(",")[int(os.environ["LOCAL_RANK"])]
with open(os.environ["AUTOTUNE_RECORDS"], "a") as file:
    for event in ("start", "step", "end"):
        file.write(json.dumps({"event": event}) + "\\n")
print(mine, flush=True)
if sys.argv[1] == mine or sys.argv[1] == "any" and os.environ["RANK"] == "0":
    open(os.environ["NPUS"] + "/" + mine, "w").write("12000")
time.sleep(1)
"""


def main(folder):
    npus = folder / "npus"
    npus.mkdir()
    for number in range(4):
        (npus / str(number)).write_text("3000")
    tool = folder / "npu-smi"
    tool.write_text(NPU_SMI)
    tool.chmod(0o755)
    (folder / "program.py").write_text(PROGRAM)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    os.environ["NPUS"] = str(npus)
    cluster = Cluster()
    for listed in ("0,1", "2,3"):
        os.environ["ASCEND_RT_VISIBLE_DEVICES"] = listed
        cluster.add_node(num_cpus=1, resources={"NPU": 2}, object_store_memory=80 << 20)
    del os.environ["ASCEND_RT_VISIBLE_DEVICES"]
    launcher = RayLauncher(
        ClusterSettings(
            address=cluster.address,
            device="npu",
            devices_per_trial=2,
            max_concurrent_trials=2,
            wait_for_devices_s=3.0,
        )
    )
    found = {"slots": [launcher.slots], "notices": []}

    def run(*trials, dirty="none"):
        for trial in trials:
            place = folder / str(trial)
            place.mkdir()
            program = RankProgram((sys.executable, str(folder / "program.py"), dirty), place)
            limits = Deadlines(stop_grace_s=0.5)
            launcher.start(TrialRequest(trial, 1, place, program, Placement(1, 2, "npu"), limits))
        ended = []
        while len(ended) < len(trials):
            ended += launcher.wait(60)
        found["notices"] += launcher.notices()
        return sorted((end.trial, end.kind, end.reason) for end in ended)

    def devices(trial):
        return [(folder / str(trial) / f"rank{rank}.log").read_text().strip() for rank in (0, 1)]

    found["clean"] = run(0, 1)
    found["dirty"] = run(2, dirty="any")
    found["dirty device"] = devices(2)[0]
    found["next two"] = run(3, 4)
    found["slots"].append(launcher.slots)
    found["again"] = run(5)
    found["devices"] = devices(5)
    launcher.suspect(5, 0)
    launcher.suspect(5, 0)  # once an ended trial
    launcher.suspect(99, 0)
    found["still"] = run(6)
    launcher.suspect(6, 0)
    found["notices"] += launcher.notices()
    found["slots"].append(launcher.slots)
    try:
        launcher.wait(30)
    except DevicesUnavailable as error:
        found["none left"] = str(error)
    launcher.close()
    cluster.shutdown()
    sys.stdout.write(json.dumps(found))


main(Path(sys.argv[1]))

"""Runs trials on a Ray cluster that others started, here two nodes on one host, and says how."""

import json
import os
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster

from autotune.ports import Deadlines, Placement, RankProgram, TrialRequest
from launch.cluster_settings import ClusterSettings
from launch.errors import DevicesUnavailable
from launch.ray_launcher import RayLauncher

STAND_IN = Path(__file__).parent.parent / "contract" / "launcher" / "stand_in.py"


def request(folder, number, scenario, placement):
    place = folder / str(number)
    place.mkdir()
    program = RankProgram((sys.executable, "-S", str(STAND_IN), scenario), place)
    return TrialRequest(number, 1, place, program, placement, Deadlines(stop_grace_s=1))


def environments(folder, ranks):
    found = [json.loads((folder / f"echo{rank}.json").read_text())["env"] for rank in range(ranks)]
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    names += ("ASCEND_RT_VISIBLE_DEVICES", "HCCL_IF_BASE_PORT", "NCCL_DEBUG")
    return [{name: env.get(name) for name in names} for env in found]


def slots_become(launcher, count):
    until = time.monotonic() + 30
    while launcher.slots != count and time.monotonic() < until:
        time.sleep(0.5)
    return launcher.slots


def refusal(make):
    try:
        make()
    except DevicesUnavailable as error:
        return str(error)
    return "accepted"


def main(folder):
    cluster = Cluster()
    node = {"num_cpus": 2, "resources": {"NPU": 4}, "object_store_memory": 80 << 20}
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "7,4,6,5"  # the list of who starts Ray here
    cluster.add_node(**node)
    lost = cluster.add_node(**node)
    del os.environ["ASCEND_RT_VISIBLE_DEVICES"]
    os.environ["NCCL_DEBUG"] = "from the sweep"
    settings = {"address": cluster.address, "wait_for_devices_s": 4.0}
    found = {}

    npu = RayLauncher(ClusterSettings(device="npu", devices_per_trial=3, **settings))
    npu.start(request(folder, 0, "echo", Placement(1, 3, "npu")))
    found["npu"] = npu.wait(30)[0].kind, environments(folder / "0", 3)
    npu.close()

    found["too many"] = refusal(
        lambda: RayLauncher(ClusterSettings(devices_per_trial=6, nodes_per_trial=3, **settings))
    )
    pair = {"devices_per_trial": 4, "nodes_per_trial": 2, "max_concurrent_trials": 5}
    two = RayLauncher(ClusterSettings(**pair, **settings))
    found["slots"] = two.slots
    both = Placement(2, 2, "cpu")
    two.start(request(folder, 1, "echo", both))
    found["two nodes"] = two.wait(30)[0].kind, environments(folder / "1", 4)
    two.start(request(folder, 2, "fail", both))
    (end,) = two.wait(30)
    found["one failed"] = end.kind, end.reason, [(one.code, one.by_us) for one in end.exits]

    two.start(request(folder, 3, "run", both))
    while len(list((folder / "3").glob("*.jsonl"))) < 4:
        two.wait(0.1)
    two.start(request(folder, 4, "run", both))
    found["no room"] = refusal(lambda: two.wait(8))
    cluster.remove_node(lost)
    before = time.monotonic()
    (end,) = two.wait(60)
    found["node lost"] = end.trial, end.kind, time.monotonic() - before
    found["node missing"] = refusal(lambda: two.start(request(folder, 5, "run", both)))
    found["slots without it"] = slots_become(two, 0)
    cluster.add_node(**node)
    slots_become(two, 1)
    two.start(request(folder, 6, "echo", both))
    found["node joined"] = two.slots, two.wait(30)[0].kind
    two.close()
    cluster.shutdown()
    sys.stdout.write(json.dumps(found))


main(Path(sys.argv[1]))

"""A sweep without decisions, for tests that kill it: commands on stdin, answers on stdout.

`start N SCENARIO` begins a trial of the stand-in program, every second one with forked
ranks; each end is answered with a line of JSON; `close` ends the driver in order.
"""

import json
import sys
import threading
from pathlib import Path
from queue import Empty, SimpleQueue

from autotune.ports import Deadlines, Placement, RankProgram, TrialRequest
from launch.cluster_settings import ClusterSettings
from launch.ray_launcher import RayLauncher

STAND_IN = Path(__file__).parent.parent / "contract" / "launcher" / "stand_in.py"
RANKS = 2


def answer(**values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def request(folder, number, scenario):
    place = folder / str(number)
    place.mkdir()
    if number % 2:
        argv = (sys.executable, "-m", "stand_in", scenario)
        env = {"PYTHONPATH": str(STAND_IN.parent)}
        program = RankProgram(argv, place, env, preload="json")
    else:
        program = RankProgram((sys.executable, "-S", str(STAND_IN), scenario), place)
    return TrialRequest(number, 1, place, program, Placement(1, RANKS, "cpu"), Deadlines())


def main(folder):
    launcher = RayLauncher(ClusterSettings(devices_per_trial=RANKS))
    session = launcher._session
    answer(sweep=session._sweep, folder=str(session._guard.folder))
    commands = SimpleQueue()
    threading.Thread(target=lambda: [commands.put(line) for line in sys.stdin], daemon=True).start()
    while True:
        try:
            words = commands.get_nowait().split()
        except Empty:
            words = []
        if words and words[0] == "close":
            launcher.close()
            launcher.close()
            return
        if words:
            launcher.start(request(folder, int(words[1]), words[2]))
        for end in launcher.wait(0.2):
            answer(trial=end.trial, kind=end.kind, reason=end.reason)


main(Path(sys.argv[1]))

"""A rank program for tests, without torch: `python -S stand_in.py SCENARIO`."""

import json
import os
import sys
import time
from pathlib import Path


def record(**values):
    with Path(os.environ["AUTOTUNE_RECORDS"]).open("a") as file:
        file.write(json.dumps(values) + "\n")


def steps(count):
    record(event="start")
    for step in range(count):
        record(event="step", step=step, time_s=0.01)


def main():
    scenario = sys.argv[1]
    rank = int(os.environ["RANK"])
    if scenario == "finish":
        steps(3)
        record(event="end")
    elif scenario == "fail":
        steps(1)
        if rank == 1:
            sys.exit(3)
        time.sleep(600)
    elif scenario == "silent":
        record(event="start")
        while True:
            sys.stdout.write("output is not progress\n")
            sys.stdout.flush()
            time.sleep(0.05)
    elif scenario == "run":
        steps(1)
        time.sleep(600)
    elif scenario == "heed":
        steps(1)
        while not Path(os.environ["AUTOTUNE_RECORDS"]).with_name("finish").exists():
            time.sleep(0.02)
        record(event="profile", id=None, path="profile/trace.json.gz", steps=[1], bytes=1)
        record(event="end")
    elif scenario == "echo":
        found = {"argv": sys.argv[2:], "env": dict(os.environ), "cwd": str(Path.cwd())}
        Path(f"echo{rank}.json").write_text(json.dumps(found))


main()

"""Stands in for `python -m autotune` in a job: joins its Ray, writes down what is there, stays.

Runs as autotune/__main__.py of a folder in front of the real one.
"""

import json
import os
import signal
import sys
from pathlib import Path

import ray


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    ray.init(address=given["cluster.address"], log_to_driver=False, logging_level="ERROR")
    nodes = [node["Resources"].get("NPU", 0) for node in ray.nodes() if node["Alive"]]
    stopped = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    niceness = ray.get(ray.remote(num_cpus=0)(lambda: os.nice(0)).remote())
    text = json.dumps({"given": given, "nodes": nodes, "niceness": niceness})
    Path("sweep.partial").write_text(text)
    Path("sweep.partial").rename("sweep.json")
    while not stopped:
        signal.sigtimedwait([], 0.2)
    ray.shutdown()
    Path("closed").touch()
    sys.exit(130)


main()

"""A training program that trains nothing: two ranks that say steps of a length known beforehand."""

import json
import os
import sys
import time
from pathlib import Path


def step_s(a: int, b: int) -> float:
    """Seconds of a step: (4, 3) is the fastest by a fifth."""
    return 0.02 + 0.005 * abs(a - 4) + 0.006 * abs(b - 3)


def main() -> None:
    """Arguments: the point, and how many steps."""
    a, b, steps = (int(word) for word in sys.argv[1:])
    with Path(os.environ["AUTOTUNE_RECORDS"]).open("a", encoding="utf-8") as records:

        def say(event: str, **values: object) -> None:
            records.write(json.dumps({"event": event, **values}) + "\n")
            records.flush()

        say("start")
        for step in range(steps):
            time.sleep(0.02)
            say("step", step=step, time_s=step_s(a, b), samples=8, peak_reserved_bytes=1 << 20)
        say("end")


if __name__ == "__main__":
    main()

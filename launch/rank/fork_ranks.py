"""Starts the ranks of one node as forks of this process, which has imported what they need.

Run by file name with the trainer's own Python: standard library only, Python 3.8 on. Reads
one JSON object from standard input (`launch.rank_starter.ForkStarter` writes it), imports
`preload`, forks a child for each rank, tells each child's pid, and exits, so that the
supervisor inherits the children.

A fork keeps only the thread that forks. Where the import has started threads, or has failed,
each child executes the rank's program anew instead: slower, and as if nothing was imported.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035 (Python 3.8 evaluates these)

_THREADS = Path("/proc/self/task")


def main() -> None:
    """Imports, forks, reports; returns in the ranks only, when their program has ended."""
    order = json.loads(_read_all(0))
    outputs: List[int] = [rank["output"] for rank in order["ranks"]]  # noqa: UP006
    for descriptor in [*outputs, order["report"]]:
        # What the import may start must not hold a rank's output open.
        os.set_inheritable(descriptor, False)
    _replace(0, os.open(os.devnull, os.O_RDONLY))
    _enter_working_directory()
    reason = _import(order["preload"])
    if reason is not None:
        print(f"the ranks start one by one: {reason}", file=sys.stderr)  # noqa: T201
    for rank in order["ranks"]:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(rank, outputs, order["report"])
            _run(order["argv"], warm=reason is None)
            return
        os.write(order["report"], f"{rank['rank']} {pid}\n".encode("ascii"))
    # Without Python's own shutdown: taking large libraries apart takes seconds.
    os._exit(0)


def _read_all(descriptor: int) -> bytes:
    """All that is in a pipe; not through sys.stdin, whose buffer the ranks would inherit."""
    parts: List[bytes] = []  # noqa: UP006
    while True:
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _enter_working_directory() -> None:
    """Side effect: modules are looked for as under `python -m`, no longer beside this file."""
    if getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = str(Path.cwd())


def _import(module: str) -> Optional[str]:  # noqa: UP045
    """Imports a module; why this process must not be forked into ranks, None where it may be."""
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001 (the ranks' program meets the failure again and ends by it)
        return f"{module} could not be imported\n{traceback.format_exc()}"
    threads = len(list(_THREADS.iterdir()))
    if threads > 1:
        return f"importing {module} has started {threads - 1} threads, which a fork would lose"
    return None


def _become(rank: Dict[str, Any], outputs: List[int], report: int) -> None:  # noqa: UP006
    """Side effect: this process gets the rank's session, output and environment."""
    os.setsid()
    os.dup2(rank["output"], 1)
    os.dup2(rank["output"], 2)
    for descriptor in [*outputs, report]:
        os.close(descriptor)
    os.environ.update(rank["env"])


def _run(argv: List[str], warm: bool) -> None:  # noqa: UP006
    """Runs `python -m module arguments` to its end, in this interpreter if it is warm."""
    if not warm:
        os.execvp(argv[0], argv)  # noqa: S606 (no shell is wanted)
    module, arguments = argv[2], argv[3:]
    sys.argv = [module, *arguments]
    sys.orig_argv = list(argv)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _replace(descriptor: int, by: int) -> None:
    os.dup2(by, descriptor)
    os.close(by)


if __name__ == "__main__":
    main()

"""What the trainer's interpreter and this host have, found without importing torch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.ports import DeviceType
from launch.bounded_run import run_bounded
from launch.errors import InterpreterNotFoundError, PackageMissingError

_PROBE = Path(__file__).parent / "rank" / "probe.py"
_LIMIT_S = 60.0
_SHOWN_BYTES = 60
_INSTALL = "pip install torch numpy pillow"
_DEVICE_FILES = {"cuda": re.compile(r"nvidia\d+"), "npu": re.compile(r"davinci\d+")}


def probe_environment(
    python: str,
    device: DeviceType,
    needs: Sequence[str] = ("torch",),
    versions: Sequence[str] = (),
    added: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Versions and hardware that a measurement depends on, by name.

    Keys: python, torch, torch_npu, numpy, cann, driver, hostname, cpu, cpu_count, the packages
    asked for and their commits; what is not there is left out. Runs `python` once, for about 0.1 s.

    needs: packages that must be there. versions: others that matter where they are there.
    added: to the environment, as by setup scripts. Raises
    `InterpreterNotFoundError` and `PackageMissingError`.
    """
    found = _run_probe(python, [device, *needs, *versions], needs, added or {})
    for package in needs:
        if package not in found:
            raise PackageMissingError(
                f"trainer.python={python} is Python {found.get('python', '?')} without {package}. "
                f"Give an interpreter that has it, or type: {python} -m {_INSTALL}"
            )
    return found


def _run_probe(
    python: str, words: Sequence[str], needs: Sequence[str], added: Mapping[str, str]
) -> dict[str, str]:
    try:
        ended = run_bounded([python, str(_PROBE), *words], {**os.environ, **added}, _LIMIT_S)
    except OSError as error:
        if error.filename != python:  # not the program, but where its output would go
            raise
        is_there = not isinstance(error, FileNotFoundError)
        why = f"it cannot be started: {error.strerror}" if is_there else NO_SUCH_PROGRAM
        raise no_interpreter(python, why, needs) from None
    if ended.status is None:
        raise no_interpreter(python, f"it does not answer within {_LIMIT_S:g} s", needs)
    if ended.status != 0:
        raise no_interpreter(python, f"it is no working Python: {ended.how}", needs)
    try:
        found = json.loads(ended.stdout)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        said = ended.stdout[:_SHOWN_BYTES].decode("utf-8", errors="replace").strip()
        raise no_interpreter(python, f"it is no working Python: it says {said!r}", needs)
    return found


NO_SUCH_PROGRAM = "there is no such program"


def no_interpreter(python: str, why: str, needs: Sequence[str]) -> InterpreterNotFoundError:
    """What to say of a `trainer.python` that does not run. needs: packages of the trainer."""
    install = f"; a new one gets what it needs from {_INSTALL}" if needs else ""
    return InterpreterNotFoundError(
        f"trainer.python={python} does not run: {why}. Give the path of the Python that trains, "
        f"such as trainer.python=/opt/venv/bin/python{install}"
    )


def local_devices(device: DeviceType, dev: Path = Path("/dev")) -> int | None:
    """How many devices this host has; None on `cpu`, where any number of ranks may share it.

    dev: the folder with the device files, such as `nvidia0` and `davinci0`.
    """
    pattern = _DEVICE_FILES.get(device)
    if pattern is None:
        return None
    return sum(1 for file in dev.iterdir() if pattern.fullmatch(file.name))

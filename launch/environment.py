"""What the trainer's interpreter and this host have, found without importing torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.ports import DeviceType
from launch.errors import (
    EnvironmentProbeError,
    InterpreterNotFoundError,
    PackageMissingError,
)

__all__ = ["EnvironmentProbeError", "local_devices", "probe_environment"]

_PROBE = Path(__file__).parent / "rank" / "probe.py"
_LIMIT_S = 60.0
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
    found = _run_probe(python, [device, *needs, *versions], added or {})
    for package in needs:
        if package not in found:
            raise PackageMissingError(
                f"trainer.python={python} is Python {found.get('python', '?')} without {package}. "
                f"Give an interpreter that has it, or type: {python} -m {_INSTALL}"
            )
    return found


def _run_probe(python: str, words: Sequence[str], added: Mapping[str, str]) -> dict[str, str]:
    try:
        answer = subprocess.run(
            [python, str(_PROBE), *words],
            capture_output=True,
            check=True,
            timeout=_LIMIT_S,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            env={**os.environ, **added},
        )
        found: dict[str, str] = json.loads(answer.stdout)
    except FileNotFoundError:
        raise InterpreterNotFoundError(_not_found(python, "there is no such program")) from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InterpreterNotFoundError(_not_found(python, str(error))) from error
    return found


def _not_found(python: str, why: str) -> str:
    return (
        f"trainer.python={python} does not run: {why}. Give the path of the Python that "
        f"trains, such as trainer.python=/opt/venv/bin/python; a new one gets what it needs "
        f"from {_INSTALL}"
    )


def local_devices(device: DeviceType, dev: Path = Path("/dev")) -> int | None:
    """How many devices this host has; None on `cpu`, where any number of ranks may share it.

    dev: the folder with the device files, such as `nvidia0` and `davinci0`.
    """
    pattern = _DEVICE_FILES.get(device)
    if pattern is None:
        return None
    return sum(1 for file in dev.iterdir() if pattern.fullmatch(file.name))

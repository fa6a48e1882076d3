"""The environment that a user's setup scripts make, such as CANN's `set_env.sh`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.config.places import expanded
from launch.errors import EnvironmentProbeError

_LIMIT_S = 120.0
_BASH = "/bin/bash"
# The scripts' own output goes to stderr; what comes to stdout is the environment alone. They see
# no arguments, as at a prompt: some read "$@".
_SOURCE = """
sources=("$@"); set --
for source in "${sources[@]}"; do . "$source" >&2 || exit 1; done
exec env -0
"""
# Set by the shell itself.
_SHELLS = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "LINES", "COLUMNS", "BASH_FUNC_which%%"})


def setup_environment(scripts: Sequence[str]) -> dict[str, str]:
    """The variables that differ after the scripts, in their order; empty without scripts.

    Side effect: runs the scripts with bash, which is what "source" means. Raises
    `EnvironmentProbeError`.
    """
    if not scripts:
        return {}
    paths = [str(expanded(script, "trainer.setup").absolute()) for script in scripts]
    for script, path in zip(scripts, paths, strict=True):
        if not Path(path).is_file():
            raise EnvironmentProbeError(
                f"trainer.setup names {script}, and there is no such file; give the set_env.sh of "
                "your CANN, such as trainer.setup=[/usr/local/Ascend/ascend-toolkit/set_env.sh], "
                "or [] where the environment is made already"
            )
    try:
        done = subprocess.run(
            [_BASH, "-c", _SOURCE, "bash", *paths],
            capture_output=True,
            check=True,
            timeout=_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.CalledProcessError as error:
        raise EnvironmentProbeError(
            f"trainer.setup={list(scripts)} fails: {_last_line(error.stderr)}"
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentProbeError(f"trainer.setup={list(scripts)} fails: {error}") from None
    if not done.stdout:
        raise EnvironmentProbeError(
            f"trainer.setup={list(scripts)} ends the shell that reads it, with exit; give scripts "
            "that are made to be sourced"
        )
    return changed(os.environ, parse_environment(done.stdout))


def parse_environment(printed: bytes) -> dict[str, str]:
    """What `env -0` prints."""
    pairs = (os.fsdecode(entry).partition("=") for entry in printed.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The variables that are new or have another value."""
    return {
        name: value
        for name, value in after.items()
        if before.get(name) != value and name not in _SHELLS
    }


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "without a word"

"""The environment that a user's setup scripts make, such as CANN's `set_env.sh`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.config.places import expanded
from launch.bounded_run import Ended, run_bounded
from launch.errors import EnvironmentProbeError
from launch.markers import SHORT_RUN

_LIMIT_S = 120.0
_BASH = "/bin/bash"
# The scripts' own output goes to stderr; what comes to stdout is the name of each as it begins,
# then the environment. They see no arguments, as at a prompt: some read "$@". env has a path, as
# a script may take it off PATH.
_SOURCE = """
sources=("$@"); set --
for source in "${sources[@]}"; do printf '%s\\0' "$source"; . "$source" >&2 || exit; done
exec /usr/bin/env -0
"""
# Set by the shell itself, and by us.
_SHELLS = frozenset(
    {"_", "SHLVL", "PWD", "OLDPWD", "LINES", "COLUMNS", "BASH_FUNC_which%%", SHORT_RUN}
)


def setup_environment(scripts: Sequence[str], limit_s: float = _LIMIT_S) -> dict[str, str]:
    """The variables that differ after the scripts, in their order; empty without scripts.

    limit_s: for all of them, in seconds. Side effect: runs the scripts with bash, which is what
    "source" means; `run_bounded` says what becomes of what they start. Raises
    `EnvironmentProbeError`.
    """
    if not scripts:
        return {}
    paths = setup_paths(scripts)
    try:
        ended = run_bounded([_BASH, "-c", _SOURCE, "bash", *paths], os.environ, limit_s)
    except OSError as error:
        raise EnvironmentProbeError(
            f"{_given(scripts)} cannot be read by {_BASH}: {error.strerror or error}"
        ) from None
    printed = ended.stdout.split(b"\0")[:-1]
    begun = os.fsdecode(printed[: len(paths)][-1]) if printed else paths[0]
    if ended.status != 0:
        raise EnvironmentProbeError(f"{_given(scripts)} fails: {_why(ended, begun, limit_s)}")
    if len(printed) <= len(paths):
        raise EnvironmentProbeError(
            f"{_given(scripts)} fails: {begun} ends the shell that reads it, with exit or exec; "
            "give scripts that are made to be sourced"
        )
    return changed(os.environ, parse_environment(b"\0".join(printed[len(paths) :])))


def setup_paths(scripts: Sequence[str]) -> list[str]:
    """The scripts as absolute paths. Raises `EnvironmentProbeError` for one that is not there."""
    paths = [str(expanded(script, "trainer.setup").absolute()) for script in scripts]
    for script, path in zip(scripts, paths, strict=True):
        if not Path(path).is_file():
            raise EnvironmentProbeError(
                f"trainer.setup names {script}, and there is no such file; give the set_env.sh of "
                "your CANN, such as trainer.setup=[/usr/local/Ascend/ascend-toolkit/set_env.sh], "
                "or [] where the environment is made already"
            )
    return paths


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


def _given(scripts: Sequence[str]) -> str:
    return f"trainer.setup=[{','.join(scripts)}]"


def _why(ended: Ended, script: str, limit_s: float) -> str:
    words = ("bash", "-xc", '. "$0"', script)
    typed = f"{shlex.join(words)} </dev/null"
    if ended.status is None:
        return (
            f"{script} has not come to its end within {limit_s:g} s, and was ended with all that "
            f"it had started; see what it waits for: {typed}. Give a script that asks nothing and "
            "ends by itself, or leave it out of trainer.setup"
        )
    return f"{script}: {ended.how}. See why: {typed}; mend it, or leave it out of trainer.setup"

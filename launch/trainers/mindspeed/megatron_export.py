"""A tuned Megatron launch as files to train with: a script, and the files that it names.

The script is not the user's: it prepares the environment as theirs does, goes to the checkout and
launches the training, and does nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from launch.trainers.mindspeed.megatron_files import (
    CONFIG,
    DATA,
    FSDP2,
    MODEL,
    PATH_OPTIONS,
    TOOL,
    TOOL_PATH,
    OpenFiles,
)
from launch.trainers.mindspeed.megatron_launch import MegatronLaunch
from launch.trainers.shell import render_script

_HERE = "${HERE}"
_SAFE = "set -euo pipefail\n"
_FIND_HERE = 'HERE="$(cd "$(dirname "$0")" && pwd)"\n'


def exported_script_name(base: MegatronLaunch) -> str:
    """The script's name, which is that of the user's."""
    return PurePosixPath(base.name).name


def exported_files(
    base: MegatronLaunch, files: OpenFiles, environment: Mapping[str, str], root: Path
) -> dict[str, str]:
    """Texts by name: the script, and each file that says something else than the user's.

    environment: of the training. The script finds the others beside itself, and all else where
    the user's script would, in the checkout.
    """
    changed = files.changed
    names = _names(base, changed)
    words = _words(base, files, {role: f"{_HERE}/{name}" for role, name in names.items()})
    launch = replace(
        base.launch,
        arguments=words,
        folder=str(root / base.launch.folder),
        live=base.launch.live | {_HERE},
    )
    changes = {
        name: value
        for name, value in environment.items()
        if base.launch.environment.get(name) != value
    }
    text = render_script(launch, header=[f"From {base.name}, by autotune."], exports=changes)
    before, found, after = text.partition(_SAFE)
    assert found, text
    script = f"{before}{found}{_FIND_HERE}{after}"
    texts = {names[role]: text for role, text in changed.items()}
    return {exported_script_name(base): script, **texts}


def _names(base: MegatronLaunch, roles: Mapping[str, str]) -> dict[str, str]:
    """The user's own names, with what the file is for where two would be called the same."""
    names: dict[str, str] = {}
    for role in roles:
        name = PurePosixPath(base.files.files[role].name).name
        names[role] = f"{role}_{name}" if name in names.values() else name
    return names


def _words(base: MegatronLaunch, files: OpenFiles, paths: Mapping[str, str]) -> tuple[str, ...]:
    if not (CONFIG in base.files.files and (FSDP2 in paths or TOOL in paths)):
        for role, path in paths.items():
            files.refer(role, path)
        return files.words(paths.get(CONFIG))
    # What lies beside the script cannot be named in the YAML, so what that would be flattened to
    # is given instead; model and data are still read from it.
    config = paths.get(CONFIG, base.files.files[CONFIG].name)
    tool = paths.get(TOOL) or files.get(f"{CONFIG}:{TOOL_PATH}", "")
    words = files.flat_words({PATH_OPTIONS[FSDP2]: paths[FSDP2]} if FSDP2 in paths else {})
    given = {PATH_OPTIONS[MODEL]: config, PATH_OPTIONS[DATA]: config, PATH_OPTIONS[TOOL]: tool}
    return (*words, *(word for option in given.items() for word in option))

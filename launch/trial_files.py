"""What the launcher writes into a trial's folder: before it starts the ranks, and for them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from autotune.ports import RankProgram, TrialRequest
from launch.errors import TrialFilesError
from launch.rank.commands import FINISH_FILE

PROGRAM_FILE = "program.json"
"""What ran, for a person: argv, the environment added, working directory and placement."""


def write_trial_files(request: TrialRequest, setup: Mapping[str, str] | None = None) -> None:
    """Writes the program's files and `program.json` into the trial's folder.

    setup: what the user's setup scripts changed in the environment.

    Raises `TrialFilesError` for a file name that leads out of the folder, before
    anything is written.
    """
    targets = {_inside(request.folder, name): text for name, text in request.program.files.items()}
    for path, text in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    record = json.dumps(_as_record(request, setup or {}), indent=2, ensure_ascii=False)
    (request.folder / PROGRAM_FILE).write_text(f"{record}\n", encoding="utf-8", errors="replace")


def ask_to_finish(folder: Path) -> None:
    """Asks the ranks of a trial to score no more steps. May be repeated.

    Where somebody has removed the folder there is nobody left to ask.
    """
    with contextlib.suppress(FileNotFoundError):
        (folder / FINISH_FILE).touch()


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise TrialFilesError(
            f"the trainer names a file {name!r}; a trial's file has a name relative to the "
            "trial's folder, without '..'"
        )
    return folder.joinpath(*parts)


def _as_record(request: TrialRequest, setup: Mapping[str, str]) -> dict[str, object]:
    program: RankProgram = request.program
    placement = request.placement
    return {
        "trial": request.trial,
        "attempt": request.attempt,
        "argv": list(program.argv),
        "preload": program.preload,
        "cwd": str(program.cwd),
        "setup_env": dict(setup),
        "env": dict(program.env),
        "files": sorted(program.files),
        "nodes": placement.nodes,
        "devices_per_node": placement.devices_per_node,
        "device": placement.device,
    }

"""What rank 0 has decided for all ranks, a step ahead, in a file of the trial's folder.

A rank is at most one step ahead of another, since steps end in collectives. So what rank 0
writes down after one step, all see before the end of the second after it. On one host only:
files on shared disks may come late.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Optional  # noqa: UP035 (Python 3.8 subscripts no other)

from launch.rank.commands import Commands
from launch.rank.profile_options import ProfileOptions

FILE = "agreed.json"
_AHEAD = 2


class Agreement:
    """finish_after: the last step before the end or the planned profile, None where unchanged.

    profile_after: a profile that was asked for begins after this step; `request` is its id.
    """

    def __init__(self, folder: Path, rank: int, commands: Commands) -> None:
        self.finish_after: Optional[int] = None  # noqa: UP045
        self.profile_after: Optional[int] = None  # noqa: UP045
        self.request: Optional[str] = None  # noqa: UP045
        self.options = ProfileOptions()
        self._path = folder / FILE
        self._rank = rank
        self._commands = commands
        self._said: Dict[str, Any] = {}  # noqa: UP006

    def look(self, step: int) -> None:
        """Decides on rank 0, and reads on the others, after a step was made."""
        if self._rank == 0:
            self._decide(step)
        self._read()

    def _decide(self, step: int) -> None:
        said = dict(self._said)
        if "finish_after" not in said and self._commands.finish_asked():
            said["finish_after"] = step + _AHEAD
        request = self._commands.new_request()
        if request is not None:
            options = {name: getattr(request.options, name) for name in vars(request.options)}
            said.update(profile_after=step + _AHEAD, request=request.id, options=options)
        if said != self._said:
            self._said = said
            temporary = self._path.with_name(FILE + ".tmp")
            temporary.write_text(json.dumps(said), encoding="utf-8")
            os.replace(str(temporary), str(self._path))  # noqa: PTH105 (the same on Python 3.8)

    def _read(self) -> None:
        try:
            said = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        self.finish_after = said.get("finish_after")
        if said.get("request") != self.request:
            self.request = said.get("request")
            self.profile_after = said.get("profile_after")
            self.options = ProfileOptions.from_mapping(said["options"])

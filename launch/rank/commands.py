"""What the launcher asks of a running trial: files in the trial's folder.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on. One rank
looks, between two steps; it tells the others, so that all act at the same step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.rank.profile_options import ProfileOptions
from launch.rank.recorder import Recorder

FINISH_FILE = "finish"
"""While it exists, no more steps are scored: the trial ends after the profile it has planned."""

PROFILE_FOLDER = "profile"
REQUEST_FILE = "profile/request.json"
"""`{"id": ..., "steps": ..., "ranks": [...], ...}`: asks for a profile, once for each id."""


@dataclass(frozen=True)
class ProfileRequest:
    """Asks for a profile of the next steps; answers carry its id."""

    id: str
    options: ProfileOptions


class Commands:
    """Looks for commands in a trial's folder; None, as outside a trial, holds none.

    A request that cannot be read is answered with an error record. A request that is
    replaced before anyone looked is not served.
    """

    def __init__(self, folder: Path | None, recorder: Recorder) -> None:
        self._folder = folder
        self._recorder = recorder
        self._finish = False
        self._seen: tuple[int, int] | None = None
        self._served: set[str] = set()

    def finish_asked(self) -> bool:
        """Whether no more steps are to be scored; never taken back."""
        if self._folder is not None and not self._finish:
            self._finish = (self._folder / FINISH_FILE).exists()
        return self._finish

    def new_request(self) -> ProfileRequest | None:
        """A request that has come since the last look."""
        if self._folder is None:
            return None
        path = self._folder / REQUEST_FILE
        try:
            status = path.stat()
        except OSError:
            return None
        version = (status.st_ino, status.st_mtime_ns)
        if version == self._seen:
            return None
        self._seen = version
        return self._read(path)

    def _read(self, path: Path) -> ProfileRequest | None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self._recorder.profile_failed(None, f"{REQUEST_FILE} cannot be read: {error}")
            return None
        name = content.pop("id", None) if isinstance(content, dict) else None
        if not isinstance(name, str) or not name:
            self._recorder.profile_failed(None, f'{REQUEST_FILE} has no "id", which is a text')
            return None
        if name in self._served:
            return None
        self._served.add(name)
        return self._request(name, content)

    def _request(self, name: str, options: dict[str, Any]) -> ProfileRequest | None:
        try:
            return ProfileRequest(name, ProfileOptions.from_mapping(options))
        except ValueError as error:
            self._recorder.profile_failed(name, f"{REQUEST_FILE}: {error}")
            return None

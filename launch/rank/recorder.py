"""Rank records: what a rank tells about its run, one JSON object a line.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on.
The file is named by the environment variable AUTOTUNE_RECORDS; when that is unset,
as in a training run outside a trial, a recorder does nothing.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from pathlib import Path
from typing import IO, Any, Dict, List, Optional  # noqa: UP035 (Python 3.8 evaluates these)

RECORDS_VARIABLE = "AUTOTUNE_RECORDS"


class Recorder:
    """Appends records to `path`, each flushed at once so that a killed rank keeps them."""

    def __init__(self, path: Optional[str]) -> None:  # noqa: UP045
        self.folder: Optional[Path] = Path(path).absolute().parent if path else None  # noqa: UP045
        """The trial's folder, None outside a trial."""
        self._file: Optional[IO[str]] = None  # noqa: UP045
        if path:
            # Open as long as the rank runs: a line must not wait for a later flush.
            self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115, PTH123

    @classmethod
    def from_environment(cls) -> Recorder:
        """The recorder of this rank, as the supervisor asked for it."""
        return cls(os.environ.get(RECORDS_VARIABLE))

    def start(self, rank: int, world_size: int, device: str, torch_version: str) -> None:
        """The rank's Python and its libraries are up."""
        self.write(
            {
                "event": "start",
                "rank": rank,
                "world_size": world_size,
                "device": device,
                "torch": torch_version,
                "python": platform.python_version(),
                "time": time.time(),
            }
        )

    def step(self, record: Dict[str, Any]) -> None:  # noqa: UP006
        """One global batch was trained; `record` holds the fields of the contract."""
        self.write({"event": "step", **record})

    def end(self) -> None:
        """All steps were made."""
        self.write({"event": "end"})

    def error(self, kind: str, message: str, **details: Any) -> None:
        """The rank stops early. kind: config, oom or exception."""
        self.write({"event": "error", "kind": kind, "message": message, **details})

    def profile(self, request: Optional[str], path: str, steps: List[int], size: int) -> None:  # noqa: UP006, UP045
        """A profile lies at `path`, relative to the trial's folder, and holds `steps`.

        request: the id of the request that asked for it, None for the planned one. size: bytes.
        """
        self.write({"event": "profile", "id": request, "path": path, "steps": steps, "bytes": size})

    def profile_failed(self, request: Optional[str], message: str) -> None:  # noqa: UP045
        """A profile that was asked for does not come."""
        self.write({"event": "profile", "id": request, "error": message})

    def write(self, record: Dict[str, Any]) -> None:  # noqa: UP006
        """Appends one record as one line."""
        if self._file is None:
            return
        self._file.write(json.dumps(_without_nan(record), allow_nan=False) + "\n")
        self._file.flush()


def _without_nan(value: Any) -> Any:
    """The value with NaN and infinities as null, which JSON cannot say otherwise."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value

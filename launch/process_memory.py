"""What the processes of a trial held on the host, for programs that tell nothing of memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import psutil

_KIB = 1024


class ProcessMemory:
    """Follows the peak of each rank's process and of those below it, and records it.

    The peak of a rank is the sum of its processes' own peaks of resident memory (VmHWM in
    proc(5)): exact for one process, at most too high for several.
    """

    def __init__(self) -> None:
        self._peaks: dict[int, dict[int, int]] = {}

    def look(self, ranks: Mapping[int, int]) -> None:
        """Takes note of what is held now. ranks: rank by its process's number."""
        for pid, rank in ranks.items():
            peaks = self._peaks.setdefault(rank, {})
            for process in _tree(pid):
                peaks[process] = max(peaks.get(process, 0), _peak_bytes(process))

    def record(self, path: Path) -> None:
        """Appends the ranks' peaks to a file of records."""
        with path.open("a", encoding="utf-8") as file:
            for rank, peaks in self._peaks.items():
                record = {"event": "memory", "rank": rank, "peak_device_bytes": sum(peaks.values())}
                file.write(json.dumps(record) + "\n")


def _tree(pid: int) -> list[int]:
    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def _peak_bytes(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIB
    return 0

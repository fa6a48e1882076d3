"""What the processes of a trial held on the host, for programs that tell nothing of memory."""

from __future__ import annotations

import json
import resource
from collections.abc import Mapping
from pathlib import Path

import psutil

_KIB = 1024


class ProcessMemory:
    """Follows the peak of each rank's process and of those below it, and records it.

    The peak of a rank is the sum of its processes' own peaks of resident memory (VmHWM in
    proc(5)): at most too high for several. What was held after the last look is known of the
    largest process alone, from its end (ru_maxrss in getrusage(2), which counts the moment
    before the program's start too: no less than this process holds).
    """

    def __init__(self) -> None:
        self._peaks: dict[int, dict[int, int]] = {}
        self._last: dict[int, int] = {}

    def look(self, ranks: Mapping[int, int]) -> None:
        """Takes note of what is held now. ranks: rank by its process's number."""
        for pid, rank in ranks.items():
            peaks = self._peaks.setdefault(rank, {})
            for process in _tree(pid):
                peaks[process] = max(peaks.get(process, 0), _peak_bytes(process))

    def note_end(self, rank: int, usage: resource.struct_rusage) -> None:
        """Takes note of what the kernel tells of a rank's process that has ended."""
        self._last[rank] = usage.ru_maxrss * _KIB

    def record(self, path: Path) -> None:
        """Appends the ranks' peaks to a file of records."""
        with path.open("a", encoding="utf-8") as file:
            for rank in sorted({*self._peaks, *self._last}):
                seen = sum(self._peaks.get(rank, {}).values())
                peak = max(seen, self._last.get(rank, 0))
                record = {"event": "memory", "rank": rank, "peak_device_bytes": peak}
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

"""The files of one rank's profile, and what they say of themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.analyze.ascend.values import BrokenJsonError, read_json, whole

OUTPUT_FOLDER = "ASCEND_PROFILER_OUTPUT"
ANALYSED = "analyse.done"  # written since torch_npu 2.13

STEP_TIMES = "step_trace_time.csv"
TRACE = "trace_view.json"
KERNELS = "kernel_details.csv"
KERNEL_TYPES = "op_statistic.csv"
OPERATORS = "operator_details.csv"
OPERATOR_MEMORY = "operator_memory.csv"
MEMORY = "memory_record.csv"
MODULE_MEMORY = "npu_module_mem.csv"
COMMUNICATION = "communication.json"
LINKS = "communication_matrix.json"
ANALYSIS_DATABASE = "analysis.db"
DATABASE = "ascend_pytorch_profiler.db"

_TABLES = (STEP_TIMES, KERNELS, KERNEL_TYPES, OPERATORS, OPERATOR_MEMORY, MEMORY, MODULE_MEMORY)
KNOWN_FILES = (*_TABLES, TRACE, COMMUNICATION, LINKS, ANALYSIS_DATABASE, DATABASE)
_DATABASE_OF_RANK = re.compile(r"ascend_pytorch_profiler_(\d+)\.db")
_INFO = re.compile(r"profiler_info(?:_(\d+))?\.json")
_METADATA = "profiler_metadata.json"


@dataclass(frozen=True)
class AscendFiles:
    """source: what a person knows the profile by. files: by the names above.

    rank: None where neither `profiler_info_<rank>.json` nor the database's name tells it.
    info, metadata: contents of `profiler_info_*.json` and `profiler_metadata.json`.
    """

    source: Path
    files: Mapping[str, Path]
    rank: int | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    analysed: bool = False
    unreadable: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """`torch_npu 2.13.0`, with CANN's version where that is known; empty in older files."""
        named = (("torch_npu", "torch_npu_version"), ("CANN", "cann_version"))
        found = [f"{name} {self.info[key]}" for name, key in named if self.info.get(key)]
        return ", ".join(found)

    @property
    def level(self) -> str:
        """`Level0` to `Level2` or `Level_none`; empty where unknown."""
        config = self._config("experimental_config")
        return str(config.get("_profiler_level") or "")

    @property
    def with_host(self) -> bool | None:
        """Whether the host was to be recorded; None where unknown."""
        activities = self._config("common_config").get("activities")
        if not isinstance(activities, list):
            return None
        return any("CPU" in str(activity) for activity in activities)

    @property
    def with_memory(self) -> bool | None:
        """Whether memory was to be recorded; None where unknown."""
        value = self._config("common_config").get("profile_memory")
        return value if isinstance(value, bool) else None

    @property
    def complete(self) -> bool:
        """Whether the profiler came to its end; older versions leave no trace of that."""
        release = re.match(r"v?(\d+)\.(\d+)", str(self.info.get("torch_npu_version") or ""))
        marks_end = release is not None and (int(release[1]), int(release[2])) >= (2, 13)
        return self.analysed or not marks_end

    def _config(self, part: str) -> Mapping[str, Any]:
        config = self.info.get("config")
        found = config.get(part) if isinstance(config, dict) else None
        return found if isinstance(found, dict) else {}


def files_of_folder(folder: Path, source: Path | None = None) -> AscendFiles:
    """The profile whose files lie in `folder`; `profiler_info_*.json` lies there or above.

    source: how to name it, the folder itself by default.
    """
    files: dict[str, Path] = {}
    rank: int | None = None
    for path in sorted(folder.iterdir()):
        name = known_name(path)
        if name is not None and path.is_file():
            files[name] = path
            database = _DATABASE_OF_RANK.fullmatch(path.name)
            rank = int(database[1]) if database else rank
    return _described(source or folder, files, (folder, folder.parent), rank)


def files_of_file(path: Path, name: str) -> AscendFiles:
    """The profile of one file alone, which is what `name` is called in a folder."""
    database = _DATABASE_OF_RANK.fullmatch(path.name)
    rank = int(database[1]) if database else None
    return _described(path, {name: path}, (path.parent, path.parent.parent), rank)


def known_name(path: Path) -> str | None:
    """What the file is, by its name."""
    if _DATABASE_OF_RANK.fullmatch(path.name):
        return DATABASE
    name = path.name.removesuffix(".gz") if path.name == f"{TRACE}.gz" else path.name
    return name if name in KNOWN_FILES else None


def info_file(folder: Path) -> Path | None:
    """`profiler_info_<rank>.json` or `profiler_info.json` in the folder."""
    paths = sorted(folder.glob("profiler_info*.json"))
    return next((path for path in reversed(paths) if _INFO.fullmatch(path.name)), None)


def _described(
    source: Path, files: Mapping[str, Path], folders: tuple[Path, ...], rank: int | None
) -> AscendFiles:
    info_path = next((path for folder in folders if (path := info_file(folder))), None)
    info, broken_info = _object(info_path)
    metadata_path = None if info_path is None else info_path.parent / _METADATA
    metadata, broken_metadata = _object(metadata_path)
    # The file's name has the rank; a rank inside the file is one that older versions wrote, too.
    named = _INFO.fullmatch(info_path.name) if info_path else None
    if named and named[1]:
        rank = int(named[1])
    elif rank is None:
        inside = whole(info.get("rank_id"))
        rank = inside if inside is not None and inside >= 0 else None
    return AscendFiles(
        source=source,
        files=files,
        rank=rank,
        info=info,
        metadata=metadata,
        analysed=any((folder / ANALYSED).exists() for folder in folders),
        unreadable=(*broken_info, *broken_metadata),
    )


def _object(path: Path | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The file's JSON object, and its name where it is broken."""
    if path is None or not path.is_file():
        return {}, ()
    try:
        content = read_json(path)
    except BrokenJsonError:
        return {}, (path.name,)
    return (content, ()) if isinstance(content, dict) else ({}, (path.name,))

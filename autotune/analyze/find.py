"""What a person pointed at: one profile, the ranks of a job, a trial's folder -> profiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.analyze.ascend import cluster, files, sniff
from autotune.analyze.ascend.reader import read_profile
from autotune.analyze.profile import Missing, Profile
from autotune.errors import UserError

# studies/<name>/trials/0012/profile/<rank>/ASCEND_PROFILER_OUTPUT, and some more.
_DEEPEST = 8
_MOST_FOLDERS = 20_000
_RAW = re.compile(r"PROF_\d+_\d+_\w+|FRAMEWORK")
_TRACE_SUFFIXES = (".json", ".json.gz")
_EXPECTED = (
    "expected torch_npu output (a *_ascend_pt folder, its ASCEND_PROFILER_OUTPUT, a folder with "
    "several of them, cluster_analysis_output, or one file such as trace_view.json or "
    "step_trace_time.csv) or traces of torch.profiler (*.pt.trace.json, *.json, *.json.gz)"
)


@dataclass(frozen=True)
class _Source:
    """Something that profiles can be read from. ranks_again: other sources may have its ranks."""

    path: Path
    read: Callable[[], Sequence[Profile]]
    ranks_again: bool = False


@dataclass
class _Found:
    """What lies under a folder. raw: output that torch_npu did not analyse yet."""

    sources: list[_Source] = field(default_factory=list)
    raw: list[Path] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)


def open_profiles(path: Path) -> list[Profile]:
    """The profiles at `path`: of every rank and every collection that lies there.

    Several collections of one rank are all given; `source` tells them apart. A profile that
    cannot be read does not hide the others: it is named in what the first one lacks.
    Raises `UserError` where there is none.
    """
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if is_file:
        return list(_of_file(path).read())
    if not is_folder:
        raise UserError(f"no such file or folder: {path}; {_EXPECTED}")
    found = _Found()
    _search(path, found, depth=0)
    if not found.sources:
        raise _nothing(path, found)
    return _read(found)


def _read(found: _Found) -> list[Profile]:
    profiles: list[Profile] = []
    failures: list[UserError] = []
    # Cluster files last: they repeat the ranks whose own folders are there.
    for source in sorted(found.sources, key=lambda source: source.ranks_again):
        try:
            read = source.read()
        except UserError as error:
            failures.append(error)
            continue
        ranks = {profile.rank for profile in profiles} if source.ranks_again else set()
        profiles += [profile for profile in read if profile.rank not in ranks]
    if not profiles:
        raise failures[0]
    lacking = [Missing("a profile", str(error)) for error in failures]
    lacking += [Missing(f"the profile {raw.name}", _how_to_analyse(raw)) for raw in found.raw]
    profiles[0] = replace(profiles[0], missing=(*profiles[0].missing, *lacking))
    return profiles


def _search(folder: Path, found: _Found, depth: int) -> None:
    real = folder.resolve()
    if real in found.seen:  # a link to where the search has been
        return
    found.seen.add(real)
    if len(found.seen) > _MOST_FOLDERS:
        raise UserError(
            f"more than {_MOST_FOLDERS} folders to look through; give the folder of the profiles"
        )
    entries = _entries(folder)
    folders = [entry for entry in entries if entry.is_dir()]
    plain = [entry for entry in entries if entry.is_file()]
    output = next((entry for entry in folders if entry.name == files.OUTPUT_FOLDER), None)
    raw = any(_RAW.fullmatch(entry.name) for entry in folders)
    if output is not None and any(files.known_name(entry) for entry in _entries(output)):
        found.sources.append(_of_output(output, folder))
    elif any(files.known_name(entry) for entry in plain):
        source = folder.parent if folder.name == files.OUTPUT_FOLDER else folder
        found.sources.append(_of_output(folder, source))
    elif raw or output is not None:
        found.raw.append(folder)
    found.sources += _loose(folder, plain)
    if depth < _DEEPEST and not raw and output is None:
        for entry in folders:
            if not entry.name.startswith("."):
                _search(entry, found, depth + 1)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from error


def _of_output(output: Path, source: Path) -> _Source:
    return _Source(source, lambda: [read_profile(files.files_of_folder(output, source))])


def _loose(folder: Path, plain: Iterable[Path]) -> Iterator[_Source]:
    """Cluster files, and traces that are no `trace_view.json` of a rank's folder."""
    plain = list(plain)
    of_cluster = {entry.name: entry for entry in plain if entry.name in cluster.CLUSTER_FILES}
    if of_cluster:
        yield _of_cluster(folder, of_cluster)
    for entry in plain:
        named = files.known_name(entry) or entry.name in of_cluster
        if not named and entry.name.endswith(_TRACE_SUFFIXES):
            kind = _kind(entry)
            if kind is not None:
                yield _of_trace(entry, kind)


def _kind(path: Path) -> sniff.TraceKind | None:
    """What kind of trace a file in a folder is; one that cannot be read may be none at all."""
    try:
        return sniff.trace_kind(path)
    except UserError:
        return None


def _of_cluster(source: Path, found: dict[str, Path]) -> _Source:
    def read() -> Sequence[Profile]:
        profiles = cluster.read_cluster(source, found)
        if not profiles:
            names = ", ".join(sorted(found))
            raise UserError(f"{source}: no rank in {names}; run msprof-analyze cluster again")
        return profiles

    return _Source(source, read, ranks_again=True)


def _of_trace(path: Path, kind: sniff.TraceKind) -> _Source:
    if kind is sniff.TraceKind.KINETO:
        return _Source(path, lambda: [_read_kineto(path)])
    return _Source(path, lambda: [read_profile(files.files_of_file(path, files.TRACE))])


def _read_kineto(path: Path) -> Profile:
    # Only where there is such a trace: the reader is the larger half of this package.
    from autotune.analyze.kineto.reader import read_trace

    return read_trace(path)


def _of_file(path: Path) -> _Source:
    """One file by itself: by its name, else by its content."""
    name = files.known_name(path) or (path.name if path.name in cluster.CLUSTER_FILES else None)
    if name is None:
        kind = sniff.trace_kind(path)
        if kind is not None:
            return _of_trace(path, kind)
        name = _name_by_content(path)
    if name is None:
        size = path.stat().st_size
        found = "an empty file" if size == 0 else f"a file of {size} bytes that is none of these"
        raise UserError(f"{path} is no profile: found {found}; {_EXPECTED}")
    if name in cluster.CLUSTER_FILES:
        return _of_cluster(path, {name: path})
    return _Source(path, lambda: [read_profile(files.files_of_file(path, name))])


def _name_by_content(path: Path) -> str | None:
    if path.suffix == ".csv":
        return sniff.table_name(path)
    if sniff.is_database(path):
        return files.DATABASE
    return sniff.json_name(path)


def _nothing(path: Path, found: _Found) -> UserError:
    if found.raw:
        return UserError("\n".join(f"{raw}: {_how_to_analyse(raw)}" for raw in found.raw[:8]))
    entries = [entry.name + ("/" if entry.is_dir() else "") for entry in _entries(path)]
    listed = ", ".join(entries[:8]) + (", ..." if len(entries) > 8 else "")
    return UserError(f"no profile in {path}: found {listed or 'nothing'}; {_EXPECTED}")


def _how_to_analyse(raw: Path) -> str:
    return (
        f"raw output of torch_npu that was not analysed yet (no files in {files.OUTPUT_FOLDER}); "
        'where torch_npu and CANN are installed, type: python -c "from torch_npu.profiler.'
        f"profiler import analyse; analyse('{raw}')\""
    )

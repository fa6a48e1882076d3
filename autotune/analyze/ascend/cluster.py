"""What msprof-analyze's cluster analysis wrote: the files of all ranks in one.

`cluster_step_trace_time.csv` has a row a rank (and a row a pipeline stage, its slowest rank,
which is passed over), `cluster_communication.json` the calls by rank, and
`cluster_communication_matrix.json` the links by source and target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.analyze.ascend.communication import Facts, read_communication
from autotune.analyze.ascend.links import read_links
from autotune.analyze.ascend.steps import COLUMNS, steps_of_rows
from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.values import BrokenJsonError, number, read_json, whole
from autotune.analyze.profile import LinkTime, Missing, Profile, ProfilerKind, StepTime

CLUSTER_STEPS = "cluster_step_trace_time.csv"
CLUSTER_COMMUNICATION = "cluster_communication.json"
CLUSTER_LINKS = "cluster_communication_matrix.json"
CLUSTER_FILES = (CLUSTER_STEPS, CLUSTER_COMMUNICATION, CLUSTER_LINKS)

_NOT_HERE = Missing(
    "phases, operators, memory and gaps",
    "cluster files do not hold them; analyse the ranks' own *_ascend_pt folders",
)


@dataclass(frozen=True)
class _Contents:
    steps: Mapping[int, tuple[StepTime, ...]]
    calls: Sequence[Facts]
    links: Sequence[LinkTime]
    cut: tuple[str, ...]


def read_cluster(source: Path, files: Mapping[str, Path]) -> tuple[Profile, ...]:
    """A profile a rank, in order; files by the names above.

    Raises `UserError` where a file cannot be read or holds no rank.
    """
    contents = _read(files)
    ranks = set(contents.steps)
    ranks |= {call.rank for call in contents.calls if call.rank is not None}
    ranks |= {link.source for link in contents.links}
    return tuple(_profile(source, rank, contents) for rank in sorted(ranks))


def _read(files: Mapping[str, Path]) -> _Contents:
    cut: list[str] = []
    steps: dict[int, tuple[StepTime, ...]] = {}
    if CLUSTER_STEPS in files:
        table = Table(files[CLUSTER_STEPS])
        steps = _steps(table)
        cut += [table.path.name] if table.cut else []
    calls = _json(files, CLUSTER_COMMUNICATION, cut)
    links = _json(files, CLUSTER_LINKS, cut)
    return _Contents(steps, read_communication(calls), read_links(links), tuple(cut))


def _json(files: Mapping[str, Path], name: str, cut: list[str]) -> object:
    path = files.get(name)
    if path is None:
        return None
    try:
        return read_json(path)
    except BrokenJsonError:
        cut.append(path.name)
        return None


def _steps(table: Table) -> dict[int, tuple[StepTime, ...]]:
    rows: dict[int, list[tuple[str, object, dict[str, float | None]]]] = {}
    names = list(COLUMNS)
    for step, kind, index, *cells in table.rows("Step", "Type", "Index", *names):
        rank = whole(index)
        if kind == "rank" and rank is not None:
            figures = dict(zip(names, map(number, cells), strict=True))
            rows.setdefault(rank, []).append(("", step, figures))
    return {rank: steps_of_rows(found) for rank, found in rows.items()}


def _profile(source: Path, rank: int, contents: _Contents) -> Profile:
    collectives = tuple(call.time for call in contents.calls if call.rank == rank)
    links = tuple(link for link in contents.links if link.source == rank)
    steps = contents.steps.get(rank, ())
    found = {"step times": steps, "collectives": collectives, "traffic by link": links}
    lacking = (Missing(what, _hint(what)) for what, values in found.items() if not values)
    return Profile(
        source=source,
        kind=ProfilerKind.TORCH_NPU,
        rank=rank,
        device="npu",
        complete=not contents.cut,
        cut=contents.cut,
        steps=steps,
        collectives=collectives,
        links=links,
        missing=(_NOT_HERE, *lacking),
    )


def _hint(what: str) -> str:
    files = dict(zip(("step times", "collectives", "traffic by link"), CLUSTER_FILES, strict=True))
    return f"{files[what]} is not here, or has none of this rank"

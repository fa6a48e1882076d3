"""The files of one rank -> `Profile`: which file answers what, the first that can.

Texts before databases, tables that the profiler made before what is computed from the trace.
A file that cannot be read is named and the next one asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from autotune.analyze.ascend import communication as calls
from autotune.analyze.ascend import dbtables, dbtimeline, fallback, memory, operators, steps
from autotune.analyze.ascend import files as names
from autotune.analyze.ascend.database import Database, open_database
from autotune.analyze.ascend.files import AscendFiles
from autotune.analyze.ascend.gaps import gaps_of
from autotune.analyze.ascend.groups import Group, groups_of, name_group, name_link
from autotune.analyze.ascend.kernels import Kernels, read_kernels
from autotune.analyze.ascend.links import read_links
from autotune.analyze.ascend.missing import missing_parts
from autotune.analyze.ascend.phases import add_phases
from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.timeline import Timeline
from autotune.analyze.ascend.trace import read_timeline
from autotune.analyze.ascend.values import BrokenJsonError, read_json
from autotune.analyze.profile import (
    CollectiveTime,
    LinkTime,
    MemoryUse,
    Missing,
    OperatorTime,
    Profile,
    ProfilerKind,
    StepTime,
)
from autotune.errors import UserError

_Read = TypeVar("_Read")


def read_profile(files: AscendFiles) -> Profile:
    """Everything that the files say. Raises `UserError` where none of them can be read."""
    with ExitStack() as stack:
        return _Reading(files, stack).profile()


@dataclass
class _Reading:
    """One reading of one profile, with what went wrong on the way."""

    files: AscendFiles
    stack: ExitStack
    cut: list[str] = field(default_factory=list)
    unreadable: dict[str, UserError] = field(default_factory=dict)

    def profile(self) -> Profile:
        timeline = self._timeline()
        found, notes = self._phases(self._steps(timeline), timeline)
        profile = Profile(
            source=self.files.source,
            kind=ProfilerKind.TORCH_NPU,
            rank=self.files.rank,
            device="npu",
            version=self.files.version,
            steps=found,
            operators=self._operators(timeline),
            collectives=self._collectives(timeline),
            links=self._links(),
            memory=self._memory(timeline),
            gaps=gaps_of(timeline, self._pipeline_calls()) if timeline else (),
        )
        return self._finish(profile, timeline, notes)

    def _finish(
        self, profile: Profile, timeline: Timeline | None, notes: tuple[Missing, ...]
    ) -> Profile:
        broken = tuple(Missing("part of the files", message) for message in self.unreadable)
        broken += tuple(Missing(name, "the file is broken") for name in self.files.unreadable)
        parts = (profile.steps, profile.operators, profile.collectives, profile.memory)
        if not any((*parts, profile.links)):
            raise next(iter(self.unreadable.values()), self._empty())
        return replace(
            profile,
            complete=self.files.complete and not self.cut,
            cut=tuple(dict.fromkeys(self.cut)),
            missing=(*broken, *notes, *missing_parts(profile, self.files, timeline)),
        )

    def _empty(self) -> UserError:
        found = ", ".join(sorted(path.name for path in self.files.files.values()))
        cut = f"; cut off: {', '.join(self.cut)}" if self.cut else ""
        return UserError(
            f"{self.files.source} holds nothing to analyse: {found} can be read, but there is no "
            f"step, operator, collective or memory record in it{cut}; profile a step that runs "
            "on the NPU, and let the profiler finish writing"
        )

    @cached_property
    def databases(self) -> Mapping[str, Database]:
        """Those that are there and can be opened, that of the analysis first."""
        found = {}
        for name in (names.ANALYSIS_DATABASE, names.DATABASE):
            path = self.files.files.get(name)
            database = None if path is None else self._open(path)
            if database is not None:
                found[name] = database
        return found

    @cached_property
    def kernels(self) -> Kernels | None:
        """The table of kernels: it may be huge, so it is read where nothing else answers."""
        return self._table(names.KERNELS, read_kernels)

    @cached_property
    def facts(self) -> Sequence[calls.Facts]:
        """The collectives with their sizes and waiting."""
        found = self._json(names.COMMUNICATION, calls.read_communication)
        return found or self._first_of_databases(dbtables.read_calls) or ()

    @cached_property
    def groups(self) -> Mapping[str, Group]:
        """The communicators that the metadata describes."""
        return groups_of(self.files.metadata)

    def _timeline(self) -> Timeline | None:
        """The trace's, else the database's, else that of the kernels alone."""
        path = self.files.files.get(names.TRACE)
        timeline = None if path is None else self._try(lambda: read_timeline(path))
        if timeline is not None and path is not None and timeline.cut:
            self.cut.append(path.name)
        database = self.databases.get(names.DATABASE)
        if database is not None and (timeline is None or timeline.empty):
            timeline = self._try(lambda: dbtimeline.read_timeline(database)) or timeline
        if (timeline is None or timeline.empty) and self.kernels is not None:
            timeline = self.kernels.timeline
        return timeline

    def _steps(self, timeline: Timeline | None) -> tuple[StepTime, ...]:
        found = self._table(names.STEP_TIMES, steps.steps_from_table)
        if not found:
            found = self._first_of_databases(dbtables.read_steps)
        if not found and timeline is not None:
            found = steps.steps_from_timeline(timeline)
        if not found and self.kernels is not None:
            found = steps.steps_from_timeline(self.kernels.timeline)
        return tuple(found or ())

    def _phases(
        self, found: tuple[StepTime, ...], timeline: Timeline | None
    ) -> tuple[tuple[StepTime, ...], tuple[Missing, ...]]:
        if timeline is not None and timeline.host.recorded and not timeline.empty:
            return add_phases(found, timeline), ()
        if len(found) != 1:
            return found, ()
        sums = self._table(names.OPERATORS, fallback.read_sums)
        if sums is None:
            return found, ()
        return (fallback.with_phases(found[0], sums),), fallback.notes(sums)

    def _operators(self, timeline: Timeline | None) -> tuple[OperatorTime, ...]:
        host, on_device = self._table(names.OPERATORS, operators.from_details) or ((), ())
        if not host and timeline is not None:
            host = operators.host_from_timeline(timeline)
        device = self._table(names.KERNEL_TYPES, operators.from_statistic) or ()
        if not device and self.kernels is not None:
            device = self.kernels.operators
        device = device or on_device
        if not device and timeline is not None:
            device = operators.from_timeline(timeline)
        return (*device, *host)

    def _collectives(self, timeline: Timeline | None) -> tuple[CollectiveTime, ...]:
        if self.facts:
            found = calls.collectives_of(self.facts, timeline)
        else:
            found = () if timeline is None else calls.collectives_from_timeline(timeline)
        return tuple(name_group(call, self.groups) for call in found)

    def _pipeline_calls(self) -> frozenset[str]:
        """Names of calls in groups of pipeline stages: Megatron names those groups `pp...`."""
        named = ((fact.name, self.groups.get(fact.time.group)) for fact in self.facts)
        return frozenset(name for name, group in named if group and group.name.startswith("pp"))

    def _links(self) -> tuple[LinkTime, ...]:
        found = self._json(names.LINKS, read_links)
        found = found or self._first_of_databases(dbtables.read_links) or ()
        return tuple(name_link(link, self.groups) for link in found)

    def _memory(self, timeline: Timeline | None) -> MemoryUse | None:
        records = self._table(names.MEMORY, memory.read_records) or []
        if not records and names.DATABASE not in self.databases:
            records = self._table(names.OPERATOR_MEMORY, memory.records_of_allocations) or []
        records += self._table(names.MODULE_MEMORY, memory.read_modules) or []
        allocations = self._table(names.OPERATOR_MEMORY, memory.read_allocations)
        records = records or self._first_of_databases(dbtables.read_memory) or []
        allocations = allocations or self._first_of_databases(dbtables.read_allocations) or []
        if not records:
            return None
        first = min(record.time for record in records)
        origin = first if timeline is None or timeline.empty else timeline.origin
        return memory.memory_of(records, allocations, origin)

    def _table(self, name: str, read: Callable[[Table], _Read]) -> _Read | None:
        path = self.files.files.get(name)
        if path is None:
            return None

        def reading() -> _Read:
            table = Table(path)
            found = read(table)
            if table.cut:
                self.cut.append(path.name)
            return found

        return self._try(reading)

    def _json(self, name: str, read: Callable[[object], _Read]) -> _Read | None:
        path = self.files.files.get(name)
        if path is None:
            return None
        try:
            return read(read_json(path))
        except BrokenJsonError as error:
            self.cut.append(path.name)
            self.unreadable.setdefault(str(error), error)
        except UserError as error:
            self.unreadable.setdefault(str(error), error)
        return None

    def _open(self, path: Path) -> Database | None:
        return self._try(lambda: self.stack.enter_context(open_database(path)))

    def _first_of_databases(self, read: Callable[[Database], _Read]) -> _Read | None:
        """The first answer that is not empty."""
        for database in self.databases.values():
            found = self._try(lambda: read(database))  # noqa: B023 - called at once
            if found:
                return found
        return None

    def _try(self, read: Callable[[], _Read]) -> _Read | None:
        try:
            return read()
        except UserError as error:
            self.unreadable.setdefault(str(error), error)
            return None

"""A Kineto trace file -> `Profile`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.analyze.kineto.activity import Activity, activity_of
from autotune.analyze.kineto.collect import collect
from autotune.analyze.kineto.collectives import collective_times
from autotune.analyze.kineto.cut import whole_windows
from autotune.analyze.kineto.events import Recording
from autotune.analyze.kineto.gaps import longest_gaps
from autotune.analyze.kineto.labels import host_labels
from autotune.analyze.kineto.memory import memory_use
from autotune.analyze.kineto.missing import lost_steps, missing_parts
from autotune.analyze.kineto.operators import operator_times
from autotune.analyze.kineto.phases import phase_splitter
from autotune.analyze.kineto.steps import step_time
from autotune.analyze.kineto.windows import (
    Window,
    device_windows,
    main_thread,
    step_windows,
)
from autotune.analyze.profile import Profile, ProfilerKind, StepTime
from autotune.analyze.trace_json import read_events

# What tools call their files where the trace itself does not say: rank0.json, rank-3.trace.json.gz
_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_]?(\d+)(?!\d)", re.IGNORECASE)


def read_trace(path: Path) -> Profile:
    """Everything that one trace file of torch.profiler says.

    Raises `trace_json.NotATraceError` where the file holds no trace. One that was cut is read to
    the cut; its steps are those of which everything was written.
    """
    trace = read_events(path)
    recording = collect(trace.events())
    if trace.cut and trace.other.get("deviceProperties") and not recording.tasks:
        recording = replace(recording, device_lost=True, collectives=())
    thread = main_thread(recording)
    marked = step_windows(recording, thread)
    whole = whole_windows(marked, recording, thread) if trace.cut else marked
    windows = device_windows(whole, recording)
    activity = activity_of(recording)
    collectives = collective_times(recording, activity, windows)
    memory = memory_use(recording)
    return Profile(
        source=path,
        kind=ProfilerKind.KINETO,
        rank=_rank(trace.other, path),
        device=recording.device,
        version=_version(trace.other),
        complete=not trace.cut,
        cut=(path.name,) if trace.cut else (),
        steps=_steps(recording, activity, thread, windows),
        operators=operator_times(recording),
        collectives=collectives,
        memory=memory,
        gaps=longest_gaps(recording, activity, windows),
        missing=(
            *lost_steps(marked, whole, recording),
            *missing_parts(recording, windows, collectives, memory, cut=trace.cut),
        ),
    )


def _steps(
    recording: Recording, activity: Activity, thread: str, windows: Sequence[Window]
) -> tuple[StepTime, ...]:
    labels = host_labels(recording, thread, windows)
    split = phase_splitter(recording, activity, labels)
    return tuple(step_time(window, activity, split(window)) for window in windows)


def _rank(header: Mapping[str, Any], path: Path) -> int | None:
    info = header.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, Mapping) else None
    if isinstance(rank, int) and rank >= 0:
        return rank
    match = _RANK_IN_NAME.search(path.name)
    return int(match.group(1)) if match else None


def _version(header: Mapping[str, Any]) -> str:
    """Kineto does not write torch's version, only that of its schema."""
    schema = header.get("schemaVersion")
    return f"Kineto schema {schema}" if isinstance(schema, (int, str)) else ""

"""The six phases of a step, from what the device did and where the host was meanwhile.

Every moment of the step belongs to one phase by what the device does in it:

- a kernel runs: the phase in which the host launched it (an `async_npu` flow leads there; a
  kernel without one goes with the kernel before it). `optimizer`: launched inside
  `Optimizer.step#*`. `forward_backward`: before the end of the last backward of the step.
  `post_processing`: after it and outside the optimizer (clipping, loss, logging).
- only communication runs: `communication`, receive bubbles among it.
- neither: `data_loading` while the host is in a loader's `__next__`, else `scheduling`. Copies
  between memories are no computing for the profiler, so they count here.

The step lasts from its start on the host, or from the end of the step before where the device
still ran that, to the end of its last kernel or to its end on the host, whichever is later. So
steps follow each other without gap or overlap when the host runs ahead, too, and the phases add
up exactly. This is MindSpeed-MM's breakdown (its guide to performance tuning), on the device.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.analyze.ascend.timeline import Host, Timeline, Window
from autotune.analyze.intervals import Interval, intersect, subtract, total, union, within
from autotune.analyze.profile import StepTime

_FORWARD_BACKWARD, _OPTIMIZER, _POST = "forward_backward", "optimizer", "post_processing"
_Marks = tuple[list[int], list[str]]


def add_phases(steps: Sequence[StepTime], timeline: Timeline) -> tuple[StepTime, ...]:
    """The steps with `host_us` and `phases_us`, where the timeline has the step of that number."""
    if not timeline.host.recorded:
        return tuple(steps)
    parts = _computing_by_phase(timeline)
    spans = _spans(timeline)
    return tuple(_with_phases(step, spans.get(step.step), timeline, parts) for step in steps)


def _spans(timeline: Timeline) -> dict[int | None, tuple[int, int]]:
    spans: dict[int | None, tuple[int, int]] = {}
    before: int | None = None
    for window in timeline.windows:
        start, end = _span(window, timeline)
        if before is not None:
            start = max(start, before)
        before = end
        if timeline.lasts_beyond(window):
            spans.setdefault(window.number, (start, max(start, end)))
    return spans


def _span(window: Window, timeline: Timeline) -> Interval:
    if window.step is not None:
        return window.step.start, window.end
    busy = [*timeline.overlap.computing, *timeline.overlap.communication]
    first = min(start for start, _ in busy)
    launched = timeline.host.first
    start = first if launched is None else min(first, launched)
    return start, max(end for _, end in busy)


def _with_phases(
    step: StepTime,
    span: Interval | None,
    timeline: Timeline,
    parts: Mapping[str, Sequence[Interval]],
) -> StepTime:
    if span is None:
        return step
    computing = within(timeline.overlap.computing, *span)
    exposed = within(timeline.overlap.not_overlapped, *span)
    idle = subtract([span], [*computing, *exposed])
    loading = intersect(idle, within(timeline.host.loading, *span))
    optimizer = total(intersect(computing, within(parts[_OPTIMIZER], *span)))
    post = total(intersect(computing, within(parts[_POST], *span)))
    phases = {
        "data_loading": total(loading),
        _FORWARD_BACKWARD: total(computing) - optimizer - post,
        _OPTIMIZER: optimizer,
        _POST: post,
        # Of communication that was recorded to run beside computing, only the rest is exposed.
        "communication": total(subtract(exposed, computing)),
        "scheduling": total(idle) - total(loading),
    }
    return replace(
        step,
        host_us=(span[1] - span[0]) / 1000,
        phases_us={name: length / 1000 for name, length in phases.items()},
    )


def _computing_by_phase(timeline: Timeline) -> dict[str, list[Interval]]:
    """When the kernels of optimizer and post-processing run; what both claim is the former's."""
    marks = _marks(timeline.host)
    found: dict[str, list[Interval]] = {_OPTIMIZER: [], _POST: []}
    before: int | None = None
    for task in timeline.tasks:
        if not task.computes:
            continue
        before = before if task.launch is None else task.launch
        phase = _phase_at(marks, task.start if before is None else before)
        if phase in found:
            found[phase].append((task.start, task.end))
    optimizer = union(found[_OPTIMIZER])
    return {_OPTIMIZER: optimizer, _POST: subtract(found[_POST], optimizer)}


def _phase_at(marks: _Marks, moment: int) -> str:
    at = bisect_right(marks[0], moment) - 1
    return marks[1][at] if at >= 0 else _FORWARD_BACKWARD


def _marks(host: Host) -> _Marks:
    """Moments on the host at which another phase begins, and which one."""
    begins: list[tuple[int, str]] = []
    segments = [(step.start, step.end) for step in host.steps]
    for segment in segments or [_whole(host)]:
        begins += _marks_of(segment, host)
    begins.sort(key=lambda mark: mark[0])
    return [moment for moment, _ in begins], [phase for _, phase in begins]


def _whole(host: Host) -> Interval:
    ends = [interval[-1][1] for interval in (host.backward, host.optimizer) if interval]
    return host.first or 0, max(ends, default=host.first or 0) + 1


def _marks_of(segment: Interval, host: Host) -> list[tuple[int, str]]:
    """Within one step: what lies between two runs of the optimizer ends with post-processing."""
    optimizer = within(host.optimizer, *segment)
    marks: list[tuple[int, str]] = []
    begins = [segment[0], *(end for _, end in optimizer)]
    ends = [*(start for start, _ in optimizer), segment[1]]
    for at, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        backward = within(host.backward, begin, end)
        if backward:
            marks += [(begin, _FORWARD_BACKWARD), (backward[-1][1], _POST)]
        else:
            # Before the first optimizer step, work without a backward is forward work.
            marks.append((begin, _FORWARD_BACKWARD if at == 0 else _POST))
    # Last, so that the optimizer wins where it starts in the same moment.
    return marks + [(start, _OPTIMIZER) for start, _ in optimizer]

"""Which phase of training the host is in, moment by moment.

Ranges of the user's own with the names of the phases come first, the inner one of two; then
torch's ranges around the data loader and the optimizer. Post-processing has no range in torch:
it is what lies between the end of backward and the optimizer, and from the optimizer to the
end of the step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.analyze.intervals import Interval, subtract, union, within
from autotune.analyze.kineto.events import HostCall, Recording
from autotune.analyze.kineto.windows import DATA_LOADER, OPTIMIZER_STEP, Window
from autotune.measure.records import PHASES

# What a host range can say; that nobody works is seen elsewhere.
RANGE_PHASES = tuple(phase for phase in PHASES if phase != "scheduling")
# Backward, and what torch's data parallelism does right after it, outside of its ranges.
_BACKWARD = (
    "autograd::engine::evaluate_function",
    "torch.distributed.ddp.reducer::",
    "torch::distributed::reducer::",
    "FSDP::post_backward",
)


@dataclass(frozen=True)
class HostLabels:
    """ranges: by phase, what ranges say. after_backward: post-processing by its place alone."""

    ranges: Mapping[str, list[Interval]]
    after_backward: list[Interval]

    def phase_of(self) -> PhaseLookup:
        """A lookup of single moments."""
        marks = [
            (start, end, phase) for phase, spans in self.ranges.items() for start, end in spans
        ]
        marked = union((start, end) for start, end, _ in marks)
        marks += [(*span, "post_processing") for span in subtract(self.after_backward, marked)]
        return PhaseLookup(sorted(marks))


class PhaseLookup:
    """The phase at a moment: forward_backward where no range says another one."""

    def __init__(self, marks: Sequence[tuple[int, int, str]]) -> None:
        self._marks = marks
        self._starts = [start for start, _, _ in marks]

    def at(self, moment: int) -> str:
        """The phase's name."""
        position = bisect_right(self._starts, moment) - 1
        if position >= 0 and moment < self._marks[position][1]:
            return self._marks[position][2]
        return "forward_backward"


def host_labels(recording: Recording, thread: str, windows: Iterable[Window]) -> HostLabels:
    """The phases on the training thread."""
    calls = recording.ranges.get(thread, ())
    ranges = exclusive([call for call in calls if call.name in RANGE_PHASES])
    own = union(span for spans in ranges.values() for span in spans)
    for phase, prefix in (("data_loading", DATA_LOADER), ("optimizer", OPTIMIZER_STEP)):
        torchs = union((c.start, c.end) for c in calls if c.name.startswith(prefix))
        ranges[phase] = union([*ranges[phase], *subtract(torchs, own)])
    backward = union(
        (call.start, call.end)
        for rows in (*recording.operators.values(), *recording.ranges.values())
        for call in rows
        if call.name.startswith(_BACKWARD)
    )
    after = [
        span
        for window in windows
        for span in _after_backward(window, backward, ranges["optimizer"])
    ]
    return HostLabels(ranges, union(after))


def exclusive(calls: Sequence[HostCall]) -> dict[str, list[Interval]]:
    """Nested ranges of one thread (the outer first) as disjoint ones: the inner one counts."""
    spans: dict[str, list[Interval]] = {phase: [] for phase in RANGE_PHASES}
    open_calls: list[HostCall] = []
    since = 0
    for call in calls:
        while open_calls and open_calls[-1].end <= call.start:
            ended = open_calls.pop()
            spans[ended.name].append((since, ended.end))
            since = max(since, ended.end)
        if open_calls:
            spans[open_calls[-1].name].append((since, call.start))
        since = max(since, call.start)
        open_calls.append(call)
    while open_calls:
        ended = open_calls.pop()
        spans[ended.name].append((since, ended.end))
        since = max(since, ended.end)
    return {phase: union(each) for phase, each in spans.items()}


def _after_backward(
    window: Window, backward: Sequence[Interval], optimizer: Sequence[Interval]
) -> list[Interval]:
    mine = within(backward, *window.host)
    steps = within(optimizer, *window.host)
    spans = []
    earlier = window.host[0]
    ends = [stop for _, stop in mine]
    for start, end in steps:
        before = bisect_right(ends, start)
        if before and ends[before - 1] > earlier:
            spans.append((ends[before - 1], start))
        earlier = end
    # Where a backward follows, the optimizer did not end the step.
    if steps and not any(begin >= earlier for begin, _ in mine):
        spans.append((earlier, window.host[1]))
    return spans

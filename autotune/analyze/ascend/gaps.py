"""Times in which the device waited: for the host, for a copy, for another pipeline stage."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Collection, Sequence

from autotune.analyze.ascend.timeline import Call, Task, Timeline
from autotune.analyze.ascend.windows import window_at
from autotune.analyze.intervals import Interval, total, union, within
from autotune.analyze.profile import Gap

_EXCHANGE = "hcom_batchSendRecv"
_MOST = 50  # of each sort: the longest


def gaps_of(timeline: Timeline, pipeline: Collection[str] = ()) -> tuple[Gap, ...]:
    """The longest idle gaps and the longest receives, in the order of time.

    pipeline: names of calls between pipeline stages. Where these exchange in both directions at
    once (`batchSendRecv`), what computing does not hide is waiting to receive.
    """
    neighbours = _Neighbours([*(t for t in timeline.tasks if t.computes), *timeline.calls])
    copies = union((task.start, task.end) for task in timeline.tasks if task.copies)
    gaps = []
    for gap in heapq.nlargest(_MOST, timeline.overlap.free, key=_length):
        # A gap that is mostly a copy is no gap in which nothing was queued.
        copied = 2 * total(within(copies, *gap)) > _length(gap)
        gaps.append(_gap(gap, "copy" if copied else "host", timeline, neighbours))
    exchanges = [c for c in timeline.calls if c.name in pipeline and c.name.startswith(_EXCHANGE)]
    exposed = timeline.overlap.not_overlapped
    receives = {(call.start, call.end) for call in timeline.calls if call.receives}
    receives |= {part for call in exchanges for part in within(exposed, call.start, call.end)}
    for receive in heapq.nlargest(_MOST, sorted(receives), key=_length):
        gaps.append(_gap(receive, "receive", timeline, neighbours))
    return tuple(sorted(gaps, key=lambda gap: (gap.start_us, gap.cause)))


class _Neighbours:
    """What ran on the device just before and just after a stretch of time."""

    def __init__(self, work: Sequence[Task | Call]) -> None:
        self._work = sorted(work, key=lambda item: (item.start, item.end))
        self._starts = [item.start for item in self._work]
        # The item that ended last of all that started so far.
        self._latest: list[int] = []
        for at, item in enumerate(self._work):
            best = self._latest[-1] if self._latest else at
            self._latest.append(at if item.end >= self._work[best].end else best)

    def before(self, start: int) -> str:
        at = bisect_left(self._starts, start) - 1
        return self._work[self._latest[at]].name if at >= 0 else ""

    def after(self, end: int) -> str:
        at = bisect_left(self._starts, end)
        return self._work[at].name if at < len(self._work) else ""


def _gap(stretch: Interval, cause: str, timeline: Timeline, neighbours: _Neighbours) -> Gap:
    start, end = stretch
    window = window_at(timeline.windows, start)
    return Gap(
        start_us=(start - timeline.origin) / 1000,
        duration_us=(end - start) / 1000,
        cause=cause,
        before=neighbours.before(start),
        after=neighbours.after(end),
        step=None if window is None else window.number,
    )


def _length(interval: Interval) -> int:
    return interval[1] - interval[0]

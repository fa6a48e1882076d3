"""What a trace does not hold, why, and how to have it next time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autotune.analyze.kineto.events import Recording
from autotune.analyze.kineto.memory import GROWTH
from autotune.analyze.kineto.windows import OPTIMIZER_STEP, Window
from autotune.analyze.profile import CollectiveTime, MemoryUse, Missing

# Less than this share makes no difference.
_FEW = 0.01


def lost_steps(
    marked: Sequence[Window], whole: Sequence[Window], recording: Recording
) -> tuple[Missing, ...]:
    """The steps that were cut off with the end of the file."""
    lost = [window for window in marked if window not in whole]
    if not lost:
        return ()
    numbers = ", ".join(str(window.number) for window in lost if window.number is not None)
    what = "calls" if recording.is_host_only else "launches and kernels"
    return (
        Missing(
            f"steps {numbers}".strip(),
            f"the file ends, and some of their {what} may be lost; let the profiler finish writing",
        ),
    )


def missing_parts(
    recording: Recording,
    windows: Sequence[Window],
    collectives: Sequence[CollectiveTime],
    memory: MemoryUse | None,
    *,
    cut: bool,
) -> Iterator[Missing]:
    """Everything else that is not there, or not as it could be."""
    yield from _missing_time(recording, windows, cut=cut)
    yield from _missing_phases(recording)
    yield from _missing_communication(collectives)
    yield from _missing_memory(recording, memory, cut=cut)


def _missing_time(
    recording: Recording, windows: Sequence[Window], *, cut: bool
) -> Iterator[Missing]:
    if recording.unreadable:
        yield Missing(f"{recording.unreadable} events", "their time, duration or size is no number")
    if recording.span is None:
        why = "the file ends before them" if cut else "the trace holds none"
        yield Missing("operators, kernels and ranges", why)
    elif recording.device_lost:
        yield Missing("steps and kernels", "the file ends before the work of the device")
    elif not recording.is_host_only and not recording.tasks:
        yield Missing(
            "steps and kernels",
            f"{len(recording.launches)} launches of device work, but no device work was "
            "recorded: profile with ProfilerActivity.CUDA, by a user who may use CUPTI",
        )
    elif any(window.number is None for window in windows):
        yield Missing(
            "steps",
            "no ProfilerStep ranges, so the whole trace counts as one step; call "
            "profiler.step() after each",
        )
    if not recording.operators and recording.span is not None:
        yield Missing("host operators", "profile with ProfilerActivity.CPU")


def _missing_phases(recording: Recording) -> Iterator[Missing]:
    names = {call.name for calls in recording.ranges.values() for call in calls}
    if recording.span is None:
        return
    if "optimizer" not in names and not any(name.startswith(OPTIMIZER_STEP) for name in names):
        yield Missing(
            "optimizer and post-processing apart",
            "no Optimizer.step range: their time, if any, is in forward_backward",
        )
    unknown = sum(task.correlation not in recording.launches for task in recording.tasks)
    if unknown > _FEW * len(recording.tasks):
        yield Missing(
            f"launches of {unknown} device tasks",
            "their phase is the one in which the host was when they began",
        )


def _missing_communication(collectives: Sequence[CollectiveTime]) -> Iterator[Missing]:
    if not collectives:
        return
    yield Missing("traffic by link, and waiting apart from transit", "Kineto records neither")
    if any(each.size_bytes is None for each in collectives):
        yield Missing(
            "sizes of some collectives",
            "newer versions of torch record them on cuda; on cpu profile with record_shapes=True",
        )


def _missing_memory(
    recording: Recording, memory: MemoryUse | None, *, cut: bool
) -> Iterator[Missing]:
    if memory is None:
        if recording.span is not None:
            lost = "the file ends before it, or the profile was taken without: "
            yield Missing("memory", f"{lost if cut else ''}profile with profile_memory=True")
        return
    if any(GROWTH in name for name in memory.peaks_bytes):
        yield Missing(
            "memory in total, and what held it",
            "this version of torch recorded changes only: figures count from the trace's start",
        )

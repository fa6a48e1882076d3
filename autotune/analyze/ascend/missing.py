"""What a profile of torch_npu does not hold, why, and what to switch on next time."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.analyze.ascend.files import DATABASE, TRACE, AscendFiles
from autotune.analyze.ascend.timeline import Timeline
from autotune.analyze.profile import Missing, Profile

_HOST = (
    "profile with ProfilerActivity.CPU (MindSpeed-MM: tools.profile.static_param.with_cpu: true)"
)
_MEMORY = (
    "profile with profile_memory=True (MindSpeed-MM: tools.profile.static_param.with_memory: true)"
)
_COMMUNICATION = (
    "profile several ranks with profiler_level Level1 or Level2 (MindSpeed-MM: "
    "tools.profile.static_param.level: level1)"
)
_TRACE = "keep trace_view.json, or export_type Db, of the same collection"


def missing_parts(
    profile: Profile, files: AscendFiles, timeline: Timeline | None
) -> Iterator[Missing]:
    """Everything that an analysis would ask for and the files do not answer."""
    if not profile.steps:
        yield Missing("step times", _no_steps(timeline))
    yield from _host(profile, files, timeline)
    if not profile.operators:
        why = (
            "no file here lists any (op_statistic.csv, kernel_details.csv, operator_details.csv, "
            "trace_view.json or a database); profile with ProfilerActivity.NPU"
        )
        yield Missing("operators", why)
    yield from _communication(profile, files, timeline)
    yield from _memory(profile, files)
    if timeline is None:
        yield Missing("idle gaps and pipeline bubbles one by one", _TRACE)
    elif timeline.other_devices:
        others = ", ".join(timeline.other_devices)
        yield Missing(f"devices {others}", "one device of a process is analysed, the busiest")


def _no_steps(timeline: Timeline | None) -> str:
    if timeline is None:
        return "needs step_trace_time.csv, trace_view.json, kernel_details.csv or a database"
    return "nothing computed or communicated on the device while the profiler ran"


def _host(profile: Profile, files: AscendFiles, timeline: Timeline | None) -> Iterator[Missing]:
    phases = [step.phases_us for step in profile.steps]
    host = None if timeline is None else timeline.host
    if profile.steps and not all(phases):
        yield Missing("phases", _no_phases(profile, files, timeline))
    elif profile.steps and host is not None and host.recorded and not host.optimizer:
        why = (
            "no range Optimizer.step#... was recorded: what the optimizer ran, if anything, is "
            "in forward_backward or post_processing; a torch.optim.Optimizer writes the range"
        )
        yield Missing("the optimizer's share", why)
    if host is not None and host.recorded and not host.steps:
        why = "no ProfilerStep range: everything counts as one step; call prof.step() after each"
        yield Missing("the borders of the steps", why)
    lost = [] if timeline is None else [w for w in timeline.windows if not timeline.lasts_beyond(w)]
    if lost:
        numbers = ", ".join(str(window.number) for window in lost)
        why = "the trace ends before all that ran on the device; let the profiler finish writing"
        yield Missing(f"all of steps {numbers}", why)
    if timeline is not None and not timeline.linked:
        why = (
            "no flow leads from the host to a kernel, so steps are cut by the host's clock, "
            "which runs ahead of the device; profile with CPU and NPU activity together"
        )
        yield Missing("exact borders of the steps on the device", why)


def _no_phases(profile: Profile, files: AscendFiles, timeline: Timeline | None) -> str:
    if timeline is None or not timeline.host.recorded:
        lost = files.with_host and not {TRACE, DATABASE}.intersection(files.files)
        return f"nothing here tells what the host did when; {_TRACE if lost else _HOST}"
    steps = ", ".join(str(step.step) for step in profile.steps if step.phases_us is None)
    return f"the host's range of steps {steps} was not recorded"


def _communication(
    profile: Profile, files: AscendFiles, timeline: Timeline | None
) -> Iterator[Missing]:
    level = f" (this one has {files.level})" if files.level == "Level0" else ""
    communicated = any(step.communication_us > 0 for step in profile.steps)
    if not profile.collectives:
        # A job of one rank has nothing to lack.
        if communicated:
            yield Missing("collectives", f"{_COMMUNICATION}{level}")
        return
    if all(collective.size_bytes is None for collective in profile.collectives):
        yield Missing("bandwidth and waiting of collectives", f"{_COMMUNICATION}{level}")
    if not profile.links:
        why = f"communication_matrix.json is not there: {_COMMUNICATION}{level}"
        yield Missing("traffic by link", why)
    if all(collective.overlapped_us is None for collective in profile.collectives):
        yield Missing("how much of each collective computing hides", _TRACE)


def _memory(profile: Profile, files: AscendFiles) -> Iterator[Missing]:
    switch = "" if files.with_memory else f"; {_MEMORY}"
    if profile.memory is None:
        yield Missing("memory", f"no file here has a record of it{switch}")
    elif profile.memory.peak_at_us is None:
        yield Missing("memory of torch's allocator", f"no component PTA was recorded{switch}")
    elif not profile.memory.holders:
        why = f"no allocation of an operator was recorded that lived then{switch}"
        yield Missing("what held the memory at the peak", why)

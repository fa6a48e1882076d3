"""Records of all ranks and the end of their processes -> an `Outcome`."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.config.quantities import format_bytes
from autotune.measure.outcome import Outcome, Status, Work
from autotune.measure.records import PHASES, RankError, RankRecords, StepRecord
from autotune.measure.timing import estimate_batch_time
from autotune.ports import EndKind, RankExit, TrialEnd

# What allocators say: PyTorch on CUDA and on CPU, torch_npu on the device and in pinned memory.
_OUT_OF_MEMORY = re.compile(
    r"(CUDA|NPU) out of memory|DefaultCPUAllocator: can't allocate memory"
    r"|Malloc pin memory failed|OutOfMemoryError|std::bad_alloc|Cannot allocate memory"
)


@dataclass(frozen=True)
class JudgeSettings:
    """What a trial is held against.

    world_size: ranks that must have recorded. warmup_steps: first steps left out.
    window_steps: global batches in the data window. min_steps: scored steps that a
    measurement needs. memory_limit_bytes: the limit on any rank's peak.
    """

    world_size: int
    warmup_steps: int
    window_steps: int
    min_steps: int
    memory_limit_bytes: int


def judge(
    end: TrialEnd,
    ranks: Sequence[RankRecords],
    settings: JudgeSettings,
    baseline_work: Work | None = None,
) -> Outcome:
    """What the trial came to.

    baseline_work: of the baseline's window; a point that does other work has failed.
    """
    peak, peak_rank = _peak(ranks)
    outcome = _failure(end, ranks)
    if outcome is None:
        outcome = _measure(ranks, settings)
    if outcome.status is Status.OK:
        outcome = _check_work(outcome, baseline_work)
    if outcome.status is Status.OK:
        outcome = _check_memory(outcome, peak, settings.memory_limit_bytes)
    return replace(outcome, peak_memory_bytes=peak, peak_rank=peak_rank)


def _peak(ranks: Sequence[RankRecords]) -> tuple[int | None, int | None]:
    peaks = [(r.peak_bytes, r.rank) for r in ranks if r.peak_bytes is not None]
    return max(peaks, default=(None, None), key=lambda pair: pair[0] or 0)


def _failure(end: TrialEnd, ranks: Sequence[RankRecords]) -> Outcome | None:
    errors = [error for rank in ranks for error in rank.errors]
    if out_of_memory := next((e for e in errors if _is_oom(e)), None):
        return Outcome(Status.OOM, _out_of_memory(out_of_memory))
    if end.kind is EndKind.FINISHED and not errors:
        return None
    if end.kind in (EndKind.FINISHED, EndKind.RANK_FAILED):
        return Outcome(Status.FAILED, _crash(errors, end))
    status = Status.HUNG if end.kind is EndKind.HUNG else Status.INFRASTRUCTURE
    return Outcome(status, end.reason)


def _out_of_memory(error: RankError) -> str:
    held = "" if error.peak_bytes is None else f" after holding {format_bytes(error.peak_bytes)}"
    return f"rank {error.rank} ran out of memory{held}: {_first_line(error)}"


def _is_oom(error: RankError) -> bool:
    return error.kind == "oom" or bool(_OUT_OF_MEMORY.search(error.message))


def _first_line(error: RankError) -> str:
    return error.message.strip().splitlines()[0] if error.message.strip() else error.kind


# What a rank reports when another one has died: never the cause of the end.
_CONSEQUENCE = re.compile(r"Connection (closed|reset)|closed by peer|Broken pipe", re.IGNORECASE)


def _crash(errors: Sequence[RankError], end: TrialEnd) -> str:
    """The cause of a crash: the error that is no mere consequence of another rank's end."""
    causes = [e for e in errors if not _CONSEQUENCE.search(e.message)] or list(errors)
    if causes:
        return f"rank {causes[0].rank}: {_first_line(causes[0])}"
    own = [exit_ for exit_ in end.exits if exit_.code != 0 and not exit_.by_us]
    return "; ".join(_describe(exit_) for exit_ in own[:1]) or end.reason


def _describe(exit_: RankExit) -> str:
    if exit_.code < 0:
        return f"rank {exit_.rank} was ended by signal {-exit_.code}; see rank{exit_.rank}.log"
    return f"rank {exit_.rank} exited with {exit_.code}; see rank{exit_.rank}.log"


def _measure(ranks: Sequence[RankRecords], settings: JudgeSettings) -> Outcome:
    if len(ranks) < settings.world_size or any(not rank.steps for rank in ranks):
        silent = sorted(set(range(settings.world_size)) - {r.rank for r in ranks if r.steps})
        return Outcome(Status.FAILED, f"no steps were recorded by rank {_list(silent)}")
    count = min(len(rank.steps) for rank in ranks)
    steps = [[rank.steps[number] for rank in ranks] for number in range(count)]
    scored = [
        row for row in steps[settings.warmup_steps :] if not any(step.profiled for step in row)
    ]
    if problem := next(filter(None, (_broken(row) for row in scored)), None):
        return Outcome(Status.FAILED, problem)
    least = max(settings.min_steps, settings.window_steps)
    if len(scored) < least:
        reason = f"{len(scored)} scored steps are too few to measure; at least {least} are needed"
        return Outcome(Status.FAILED, reason)
    # All ranks wait for the slowest, so a step takes as long as its slowest rank.
    times = [max(step.time_s for step in row) for row in scored]
    time = estimate_batch_time(times, settings.window_steps)
    used = scored[: time.steps]
    return Outcome(
        Status.OK,
        "measured",
        batch_time_s=time.mean_s,
        batch_time_ci95_s=time.ci95_s,
        steps=time.steps,
        breakdown_s=_breakdown(used, time.mean_s),
        work=_work(used, settings.window_steps),
    )


def _broken(row: Sequence[StepRecord]) -> str | None:
    for step in row:
        if not (math.isfinite(step.time_s) and step.time_s > 0):
            return f"step {step.step} took {step.time_s} s, which is no time"
        if step.loss is not None and not math.isfinite(step.loss):
            return f"the loss of step {step.step} is not finite"
    return None


def _breakdown(rows: Sequence[Sequence[StepRecord]], mean_s: float) -> dict[str, float] | None:
    """Seconds by phase, the mean over ranks and steps.

    The part of the slowest rank's time that the mean over ranks does not cover is waiting
    for it, and waiting for another rank is communication.
    """
    phases = [step.phases_s for row in rows for step in row if step.phases_s is not None]
    if len(phases) < sum(len(row) for row in rows):
        return None
    breakdown = {name: statistics.fmean(p[name] for p in phases) for name in PHASES}
    rank_mean = statistics.fmean(step.time_s for row in rows for step in row)
    breakdown["communication"] += mean_s - rank_mean
    return breakdown


def _work(rows: Sequence[Sequence[StepRecord]], window_steps: int) -> Work:
    passes = len(rows) // window_steps

    def per_window(name: str) -> int | None:
        counts = [getattr(row[0], name) for row in rows]
        return None if None in counts else sum(counts) // passes

    return Work(per_window("samples"), per_window("tokens"))


def _check_work(outcome: Outcome, baseline: Work | None) -> Outcome:
    if baseline is None or outcome.work is None:
        return outcome
    for name in ("samples", "tokens"):
        expected, done = getattr(baseline, name), getattr(outcome.work, name)
        if expected is not None and done != expected:
            reason = f"did other work: {done} {name} in the data window, the baseline {expected}"
            return replace(outcome, status=Status.FAILED, reason=reason)
    return outcome


def _check_memory(outcome: Outcome, peak: int | None, limit: int) -> Outcome:
    if peak is None:
        reason = "no rank recorded its peak memory, so the limit cannot be checked"
        return replace(outcome, status=Status.FAILED, reason=reason)
    return apply_limit(outcome, peak, limit)


def apply_limit(outcome: Outcome, peak: int, limit: int) -> Outcome:
    """A measurement with its status under a limit on peak memory, both in bytes."""
    if peak <= limit:
        return replace(outcome, status=Status.OK, reason="measured")
    reason = f"peak memory {format_bytes(peak)} is over the limit of {format_bytes(limit)}"
    return replace(outcome, status=Status.OVER_LIMIT, reason=reason)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)

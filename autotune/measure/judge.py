"""Records of all ranks and the end of their processes -> an `Outcome`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.config.quantities import format_bytes
from autotune.measure.arrivals import CLOCK
from autotune.measure.breakdown import breakdown_of
from autotune.measure.failures.diagnose import diagnose
from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.outcome import Failure, Outcome, Status, Work
from autotune.measure.racing import Decision
from autotune.measure.records import RankRecords
from autotune.measure.scored import ScoredSteps, scored_steps
from autotune.measure.shortage import misnumbered, nothing_recorded
from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate, estimate_run
from autotune.measure.work import other_work, work_of
from autotune.ports import DeviceType, EndKind, TrialEnd

ASSUMED_SPREAD = RunSpread(0.03)
"""Between runs of one point, until repeats tell; see docs/adr/0006."""

_LONGEST_WORDS = 200  # of a rank, in a note to a measurement


@dataclass(frozen=True)
class JudgeSettings:
    """What a trial is held against.

    world_size: ranks that must have recorded. warmup_steps: first steps left out as planned;
    what is warm-up after them is found. window_steps: global batches in the data window.
    min_steps: scored steps that a measurement needs. memory_limit_bytes: the limit on any
    rank's peak. spread: between runs of one point. needs_peak: a measurement without a peak is a
    failure, since the limit cannot be checked. printed: by what lines are read, for a person.
    device: that the ranks train on.
    """

    world_size: int
    warmup_steps: int
    window_steps: int
    min_steps: int
    memory_limit_bytes: int
    spread: RunSpread = field(default=ASSUMED_SPREAD)
    needs_peak: bool = True
    device: DeviceType = "cpu"
    printed: object = None


@dataclass(frozen=True)
class Evidence:
    """What is known of a trial besides its records, for the case that it failed.

    logs: each rank's output, by rank, without those that are empty; None where it was not looked
    at. is_baseline: it ran the user's present configuration for the first time, which is known to
    fit elsewhere. note: what a person should know of a good measurement.
    """

    logs: Mapping[int, str] | None = None
    is_baseline: bool = False
    note: str | None = None


NO_EVIDENCE = Evidence()


def judge(
    end: TrialEnd,
    ranks: Sequence[RankRecords],
    settings: JudgeSettings,
    baseline_work: Work | None = None,
    decision: Decision = Decision.GO_ON,
    evidence: Evidence = NO_EVIDENCE,
) -> Outcome:
    """What the trial came to.

    baseline_work: of the baseline's window; a point that does other work has failed.
    decision: what was decided while it ran; a trial that the launcher was told to end for it
    is measured by the steps that it made. evidence: what the records do not say.
    """
    peaks = _peaks(ranks)
    outcome = _failure(end, ranks, settings, decision, evidence) or _beside_the_clock(ranks)
    if outcome is None:
        outcome = _measure(ranks, settings, evidence, decision.ends_at_once)
    if outcome.status is Status.OK:
        outcome = _check_work(outcome, baseline_work, settings.window_steps)
    if outcome.status is Status.OK:
        outcome = _check_memory(outcome, peaks.bytes, settings)
    if outcome.status is Status.OK and decision is Decision.LOSES and end.kind is EndKind.STOPPED:
        reason = f"cannot win: stopped after {outcome.steps} scored steps"
        outcome = replace(outcome, status=Status.STOPPED, reason=reason)
    if outcome.status is Status.OK and evidence.note:
        outcome = replace(outcome, reason=f"{outcome.reason}; {evidence.note}")
    if outcome.status in (Status.OK, Status.STOPPED) and (words := _odd_end(end, ranks)):
        outcome = replace(outcome, reason=f"{outcome.reason}; {words}")
    return replace(
        outcome,
        peak_memory_bytes=peaks.bytes,
        peak_rank=peaks.rank,
        peak_device_bytes=peaks.device_bytes,
        alloc_retries=max((rank.alloc_retries for rank in ranks), default=0),
    )


def measure_run(ranks: Sequence[RankRecords], settings: JudgeSettings) -> RunEstimate | None:
    """The estimate of a run that may still go on, None while there is none."""
    scored = scored_steps(ranks, settings.warmup_steps, settings.window_steps)
    if scored.broken or not _covers(scored, settings.window_steps):
        return None
    return estimate_run(scored.steps, settings.window_steps)


def is_over_limit(ranks: Sequence[RankRecords], settings: JudgeSettings) -> bool:
    """Whether a rank has held more memory than the limit allows."""
    peak = _peaks(ranks).bytes
    return peak is not None and peak > settings.memory_limit_bytes


@dataclass(frozen=True)
class _Peaks:
    bytes: int | None
    rank: int | None
    device_bytes: int | None


def _peaks(ranks: Sequence[RankRecords]) -> _Peaks:
    """What the allocator does not hold, such as HCCL's and CANN's buffers, the device has."""
    both = [
        (peak, rank.rank)
        for rank in ranks
        for peak in (rank.peak_bytes, rank.peak_device_bytes)
        if peak is not None
    ]
    device = [r.peak_device_bytes for r in ranks if r.peak_device_bytes is not None]
    largest, rank = max(both, default=(None, None), key=lambda pair: pair[0] or 0)
    return _Peaks(largest, rank, max(device, default=None))


def _failure(
    end: TrialEnd,
    ranks: Sequence[RankRecords],
    settings: JudgeSettings,
    decision: Decision,
    evidence: Evidence,
) -> Outcome | None:
    if end.kind is EndKind.STOPPED and decision is not Decision.GO_ON:
        return None  # what ranks say while they are ended is no cause
    told = [
        RankEvidence(
            rank.rank,
            tuple(error for error in rank.errors if error.kind != CLOCK),
            (evidence.logs or {}).get(rank.rank, ""),
            len(rank.steps),
            rank.peak_bytes,
        )
        for rank in ranks
    ]
    found = diagnose(told, end, device=settings.device, is_baseline=evidence.is_baseline)
    if found is None:
        return None
    failure = Failure(found.kind.value, found.policy.value, found.advice, found.where, found.rank)
    return Outcome(found.status, found.reason, failure=failure)


def _beside_the_clock(ranks: Sequence[RankRecords]) -> Outcome | None:
    """The failure of a run whose printed times cannot be true, however it was ended."""
    wrong = (error for rank in ranks for error in rank.errors if error.kind == CLOCK)
    first = next(wrong, None)
    return None if first is None else Outcome(Status.FAILED, first.message)


def _odd_end(end: TrialEnd, ranks: Sequence[RankRecords]) -> str | None:
    """How a rank ended that was no longer needed and failed by itself, None where none did.

    Its steps were enough, and it is not known to have failed before their end; a person may want
    to know what a training with the point ends with. What ranks do when they are ended is nothing.
    """
    if end.kind is not EndKind.STOPPED:
        return None
    errors = [error for rank in ranks for error in rank.errors]
    odd = next((one for one in end.exits if one.code != 0 and not one.by_us), None)
    if odd is not None:
        how = f"exit code {odd.code}" if odd.code > 0 else f"signal {-odd.code}"
        told = next((error.message for error in errors if error.rank == odd.rank), "")
        return f"after its last step rank {odd.rank} ended with {how}{_said(told)}"
    # No signal of ours makes a rank run out of memory.
    oom = next((error for error in errors if error.kind == "oom"), None)
    if oom is not None:
        return f"after its last step rank {oom.rank} ran out of memory{_said(oom.message)}"
    return None


def _said(message: str) -> str:
    words = " ".join(message.split())
    return f": {words[:_LONGEST_WORDS]}" if words else ""


def _measure(
    ranks: Sequence[RankRecords],
    settings: JudgeSettings,
    evidence: Evidence = NO_EVIDENCE,
    is_short: bool = False,
) -> Outcome:
    if len(ranks) < settings.world_size or any(not rank.steps for rank in ranks):
        silent = sorted(set(range(settings.world_size)) - {r.rank for r in ranks if r.steps})
        return Outcome(Status.FAILED, nothing_recorded(silent, settings.printed, evidence.logs))
    scored = scored_steps(ranks, settings.warmup_steps, settings.window_steps)
    if scored.broken:
        return Outcome(Status.FAILED, scored.broken)
    if is_short and not _covers(scored, settings.window_steps):
        scored = scored.with_warmup()
    least = 1 if is_short else settings.min_steps
    if too_few := _too_few(scored, least, settings.window_steps):
        wrong = misnumbered(ranks, settings.printed, evidence.logs, least)
        return Outcome(Status.FAILED, f"{too_few}: {wrong}" if wrong else too_few)
    run = estimate_run(scored.steps, settings.window_steps)
    used = scored.rows_of(run.used)
    return Outcome(
        Status.OK,
        "measured",
        batch_time_s=run.mean_s,
        batch_time_ci95_s=interval95(run, settings.spread),
        steps=run.steps,
        warmup_steps=scored.warmup_steps,
        slow_steps=run.slow_steps,
        within_error_s=run.error_s,
        breakdown_s=breakdown_of(used, run.mean_s, settings.window_steps),
        work=work_of(scored.rows, used, settings.window_steps),
    )


def _too_few(scored: ScoredSteps, min_steps: int, window_steps: int) -> str | None:
    """Why the scored steps give no time. Warm-up that was found may take some of them."""
    least = max(min_steps, window_steps)
    count = len(scored.steps) + scored.warmup_steps
    short = sum(number for _, number in scored.short)
    covers = _covers(scored, window_steps)
    if count >= least and covers and short <= count:
        return None
    if scored.short:
        cause, number = scored.short[0]
        return f"{short} of {count + short} steps did not do their full work: {cause} ({number})"
    if count >= least:
        return f"{len(scored.steps)} steps after the warm-up do not cover the data window"
    are = "step is" if count == 1 else "steps are"
    needed = "1 is" if least == 1 else f"{least} are"
    return f"{count} scored {are} too few to measure; at least {needed} needed"


def _covers(scored: ScoredSteps, window_steps: int) -> bool:
    return len({step.place for step in scored.steps}) == window_steps


def _check_work(outcome: Outcome, baseline: Work | None, window_steps: int) -> Outcome:
    if baseline is None or outcome.work is None:
        return outcome
    reason = other_work(outcome.work, baseline, window_steps)
    return outcome if reason is None else replace(outcome, status=Status.FAILED, reason=reason)


def _check_memory(outcome: Outcome, peak: int | None, settings: JudgeSettings) -> Outcome:
    if peak is not None:
        return apply_limit(outcome, peak, settings.memory_limit_bytes)
    if not settings.needs_peak:
        return replace(outcome, reason=_measured(outcome))
    reason = "no rank recorded its peak memory, so the limit cannot be checked"
    return replace(outcome, status=Status.FAILED, reason=reason)


def apply_limit(outcome: Outcome, peak: int, limit: int) -> Outcome:
    """A measurement with its status under a limit on peak memory, both in bytes."""
    if peak <= limit:
        return replace(outcome, status=Status.OK, reason=_measured(outcome))
    reason = f"peak memory {format_bytes(peak)} is over the limit of {format_bytes(limit)}"
    return replace(outcome, status=Status.OVER_LIMIT, reason=reason)


def _measured(outcome: Outcome) -> str:
    """What a person should know of a measurement that is good."""
    notes = []
    if outcome.batch_time_ci95_s is None:
        notes.append(f"{outcome.steps} steps are too few for an interval")
    if outcome.warmup_steps:
        notes.append(f"{outcome.warmup_steps} more steps of warm-up left out")
    if outcome.slow_steps:
        notes.append(f"{outcome.slow_steps} disturbed steps left out")
    return "; ".join(["measured", *notes])

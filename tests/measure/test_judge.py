"""What a trial comes to, from the records that its ranks leave."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from autotune.measure.judge import Evidence, JudgeSettings, judge
from autotune.measure.outcome import Outcome, Status, Work
from autotune.measure.racing import Decision
from autotune.measure.records import RankRecords, parse_rank_records
from autotune.ports import EndKind, RankExit, TrialEnd

SETTINGS = JudgeSettings(
    world_size=2, warmup_steps=2, window_steps=2, min_steps=4, memory_limit_bytes=1000
)


def step(number: int, time_s: Any = 1.0, **changes: Any) -> dict[str, Any]:
    phases = {"forward_backward": 0.7, "optimizer": 0.1, "communication": 0.2}
    return {
        "event": "step",
        "step": number,
        "time_s": time_s,
        "samples": 16,
        "tokens": 100,
        "loss": 2.0,
        "phases_s": phases,
        "peak_allocated_bytes": 800,
        "peak_reserved_bytes": 900,
        **changes,
    }


def rank(number: int, *events: dict[str, Any]) -> RankRecords:
    lines = [json.dumps(event) for event in ({"event": "start"}, *events)]
    return parse_rank_records(number, lines)


def run(
    *ranks: RankRecords,
    kind: EndKind = EndKind.FINISHED,
    exits: tuple[RankExit, ...] = (),
    baseline_work: Work | None = None,
) -> Outcome:
    end = TrialEnd(3, kind, "as the launcher says", 0.0, 9.0, exits)
    return judge(end, ranks, SETTINGS, baseline_work)


def good(number: int, **changes: Any) -> RankRecords:
    return rank(number, *(step(n, **changes) for n in range(6)))


def test_a_good_run_is_measured() -> None:
    slow_first = [step(0, 50.0), step(1, 9.0), *(step(n, 1.0 + n % 2) for n in range(2, 8))]
    outcome = run(rank(0, *slow_first), rank(1, *slow_first))
    assert outcome.status is Status.OK
    assert outcome.batch_time_s == pytest.approx(1.5)
    assert outcome.steps == 6
    assert (outcome.peak_memory_bytes, outcome.peak_rank) == (900, 0)
    assert outcome.work == Work(samples=32, tokens=200, losses=(2.0, 2.0))
    low, high = outcome.batch_time_ci95_s or (0.0, 0.0)
    assert low < 1.5 < high  # separate runs differ, however even the steps of this one are


def test_warm_up_beyond_the_plan_is_found_and_said() -> None:
    events = [step(n, 9.0 if n < 4 else 1.0) for n in range(12)]
    outcome = run(rank(0, *events), rank(1, *events))
    assert outcome.batch_time_s == pytest.approx(1.0)
    assert (outcome.warmup_steps, outcome.steps) == (2, 8)
    assert outcome.reason == "measured; 2 more steps of warm-up left out"


def test_a_run_too_short_for_an_interval_says_so() -> None:
    settings = replace(SETTINGS, min_steps=2)
    end = TrialEnd(3, EndKind.FINISHED, "", 0.0, 9.0)
    ranks = [rank(n, *(step(k) for k in range(4))) for n in range(2)]
    outcome = judge(end, ranks, settings)
    assert (outcome.status, outcome.batch_time_ci95_s) == (Status.OK, None)
    assert outcome.reason == "measured; 2 steps are too few for an interval"


def test_a_step_takes_as_long_as_its_slowest_rank() -> None:
    outcome = run(good(0, time_s=1.0), good(1, time_s=1.5))
    assert outcome.batch_time_s == pytest.approx(1.5)
    assert outcome.breakdown_s is not None
    assert outcome.breakdown_s["forward_backward"] == pytest.approx(0.7)
    assert outcome.breakdown_s["communication"] == pytest.approx(0.2 + 0.25)  # waiting for rank 1


def test_profiled_steps_are_not_scored() -> None:
    events = [step(n, 7.0 if n == 3 else 1.0, profiled=n == 3) for n in range(8)]
    assert run(rank(0, *events), rank(1, *events)).batch_time_s == pytest.approx(1.0)


def test_the_peak_is_the_largest_of_any_rank() -> None:
    outcome = run(good(0), good(1, peak_reserved_bytes=990))
    assert (outcome.peak_memory_bytes, outcome.peak_rank) == (990, 1)


def test_over_the_limit_is_measured_and_infeasible() -> None:
    outcome = run(good(0), good(1, peak_reserved_bytes=1001))
    assert outcome.status is Status.OVER_LIMIT
    assert outcome.batch_time_s == pytest.approx(1.0)
    assert "over the limit" in outcome.reason


@pytest.mark.parametrize(
    "error",
    [
        {"kind": "oom", "message": "no memory"},
        {
            "kind": "exception",
            "message": "RuntimeError: DefaultCPUAllocator: can't allocate memory",
        },
        {
            "kind": "exception",
            "message": "RuntimeError: NPU out of memory. Tried to allocate 2 GiB",
        },
        {"kind": "exception", "message": "torch.cuda.OutOfMemoryError: CUDA out of memory."},
    ],
)
def test_out_of_memory_on_any_rank(error: dict[str, str]) -> None:
    peer = {"event": "error", "kind": "exception", "message": "Connection closed by peer"}
    outcome = run(
        rank(0, step(0), peer),
        rank(1, step(0), {"event": "error", **error}),
        kind=EndKind.RANK_FAILED,
    )
    assert outcome.status is Status.OOM
    assert outcome.reason == f"rank 1 ran out of memory after holding 900 B: {error['message']}"


def test_memory_of_the_host_is_no_property_of_the_device() -> None:
    error = {"kind": "exception", "message": "Malloc pin memory failed, host out of memory"}
    outcome = run(good(0), rank(1, step(0), {"event": "error", **error}), kind=EndKind.RANK_FAILED)
    assert outcome.status is Status.FAILED
    assert "pinned host memory" in outcome.reason


def test_a_baseline_that_runs_out_of_memory_makes_the_machine_suspect() -> None:
    """It is what the user trains with. On the second attempt the point is taken by its word."""
    error = {"event": "error", "kind": "oom", "message": "NPU out of memory. Tried to allocate"}
    ranks = [rank(0, step(0), error), good(1)]
    end = TrialEnd(0, EndKind.RANK_FAILED, "rank 0 exited with 1", 0.0, 1.0)
    first = judge(end, ranks, SETTINGS, evidence=Evidence(is_baseline=True))
    assert first.status is Status.INFRASTRUCTURE
    assert first.failure is not None
    assert first.failure.policy == "suspect_device"
    assert judge(end, ranks, SETTINGS).status is Status.OOM


def test_the_log_tells_the_cause_where_no_rank_recorded_one() -> None:
    log = (
        "Traceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate\n"
    )
    end = TrialEnd(0, EndKind.RANK_FAILED, "", 0.0, 1.0, (RankExit(1, 1),))
    outcome = judge(end, [good(0), good(1)], SETTINGS, evidence=Evidence({1: log}))
    assert outcome.status is Status.OOM
    assert outcome.failure is not None
    assert outcome.failure.where == "rank1.log"


def test_a_crash_is_told_by_its_cause_and_not_by_its_consequence() -> None:
    peer = {"event": "error", "kind": "exception", "message": "Connection closed by peer [::1]"}
    cause = {"event": "error", "kind": "exception", "message": "KeyError: 'learning_rate'"}
    outcome = run(rank(0, peer), rank(1, cause), kind=EndKind.RANK_FAILED)
    assert (outcome.status, outcome.reason) == (
        Status.FAILED,
        "rank 1 failed: KeyError: 'learning_rate'",
    )


def test_a_rank_that_is_killed_is_named() -> None:
    exits = (RankExit(0, -15, by_us=True), RankExit(1, -11))
    outcome = run(good(0), good(1), kind=EndKind.RANK_FAILED, exits=exits)
    assert outcome.reason == "rank 1 failed: rank 1 was ended by SIGSEGV"


@pytest.mark.parametrize(
    ("kind", "status"), [(EndKind.HUNG, Status.HUNG), (EndKind.LOST, Status.INFRASTRUCTURE)]
)
def test_what_the_launcher_says_is_kept(kind: EndKind, status: Status) -> None:
    outcome = run(good(0), good(1), kind=kind)
    assert outcome.status is status
    assert "as the launcher says" in outcome.reason


@pytest.mark.parametrize("time_s", [0.0, -1.0, None, "1", float("nan"), float("inf")])
def test_no_time_is_a_failure(time_s: object) -> None:
    outcome = run(good(0), rank(1, *(step(n, time_s if n == 4 else 1.0) for n in range(6))))
    assert outcome.status is Status.FAILED
    assert "step 4" in outcome.reason
    assert outcome.batch_time_s is None


@pytest.mark.parametrize(
    "short",
    [
        {"loss": None},
        {"loss": float("nan")},
        {"loss": float("inf")},
        {"grad_norm": None},
        {"grad_norm": float("nan")},
        {"skipped": True},
    ],
)
def test_a_step_short_of_its_work_never_counts(short: dict[str, Any]) -> None:
    """Skipped updates are fast: they must not make a point look fast."""
    events = [step(n, **({"time_s": 0.1, **short} if n in (3, 4) else {})) for n in range(10)]
    outcome = run(rank(0, *events), rank(1, *events))
    assert outcome.status is Status.OK
    assert outcome.batch_time_s == pytest.approx(1.0)
    assert outcome.steps == 6


def test_a_run_that_mostly_falls_short_is_a_failure_with_the_cause() -> None:
    outcome = run(good(0, loss=None), good(1, loss=None))
    assert outcome.status is Status.FAILED
    assert outcome.reason == ("4 of 4 steps did not do their full work: its loss is not finite (4)")


def test_a_trial_that_was_told_to_end_is_measured_by_what_it_did() -> None:
    end = TrialEnd(3, EndKind.STOPPED, "the trial was stopped", 0.0, 9.0)
    ranks = [good(0), good(1)]
    loser = judge(end, ranks, SETTINGS, decision=Decision.LOSES)
    assert (loser.status, loser.batch_time_s) == (Status.STOPPED, 1.0)
    assert "cannot win" in loser.reason
    assert judge(end, ranks, SETTINGS, decision=Decision.ENOUGH).status is Status.OK
    assert judge(end, ranks, SETTINGS).status is Status.INFRASTRUCTURE


def test_the_device_may_have_more_in_use_than_the_allocator() -> None:
    outcome = run(good(0), good(1, peak_device_bytes=1100))
    assert outcome.status is Status.OVER_LIMIT
    assert (outcome.peak_memory_bytes, outcome.peak_rank) == (1100, 1)
    assert outcome.peak_device_bytes == 1100


def test_too_few_steps_are_a_failure() -> None:
    outcome = run(rank(0, *(step(n) for n in range(5))), good(1))
    assert outcome.status is Status.FAILED
    assert "3 scored steps are too few" in outcome.reason


def test_a_silent_rank_is_named() -> None:
    assert run(good(0), rank(1)).reason == "no steps were recorded by rank 1"


def test_a_run_that_does_less_work_fails() -> None:
    outcome = run(good(0), good(1), baseline_work=Work(samples=32, tokens=300))
    assert outcome.status is Status.FAILED
    assert "200 tokens in the data window, the baseline 300" in outcome.reason


def test_a_run_without_memory_figures_cannot_be_feasible() -> None:
    blind = {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    assert run(good(0, **blind), good(1, **blind)).status is Status.FAILED


@pytest.mark.parametrize("phases", [{"optimizer": None}, {"optimizer": -1.0}, [1], "x"])
def test_phases_that_are_no_numbers_are_no_phases(phases: object) -> None:
    outcome = run(good(0, phases_s=phases), good(1))
    assert (outcome.status, outcome.breakdown_s) == (Status.OK, None)


def test_phases_that_overlap_still_add_up() -> None:
    phases = {"forward_backward": 3.0, "communication": 1.0}
    breakdown = run(good(0, phases_s=phases), good(1, phases_s=phases)).breakdown_s
    assert breakdown is not None
    assert sum(breakdown.values()) == pytest.approx(1.0)
    assert breakdown["forward_backward"] == pytest.approx(0.75)


def test_a_line_that_is_missing_on_one_rank_does_not_shift_the_others() -> None:
    events = [step(n, 1.0 + n % 2) for n in range(10)]
    outcome = run(rank(0, *events), rank(1, *events[:3], *events[4:]))
    assert outcome.batch_time_s == pytest.approx(1.5)


def test_lines_that_a_kill_cuts_are_passed_over() -> None:
    lines = ['{"event": "start"}', json.dumps(step(0)), '{"event": "step", "ti', "", "[1]", "null"]
    records = parse_rank_records(0, lines)
    assert records.started
    assert len(records.steps) == 1


def test_lines_that_tell_no_step_are_told_with_what_reads_them() -> None:
    settings = replace(SETTINGS, printed=r"step (?P<step>\d+) (?P<time>[\d.]+)s")
    end = TrialEnd(3, EndKind.FINISHED, "every rank exited with 0", 0.0, 9.0)
    reason = judge(end, [rank(0), rank(1)], settings).reason
    assert "no line was read as a step" in reason
    assert "trainer.printed=" in reason
    assert "time_s" in reason


def ended(*exits: RankExit, errors: tuple[dict[str, Any], ...] = ()) -> Outcome:
    """A run that had made its steps, and ended so while it was told to."""
    end = TrialEnd(3, EndKind.STOPPED, "the trial was stopped", 0.0, 9.0, exits)
    ranks = [good(0), rank(1, *(step(n) for n in range(6)), *errors)]
    return judge(end, ranks, SETTINGS, decision=Decision.ENOUGH)


def test_an_odd_end_after_the_last_step_is_noted() -> None:
    error = {"event": "error", "kind": "ValueError", "message": "cannot save\nhere"}
    outcome = ended(RankExit(0, -15, by_us=True), RankExit(1, 3), errors=(error,))
    assert outcome.status is Status.OK
    assert outcome.reason.endswith(
        "; after its last step rank 1 ended with exit code 3: cannot save here"
    )
    assert ended(RankExit(1, -11)).reason.endswith("rank 1 ended with signal 11")


def test_memory_that_runs_out_after_the_last_step_is_noted() -> None:
    error = {"event": "error", "kind": "oom", "message": "out of memory"}
    reason = ended(RankExit(1, -15, by_us=True), errors=(error,)).reason
    assert reason.endswith("; after its last step rank 1 ran out of memory: out of memory")


def test_what_a_rank_does_when_it_is_ended_is_no_note() -> None:
    error = {"event": "error", "kind": "exception", "message": "KeyboardInterrupt"}
    outcome = ended(RankExit(0, 0), RankExit(1, 1, by_us=True), errors=(error,))
    assert "after its last step" not in outcome.reason


def test_a_run_that_loses_is_noted_alike() -> None:
    end = TrialEnd(3, EndKind.STOPPED, "", 0.0, 9.0, (RankExit(1, 3),))
    reason = judge(end, [good(0), good(1)], SETTINGS, decision=Decision.LOSES).reason
    assert reason == (
        "cannot win: stopped after 4 scored steps; "
        "after its last step rank 1 ended with exit code 3"
    )


@pytest.mark.parametrize("time_s", [9.9e-7, 1e-9, 8e-308, 5e-324])
def test_a_time_below_a_microsecond_is_no_time_of_a_step(time_s: float) -> None:
    outcome = run(good(0, time_s=time_s), good(1, time_s=time_s))
    assert (outcome.status, outcome.batch_time_s) == (Status.FAILED, None)
    assert len(outcome.reason) < 80

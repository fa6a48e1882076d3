"""Why a run has no steps, or too few, as a person is told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from autotune.measure.judge import Evidence, JudgeSettings, judge
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.reader import read_log
from autotune.measure.outcome import Outcome, Status
from autotune.measure.records import RankRecords, StepRecord
from autotune.ports import EndKind, TrialEnd

PATTERN = r"step (?P<step>\d+)/\d+ \| (?P<time_ms>\S+) ms"
END = TrialEnd(3, EndKind.FINISHED, "every rank exited with 0", 0.0, 9.0)


def outcome(log: str | None, ranks: int = 1, printed: object = PATTERN) -> Outcome:
    """Of a program that printed this, None where nobody has looked at what it printed."""
    settings = JudgeSettings(ranks, 3, 1, 8, 1000, needs_peak=False, printed=printed)
    steps: tuple[StepRecord, ...] = ()
    if log is not None and printed is not None:
        read = read_log(format_of(printed, "trainer.printed"), log.encode()).last_run
        steps = tuple(StepRecord(one.step, one.time_s or 0.0) for one in read)
    logs = None if log is None else ({0: log} if log else {})
    records = [RankRecords(rank, True, True, steps) for rank in range(ranks)]
    return judge(END, records, settings, evidence=Evidence(logs))


def lines(numbers: Iterable[int], times: int = 1) -> str:
    return "".join(f"step {n}/19 | 20.00 ms\n" * times for n in numbers)


def test_a_program_that_prints_nothing_is_told_so() -> None:
    for log in ("", "\n \n"):
        reason = outcome(log).reason
        assert reason == (
            "no steps were recorded by rank 0: the program ended without printing anything"
        )
    silent = outcome("", printed=None).reason
    assert silent == (
        "no steps were recorded by rank 0, and the program ended without printing anything"
    )


def test_a_program_whose_lines_are_not_read_is_told_by_its_last_one() -> None:
    reason = outcome("step 1/2 | 0.00 ms\n\x1b[32mstep 2/2 | 0.00 ms\x1b[0m\x00\n\n").reason
    assert "no line was read as a step with a time" in reason
    assert reason.endswith("the last line that it printed is: step 2/2 | 0.00 ms")
    assert "must be above 0" in reason
    assert len(outcome("x" * 10_000).reason) < 700


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (PATTERN, f"trainer.printed='{PATTERN}';"),
        ([PATTERN, "a'b (?P<step>x)"], f"trainer.printed=['{PATTERN}', 'a''b (?P<step>x)'];"),
        ({"step": PATTERN}, f"trainer.printed={{step: '{PATTERN}'}};"),
        ("megatron", "trainer.printed='megatron';"),
    ],
)
def test_expressions_are_shown_as_they_were_given(printed: object, shown: str) -> None:
    settings = JudgeSettings(1, 3, 1, 8, 1000, printed=printed)
    reason = judge(END, [RankRecords(0)], settings, evidence=Evidence({0: "hello"})).reason
    assert shown in reason
    assert "\\\\" not in reason


def test_without_a_look_at_the_output_nothing_is_said_of_it() -> None:
    assert "printed" not in outcome(None, printed=None).reason


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11], "2, 1, 4, 3, 6, 5, ..."),
        ([1] * 19, "1, 1, 1, 1, 1, 1, ..."),
        (range(19, 0, -1), "19, 18, 17, 16, 15, 14, ..."),
    ],
)
def test_steps_that_are_not_counted_upwards_are_named(numbers: Iterable[int], shown: str) -> None:
    found = outcome(lines(numbers))
    assert found.status is Status.FAILED
    assert f"with the numbers {shown}: each needs a number above" in found.reason


def test_records_with_one_number_for_all_steps() -> None:
    settings = JudgeSettings(1, 3, 1, 8, 1000)
    steps = tuple(StepRecord(7, 0.02) for _ in range(16))
    reason = judge(END, [RankRecords(0, steps=steps)], settings).reason
    assert "16 steps were told, with the numbers 7, 7, 7, 7, 7, 7, ..." in reason


@pytest.mark.parametrize(
    "log",
    [
        lines([1, 2, 3, 4]),
        lines([1, 2, 3, 4], times=4),  # by four ranks
        lines([1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]),  # torchrun has started it again, twice
    ],
)
def test_few_steps_in_their_order_are_just_few(log: str) -> None:
    reason = outcome(log).reason
    assert reason == "1 scored step is too few to measure; at least 8 are needed"

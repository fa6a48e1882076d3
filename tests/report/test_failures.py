"""Every trial that came to nothing is in the table of failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from autotune.measure.arrivals import CLOCK, contradiction
from autotune.measure.judge import Evidence, JudgeSettings, judge
from autotune.measure.outcome import Outcome, Status, Work
from autotune.measure.records import parse_rank_records
from autotune.ports import EndKind, TrialEnd
from autotune.report.failures import failures_section
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord

END = TrialEnd(0, EndKind.FINISHED, "every rank exited with 0", 0.0, 9.0)
WRONG = contradiction({n: n / 20 for n in range(20)}, dict.fromkeys(range(20), 0.001))


def outcome(*events: Mapping[str, Any], needs_peak: bool = False) -> Outcome:
    """As the judge has it of a run that ended well."""
    settings = JudgeSettings(1, 2, 2, 4, 1000, needs_peak=needs_peak)
    ranks = [parse_rank_records(0, map(json.dumps, events))]
    return judge(END, ranks, settings, Work(32, None), evidence=Evidence({0: "hello"}))


def steps(count: int = 8, **changes: Any) -> list[dict[str, Any]]:
    usual = {"event": "step", "time_s": 1.0, "samples": 16}
    return [{"step": number, **usual, **changes} for number in range(count)]


def trial(number: int, found: Outcome) -> TrialRecord:
    return TrialRecord(number, Point({"a": number}), found, 9.0, 0.0, 9.0, 1, "f")


def rows(*found: Outcome) -> list[list[str]]:
    text = failures_section([trial(number, one) for number, one in enumerate(found)])
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][
        1:
    ]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (outcome(), "no steps"),
        (outcome(*steps(3)), "too few steps"),
        (outcome(*steps(loss=float("nan"))), "short of work"),
        (outcome(*steps(skipped=True)), "short of work"),
        (outcome(*steps(samples=8)), "other work"),
        (outcome(*steps(samples=None)), "other work"),
        (outcome(*steps(time_s=0.0)), "no time"),
        (outcome(*steps(time_s=1e-9)), "no time"),
        (outcome(*steps(step=4)), "step numbers"),
        (outcome(*steps(), needs_peak=True), "no peak memory"),
        (outcome(*steps(), {"event": "error", "kind": CLOCK, "message": WRONG}), "no true time"),
    ],
)
def test_what_the_judge_refuses_has_a_row_with_what_to_do(found: Outcome, kind: str) -> None:
    assert found.status is Status.FAILED
    assert found.failure is None
    ((named, trials, time, _, where, advice),) = rows(found)
    assert (named, trials, time, where) == (kind, "0", "9 s", "trials/0000")
    assert advice.endswith((".", "?"))


def test_no_trial_that_came_to_nothing_is_left_out() -> None:
    reasons = ["step 4 took nan s, which is no time of a step", "something new: 17 of it", "x"]
    found = [Outcome(Status.FAILED, reason) for reason in reasons]
    found += [Outcome(one, "an old line") for one in (Status.OOM, Status.HUNG)]
    found += [Outcome(Status.INFRASTRUCTURE, "an old line"), outcome(*steps(3)), outcome()]
    found += [Outcome(one, "fine") for one in (Status.OK, Status.OVER_LIMIT, Status.STOPPED)]
    listed = [number for row in rows(*found) for number in row[1].split(", ")]
    assert sorted(map(int, listed)) == list(range(8))


def test_failures_of_an_unknown_sort_go_together_by_their_first_words() -> None:
    found = [
        Outcome(Status.FAILED, f"rank {n} saw {n}0 ghosts: in room {n}, at {n} o'clock")
        for n in range(3)
    ]
    ((kind, trials, *_),) = rows(*found)
    assert (kind, trials) == ("saw N ghosts", "0, 1, 2")

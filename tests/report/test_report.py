"""What a person reads in the morning, and the table that programs read."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest

from autotune.certify.contest import contest_key
from autotune.certify.results import Results
from autotune.certify.settings import CertifySettings
from autotune.measure.outcome import Failure, Outcome, Status
from autotune.measure.records import PHASES
from autotune.report.gate import GateSummary
from autotune.report.markdown import ReportContext, report_markdown
from autotune.report.table import trials_table
from autotune.space.point import Point
from autotune.study.events import Event
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import GateNote, TrialRecord

BASELINE = Point({"sp_degree": 1, "order": "none"})
FASTER = Point({"sp_degree": 2, "sp_algorithm": "ring", "order": "a|b"})
CONTEXT = ReportContext(
    "night",
    "tiny",
    BASELINE,
    1000 << 20,
    1200 << 20,
    "40",
    "8 steps",
    "studies/night",
    "cpu",
    {"torch": "2"},
)


def report(*records: TrialRecord) -> str:
    return report_markdown(Results(records, (), BASELINE, CertifySettings()), CONTEXT)


def record(
    trial: int,
    point: Point,
    time_s: float | None,
    status: Status = Status.OK,
    reason: str = "measured",
) -> TrialRecord:
    breakdown = None if time_s is None else {phase: time_s / len(PHASES) for phase in PHASES}
    interval = None if time_s is None else (time_s * 0.99, time_s * 1.01)
    outcome = Outcome(
        status,
        reason,
        batch_time_s=time_s,
        batch_time_ci95_s=interval,
        steps=8,
        peak_memory_bytes=900 << 20,
        peak_rank=1,
        breakdown_s=breakdown,
    )
    return TrialRecord(trial, point, outcome, 9.0, 0.0, 9.0, 1, "f")


def test_the_verdict_says_what_was_gained_and_what_to_change() -> None:
    text = report(record(0, BASELINE, 0.4), record(1, FASTER, 0.2))
    assert "trial 1: **200.0 ms** per global batch" in text
    assert "**2.00 times as fast as the baseline**" in text
    assert "| sp_algorithm | (inactive) | ring |" in text
    assert "| order | none | a\\|b |" in text
    assert "| forward backward | 66.7 ms (17%) | 33.3 ms (17%) |" in text
    assert "2 of 40 legal points were tried" in text


def test_a_baseline_that_nothing_beats_is_to_be_kept() -> None:
    text = report(record(0, BASELINE, 0.2), record(1, FASTER, 0.4))
    assert "**Keep your baseline**" in text
    assert "What to change" not in text


def test_a_baseline_over_the_limit_shows_its_time() -> None:
    over = record(0, BASELINE, 0.4, Status.OVER_LIMIT, "peak memory is over")
    text = report(over, record(1, FASTER, 0.2))
    assert "The baseline took 400.0 ms, but cannot be used (over_limit" in text


def test_a_gain_within_the_noise_is_no_gain() -> None:
    text = report(record(0, BASELINE, 0.2), record(1, FASTER, 0.199))
    assert "within the noise: **keep your baseline**" in text


def repeated(number: int, point: Point, time_s: float, round_: int, contest: str) -> Repeat:
    made = record(number, point, time_s)
    return Repeat(Role.CERTIFY, replace(made, started_at=20.0 * number), contest, round_)


def certified() -> Results:
    records = (record(0, BASELINE, 0.4), record(1, FASTER, 0.2))
    contest = contest_key([BASELINE, FASTER])
    runs = [
        repeated(2 * r + n, point, time_s * (1 + 0.01 * r), r, contest)
        for r in range(3)
        for n, (point, time_s) in enumerate([(BASELINE, 0.4), (FASTER, 0.2)])
    ]
    return Results(records, tuple(runs), BASELINE, CertifySettings(max_rechecks=0))


def test_a_certified_winner_says_what_the_verdict_rests_on() -> None:
    text = report_markdown(certified(), CONTEXT)
    assert "Certified: finalists and baseline were run again, in turns, 3 times" in text
    assert "| 0 (baseline) | 404.0 ms | 1.000 (1.000 to 1.000) | 3 |" in text
    assert "| 1 | 202.0 ms | 2.000 (2.000 to 2.000) | 3 |" in text
    assert "## The machine meanwhile" in text


def test_the_bottleneck_is_named_with_what_addresses_it() -> None:
    text = report_markdown(certified(), CONTEXT)
    assert "### The bottleneck of the baseline" in text
    assert "### The bottleneck of the best" in text
    assert "**The device waits for data** (data loading: 67.3 ms of 404.0 ms a step (17%))" in text


def test_nothing_feasible_is_said_with_the_causes() -> None:
    tried = [
        record(0, BASELINE, None, Status.OOM, "rank 1: no memory"),
        record(1, FASTER, None, Status.FAILED, "rank 0: KeyError"),
    ]
    text = report(*tried)
    assert "**No feasible configuration was found.**" in text
    assert "| oom | 1 | 9 s | ran out of memory | rank 1: no memory |" in text


def failed(trial: int, kind: str, reason: str, where: str, status: Status) -> TrialRecord:
    one = record(trial, FASTER, None, status, reason)
    why = Failure(kind, "never_again", f"mend the {kind}", where)
    return replace(one, outcome=replace(one.outcome, failure=why))


def test_failures_are_told_by_kind_with_cause_place_and_advice() -> None:
    tried = [
        failed(2, "data_error", "rank 0: no such file", "rank0.log", Status.FAILED),
        *(
            failed(n, "device_oom", f"rank {n} ran out", "launcher", Status.OOM)
            for n in range(3, 11)
        ),
        replace(failed(11, "hung", "old", "rank1.log", Status.HUNG), taken_from={"study": "older"}),
    ]
    section = report(*tried).split("## What failed, by kind")[1].split("##")[0]
    rows = [line for line in section.splitlines() if line.startswith("| d")]
    assert rows == [
        "| device_oom | 3, 4, 5, 6, 7, 8, 2 more | 72 s | rank 3 ran out | launcher "
        "| mend the device_oom |",
        "| data_error | 2 | 9 s | rank 0: no such file | trials/0002/rank0.log "
        "| mend the data_error |",
    ]
    assert "hung" not in section
    assert "by kind" not in report(record(0, BASELINE, 1.0))


def test_an_empty_study_has_a_report() -> None:
    assert "No trial has finished." in report()


def test_the_table_has_a_row_a_trial_and_empty_cells_where_nothing_is_known() -> None:
    records = [record(1, FASTER, None, Status.OOM), record(0, BASELINE, 0.4)]
    text = trials_table(records, ["sp_degree", "sp_algorithm", "order"], BASELINE).to_csv(
        index=False
    )
    table = pd.read_csv(StringIO(text))
    assert list(table["trial"]) == [0, 1]
    assert list(table["status"]) == ["ok", "oom"]
    assert table["batch_time_s"][0] == 0.4
    assert pd.isna(table["batch_time_s"][1])
    assert pd.isna(table["sp_algorithm"][0])
    assert list(table["baseline"]) == [True, False]
    assert "\n1,2,ring," in text  # an integer stays one beside an empty cell
    phases = [f"{phase}_s" for phase in PHASES]
    assert table.loc[0, phases].sum() == pytest.approx(0.4)


def point(number: int) -> Point:
    return Point({"sp_degree": 10 + number, "order": "none"})


def gated(
    trial: int,
    status: Status,
    predicted: int | None,
    checked: bool = False,
    time: float | None = 0.3,
) -> TrialRecord:
    """Of a point of its own; what runs has a peak of 900 MiB."""
    note = GateNote(0.02, None if predicted is None else predicted << 20, checked)
    return replace(record(trial, point(trial), time, status), gate=note)


def of_the_gate() -> list[TrialRecord]:
    again = replace(record(9, point(5), 0.3), gate=GateNote(0.4, 945 << 20, passed_over=point(20)))
    return [
        record(0, BASELINE, 0.4),
        gated(1, Status.OK, 990),  # 10 % too much
        gated(2, Status.OVER_LIMIT, 891, checked=True),  # 1 % too little
        gated(3, Status.OOM, 2000, checked=True, time=None),  # no peak of a whole run
        gated(4, Status.STOPPED, 918, checked=True),  # 2 % too much; it fits
        gated(5, Status.SKIPPED, 1100, time=None),  # and launched later
        gated(6, Status.SKIPPED, None, time=None),
        gated(7, Status.SKIPPED, 1300, time=None),
        gated(8, Status.HUNG, 900, checked=True, time=None),  # tells nothing of memory
        again,  # 5 % too much, and in the place of another point
        # The same point is passed over again and again, and so is one that was launched after all.
        replace(record(10, point(10), 0.3), gate=GateNote(0.9, None, passed_over=point(20))),
        replace(record(11, point(11), 0.3), gate=GateNote(0.9, None, passed_over=point(20))),
        replace(record(12, point(12), 0.3), gate=GateNote(0.9, None, passed_over=point(4))),
    ]


def test_what_the_gate_was_worth_is_counted() -> None:
    # Errors of 1, 2, 5 and 10 %.
    wanted = GateSummary(
        avoided=3, checked=3, right=2, predicted=4, median_error=pytest.approx(0.035)
    )
    assert GateSummary.of(of_the_gate()) == wanted
    older = [replace(r, taken_from={"study": "old", "trial": r.trial}) for r in of_the_gate()]
    assert GateSummary.of(older) == GateSummary(0, 0, 0, 0, None)


def test_the_gate_has_a_section_of_its_own() -> None:
    text = report(*of_the_gate())
    assert "## The memory gate\n\n3 launches were avoided" in text
    assert "3 refused points were launched all the same: 2 of 3 broke the limit" in text
    assert "are off by 3.5% (median of 4)" in text
    assert "| skipped | 3 | 27 s | not launched, since it is not expected to fit |" in text
    assert "10 of 40 legal points were tried" in text


def test_a_gate_that_avoided_nothing_says_so() -> None:
    summary = GateSummary.of([gated(1, Status.OOM, 2000, checked=True, time=None)])
    assert summary.line.startswith("memory gate: 1 refused point was")
    text = report(gated(1, Status.OOM, 2000, checked=True, time=None))
    assert "It avoided no launch. To check the gate, 1 refused point was launched" in text


def test_a_study_without_the_gate_does_not_speak_of_it() -> None:
    assert "memory gate" not in report(record(0, BASELINE, 0.4), record(1, FASTER, 0.2))
    assert GateSummary.of([record(0, BASELINE, 0.4)]).line == ""


def test_the_table_has_one_result_a_point() -> None:
    table = trials_table(of_the_gate(), ["sp_degree", "order"], BASELINE)
    assert list(table["trial"]) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
    assert list(table["status"][table["sp_degree"] == 15]) == ["ok"]


def test_the_night_is_told_with_what_was_lost_and_said() -> None:
    lost = replace(record(1, FASTER, None, Status.INFRASTRUCTURE, "node gone"), attempt=1)
    again = replace(record(2, FASTER, 0.5), attempt=2, started_at=9.0, ended_at=3600.0)
    never = record(3, Point({"sp_degree": 4}), None, Status.INFRASTRUCTURE, "node gone")
    context = replace(CONTEXT, events=[Event(3661.5, "device 3 | node7: left out")])
    records = (record(0, BASELINE, 1.0), lost, again, never)
    text = report_markdown(Results(records, (), BASELINE, CertifySettings()), context)
    section = text.split("## How it went")[1].split("##")[0]
    assert "4 runs from 1970-01-01 00:00:00 to 1970-01-01 01:00:00 (UTC)" in section
    assert "with 36 s on the devices" in section  # four runs of 9 s
    assert "2 of them were lost with a node, a device or a port, after 18 s in all;" in section
    assert "of 1 the point was measured afterwards" in section
    assert "| 1970-01-01 01:01:01 | device 3 \\| node7: left out |" in section


def test_a_long_night_shows_the_last_messages() -> None:
    context = replace(CONTEXT, events=[Event(float(n), f"message {n}") for n in range(100)])
    text = report_markdown(Results((), (), BASELINE, CertifySettings()), context)
    assert "The last 40 of 100 messages" in text
    assert "message 59" not in text
    assert "message 60 |" in text


ODD_MOMENTS = [1e300, -1e300, -1e11, 1e17]


@pytest.mark.parametrize("at", ODD_MOMENTS)
def test_a_moment_that_is_none_costs_no_report(at: float) -> None:
    """Lines of `events.jsonl` and `trials.jsonl` may have been edited, or damaged."""
    context = replace(CONTEXT, events=[Event(at, "hu")])
    odd = replace(record(0, BASELINE, 0.4), started_at=at, ended_at=at)
    fine = replace(record(1, FASTER, 0.2), started_at=60.0, ended_at=120.0)
    repeats = tuple(
        Repeat(Role.CONTROL, replace(record(n, BASELINE, 0.4 + n / 20), started_at=begin), "", 0)
        for n, begin in enumerate([at, 0.0, at, 1.0])
    )
    results = Results((odd, fine), repeats, BASELINE, CertifySettings())
    text = report_markdown(results, context)
    assert "| unknown | hu |" in text
    assert "trial 1: **200.0 ms** per global batch" in text
    # The good moments are those of the fine trial and the last of its kind.
    assert "6 runs from 1970-01-01 00:00:00 to 1970-01-01 00:02:00 (UTC)" in text


def test_a_study_of_one_run_is_told_of_one() -> None:
    text = report(record(0, BASELINE, None, Status.INFRASTRUCTURE, "node gone"))
    assert "1 run from" in text
    assert "1 of them was lost" in text
    assert "of none the point was measured afterwards" in text
    assert "missing" not in text


@pytest.mark.parametrize(
    ("cost_s", "shown"), [(9.0, "9 s"), (600.0, "10 min"), (8280.0, "2.3 hours")]
)
def test_device_time_is_told_in_a_unit_that_fits(cost_s: float, shown: str) -> None:
    text = report(replace(record(0, BASELINE, 0.4), cost_s=cost_s))
    assert f"(UTC), with {shown} on the devices." in text


def test_numbers_that_are_missing_are_explained_where_some_are() -> None:
    explained = "Numbers that are missing are trials that were interrupted"
    assert explained not in report(record(0, BASELINE, 0.4), record(1, FASTER, 0.2))
    assert explained in report(record(0, BASELINE, 0.4), record(2, FASTER, 0.2))


def test_a_space_that_was_tried_through_is_not_searched_on() -> None:
    tried = Results(
        (record(0, BASELINE, 0.4), record(1, FASTER, 0.2)), (), BASELINE, CertifySettings()
    )
    of_two = report_markdown(tried, replace(CONTEXT, legal_count=2))
    assert "- Search on: every legal point was tried; only a wider `space` holds others." in of_two
    assert "max_trials" not in of_two
    for count in (3, None):
        more = report_markdown(tried, replace(CONTEXT, legal_count=count))
        assert "- Search on: the same command with a larger `search.max_trials`." in more


def test_what_a_person_should_know_of_a_good_measurement_is_shown() -> None:
    noted = record(1, FASTER, 0.2, reason="measured; after its last step rank 0 ended badly")
    text = report(record(0, BASELINE, 0.4), noted)
    assert "order=a\\|b | after its last step rank 0 ended badly |" in text
    assert "| order=none |  |" in text or "sp_degree=1 order=none |  |" in text


def controls_and_contest(*baseline_s: float) -> Results:
    """The baseline's first run, and a contest that goes on while the machine is slow or not."""
    records = (record(0, BASELINE, 0.4), record(1, FASTER, 0.2))
    contest = contest_key([BASELINE, FASTER])
    runs = [
        repeated(2 * r + n + 2, point, time_s, r, contest)
        for r, base_s in enumerate(baseline_s)
        for n, (point, time_s) in enumerate([(BASELINE, base_s), (FASTER, base_s / 2)])
    ]
    return Results(records, tuple(runs), BASELINE, CertifySettings(max_rechecks=0))


def test_a_slow_machine_is_told_apart_from_disturbed_runs_of_the_contest() -> None:
    """It slows all runs of a round alike, so the contest's runs count, and both sections agree."""
    text = report_markdown(controls_and_contest(0.52, 0.50, 0.48), CONTEXT)
    certified = text.split("## Certification")[1].split("##")[0]
    meanwhile = text.split("## The machine meanwhile")[1].split("##")[0]
    assert "| 3 |  |" in certified  # three runs, none of them disturbed
    assert "compared within a round" in certified
    assert "disturbed" not in meanwhile
    assert meanwhile.count("| slow |") == 3
    assert "3 of 4 runs were over 15% slower than the fastest, by 20% to 30%, from " in meanwhile
    assert "runs which are slow here may count there" in meanwhile


def test_a_steady_machine_is_no_matter_of_the_contest() -> None:
    text = report_markdown(controls_and_contest(0.40, 0.401, 0.40), CONTEXT)
    meanwhile = text.split("## The machine meanwhile")[1].split("##")[0]
    assert "Its runs differ by no more than separate runs do." in meanwhile
    assert "slow" not in meanwhile


def test_the_bound_of_a_disturbed_run_is_the_one_that_was_applied() -> None:
    """10 %, or four of the spreads between runs where these differ by more."""
    steady = report_markdown(controls_and_contest(0.40, 0.40, 0.40), CONTEXT)
    assert "A disturbed run took over 10% longer than the fastest run of its point" in steady
    results = controls_and_contest(0.52, 0.46, 0.40)
    bound = 4 * results.spread.relative_sd
    assert bound > 0.1
    text = report_markdown(results, CONTEXT)
    assert f"A disturbed run took over {bound:.0%} longer than" in text


def test_slow_runs_are_told_beside_a_drift_too() -> None:
    results = controls_and_contest(0.41, 0.43, 0.45, 0.80)
    meanwhile = report_markdown(results, CONTEXT).split("## The machine meanwhile")[1]
    assert "**The machine drifted**" in meanwhile
    assert "1 of 5 runs was over 15% slower than the fastest, by 100%: something" in meanwhile

"""Printed lines whose numbers cannot be: never a measurement, never the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.judge import JudgeSettings, judge
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Batch
from autotune.measure.outcome import Outcome, Status
from autotune.measure.read import Voices, read_ranks
from autotune.ports import EndKind, TrialEnd
from launch.printed_records import PrintedRecords

from .conftest import Program, ran

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
SETTINGS = JudgeSettings(1, 1, 1, 4, 1 << 60, needs_peak=False)
NO_TIMES = ["nan", "inf", "-1", "0.0", "-28.8", "NaN", ""]


def outcome(
    folder: Path,
    lines: Sequence[str],
    format_: str = "megatron",
    batch: Batch | None = None,
    planned_warmup: int = 1,
) -> Outcome:
    """What a program comes to that prints these lines and ends well."""
    path = folder / "printed0.jsonl"
    records = PrintedRecords(path, format_of(format_, "trainer.printed"), batch or Batch())
    for line in lines:
        records.feed(0, f"{line}\n".encode())
    records.close()
    ranks = read_ranks(folder, Voices(1, 1, every_rank=False))
    settings = replace(SETTINGS, warmup_steps=planned_warmup, printed=format_)
    return judge(TrialEnd(0, EndKind.FINISHED, "", 0.0, 9.0), ranks, settings)


def iteration(number: int, ms: str = "100.0", end: str = "loss: 1.0E+00 |") -> str:
    return (
        f" iteration {number:8d}/      10 | consumed samples: 8 | elapsed time per iteration (ms): "
        f"{ms} | learning rate: 1.0E-04 | global batch size: 8 | {end}"
    )


@pytest.mark.parametrize("ms", [*NO_TIMES, "1e300"])
def test_a_time_that_is_none_measures_nothing(tmp_path: Path, ms: str) -> None:
    """Case 18."""
    found = outcome(tmp_path, [iteration(n, ms) for n in range(1, 10)])
    assert (found.status, found.batch_time_s) == (Status.FAILED, None)
    assert found.reason


@pytest.mark.parametrize("ms", NO_TIMES)
def test_one_such_time_does_not_change_the_others(tmp_path: Path, ms: str) -> None:
    """Case 18."""
    found = outcome(tmp_path, [iteration(n, ms if n == 6 else "100.0") for n in range(1, 10)])
    assert (found.status, found.batch_time_s) == (Status.OK, pytest.approx(0.1))


@pytest.mark.parametrize("ms", ["nan", "-1"])
def test_the_reason_says_where_the_printed_time_is_seen(tmp_path: Path, ms: str) -> None:
    """Case 18: nine steps were printed, and none of them with a time."""
    reason = outcome(tmp_path, [iteration(n, ms) for n in range(1, 10)]).reason
    assert "no line was read as a step with a time by trainer.printed='megatron'" in reason
    assert "rank0.log" in reason


@pytest.mark.parametrize("time_s", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_sweep_goes_on_over_it_and_exports_another(program: Program, time_s: float) -> None:
    """Case 18, with times that ranks record."""
    program.behave = lambda values, request: ran(time_s if values["batch"] == "4" else 1.0)
    assert program.run() == 0
    states = {(t["parameters"]["batch"], t["status"]) for t in program.trials}
    assert {status for batch, status in states if batch == 4} == {"failed"}
    assert program.best["parameters"]["batch"] < 4


def test_a_gradient_that_is_no_number_and_no_loss_is_no_measurement(tmp_path: Path) -> None:
    """Case 63: the speed of such a run looks fine."""
    end = (
        "loss scale: 1.0 | grad norm: nan | actual seqlen:  2048 | number of skipped iterations:   "
        "0 | number of nan iterations:   0 | samples per second: 1.883 | TFLOPs: 78.36 |"
    )
    found = outcome(tmp_path, [iteration(n, "611.0", end) for n in range(1, 10)])
    assert found.status is Status.FAILED
    assert "its gradient is not finite" in found.reason


def test_two_iterations_are_refused(tmp_path: Path) -> None:
    """Case 64: 32.4 s, then 0.61 s."""
    found = outcome(tmp_path, [iteration(1, "32400.0"), iteration(2, "610.0")])
    assert found.status is Status.FAILED
    assert "too few to measure" in found.reason


@pytest.mark.parametrize("planned", [0, 1])
@pytest.mark.parametrize("first", [1.1, 2.3, 11.8, 50.0])
def test_a_slow_first_iteration_does_not_show(tmp_path: Path, first: float, planned: int) -> None:
    """Case 64: whether it was planned for or not."""
    times = [first * 610, *(610.0 + n % 3 for n in range(12))]
    lines = [iteration(n, f"{ms:.1f}") for n, ms in enumerate(times, start=1)]
    found = outcome(tmp_path, lines, planned_warmup=planned)
    assert (found.status, found.batch_time_s) == (Status.OK, pytest.approx(0.611, rel=0.005))


def test_a_step_change_in_the_middle_lies_within_the_interval(tmp_path: Path) -> None:
    """Case 56: from one step on all are 5 % slower."""
    times = ["1000.0"] * 20 + ["1050.0"] * 20
    found = outcome(tmp_path, [iteration(n, ms) for n, ms in enumerate(times, start=1)])
    assert found.batch_time_s == pytest.approx(1.025, rel=0.01)
    low, high = found.batch_time_ci95_s or (0.0, 0.0)
    assert low < 1.0
    assert high > 1.05


@pytest.mark.skipif(not LOGS.is_dir(), reason="the shared data are not here")
def test_what_all_ranks_print_counts_once(tmp_path: Path) -> None:
    """Case 61: two steps, not twelve, and the memory that nearly ran out."""
    (log,) = LOGS.glob("C18*")
    batch = Batch(tokens=8 * 8192, devices=8)
    found = outcome(tmp_path, log.read_text().splitlines(), "torchtitan", batch)
    assert "1 scored step is too few" in found.reason
    assert found.peak_memory_bytes == round(176.48 * 2**30)


def test_retries_of_the_allocator_are_read(tmp_path: Path) -> None:
    """Case 61: torchtitan counts them since the start, on every rank."""
    warning = (
        "[titan] 2026-02-24 19:40:57,825 - root - WARNING - {} CUDA memory allocation retries."
    )
    step = "[titan] step: {:2}  loss:  2.0  memory: 176.48GiB(98.00%)  tps: 8,192  tflops: 1.0"
    lines = [text.format(n) for n in range(1, 10) for text in (warning, step)]
    found = outcome(tmp_path, lines, "torchtitan", Batch(tokens=8192, devices=1))
    assert (found.status, found.alloc_retries) == (Status.OK, 9)


def test_retries_are_read_where_a_program_prints_records(tmp_path: Path) -> None:
    """Case 61, in the format that has all of a record's names."""
    step = '{{"event": "step", "step": {}, "time_s": 0.1, "loss": 2.0, "alloc_retries": 3}}'
    found = outcome(tmp_path, [step.format(n) for n in range(1, 10)], "json")
    assert (found.status, found.alloc_retries) == (Status.OK, 3)


def test_retries_of_the_allocator_are_shown(program: Program) -> None:
    """Case 61: a point that runs at the brink of memory is no good choice for weeks."""
    program.behave = lambda values, request: ran(1.0, alloc_retries=6)
    assert program.run("search.max_trials=2") == 0
    assert {trial["alloc_retries"] for trial in program.trials} == {6}
    assert "found no memory 6 times" in program.report
    assert "6 allocator retries" in program.report


def test_shares_that_a_program_prints_are_not_believed(tmp_path: Path) -> None:
    """Case 66: 195 % of the device's peak is a wrong constant, and no time."""

    def lines(mfu: str) -> list[str]:
        return [
            f"step: {n:2}  loss:  2.0  memory:  1.0GiB(10.00%)  tps: 8,192  tflops: 1.0  mfu: {mfu}"
            for n in range(1, 10)
        ]

    batch = Batch(tokens=8192, devices=1)
    told: list[Any] = []
    for mfu in ("12.01%", "265.40%"):
        folder = tmp_path / mfu
        folder.mkdir()
        told.append(outcome(folder, lines(mfu), "torchtitan", batch))
    assert told[0] == told[1]
    assert told[0].batch_time_s == pytest.approx(1.0)


def test_no_share_of_the_peak_is_derived(program: Program) -> None:
    """Case 66: neither `best.yaml` nor the report tells a utilisation that could be wrong."""
    assert program.run("search.max_trials=3") == 0
    text = program.report + (program.study / "best.yaml").read_text(encoding="utf-8")
    assert not any(word in text.lower() for word in ("mfu", "tflops", "utilis", "utiliz"))

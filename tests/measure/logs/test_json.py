"""Steps printed as JSON, with the fields of a rank record."""

from __future__ import annotations

import json
import math

import pytest

from autotune.measure.logs.formats import BUILT_IN
from autotune.measure.logs.reader import LogReader
from autotune.measure.records import PHASES
from tests.measure.logs.reading import read


def test_all_fields() -> None:
    record = {
        "event": "step",
        "step": 3,
        "time_s": 0.41,
        "samples": 16,
        "tokens": 8192,
        "loss": 2.5,
        "grad_norm": 1.25,
        "phases_s": dict.fromkeys(PHASES, 0.05),
        "peak_allocated_bytes": 1000,
        "peak_reserved_bytes": 2000,
        "peak_device_bytes": 3000,
        "skipped": True,
        "profiled": True,
    }
    reading = read("json", f"[rank2]: 12:00:01 INFO {json.dumps(record)} # done")
    (step,) = reading.steps
    assert (step.step, step.time_s, step.samples, step.tokens) == (3, 0.41, 16, 8192)
    assert (step.loss, step.grad_norm, step.skipped, step.profiled) == (2.5, 1.25, True, True)
    assert step.averaged_over == 1
    assert step.phases_s == dict.fromkeys(PHASES, 0.05)
    (memory,) = reading.memory
    assert (memory.rank, memory.step) == (2, 3)
    assert (memory.peak_allocated_bytes, memory.peak_reserved_bytes) == (1000, 2000)
    assert memory.peak_bytes == 3000


def test_null_and_nan_are_no_loss() -> None:
    reading = read(
        "json",
        '{"event": "step", "step": 0, "time_s": 1, "loss": null}',
        '{"event": "step", "step": 1, "time_s": 1, "loss": NaN}',
        '{"event": "step", "step": 2, "time_s": 1}',
    )
    assert math.isnan(reading.steps[0].loss or 0)
    assert math.isnan(reading.steps[1].loss or 0)
    assert reading.steps[2].loss is None


def test_lines_that_ran_into_each_other() -> None:
    whole = '{"event": "step", "step": 4, "time_s": 0.5}'
    reading = read("json", whole[:30] + whole + whole.replace("4", "5"))
    assert [step.step for step in reading.steps] == [4, 5]


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "step", "step": 4, "time_s": 0.5',
        '{"event": "step", "step": 4}',
        '{"event": "step", "time_s": 0.5}',
        '{"event": "step", "step": 4, "time_s": -1}',
        '{"event": "step", "step": 4, "time_s": null}',
        '{"event": "step", "step": 4, "time_s": 1e999}',
        '{"event": "step", "step": "four", "time_s": 0.5}',
        '{"event": "step", "step": 4, "time_s": ' + "9" * 400 + "}",
        '{"event": "step", "a": ' + "[" * 3000,
        '{"event": "step", "a": ' + '{"a":' * 900,
    ],
)
def test_what_is_no_step_is_passed_over(line: str) -> None:
    reading = read("json", line)
    assert reading.steps == ()
    assert reading.cut_lines >= 1


@pytest.mark.parametrize(
    "line",
    ['{"event": "end"}', '{"loss": 2.5, "step": 3}', "step 3", '"event": "steps"', "{'event': 1}"],
)
def test_other_lines(line: str) -> None:
    assert read("json", line).cut_lines == 0
    assert read("json", line).steps == ()


def test_each_rank_has_its_own_log() -> None:
    """The slowest rank gives the time."""
    reader = LogReader(BUILT_IN["json"])
    for source, time_s in enumerate((0.5, 0.75)):
        reader.feed([f'{{"event": "step", "step": 1, "time_s": {time_s}, "loss": 2.5}}'], source)
    assert [(step.step, step.time_s) for step in reader.reading.steps] == [(1, 0.75)]

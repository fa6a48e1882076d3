"""Numbers in rank records that no float holds."""

from __future__ import annotations

import math

import pytest

from autotune.measure.records import parse_rank_records

HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    "line",
    [
        f'{{"event": "step", "step": {HUGE}, "time_s": 1.0}}',
        f'{{"event": "step", "step": 0, "time_s": {HUGE}, "samples": -{HUGE}, "loss": {HUGE}}}',
        f'{{"event": "step", "time_s": 1, "phases_s": {{"optimizer": {HUGE}}}}}',
        f'{{"event": "step", "time_s": 1, "peak_reserved_bytes": {HUGE}}}',
        f'{{"event": "error", "kind": "oom", "peak_allocated_bytes": {HUGE}}}',
        f'{{"event": "memory", "rank": {HUGE}, "peak_device_bytes": {HUGE}}}',
        f'{{"event": "step", "time_s": {"9" * 5000}}}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_a_number_without_an_end_is_none_and_ends_nothing(line: str) -> None:
    after = '{"event": "step", "step": 1, "time_s": 2.0, "peak_reserved_bytes": 7}'
    records = parse_rank_records(0, ['{"event": "start"}', line, after, '{"event": "end"}'])
    assert records.started
    assert records.ended
    assert records.steps[-1].time_s == 2.0
    assert records.peak_bytes == 7
    assert records.peak_device_bytes is None
    for step in records.steps[:-1]:
        assert step.time_s == 1.0 or math.isnan(step.time_s)
        assert step.samples is None
        assert step.shortfall in (None, "its loss is not finite")


def test_a_program_that_begins_again_is_measured_by_its_second_run() -> None:
    first = ['{"event": "start"}', '{"event": "step", "step": 0, "time_s": 9.0}']
    failed = ['{"event": "error", "kind": "exception", "message": "link down"}']
    second = [
        '{"event": "start"}',
        *(f'{{"event": "step", "step": {step}, "time_s": 1.0}}' for step in range(3)),
        '{"event": "end"}',
    ]
    records = parse_rank_records(0, [*first, *failed, *second])
    assert [step.time_s for step in records.steps] == [1.0, 1.0, 1.0]
    assert [error.message for error in records.errors] == ["link down"]
    assert records.ended
    assert not parse_rank_records(0, [*second, '{"event": "start"}']).ended

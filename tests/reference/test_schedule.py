"""Which steps a measuring trial makes, and in which order."""

from __future__ import annotations

import pytest
from reference_cases import content

from launch.rank.profile_options import ProfileOptions
from launch.reference.config import parse_config
from launch.reference.schedule import Schedule, Step, Window
from launch.reference.schema import ConfigError

ONE = ProfileOptions()
TWO = ProfileOptions(steps=1, warmup_steps=1)


def rest(schedule: Schedule) -> str:
    """One letter a step to the end: memory, plain, profile."""
    letters = []
    while (step := schedule.next()) is not None:
        letters.append(letter(step))
    return "".join(letters)


def letter(step: Step) -> str:
    return {"memory": "m", "plain": ".", "profile": "p"}[step.kind.value]


def some(schedule: Schedule, count: int) -> str:
    steps = [schedule.next() for _ in range(count)]
    return "".join(letter(step) for step in steps if step is not None)


def test_memory_then_plain_then_the_planned_profile() -> None:
    assert rest(Schedule(2, 3, TWO)) == "mm...pp"
    assert rest(Schedule(0, 3)) == "..."


def test_steps_are_numbered_on_so_that_batches_stay_in_order() -> None:
    schedule = Schedule(1, 2, TWO)
    schedule.next()
    schedule.request(Window(ONE, "a"))
    numbers = []
    while (step := schedule.next()) is not None:
        numbers.append(step.number)
    assert numbers == [1, 2, 3, 4, 5]


def test_a_requested_profile_comes_next_and_takes_no_plain_step() -> None:
    schedule = Schedule(1, 4, ONE)
    assert some(schedule, 2) == "m."
    schedule.request(Window(TWO, "a"))
    assert rest(schedule) == "pp...p"


def test_requests_are_served_one_after_the_other() -> None:
    schedule = Schedule(0, 1)
    schedule.request(Window(ONE, "a"))
    schedule.request(Window(TWO, "b"))
    served = []
    while (step := schedule.next()) is not None:
        served.append((step.window.request, step.is_first, step.is_last) if step.window else None)
    assert served == [("a", True, True), ("b", True, False), ("b", False, True), None]


def test_a_request_waits_for_a_memory_meter_that_is_a_profiler() -> None:
    schedule = Schedule(2, 1)
    schedule.request(Window(ONE, "a"))
    assert rest(schedule) == "mmp."
    schedule = Schedule(2, 1, profile_among_memory=True)
    schedule.request(Window(ONE, "a"))
    assert rest(schedule) == "pmm."


def test_finish_leaves_out_plain_steps_only() -> None:
    schedule = Schedule(2, 1000, ONE)
    assert some(schedule, 4) == "mm.."
    schedule.finish()
    schedule.finish()
    assert rest(schedule) == "p"


def test_finish_before_the_first_step_still_observes_memory_and_profiles() -> None:
    schedule = Schedule(2, 1000, ONE)
    schedule.finish()
    assert rest(schedule) == "mmp"


def test_a_request_at_the_very_end_is_still_served() -> None:
    schedule = Schedule(0, 1, ONE)
    assert some(schedule, 2) == ".p"
    schedule.request(Window(ONE, "a"))
    assert rest(schedule) == "p"


def test_a_configuration_says_how_many_steps_in_all() -> None:
    values = content("small_vlm", {"steps": 9, "memory_steps": 2})
    values["measurement"]["profile"] = {"steps": 2, "warmup_steps": 1, "ranks": [-1]}
    assert rest(Schedule.of(parse_config(values))) == "mm....ppp"
    del values["measurement"]
    assert rest(Schedule.of(parse_config(values))) == "." * 9


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"steps": 8}, "training.steps=9 must hold measurement.memory_steps=2 and the 8 steps"),
        ({"stpes": 1}, "measurement.profile: unknown option stpes; allowed: steps, warmup_steps"),
        ({"ranks": "all"}, "measurement.profile: ranks must be a list of whole numbers"),
        ({"with_stack": 1}, "measurement.profile: with_stack must be true or false, got 1"),
        ([], "measurement.profile: profile options must be a mapping"),
    ],
)
def test_a_wrong_profile_is_a_wrong_configuration(profile: object, message: str) -> None:
    values = content("small_vlm", {"steps": 9, "memory_steps": 2})
    values["measurement"]["profile"] = profile
    with pytest.raises(ConfigError) as error:
        parse_config(values)
    assert message in str(error.value)

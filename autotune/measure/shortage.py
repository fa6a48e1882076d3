"""Why a run has no steps that were read, or too few: in words for the person who mends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.measure.failures.log_lines import Log
from autotune.measure.logs.entries import StepEntry
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.lines import LineSplitter
from autotune.measure.logs.reader import LogReader
from autotune.measure.records import RankRecords

_LONGEST_LINE = 160
_NUMBERS_SHOWN = 6
_LARGEST_SHOWN = 10**9
# A program that torchrun starts again begins its steps anew, but makes several of them each time.
_LEAST_STEPS_A_RUN = 3


def nothing_recorded(silent: Sequence[int], printed: object, logs: Mapping[int, str] | None) -> str:
    """Of a run without a step. logs: by rank, None where nobody has looked."""
    reason = f"no steps were recorded by rank {', '.join(map(str, silent))}"
    last = None if logs is None else _last_line(logs)
    if last == "":
        nothing = "the program ended without printing anything"
        return f"{reason}{', and' if printed is None else ':'} {nothing}"
    said = "" if last is None else f"; the last line that it printed is: {last}"
    if printed is None:
        return f"{reason}{said}"
    return (
        f"{reason}: no line was read as a step with a time by trainer.printed={as_given(printed)}; "
        "compare it with the trial's rank0.log (a group named `time` holds a text with its unit, "
        "such as 561.94ms; time_ms and time_s hold numbers, which must be above 0)"
        f"{said}"
    )


def misnumbered(
    ranks: Sequence[RankRecords], printed: object, logs: Mapping[int, str] | None, least: int
) -> str | None:
    """What is wrong with the numbers of the steps, None where that is not why they are few.

    ranks: what was recorded. logs: by rank, read again where lines tell the steps. least: steps
    that would have been enough.
    """
    recorded = max(([step.step for step in rank.steps] for rank in ranks), key=len, default=[])
    numbers = recorded if len(set(recorded)) < least <= len(recorded) else None
    if numbers is None and printed is not None and logs:
        numbers = _printed_numbers(printed, logs, least)
    if numbers is None:
        return None
    shown = ", ".join(map(_number, numbers[:_NUMBERS_SHOWN]))
    more = ", ..." if len(numbers) > _NUMBERS_SHOWN else ""
    return (
        f"{len(numbers)} steps were told, with the numbers {shown}{more}: each needs a number "
        "above that of the step before it"
    )


def as_given(value: object) -> str:
    """A value of the configuration as YAML has it: texts in single quotes, no escapes."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {as_given(one)}" for name, one in value.items()) + "}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(as_given, value))}]"
    return str(value)


def _printed_numbers(printed: object, logs: Mapping[int, str], least: int) -> list[int] | None:
    """The numbers of all printed steps, where they are what makes runs of one or two steps."""
    log = max(logs.values(), key=len)
    lines = LineSplitter()
    reader = LogReader(format_of(printed, "trainer.printed"))
    entries = reader.feed([*lines.feed(log.encode()), *lines.finish()])
    numbers = [one.step for one in entries if isinstance(one, StepEntry) and one.is_timed]
    steps = reader.reading.steps
    if len(numbers) < least or not steps:
        return None
    runs = steps[-1].run + 1
    is_one = len(set(numbers)) == 1
    return numbers if is_one or len(steps) < _LEAST_STEPS_A_RUN * (runs - 1) else None


def _last_line(logs: Mapping[int, str]) -> str:
    """What the first rank that printed something printed last, empty where none did."""
    for _, log in sorted(logs.items()):
        lines = [line.body.strip() for line in Log.parse(log).lines]
        said = [
            shown
            for line in lines
            if (shown := "".join(c if c.isprintable() else " " for c in line).strip())
        ]
        if said:
            last = said[-1]
            return last if len(last) <= _LONGEST_LINE else f"{last[: _LONGEST_LINE - 1]}…"
    return ""


def _number(number: int) -> str:
    return str(number) if abs(number) < _LARGEST_SHOWN else f"{float(min(number, 10**300)):.0e}"

"""Failures that the judge tells without a kind: runs that ended well and measured nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANK = re.compile(r"^rank \d+ ")
_NUMBER = re.compile(r"\d[\d.e+-]*")


@dataclass(frozen=True)
class Sort:
    """kind: of failures that call for the same. advice: what a person does next."""

    kind: str
    advice: str


# By words of the reasons in autotune/measure/judge.py, work.py and arrivals.py; the first counts.
_SORTS = (
    (
        "no steps were recorded",
        Sort(
            "no steps",
            "Run the point's command by hand (program.json in the folder has it): does it record "
            "its steps, or print lines that trainer.printed reads?",
        ),
    ),
    (
        "its lines come",
        Sort(
            "no true time",
            "Print the time from one step's end to the next, or mend the unit that trainer.printed "
            "names (time_s, time_ms).",
        ),
    ),
    (
        "is no time",
        Sort("no time", "Look why the program tells such a time; the point is not tried again."),
    ),
    (
        "each needs a number above",
        Sort("step numbers", "Let the program count its steps upwards, each once."),
    ),
    (
        "did not do their full work",
        Sort(
            "short of work",
            "The point does not train as it should: its loss or gradient is not finite, or updates "
            "are skipped. It is not tried again.",
        ),
    ),
    (
        "too few to measure",
        Sort(
            "too few steps",
            "The program must make as many steps as it is told ({steps} in trainer.command).",
        ),
    ),
    (
        "do not cover the data window",
        Sort("too few steps", "The program must make as many steps as it is told."),
    ),
    (
        "did other work",
        Sort(
            "other work",
            "The point trains on other data than the baseline, so their times say nothing of each "
            "other; leave the choice out, or keep the global batch the same.",
        ),
    ),
    (
        "so its work cannot be checked",
        Sort("other work", "Let the program tell the same with every point."),
    ),
    (
        "recorded its peak memory",
        Sort(
            "no peak memory",
            "Let the program record or print its peak, or give trainer.memory=processes (on the "
            "CPU) or trainer.memory=none.",
        ),
    ),
)
_UNKNOWN_ADVICE = "The trial's folder has its output and its records."


def sort_of(reason: str) -> Sort:
    """The sort of a failure without a kind; of an unknown reason its own first words."""
    for words, sort in _SORTS:
        if words in reason:
            return sort
    first = re.split(r"[:;(]", _RANK.sub("", reason))[0]
    return Sort(" ".join(_NUMBER.sub("N", first).split()) or "unknown", _UNKNOWN_ADVICE)

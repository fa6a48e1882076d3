"""What every rule excludes, and what is said of a space that is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.space.components import Component, Components
from autotune.space.definition import Rule
from autotune.space.diagram import BROKEN, TooMuchWorkError, Work
from autotune.space.enumeration import Found, tally
from autotune.space.sampling import draw, sample
from autotune.space.walk import PYTHONS_EFFORT, Walk

_CELLS = 200_000_000
_CELLS_ALONE = 150_000_000
_DRAWN = 200_000


@dataclass(frozen=True)
class Exclusion:
    """What one rule does to the space.

    excluded: distinct combinations that break the rule, whatever the other rules say.
    alone: those of them that no other rule excludes; None where counting them would be too
    much work. estimated, alone_estimated: the number is an estimate, since counting would be too
    much work too.
    """

    rule: Rule
    excluded: int
    alone: int | None
    estimated: bool = False
    alone_estimated: bool = False

    @property
    def excluded_text(self) -> str:
        """`excluded` for a person: an estimate says that it is one."""
        return _text(self.excluded, self.estimated)

    @property
    def alone_text(self) -> str:
        """`alone` for a person, a dash where it is not known."""
        return "-" if self.alone is None else _text(self.alone, self.alone_estimated)


def _text(count: int, estimated: bool) -> str:
    return f"about {count:.1e}" if estimated else str(count)


def count_exclusions(
    space: Components, rules: Sequence[Rule], everything: Found
) -> tuple[Exclusion, ...]:
    """What every rule excludes of `everything`, the combinations before the rules."""
    counts = _Counts(space, everything)
    excluded = [counts.excluded(component) for component in space.rules]
    if len(rules) == 1:  # what it excludes, no other rule does
        (count, estimated), rule = excluded[0], rules[0]
        return (Exclusion(rule, count, count, estimated, estimated),)
    return tuple(
        Exclusion(rule, count, only, estimated)
        for rule, (count, estimated), only in zip(rules, excluded, _alone(space), strict=True)
    )


class _Counts:
    def __init__(self, space: Components, everything: Found) -> None:
        self.space, self.everything, self.work = space, everything, Work(_CELLS)

    def excluded(self, rule: Component) -> tuple[int, bool]:
        """How many combinations break the rule, and whether that is an estimate."""
        try:
            return tally(Walk(self.space, [rule], forgiving=True), self.work)[1], False
        except TooMuchWorkError:
            return self._estimated(rule), True

    def _estimated(self, rule: Component) -> int:
        """From the share of the broken ones among combinations drawn at random."""
        count = _DRAWN
        if rule.evaluated is not None and rule.evaluated.in_python:
            count //= PYTHONS_EFFORT
        if self.everything.paths is None:
            drawn = sample(Walk(self.space, ()), count).places
        else:
            drawn = draw(self.everything.paths, count)
        states = np.full(drawn.shape[1], rule.start, np.int32)
        for layer, axis in enumerate(self.space.axes):
            if layer in rule.tables:
                states = rule.tables[layer].take(states * np.int64(axis.places) + drawn[layer])
        if rule.evaluated is not None:
            states = rule.evaluated.verdicts(dict(enumerate(drawn)))
        broken = int(np.count_nonzero(states == BROKEN))
        return self.everything.total * broken // max(1, len(states))


def _alone(space: Components) -> Sequence[int | None]:
    try:
        return tally(Walk(space, space.rules, forgiving=True), Work(_CELLS_ALONE))[1:]
    except TooMuchWorkError:
        return [None] * len(space.rules)


def empty_space(combinations: int, exclusions: Sequence[Exclusion]) -> str:
    """The error for a space without a legal point."""
    lines = [f"the space is empty: the rules exclude all {combinations} combinations"]
    lines += [
        f"  {e.excluded_text:>8}  {e.rule.told}"
        for e in sorted(exclusions, key=lambda e: -e.excluded)
    ]
    lines.append("widen the choices or correct the rule that excludes the most")
    return "\n".join(lines)

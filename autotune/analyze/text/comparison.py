"""Two profiles against each other, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from autotune.analyze.advice import phase_label
from autotune.analyze.compare import Comparison, Difference
from autotune.analyze.names import clean, kernel, shorten
from autotune.analyze.summary import HOST
from autotune.analyze.text.words import UNKNOWN, count_of, heading, table
from autotune.analyze.text.words import milliseconds as ms
from autotune.config.quantities import format_bytes

_TOP = 10
_RANKS = 5
_NAME = 40
# Differences in a step that nobody could tell from chance.
_SAME = 0.01


def comparison(found: Comparison) -> RenderableType:
    """The verdict, then phases, device, operators, communication and memory."""
    return Group(*_sections(found))


def _sections(found: Comparison) -> Iterator[RenderableType]:
    yield Text("\nComparison", style="bold underline")
    yield Text(f"base: {clean(found.base_name)}\nnow:  {clean(found.other_name)}")
    yield Text(f"{_matched(found)}; all figures are of one step of one rank on average.")
    yield Text(_verdict(found))
    if found.phases:
        yield heading("Phases", "ms a step")
        yield _times(found.phases)
    if found.device:
        yield heading("The device", "ms a step")
        yield _times(found.device)
    if len(found.by_rank) > 1:
        yield heading("Ranks' own work, without communication", "ms a step")
        yield _times(found.by_rank[:_RANKS])
        if len(found.by_rank) > _RANKS:
            yield Text(f"and {count_of(len(found.by_rank) - _RANKS, 'other')}", "dim")
    on_device = [d for d in found.operators if d.where != HOST]
    for title, chosen in (
        ("Operators on the device", on_device),
        ("Operators on the host, without what they called", [] if on_device else found.operators),
        ("Communication", found.communication),
    ):
        changed = [difference for difference in chosen if difference.absolute]
        if changed:
            yield heading(title, _changes(changed))
            yield _calls(changed[:_TOP])
            if len(changed) > _TOP:
                yield Text(f"and {count_of(len(changed) - _TOP, 'other')}", "dim")
        elif chosen:
            yield heading(title, "the same in both")
    if found.memory:
        yield heading("Peak of memory")
        yield _sizes(found.memory)


def _matched(found: Comparison) -> str:
    if found.ranks is None:
        return "No rank is known to be in both, so each is taken as a whole"
    return f"Ranks in both: {len(found.ranks)}"


def _verdict(found: Comparison) -> str:
    step = found.step
    if step is None or step.relative is None:
        return "No step is marked in both: the lengths of steps cannot be compared."
    base, other = shorten(found.base_name, _NAME), shorten(found.other_name, _NAME)
    times = f"{ms(step.other)} ms a step, {ms(step.base)} ms in {base}"
    if abs(step.relative) < _SAME:
        return f"{other} is as fast: {times} ({step.relative:+.1%})."
    word = "slower" if step.relative > 0 else "faster"
    cause = max(found.phases or found.device[:4], key=lambda d: d.absolute * step.absolute)
    name = phase_label(cause.name)
    return (
        f"{other} is {abs(step.relative):.0%} {word}: {times}. Most of the difference is in "
        f"{name} ({_signed(cause.absolute)} ms)."
    )


def _changes(differences: Sequence[Difference]) -> str:
    new = sum(1 for d in differences if d.base is None)
    gone = sum(1 for d in differences if d.other is None)
    words = [f"{new} new" if new else "", f"{gone} gone" if gone else ""]
    return ", ".join(["largest difference first", *(word for word in words if word)])


def _times(differences: Sequence[Difference]) -> RenderableType:
    rows = [
        [
            phase_label(d.name),
            ms(d.base),
            ms(d.other),
            _signed(d.absolute),
            _relative(d),
        ]
        for d in differences
        if d.base or d.other
    ]
    return table(["", "base", "now", "difference", ""], rows)


def _calls(differences: Sequence[Difference]) -> RenderableType:
    rows = [
        [
            d.name,
            shorten(d.where, 12),
            _count(d.base_count),
            _count(d.other_count),
            ms(d.base),
            ms(d.other),
            _signed(d.absolute),
            _relative(d),
        ]
        for d in differences
    ]
    header = ["", "", "calls base", "now", "ms base", "now", "diff.", ""]
    return table(header, rows, left=2, shortened=kernel)


def _sizes(differences: Sequence[Difference]) -> RenderableType:
    rows = [
        [
            clean(d.name),
            UNKNOWN if d.base is None else format_bytes(d.base),
            UNKNOWN if d.other is None else format_bytes(d.other),
            _relative(d),
        ]
        for d in differences
    ]
    return table(["", "base", "now", "difference"], rows)


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else ''}{ms(us)}"


def _relative(difference: Difference) -> str:
    if difference.base is None:
        return "new"
    if difference.other is None:
        return "gone"
    return UNKNOWN if difference.relative is None else f"{difference.relative:+.1%}"


def _count(count: float | None) -> str:
    return UNKNOWN if count is None else f"{count:,.1f}".removesuffix(".0")

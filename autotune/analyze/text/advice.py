"""What to do, numbered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from autotune.analyze.advice import Advice
from autotune.analyze.names import clean
from autotune.analyze.text.words import count_of, heading

_MOST = 6
_MOST_TECHNIQUES = 5


def advice(found: Sequence[Advice]) -> Iterator[RenderableType]:
    """The first few of them, each with its first few techniques; the tables have all."""
    if not found:
        return
    yield heading("What to do")
    told: dict[str, int] = {}
    for number, each in enumerate(found[:_MOST], start=1):
        yield Text(f"{number}. {clean(each.what)}")
        yield Padding(Text(clean(each.evidence), "dim"), (0, 0, 0, 3), expand=False)
        yield _ways(each.techniques[:_MOST_TECHNIQUES], number, told)
    if len(found) > _MOST:
        yield Text(f"and {count_of(len(found) - _MOST, 'other finding')}; --out DIR has all", "dim")


def _ways(techniques: Sequence[str], number: int, told: dict[str, int]) -> RenderableType:
    """The techniques; those of an earlier finding are not told again. Adds to `told`."""
    ways = Table.grid("", "", padding=(0, 1, 0, 0))
    for technique in techniques:
        if technique not in told:
            ways.add_row("   -", Text(clean(technique)))
    earlier = sorted({told[technique] for technique in techniques if technique in told})
    if earlier:
        numbers = " and ".join(map(str, earlier))
        ways.add_row("   -", f"as under {numbers}")
    for technique in techniques:
        told.setdefault(technique, number)
    return ways

"""The operators that take the most time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.findings.operators import device_operators
from autotune.analyze.names import kernel, shorten
from autotune.analyze.profile import OperatorTime
from autotune.analyze.summary import HOST, ProfileSet, own_us, sum_operators
from autotune.analyze.text.words import count_of, heading, share, table
from autotune.analyze.text.words import milliseconds as ms

_TOP = 10


def operators(profiles: ProfileSet) -> Iterator[RenderableType]:
    """The top ten of the device; those of the host where nothing ran on a device."""
    top = device_operators(profiles)
    where = "on the device"
    if not top:
        where = "on the host, without what they called"
        top = sum_operators(o for p in profiles.profiles for o in p.operators if o.where == HOST)
    if not top:
        return
    note = f"{where}; all that was profiled"
    if len(profiles.profiles) > 1:
        note += f", {len(profiles.profiles)} ranks together"
    yield heading("Operators that take the most time", note)
    header = ["", "where", "calls", "total ms", "share", "cumul.", "mean us", "max us"]
    yield table(header, list(_rows(top)), left=2, shortened=kernel)
    if len(top) > _TOP:
        yield Text(f"and {count_of(len(top) - _TOP, 'other')}", "dim")


def _rows(top: Sequence[OperatorTime]) -> Iterator[Sequence[str]]:
    total_us = sum(own_us(operator) for operator in top)
    so_far_us = 0.0
    for operator in top[:_TOP]:
        own = own_us(operator)
        so_far_us += own
        yield [
            operator.name,
            shorten(operator.where, 16),
            f"{operator.count:,}",
            ms(own),
            share(own, total_us),
            share(so_far_us, total_us),
            f"{own / operator.count:,.1f}" if operator.count else "-",
            "-" if operator.longest_us is None else f"{operator.longest_us:,.1f}",
        ]

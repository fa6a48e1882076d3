"""Traffic between ranks: `communication_matrix.json` and its cluster form.

Wherever the keys `<source>-<target>` are found, with the operation's name above them. Newer
versions (2.1 on) write, a kind of operation, the fastest, middle and slowest call and
`<kind>-total`; older ones write every call and `Total Op Info`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autotune.analyze.ascend.values import amount
from autotune.analyze.profile import LinkTime

_LINK = re.compile(r"(\d+)-(\d+)")
_SELECTED = re.compile(r".*-(top|middle|bottom)\d*(@.*)?")
_MB, _MS_IN_US = 1e6, 1000.0


def read_links(content: Any) -> tuple[LinkTime, ...]:
    """The links between different ranks, each summed over its calls, by source and target."""
    found = list(_found(content, ""))
    if not any(counted(name) for name, _ in found):
        return _of_selected(found)
    return sum_links(
        link for name, links in found if counted(name) for link, _ in _links(name, links)
    )


def _of_selected(found: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[LinkTime, ...]:
    """The links of the calls that were selected, each call counted once."""
    calls: dict[tuple[object, ...], LinkTime] = {}
    for name, links in found:
        if not name.casefold().startswith("total"):
            calls |= {
                (link.source, link.target, link.group, call): link
                for link, call in _links(name, links)
            }
    return sum_links(calls.values())


def sum_links(links: Iterable[LinkTime]) -> tuple[LinkTime, ...]:
    """One value a pair of ranks, transport and group."""
    sums: dict[tuple[int, int, str, str], list[float]] = {}
    for link in links:
        key = (link.source, link.target, link.transport, link.group)
        both = sums.setdefault(key, [0.0, 0.0])
        both[0] += link.size_bytes
        both[1] += link.transit_us
    return tuple(
        LinkTime(source, target, transport, size, spent, group)
        for (source, target, transport, group), (size, spent) in sorted(sums.items())
    )


def counted(name: str) -> bool:
    """Whether an operation's rows add up: selected calls and sums of all are counted elsewhere."""
    return not _SELECTED.fullmatch(name) and not name.casefold().startswith("total")


def link_of(
    pair: str, transport: object, size: object, spent: object, group: str
) -> LinkTime | None:
    """One link; None for a rank's own memory and for rows without figures.

    size: megabytes of 1e6 bytes; spent: milliseconds.
    """
    match = _LINK.fullmatch(pair)
    megabytes, milliseconds = amount(size), amount(spent)
    if not match or match[1] == match[2] or megabytes is None or milliseconds is None:
        return None
    source, target = int(match[1]), int(match[2])
    transit = milliseconds * _MS_IN_US
    return LinkTime(source, target, str(transport or ""), megabytes * _MB, transit, group)


def _found(content: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(content, dict):
        return
    links = {key: value for key, value in content.items() if _LINK.fullmatch(str(key))}
    if links:
        yield name, links
        return
    for key, value in content.items():
        yield from _found(value, str(key))


def _links(name: str, links: Mapping[str, Any]) -> Iterator[tuple[LinkTime, str]]:
    """Each link with the call that it is of, where the file says that."""
    group = name.partition("@")[2]
    for pair, facts in links.items():
        if not isinstance(facts, dict):
            continue
        size, spent = facts.get("Transit Size(MB)"), facts.get("Transit Time(ms)")
        link = link_of(str(pair), facts.get("Transport Type"), size, spent, group)
        if link is not None:
            yield link, str(facts.get("Op Name") or name)

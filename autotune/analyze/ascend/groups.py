"""Communicators: what training calls them and which ranks are in them.

`profiler_metadata.json` describes them under `parallel_group_info` by HCCL's name of each. The
communication files have a hash of that name instead, and number the ranks within the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autotune.analyze.ascend.values import whole
from autotune.analyze.profile import CollectiveTime, LinkTime

_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Group:
    """One communicator. ranks: of the whole job, in the group's order."""

    name: str
    ranks: tuple[int, ...]


def groups_of(metadata: Mapping[str, Any]) -> dict[str, Group]:
    """The groups by HCCL's name and by its hash; empty where the metadata has none."""
    described = metadata.get("parallel_group_info")
    groups: dict[str, Group] = {}
    for key, facts in described.items() if isinstance(described, dict) else ():
        if isinstance(facts, dict):
            ranks = facts.get("global_ranks")
            known = [whole(rank) for rank in ranks] if isinstance(ranks, list) else []
            members = tuple(rank for rank in known if rank is not None)
            group = Group(str(facts.get("group_name") or ""), members)
            groups[str(key)] = groups[hash_of(str(key))] = group
    return groups


def hash_of(name: str) -> str:
    """The number that CANN writes for a communicator's name: two polynomials, 32 bits each."""
    high = low = 0
    for character in name:
        high = (high * 29 + ord(character)) & _WORD
        low = (low * 131 + ord(character)) & _WORD
    return str(high << 32 | low)


def name_group(call: CollectiveTime, groups: Mapping[str, Group]) -> CollectiveTime:
    """The call with training's name before the group's own."""
    return replace(call, group=_label(call.group, groups))


def name_link(link: LinkTime, groups: Mapping[str, Group]) -> LinkTime:
    """The link between ranks of the job, where the group's members are known."""
    ranks = groups[link.group].ranks if link.group in groups else ()
    named = replace(link, group=_label(link.group, groups))
    if max(link.source, link.target) >= len(ranks):
        return named
    return replace(named, source=ranks[link.source], target=ranks[link.target])


def _label(group: str, groups: Mapping[str, Group]) -> str:
    found = groups.get(group)
    return f"{found.name} ({group})" if found and found.name else group

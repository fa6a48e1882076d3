"""Keys that a program knows, to find those that it would take without a word and ignore."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any

import yaml

from autotune.errors import did_you_mean


def read_keys(name: str) -> Mapping[str, Any]:
    """The keys listed in a YAML file of this package."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    listed = yaml.safe_load(text)
    assert isinstance(listed, dict)
    return listed


def unknown_keys(
    config: Mapping[str, Any], known: Mapping[str, Any], unlisted: Collection[str] = ()
) -> Iterator[str]:
    """What is wrong with each key that is not listed, and what may have been meant.

    known: by group, `keys` and further `groups`. unlisted: groups of which any key is taken.
    """
    everywhere = sorted(_places("", known))
    for group in config:
        if group not in known and group not in unlisted:
            yield f"{group}: {_meant(str(group), [*known, *unlisted], everywhere)}"
    for group, listed in known.items():
        yield from _unknown(group, config.get(group), listed, everywhere)


def _unknown(
    where: str, node: object, listed: Mapping[str, Any], everywhere: list[str]
) -> Iterator[str]:
    if not isinstance(node, Mapping):
        return
    groups = listed.get("groups") or {}
    for key, value in node.items():
        if key in groups:
            yield from _unknown(f"{where}.{key}", value, groups[key], everywhere)
        elif key not in (keys := listed.get("keys") or ()):
            yield f"{where}.{key}: {_meant(str(key), [*groups, *keys], everywhere)}"


def _meant(key: str, here: list[str], everywhere: list[str]) -> str:
    """The key of that name in another group, else what is close to it."""
    elsewhere = [place for place in everywhere if place.rpartition(".")[2] == key]
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere)}?"
    return did_you_mean(key, here)


def _places(prefix: str, groups: Mapping[str, Any]) -> Iterator[str]:
    for group, listed in groups.items():
        for key in listed.get("keys") or ():
            yield f"{prefix}{group}.{key}"
        yield from _places(f"{prefix}{group}.", listed.get("groups") or {})

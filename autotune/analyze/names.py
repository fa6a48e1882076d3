"""Names from files, made fit to be read."""

from __future__ import annotations

import re

_NAMESPACES = re.compile(r"\(anonymous namespace\)::|\w+::")
# What every elementwise kernel is given, and lambdas: only their place in the source has a name.
_NOISE = re.compile(r"(::)?(\{lambda.*?\}|operator)|,? ?Array<char\*, \d+> ?")
# No name that a person would read to its end.
_LONGEST = 4000
# Argument lists stand right behind a name, unlike the `(Device -> Host)` of a copy.
_ARGUMENTS = re.compile(r"(?<=\S)\([^()]*\)(?: const)?")


def shorten(name: str, width: int) -> str:
    """The name, or its beginning and end: both tell kernels apart."""
    name = clean(name)
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def kernel(name: str, width: int) -> str:
    """A kernel by what tells it apart: C++ names lose their namespaces and their arguments."""
    if name.startswith("void ") or ("<" in name and "(" in name):
        name = _NAMESPACES.sub("", name[:_LONGEST].removeprefix("void "))
        while (without := _ARGUMENTS.sub("", name)) != name:
            name = without
        name = " ".join(_NOISE.sub("", name).split()).replace(" >", ">")
    return shorten(name, width)


def clean(text: str) -> str:
    """Names come from files: nothing that moves a cursor or cannot be written gets through."""
    return "".join(c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "?" for c in text)

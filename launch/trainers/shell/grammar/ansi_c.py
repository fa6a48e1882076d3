"""Text between `$'` and `'`, as the GNU Bash manual, 3.1.2.4 ANSI-C Quoting, decodes it."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"""(?P<simple>[abeEfnrtv\\'"?])|x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})"""
    r"|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>.)"
)
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def ansi_c_text(text: str, start: int) -> tuple[str, int]:
    """The text from `start` on, and the place after its closing quote, -1 where there is none."""
    decoded: list[str] = []
    at = start
    while at < len(text) and text[at] != "'":
        if text[at] != "\\":
            decoded.append(text[at])
            at += 1
            continue
        match = _ESCAPE.match(text, at + 1)
        if match is None:
            decoded.append("\\")
            at += 1
        else:
            decoded.append(_decoded(match))
            at = match.end()
    return "".join(decoded), at + 1 if at < len(text) else -1


def _decoded(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE.get(match["simple"], match["simple"])
    if match["control"]:
        return chr(ord(match["control"].upper()) ^ 0x40)
    if match["octal"]:
        return chr(int(match["octal"], 8) & 0xFF)
    return chr(int(match["hex"] or match["short"] or match["long"], 16))

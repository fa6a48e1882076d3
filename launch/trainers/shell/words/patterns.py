"""Shell patterns (`*`, `?`, `[...]`): matching, and what `${a#b}`, `${a/b/c}` do with them.

A pattern is text in which a character that stands for itself has a backslash before it where it
would mean something. After the GNU Bash manual, 3.5.8.1 Pattern Matching.
"""

from __future__ import annotations

import re

SPECIAL = "*?[\\"
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "word": r"\w",
}
_GROUP = re.compile(r"[@?*+]\(")


def escaped(text: str) -> str:
    """A pattern that matches `text` alone."""
    return "".join(
        "\\" + character if character in SPECIAL + "()|" else character for character in text
    )


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text."""
    return compiled(pattern).fullmatch(text) is not None


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression for a whole text."""
    return re.compile(_translated(pattern), re.DOTALL)


def _translated(pattern: str) -> str:
    out: list[str] = []
    groups: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if _GROUP.match(pattern, at):
            groups.append({"@": "", "?": "?", "*": "*", "+": "+"}[character])
            out.append("(?:")
            at += 2
            continue
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            out.append(re.escape(pattern[at]))
        elif groups and character == ")":
            out.append(")" + groups.pop())
        elif groups and character == "|":
            out.append("|")
        elif character == "[" and (end := _bracket_end(pattern, at)) > 0:
            out.append(_bracket(pattern[at + 1 : end]))
            at = end
        else:
            out.append({"*": ".*", "?": "."}.get(character, re.escape(character)))
        at += 1
    return "".join(out)


def _bracket_end(pattern: str, start: int) -> int:
    """Where the `]` of a bracket expression is, -1 where it has none."""
    at = start + 1
    if pattern[at : at + 1] in ("!", "^"):
        at += 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        match = _CLASS.match(pattern, at)
        at = match.end() if match else at + (2 if pattern[at] == "\\" else 1)
    return at if at < len(pattern) else -1


def _bracket(inside: str) -> str:
    negation = "^" if inside[:1] in ("!", "^") else ""
    rest = inside[1:] if negation else inside
    out: list[str] = []
    at = 0
    while at < len(rest):
        match = _CLASS.match(rest, at)
        if match:
            out.append(_CLASSES.get(match[1], ""))
            at = match.end()
            continue
        if rest[at] == "\\" and at + 1 < len(rest):
            at += 1
            out.append(re.escape(rest[at]))
        else:
            out.append("-" if rest[at] == "-" else re.escape(rest[at]))
        at += 1
    return f"[{negation}{''.join(out)}]"


def without_prefix(text: str, pattern: str, longest: bool) -> str:
    """`${text#pattern}`, or `##`."""
    form = compiled(pattern)
    ends = range(len(text) + 1)
    for end in reversed(ends) if longest else ends:
        if form.fullmatch(text, 0, end):
            return text[end:]
    return text


def without_suffix(text: str, pattern: str, longest: bool) -> str:
    """`${text%pattern}`, or `%%`."""
    form = compiled(pattern)
    starts = range(len(text) + 1)
    for start in starts if longest else reversed(starts):
        if form.fullmatch(text, start):
            return text[:start]
    return text


def replaced(text: str, pattern: str, by: str, operator: str) -> str:
    """`${text/pattern/by}` with `/`, `//`, `/#` or `/%`: the longest match at the first place."""
    if not pattern:
        return {"/#": by + text, "/%": text + by}.get(operator, text)
    form = compiled(pattern)
    out: list[str] = []
    at = 0
    while at <= len(text):
        ends = [len(text)] if operator == "/%" else range(len(text), at - 1, -1)
        end = next((end for end in ends if form.fullmatch(text, at, end)), None)
        if end is not None and (end > at or not text):
            out.append(by)
            at = end
            if operator != "//" or not text:
                break
        else:
            if operator == "/#":
                break
            out.append(text[at : at + 1])
            at += 1
    return "".join(out) + text[at:]


def recased(text: str, pattern: str, operator: str) -> str:
    """`${text^pattern}`, `^^`, `,` or `,,`; an empty pattern is every character."""
    form = compiled(pattern or "?")
    last = len(text) if len(operator) == 2 else 1
    return "".join(
        _recased(character, operator[0]) if at < last and form.fullmatch(character) else character
        for at, character in enumerate(text)
    )


def _recased(character: str, operator: str) -> str:
    return character.upper() if operator == "^" else character.lower()

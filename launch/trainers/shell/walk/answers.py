"""Commands whose output follows from their arguments and input, worked out here.

After POSIX.1-2017, Utilities, and the manual of GNU coreutils. Each takes its arguments and its
input, and returns what it prints, None for uses that are not worked out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

Answer = Callable[[Sequence[str], str], str | None]


def _dirname(arguments: Sequence[str], _: str) -> str | None:
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if len(arguments) != 1:
        return None
    path = arguments[0].rstrip("/") or arguments[0][:1]
    return (posixpath.dirname(path).rstrip("/") or ("/" if path.startswith("/") else ".")) + "\n"


def _basename(arguments: Sequence[str], _: str) -> str | None:
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        return None
    name = posixpath.basename(arguments[0].rstrip("/")) or arguments[0][:1]
    suffix = arguments[1] if len(arguments) == 2 else ""
    return (name.removesuffix(suffix) if name != suffix else name) + "\n"


def _seq(arguments: Sequence[str], _: str) -> str | None:
    if not 1 <= len(arguments) <= 3 or not all(re.fullmatch(r"-?\d+", a) for a in arguments):
        return None
    numbers = [int(argument) for argument in arguments]
    first, step, last = {1: (1, 1, numbers[0]), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), (numbers[0], numbers[1] if len(numbers) == 3 else 1, numbers[-1])
    )
    if step == 0:
        return None
    return "".join(f"{n}\n" for n in range(first, last + (1 if step > 0 else -1), step))


def _expr(arguments: Sequence[str], _: str) -> str | None:
    match list(arguments):
        case [left, ("+" | "-" | "*" | "/" | "%") as operator, right]:
            if not all(re.fullmatch(r"-?\d+", text) for text in (left, right)):
                return None
            one, two = int(left), int(right)
            if operator in "/%" and two == 0:
                return None
            quotient = abs(one) // abs(two) * (1 if one * two > 0 else -1) if two else 0
            results = {
                "+": one + two,
                "-": one - two,
                "*": one * two,
                "/": quotient,
                "%": one - quotient * two,
            }
            return f"{results[operator]}\n"
    return None


def _wc(arguments: Sequence[str], text: str) -> str | None:
    counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(text.encode())}
    if len(arguments) != 1 or arguments[0] not in counts:
        return None
    return f"{counts[arguments[0]]}\n"


def _tr(arguments: Sequence[str], text: str) -> str | None:
    match list(arguments):
        case ["-d", removed] if (characters := _characters(removed)) is not None:
            return "".join(c for c in text if c not in characters)
        case ["-cd" | "-dc", kept] if (characters := _characters(kept)) is not None:
            return "".join(c for c in text if c in characters)
        case [old, new] if not old.startswith("-"):
            olds, news = _characters(old), _characters(new)
            if olds and news:
                padded = news + news[-1] * (len(olds) - len(news))
                return text.translate(str.maketrans(olds, padded[: len(olds)]))
    return None


def _characters(given: str) -> str | None:
    """The characters that a set of `tr` stands for."""
    text = given.replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:digit:]", "0-9")
    text = text.replace("[:space:]", " \\t\\n")
    if "[" in text:
        return None
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    ranges = re.compile(r"(.)-(.)", re.DOTALL)
    return ranges.sub(lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), text)


def _cut(arguments: Sequence[str], text: str) -> str | None:
    joined = " ".join(arguments)
    match = re.fullmatch(r"-d ?(?P<by>.) -f ?(?P<n>\d+)|-f ?(?P<m>\d+) -d ?(?P<by2>.)", joined)
    if match is None:
        return None
    by, number = match["by"] or match["by2"], int(match["n"] or match["m"])
    lines = []
    for line in text.splitlines():
        fields = line.split(by)
        lines.append(
            line if by not in line else fields[number - 1] if number <= len(fields) else ""
        )
    return "".join(f"{line}\n" for line in lines)


def _ends(arguments: Sequence[str]) -> int | None:
    match = re.fullmatch(r"(?:-n ?|--lines=|-)(\d+)|", " ".join(arguments))
    return None if match is None else int(match[1] or 10)


def _head(arguments: Sequence[str], text: str) -> str | None:
    count = _ends(arguments)
    return None if count is None else "".join(text.splitlines(keepends=True)[:count])


def _tail(arguments: Sequence[str], text: str) -> str | None:
    count = _ends(arguments)
    if count is None:
        return None
    return "".join(text.splitlines(keepends=True)[-count:] if count else [])


def _awk(arguments: Sequence[str], text: str) -> str | None:
    """Only the printing of one field of every line, or of how many there are."""
    joined = list(arguments)
    separator = None
    if joined and joined[0].startswith("-F"):
        first = joined.pop(0)
        separator = first[2:] or (joined.pop(0) if joined else "")
    match = re.fullmatch(
        r"\s*\{\s*print\s*\(?(\$\d+|\$NF|NF|\$0)\)?\s*;?\s*\}\s*", " ".join(joined)
    )
    if match is None or len(joined) != 1 or (separator is not None and len(separator) != 1):
        return None
    out = []
    for line in text.splitlines():
        is_blank = separator in (None, " ")
        fields = line.split() if is_blank else line.split(separator) if line else []
        if match[1] == "NF":
            out.append(str(len(fields)))
        elif match[1] == "$0":
            out.append(line)
        else:
            number = len(fields) if match[1] == "$NF" else int(match[1][1:])
            out.append(fields[number - 1] if 0 < number <= len(fields) else "")
    return "".join(f"{line}\n" for line in out)


ANSWERS: Mapping[str, Answer] = {
    "awk": _awk,
    "basename": _basename,
    "cut": _cut,
    "dirname": _dirname,
    "expr": _expr,
    "head": _head,
    "seq": _seq,
    "tail": _tail,
    "tr": _tr,
    "wc": _wc,
}
"""By the command's name."""

READS_INPUT = ("awk", "cut", "head", "tail", "tr", "wc")
"""Those that read their input."""

READS_FILES = ("cut", "head", "tail", "wc", "awk", "cat")
"""Those whose last argument may be a file in the place of the input."""

HARMLESS = frozenset(
    (
        "arch",
        "awk",
        "cat",
        "cut",
        "date",
        "dirname",
        "basename",
        "free",
        "getconf",
        "grep",
        "head",
        "hostname",
        "hostid",
        "id",
        "ifconfig",
        "ip",
        "lscpu",
        "nproc",
        "npu-smi",
        "nvidia-smi",
        "sed",
        "sort",
        "tail",
        "tr",
        "uname",
        "uniq",
        "wc",
        "whoami",
    )
)
"""Commands that change nothing: where one asks for what only the machine knows, it may be asked
later. `sed` and `date` can change things; see `is_harmless`."""


def is_harmless(words: Sequence[str]) -> bool:
    """Whether a command may stand in a script without changing anything."""
    name, *arguments = words
    if posixpath.basename(name) not in HARMLESS or name.startswith("."):
        return False
    text = " ".join(arguments)
    if name == "sed":
        return not re.search(r"(^| )(-[a-zA-Z]*i|--in-place)", text)
    if name == "date":
        return not re.search(r"(^| )(-s|--set)", text)
    if name == "hostname":
        return all(argument.startswith("-") for argument in arguments)
    if name in ("awk", "ip", "ifconfig"):
        return not re.search(r"system|>|\||\b(add|del|set|up|down|flush)\b", text)
    return True

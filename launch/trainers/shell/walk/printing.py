"""What `echo` and `printf` print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from launch.trainers.shell.grammar.ansi_c import ansi_c_text
from launch.trainers.shell.words.values import Text

_OPTION = re.compile(r"-[neE]+")
_DIRECTIVE = re.compile(
    r"%(?P<flags>[-0+ ]*)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<kind>[sdiufq%])"
)


def echoed(arguments: Sequence[Text]) -> Text:
    """What bash's `echo` prints."""
    rest = list(arguments)
    options = ""
    while rest and _OPTION.fullmatch(str(rest[0])):
        options += str(rest.pop(0))[1:]
    printed = Text()
    for at, argument in enumerate(rest):
        printed += (Text.of(" ") if at else Text()) + argument
    if options.rfind("e") > options.rfind("E"):
        printed = Text.of(*(decoded(p) if isinstance(p, str) else p for p in printed.pieces))
    return printed if "n" in options else printed + Text.of("\n")


def decoded(text: str) -> str:
    """Text with its escapes decoded, such as that of a new line."""
    return ansi_c_text(text.replace("\\'", "'").replace("'", "\\'") + "'", 0)[0]


def formatted(form: str, arguments: Sequence[str]) -> str | None:
    """What `printf` prints, None for a format that is not worked out.

    The format is used again as long as arguments are left.
    """
    form = decoded(form)
    if "%" in _DIRECTIVE.sub("", form):
        return None
    rest = list(arguments)
    printed: list[str] = []
    try:
        while True:
            before = len(rest)
            printed.append(_DIRECTIVE.sub(lambda match: _directed(match, rest), form))
            if not rest or len(rest) == before:
                return "".join(printed)
    except ValueError:
        return None


def _directed(match: re.Match[str], rest: list[str]) -> str:
    """What one directive prints; takes its argument. Raises ValueError where it is no number."""
    kind = match["kind"]
    if kind == "%":
        return "%"
    argument = rest.pop(0) if rest else ""
    spec = f"%{match['flags']}{match['width']}"
    precision = f".{match['precision']}" if match["precision"] else ""
    if kind in "diu":
        return f"{spec}{precision}d" % int(argument or 0)
    if kind == "f":
        return f"{spec}{precision}f" % float(argument or 0)
    if kind == "q":
        return shlex.quote(argument)
    return f"{spec}{precision}s" % argument

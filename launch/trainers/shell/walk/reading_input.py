"""`read`, `mapfile` and `getopts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Simple
from launch.trainers.shell.words.fields import DEFAULT_SEPARATORS, Fields
from launch.trainers.shell.words.state import Array
from launch.trainers.shell.words.values import Text, Unknown

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_WITH_VALUE = "adinNptu"


def read(execution: Execution, arguments: list[Text], command: Simple) -> None:
    """`read [-r] [-a array] names`: one line of the input, divided."""
    names, options = _options(arguments)
    stdin = execution.stdin
    if stdin is None or "u" in options:
        unknown = Unknown("$(read)", command.line, "what is typed in is not known")
        line, execution.shell.status = Text((unknown,)), None
    elif stdin.is_at_end:
        line, execution.shell.status = Text(), 1
    else:
        line = stdin.read_line()
        execution.shell.status = 0 if line.is_known else None
    separators = execution.shell.text("IFS")
    is_given = separators is not None and separators.is_known
    by = str(separators) if is_given else DEFAULT_SEPARATORS
    if "a" in options:
        words = _divided(line, by, command.line)
        execution.shell.set(options["a"], Array.of(words), command.line)
        return
    for at, name in enumerate(names or ["REPLY"]):
        is_last = at >= len(names) - 1
        value = line
        if names and line.is_known:
            value, line = _first(str(line), by, is_last)
        execution.shell.set(name, value, command.line)


def read_lines(execution: Execution, arguments: list[Text], command: Simple) -> None:
    """`mapfile -t array`: all lines of the input."""
    names, options = _options(arguments)
    name = names[0] if names else "MAPFILE"
    text = execution.stdin.read() if execution.stdin is not None else None
    if text is None or not text.is_known:
        unknown = Unknown("$(cat)", command.line, "what it reads is not known")
        execution.shell.set(name, Array({0: Text((unknown,))}), command.line)
        return
    lines = str(text).splitlines(keepends="t" not in options and "t" not in "".join(options))
    execution.shell.set(name, Array.of([Text.of(line) for line in lines]), command.line)


def getopts(execution: Execution, arguments: list[Text], command: Simple) -> None:
    """`getopts options name`: the next option of the arguments."""
    shell = execution.shell
    known = str(arguments[0]) if arguments else ""
    name = str(arguments[1]) if len(arguments) > 1 else "opt"
    given = arguments[2:] or list(shell.arguments)
    index = int(str(shell.text("OPTIND") or "1") or 1)
    word = str(given[index - 1]) if index <= len(given) else ""
    if not word.startswith("-") or word in ("-", "--"):
        index += word == "--"
        shell.set("OPTIND", Text.of(str(index)), command.line)
        shell.set(name, Text.of("?"), command.line)
        shell.status = 1
        return
    place = shell.cluster or 1
    letter, rest = word[place], word[place + 1 :]
    shell.status = 0
    shell.variables.pop("OPTARG", None)
    takes_value = f"{letter}:" in known and letter != ":"
    if letter not in known or letter == ":":
        shell.set("OPTARG", Text.of(letter), command.line)
        letter = "?"
    elif takes_value and rest:
        shell.set("OPTARG", Text.of(rest), command.line)
        rest = ""
    elif takes_value and index < len(given):
        index += 1
        shell.set("OPTARG", given[index - 1], command.line)
    elif takes_value:
        letter = ":" if known.startswith(":") else "?"
    shell.cluster = place + 1 if rest else 0
    shell.set("OPTIND", Text.of(str(index + (not rest))), command.line)
    shell.set(name, Text.of(letter), command.line)


def _options(arguments: list[Text]) -> tuple[list[str], dict[str, str]]:
    """The names, and the options with their values."""
    names: list[str] = []
    options: dict[str, str] = {}
    rest = [str(argument) for argument in arguments]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or names:
            names.append(word)
            continue
        letters = word[1:]
        for at, letter in enumerate(letters):
            options[letter] = ""
            if letter in _WITH_VALUE and not (letter == "t" and not rest):
                options[letter] = letters[at + 1 :] or (rest.pop(0) if rest else "")
                break
    return names, options


def _divided(line: Text, separators: str, number: int) -> list[Text]:
    fields = Fields(separators, number)
    fields.add_split(line, is_pattern=False)
    fields.end_word()
    return fields.words


def _first(line: str, separators: str, is_last: bool) -> tuple[Text, Text]:
    """The first word of a line and the rest; the whole line for the last name."""
    blanks = "".join(c for c in separators if c in DEFAULT_SEPARATORS)
    line = line.strip(blanks) if blanks else line
    if is_last or not separators:
        return Text.of(line), Text()
    for at, character in enumerate(line):
        if character in separators:
            rest = line[at + 1 :]
            return Text.of(line[:at]), Text.of(rest.lstrip(blanks) if blanks else rest)
    return Text.of(line), Text()

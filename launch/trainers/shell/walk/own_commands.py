"""The shell's own commands, as far as they matter for what a script launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.parser import parse_script
from launch.trainers.shell.grammar.scanner import SyntaxFaultError
from launch.trainers.shell.grammar.syntax import Simple
from launch.trainers.shell.reading import Prepared
from launch.trainers.shell.walk.conditions import tested
from launch.trainers.shell.walk.printing import echoed, formatted
from launch.trainers.shell.walk.reading_input import getopts, read, read_lines
from launch.trainers.shell.walk.redirections import file_text
from launch.trainers.shell.words.arithmetic import ArithmeticFaultError, evaluate
from launch.trainers.shell.words.flow import LeaveError, Leaving
from launch.trainers.shell.words.values import Text, UndeterminedError, Unknown

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

Builtin = Callable[["Execution", list[Text], Simple], None]

_OPTIONS = {"e": "errexit", "u": "nounset", "a": "allexport", "f": "noglob"}


def _succeed(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.shell.status = 0


def _fail(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.shell.status = 1


def _pass_over(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.journal.skip(command.line, command.source)


def _prepare(execution: Execution, arguments: list[Text], command: Simple) -> None:
    name = command.words[0].source
    execution.shell.steps.append(Prepared((name, *map(str, arguments)), command.line))


def _echo(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.emit(echoed(arguments))
    execution.shell.status = 0


def _printf(execution: Execution, arguments: list[Text], command: Simple) -> None:
    target = None
    if len(arguments) > 2 and str(arguments[0]) == "-v":
        target, arguments = str(arguments[1]), arguments[2:]
    try:
        known = [argument.known() for argument in arguments]
        printed = formatted(known[0], known[1:]) if known else None
        text = None if printed is None else Text.of(printed)
        why = "the format is not worked out"
    except UndeterminedError as error:
        text, why = None, error.unknown.why
    if text is None:
        text = Text((Unknown(f"$({command.source})", command.line, why),))
    if target is None:
        execution.emit(text)
    else:
        execution.shell.set(target, text, command.line)


def _pwd(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.emit(execution.shell.folder + Text.of("\n"))


def _cd(execution: Execution, arguments: list[Text], command: Simple) -> None:
    shell = execution.shell
    targets = [a for a in arguments if str(a) not in ("-P", "-L", "--", "-e")]
    variables = execution.expansion.variables(command.line)
    if not targets:
        target = shell.text("HOME") or variables.unset("HOME")
    elif str(targets[0]) == "-":
        target = shell.text("OLDPWD") or shell.folder
    else:
        target = targets[0]
    old = shell.folder
    try:
        shell.folder = Text.of(shell.path(target.known()))
    except UndeterminedError:
        is_absolute = str(target).startswith(("/", "$"))
        shell.folder = target if is_absolute else shell.folder + Text.of("/") + target
    shell.variables["OLDPWD"] = old


def _pushd(execution: Execution, arguments: list[Text], command: Simple) -> None:
    execution.shell.folders.append(execution.shell.folder)
    _cd(execution, arguments, command)


def _popd(execution: Execution, arguments: list[Text], command: Simple) -> None:
    if execution.shell.folders:
        execution.shell.folder = execution.shell.folders.pop()


def _test(execution: Execution, arguments: list[Text], command: Simple) -> None:
    name = command.words[0].source
    given = arguments[:-1] if name == "[" and arguments and str(arguments[-1]) == "]" else arguments
    truth = tested(given, execution.facts)
    execution.shell.status = None if truth is None else int(not truth)


def _let(execution: Execution, arguments: list[Text], command: Simple) -> None:
    variables = execution.expansion.variables(command.line)
    for argument in arguments:
        try:
            execution.shell.status = int(evaluate(argument.known(), variables) == 0)
        except (UndeterminedError, ArithmeticFaultError) as error:
            execution.shell.status = None
            name = str(argument).partition("=")[0].rstrip("+-*/%")
            unknown = Unknown(f"$(({argument}))", command.line, str(error), name)
            if name.isidentifier():
                variables.set(name, Text((unknown,)))


def _shift(execution: Execution, arguments: list[Text], command: Simple) -> None:
    count = _count(arguments, 1)
    if count > len(execution.shell.arguments):
        execution.shell.status = 1
        return
    execution.shell.arguments = execution.shell.arguments[count:]


def _count(arguments: list[Text], default: int) -> int:
    text = str(arguments[0]) if arguments else ""
    return int(text) if text.isdecimal() else default


def _set(execution: Execution, arguments: list[Text], command: Simple) -> None:
    shell = execution.shell
    rest = list(arguments)
    while rest and str(rest[0])[:1] in ("-", "+") and len(str(rest[0])) > 1:
        given = str(rest.pop(0))
        if given == "--":
            shell.arguments = tuple(rest)
            return
        names = {_OPTIONS[letter] for letter in given[1:] if letter in _OPTIONS}
        if "o" in given[1:] and rest:
            names.add(str(rest.pop(0)))
        if given[0] == "-":
            shell.options |= names
        else:
            shell.options -= names
    if rest:
        shell.arguments = tuple(rest)


def _unset(execution: Execution, arguments: list[Text], command: Simple) -> None:
    options = [str(a) for a in arguments if str(a).startswith("-")]
    for argument in arguments:
        name = str(argument)
        if name.startswith("-"):
            continue
        if "-f" in options:
            execution.shell.functions.pop(name, None)
        else:
            execution.shell.unset(name, command.line)


def _exit(execution: Execution, arguments: list[Text], command: Simple) -> None:
    status = _status(execution, arguments)
    raise LeaveError(Leaving.EXIT, command.line, status, why=f"{command.source!r} stands there")


def _return(execution: Execution, arguments: list[Text], command: Simple) -> None:
    raise LeaveError(Leaving.RETURN, command.line, _status(execution, arguments))


def _status(execution: Execution, arguments: list[Text]) -> int | None:
    if not arguments:
        return execution.shell.status
    return int(str(arguments[0])) % 256 if str(arguments[0]).isdecimal() else None


def _break(execution: Execution, arguments: list[Text], command: Simple) -> None:
    raise LeaveError(Leaving.BREAK, command.line, levels=_count(arguments, 1))


def _continue(execution: Execution, arguments: list[Text], command: Simple) -> None:
    raise LeaveError(Leaving.CONTINUE, command.line, levels=_count(arguments, 1))


def _eval(execution: Execution, arguments: list[Text], command: Simple) -> None:
    text = " ".join(str(argument) for argument in arguments)
    try:
        statements = parse_script(text, command.line)
    except SyntaxFaultError:
        execution.journal.skip(command.line, command.source)
        execution.shell.status = None
        return
    execution.run(statements)


def _source(execution: Execution, arguments: list[Text], command: Simple) -> None:
    if not arguments:
        return
    path, *given = arguments
    shell = execution.shell
    text = file_text(execution, path)
    if text is not None and text.is_known:
        before = execution.file, shell.arguments
        execution.file = str(path)
        shell.arguments = tuple(given) or shell.arguments
        try:
            execution.run(parse_script(str(text)))
        except SyntaxFaultError as fault:
            what = f"{path}, which it sources, line {fault.line}: {fault.what}"
            raise SyntaxFaultError(command.line, what) from None
        except LeaveError as leave:
            if leave.leaving is not Leaving.RETURN:
                raise
            execution.shell.status = leave.status
        finally:
            execution.file = before[0]
            if given:
                execution.shell.arguments = before[1]
        return
    shell.source(path, tuple(str(word) for word in given), command.line)
    shell.status = 0


def _exec(execution: Execution, arguments: list[Text], command: Simple) -> None:
    if arguments:
        execution.dispatch(arguments, command)
        why = f"{command.source!r} takes its place"
        raise LeaveError(Leaving.EXIT, command.line, execution.shell.status, why=why)


def _command(execution: Execution, arguments: list[Text], command: Simple) -> None:
    """`command name` runs it; `command -v name` asks whether it is there, which nobody knows."""
    if arguments and not str(arguments[0]).startswith("-"):
        execution.dispatch(arguments, command)
        return
    execution.shell.status = None
    why = "the machine decides what is installed"
    execution.emit(Text((Unknown(f"$({command.source})", command.line, why),)))


BUILTINS: Mapping[str, Builtin] = {
    ":": _succeed,
    "[": _test,
    ".": _source,
    "alias": _pass_over,
    "break": _break,
    "builtin": _command,
    "cd": _cd,
    "command": _command,
    "continue": _continue,
    "echo": _echo,
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "false": _fail,
    "getopts": getopts,
    "hash": _command,
    "let": _let,
    "mapfile": read_lines,
    "popd": _popd,
    "printf": _printf,
    "pushd": _pushd,
    "pwd": _pwd,
    "read": read,
    "readarray": read_lines,
    "return": _return,
    "set": _set,
    "shift": _shift,
    "shopt": _succeed,
    "source": _source,
    "test": _test,
    "trap": _pass_over,
    "true": _succeed,
    "type": _command,
    "ulimit": _prepare,
    "umask": _prepare,
    "unset": _unset,
    "wait": _succeed,
    "which": _command,
}
"""By name."""

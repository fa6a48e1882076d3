"""Simple commands: assignments, words, redirections in any order."""

from __future__ import annotations

import re

from launch.trainers.shell.grammar.scanner import Scanner
from launch.trainers.shell.grammar.syntax import Assignment, Element, Redirection, Simple, Word

_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=\[[^\]\s]+\]\+?=|\+?=)")
_REDIRECTION = re.compile(
    r"(\d*|\{[A-Za-z_]\w*\})(<<<|<<-|<<|<&|<>|<(?!\()|>&|>>|>\||>(?!\()|&>>|&>)"
)
# bash takes it for a command without input: nobody means that.
_PLACE_HOLDER = re.compile(r"<(?![<(])")
_DECLARING = ("export", "declare", "typeset", "local", "readonly")


def simple_command(scanner: Scanner) -> Simple:
    """The command that begins here. Raises SyntaxFaultError where there is none."""
    start = scanner.at
    assignments: list[Assignment] = []
    words: list[Word | Assignment] = []
    redirections: list[Redirection] = []
    end = start
    while True:
        if found := redirection(scanner):
            redirections.append(found)
        elif (not words or _declares(words)) and (assigned := _assignment(scanner)):
            (words if words else assignments).append(assigned)
        elif word := scanner.word():
            words.append(word)
        else:
            break
        end = scanner.at
        scanner.skip_blanks()
    if end == start:
        token = scanner.text[start : start + 20].split("\n")[0]
        raise scanner.fault(f"{token!r} is not expected here")
    return Simple(
        tuple(assignments),
        tuple(words),
        tuple(redirections),
        scanner.text[start:end],
        scanner.line(start),
    )


def redirection(scanner: Scanner) -> Redirection | None:
    """The redirection that begins here, None where none does."""
    match = _REDIRECTION.match(scanner.text, scanner.at)
    if match is None:
        return None
    start = scanner.at
    scanner.at = match.end()
    operator = match[2]
    if operator in ("<&", ">&") and scanner.take("-"):
        return Redirection(operator, match[1], Word((), "-", scanner.line(start)))
    scanner.skip_blanks()
    target = scanner.word()
    if target is None:
        raise scanner.fault(f"{operator} needs a file after it", start)
    if operator in ("<<", "<<-"):
        target = scanner.here_document(target, strip_tabs=operator == "<<-")
    return Redirection(operator, match[1], target)


def _declares(words: list[Word | Assignment]) -> bool:
    first = words[0]
    return isinstance(first, Word) and first.plain in _DECLARING


def _assignment(scanner: Scanner) -> Assignment | None:
    start = scanner.at
    name = scanner.rest_of_name(_ASSIGNED)
    if name is None:
        return None
    index = scanner.index() if scanner.take("[") else None
    is_appended = scanner.take("+")
    scanner.take("=")
    value: Word | tuple[Element, ...]
    if scanner.take("("):
        value = _elements(scanner, start)
    elif _PLACE_HOLDER.match(scanner.text, scanner.at):
        raise scanner.fault(f"{name}=<...> is a place-holder that is to be filled in", start)
    else:
        value = scanner.word() or Word((), "", scanner.line())
    return Assignment(
        name, value, scanner.text[start : scanner.at], scanner.line(start), index, is_appended
    )


def _elements(scanner: Scanner, start: int) -> tuple[Element, ...]:
    elements: list[Element] = []
    while True:
        scanner.skip_newlines()
        if scanner.take(")"):
            return tuple(elements)
        key = None
        if re.compile(r"\[[^\]\s]+\]=").match(scanner.text, scanner.at):
            scanner.at += 1
            key = scanner.index()
            scanner.take("=")
        word = scanner.word()
        if word is None and key is None:
            raise scanner.fault("the list of an array is never closed", start)
        elements.append(Element(key, word or Word((), "", scanner.line())))

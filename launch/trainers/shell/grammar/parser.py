r"""Text of a script -> its statements, by recursive descent over the grammar of POSIX 2.10.

tree-sitter-bash 0.25.1 was tried for this and reads some valid scripts as others without a
sign of it: blanks after `\`, `A=1 B="$((2))"` on a line of its own, `a\` joined with the next
line, `${A/x\/y/z}`, `cat <<EOF; next`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from launch.trainers.shell.grammar.scanner import Scanner
from launch.trainers.shell.grammar.simple_parser import redirection, simple_command
from launch.trainers.shell.grammar.syntax import (
    Arithmetic,
    Branch,
    Case,
    Chain,
    Condition,
    CountingFor,
    For,
    Function,
    Group,
    If,
    Pipeline,
    Redirection,
    Statement,
    While,
    Word,
)

_KEYWORD = re.compile(r"(?:[a-z]+|[{}!]|\[\[)(?=[\s;&|<>()]|$)|\(\(|\(")
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))
_FUNCTION = re.compile(r"[^\s;&|<>()$`'\"\\=]+(?=[ \t]*\([ \t]*\))")
_FUNCTION_NAME = re.compile(r"[^\s;&|<>()$`'\"\\]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_script(text: str, first_line: int = 1) -> tuple[Statement, ...]:
    """The statements of a script. Raises SyntaxFaultError."""
    scanner = Scanner(text, first_line, _statements)
    statements = _statements(scanner)
    if scanner.next:
        raise scanner.fault(f"{_token(scanner)!r} is not expected here")
    return statements


def _token(scanner: Scanner) -> str:
    return re.split(r"\s", scanner.text[scanner.at : scanner.at + 20], maxsplit=1)[0]


def _keyword(scanner: Scanner) -> str:
    """The word with a meaning in the grammar that comes next, empty where none does."""
    match = _KEYWORD.match(scanner.text, scanner.at)
    return match[0] if match else ""


def _statements(scanner: Scanner) -> tuple[Statement, ...]:
    """Statements up to what cannot begin one: a closing keyword, a bracket, `;;`, the end."""
    found: list[Statement] = []
    while True:
        scanner.skip_newlines()
        if not scanner.next or scanner.next in ");" or _keyword(scanner) in _CLOSING:
            return tuple(found)
        statement = _chain(scanner)
        scanner.skip_blanks()
        if scanner.next == "&" and not scanner.text.startswith("&&", scanner.at):
            scanner.at += 1
            statement = Group((statement,), True, (), statement.source, statement.line)
        elif scanner.next == ";" and not scanner.text.startswith((";;", ";&"), scanner.at):
            scanner.at += 1
        elif scanner.next and scanner.next not in ");\n":
            raise scanner.fault(f"{_token(scanner)!r} is not expected here")
        found.append(statement)


def _chain(scanner: Scanner) -> Statement:
    start = scanner.at
    first = _pipeline(scanner)
    rest: list[tuple[str, Statement]] = []
    while True:
        end = scanner.at
        scanner.skip_blanks()
        operator = next((token for token in ("&&", "||") if scanner.take(token)), None)
        if operator is None:
            break
        scanner.skip_newlines()
        rest.append((operator, _pipeline(scanner)))
    if not rest:
        return first
    return Chain(first, tuple(rest), scanner.text[start:end], scanner.line(start))


def _pipeline(scanner: Scanner) -> Statement:
    start = scanner.at
    is_negated = False
    while (keyword := _keyword(scanner)) in ("!", "time"):
        is_negated ^= keyword == "!"
        scanner.take(keyword)
        scanner.skip_blanks()
        if keyword == "time" and scanner.take("-p"):
            scanner.skip_blanks()
    commands = [_command(scanner)]
    while True:
        end = scanner.at
        scanner.skip_blanks()
        if scanner.text.startswith("||", scanner.at) or not scanner.take("|"):
            break
        scanner.take("&")
        scanner.skip_newlines()
        commands.append(_command(scanner))
    if len(commands) == 1 and not is_negated:
        return commands[0]
    return Pipeline(tuple(commands), is_negated, scanner.text[start:end], scanner.line(start))


def _command(scanner: Scanner) -> Statement:
    start = scanner.at
    keyword = _keyword(scanner)
    if keyword in _CLOSING:
        raise scanner.fault(f"{keyword!r} is not expected here")
    compound = _compound(scanner, keyword, start)
    if compound is None:
        return simple_command(scanner)
    redirections: list[Redirection] = []
    while True:
        scanner.skip_blanks()
        found = redirection(scanner)
        if found is None:
            break
        redirections.append(found)
    if not redirections:
        return compound
    return Group((compound,), False, tuple(redirections), _source(scanner, start), compound.line)


def _compound(scanner: Scanner, keyword: str, start: int) -> Statement | None:
    """A statement that begins with `keyword`; None for a simple command."""
    line = scanner.line(start)
    if keyword in ("{", "("):
        scanner.at += 1
        body = _statements(scanner)
        _expect(scanner, "}" if keyword == "{" else ")", start)
        return Group(body, keyword == "(", (), _source(scanner, start), line)
    if keyword == "((":
        expression = _double_brackets(scanner)
        if expression is None:
            scanner.at = start
            return _compound(scanner, "(", start)
        return Arithmetic(expression, _source(scanner, start), line)
    readers: dict[str, Callable[[Scanner], Statement]] = {
        "if": _if,
        "while": _while,
        "until": _while,
        "for": _for,
        "select": _for,
        "case": _case,
        "[[": _condition,
        "function": _function,
    }
    reader = readers.get(keyword)
    if reader is None:
        return _function(scanner) if _FUNCTION.match(scanner.text, scanner.at) else None
    return reader(scanner)


def _double_brackets(scanner: Scanner) -> Word | None:
    scanner.at += 2
    return scanner.arithmetic("))")


def _expect(scanner: Scanner, closing: str, start: int) -> None:
    scanner.skip_newlines()
    found = _keyword(scanner) if closing.isalpha() or closing == "}" else scanner.next
    if found != closing:
        opening = scanner.text[start : start + 20].split("\n")[0]
        raise scanner.fault(f"{closing!r} is missing that ends {opening!r}", start)
    scanner.at += len(closing)


def _source(scanner: Scanner, start: int) -> str:
    return scanner.text[start : scanner.at].strip()


def _if(scanner: Scanner) -> If:
    start = scanner.at
    scanner.take("if")
    branches: list[tuple[tuple[Statement, ...], tuple[Statement, ...]]] = []
    otherwise: tuple[Statement, ...] = ()
    while True:
        condition = _statements(scanner)
        _expect(scanner, "then", start)
        branches.append((condition, _statements(scanner)))
        keyword = _keyword(scanner)
        if keyword != "elif":
            break
        scanner.take("elif")
    if keyword == "else":
        scanner.take("else")
        otherwise = _statements(scanner)
    _expect(scanner, "fi", start)
    return If(tuple(branches), otherwise, _source(scanner, start), scanner.line(start))


def _while(scanner: Scanner) -> While:
    start = scanner.at
    is_until = _keyword(scanner) == "until"
    scanner.at += 5
    condition = _statements(scanner)
    body = _loop_body(scanner, start)
    return While(condition, body, is_until, _source(scanner, start), scanner.line(start))


def _loop_body(scanner: Scanner, start: int) -> tuple[Statement, ...]:
    _skip_separators(scanner)
    if scanner.take("{"):
        body = _statements(scanner)
        _expect(scanner, "}", start)
        return body
    _expect(scanner, "do", start)
    body = _statements(scanner)
    _expect(scanner, "done", start)
    return body


def _skip_separators(scanner: Scanner) -> None:
    scanner.skip_blanks()
    scanner.take(";")
    scanner.skip_newlines()


def _for(scanner: Scanner) -> For | CountingFor:
    start = scanner.at
    scanner.at += len(_keyword(scanner))
    scanner.skip_blanks()
    if scanner.take("(("):
        start_of, condition, step = (scanner.arithmetic(end) for end in (";", ";", "))"))
        if start_of is None or condition is None or step is None:
            raise scanner.fault("for (( needs two ; and ))", start)
        body = _loop_body(scanner, start)
        return CountingFor(
            start_of, condition, step, body, _source(scanner, start), scanner.line(start)
        )
    name = scanner.rest_of_name(_VARIABLE)
    if name is None:
        raise scanner.fault("for needs a variable", start)
    scanner.skip_newlines()
    words: list[Word] | None = None
    if _keyword(scanner) == "in":
        scanner.take("in")
        words = []
        scanner.skip_blanks()
        while word := scanner.word():
            words.append(word)
            scanner.skip_blanks()
    body = _loop_body(scanner, start)
    listed = None if words is None else tuple(words)
    return For(name, listed, body, _source(scanner, start), scanner.line(start))


def _case(scanner: Scanner) -> Case:
    start = scanner.at
    scanner.take("case")
    scanner.skip_blanks()
    subject = scanner.word()
    scanner.skip_newlines()
    if subject is None or not scanner.take("in"):
        raise scanner.fault("case needs a word and `in`", start)
    branches: list[Branch] = []
    while True:
        scanner.skip_newlines()
        if _keyword(scanner) == "esac" or not scanner.next:
            break
        branches.append(_branch(scanner))
    _expect(scanner, "esac", start)
    return Case(subject, tuple(branches), _source(scanner, start), scanner.line(start))


def _branch(scanner: Scanner) -> Branch:
    start = scanner.at
    scanner.take("(")
    patterns: list[Word] = []
    while True:
        scanner.skip_blanks()
        pattern = scanner.word()
        scanner.skip_blanks()
        if pattern is None:
            raise scanner.fault("a pattern of case is not understood", start)
        patterns.append(pattern)
        if not scanner.take("|"):
            break
    if not scanner.take(")"):
        raise scanner.fault("a pattern of case must end with )", start)
    body = _statements(scanner)
    ending = next((token for token in (";;&", ";;", ";&") if scanner.take(token)), ";;")
    return Branch(tuple(patterns), body, ending)


def _condition(scanner: Scanner) -> Condition:
    start = scanner.at
    scanner.take("[[")
    tokens: list[Word | str] = []
    after_match = False
    while True:
        scanner.skip_newlines()
        if _ends(scanner, "]]"):
            scanner.take("]]")
            return Condition(tuple(tokens), _source(scanner, start), scanner.line(start))
        word = scanner.word(in_pattern=after_match)
        after_match = word is not None and word.plain in ("=", "==", "!=", "=~")
        if word is None:
            symbols = ("&&", "||", "(", ")", "<", ">")
            symbol = next((token for token in symbols if scanner.take(token)), None)
            if symbol is None:
                raise scanner.fault("[[ is not understood", start)
            tokens.append(symbol)
        else:
            tokens.append(word)


def _ends(scanner: Scanner, token: str) -> bool:
    return (
        re.compile(re.escape(token) + r"(?=[\s;&|)]|$)").match(scanner.text, scanner.at) is not None
    )


def _function(scanner: Scanner) -> Function:
    start = scanner.at
    if _keyword(scanner) == "function":
        scanner.take("function")
        scanner.skip_blanks()
    name = scanner.rest_of_name(_FUNCTION_NAME)
    scanner.skip_blanks()
    if scanner.take("("):
        scanner.skip_blanks()
        scanner.take(")")
    scanner.skip_newlines()
    if not name:
        raise scanner.fault("function needs a name", start)
    body = _command(scanner)
    return Function(name, body, _source(scanner, start), scanner.line(start))

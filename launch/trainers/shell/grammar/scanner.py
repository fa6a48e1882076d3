"""Characters -> words: quotes, escapes and everything that begins with `$`.

After the GNU Bash manual, 3.1.2 Quoting and 3.5 Shell Expansions. Nothing is expanded here.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable

from launch.trainers.shell.grammar.ansi_c import ansi_c_text
from launch.trainers.shell.grammar.syntax import (
    ArithmeticExpansion,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Statement,
    Substitution,
    Word,
)

_METACHARACTERS = frozenset(" \t\n;&|<>()")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_BRACED_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_OPERATOR = re.compile(r":[-=?+]|[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|@[A-Za-z]|[@*](?=\})|:")
_TWO_ARGUMENTS = ("/", "//", "/#", "/%", ":")
_PATTERN_OPERATORS = ("#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,")
_ESCAPED_IN_DOUBLE_QUOTES = '$`"\\\n'


class SyntaxFaultError(Exception):
    """Not bash, or bash of a kind that is not read. line: from 1. what: half a sentence."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


class Scanner:
    """A place in a text that moves on as words are taken.

    first_line: the number of the text's first line. parse: reads statements from a scanner up to
    a `)` or the end, for substitutions.
    """

    def __init__(
        self, text: str, first_line: int, parse: Callable[[Scanner], tuple[Statement, ...]]
    ) -> None:
        self.text = text
        self.at = 0
        self._first_line = first_line
        self._parse = parse
        self._line_starts = [match.end() for match in re.finditer("\n", text)]
        self._after_here_documents: int | None = None

    def line(self, at: int | None = None) -> int:
        """The line of a place, of this one where none is given."""
        place = self.at if at is None else at
        return self._first_line + bisect.bisect_right(self._line_starts, place)

    def fault(self, what: str, at: int | None = None) -> SyntaxFaultError:
        """An error to raise for a place."""
        return SyntaxFaultError(self.line(at), what)

    @property
    def next(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, token: str) -> bool:
        """Moves past `token` where it comes next."""
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def skip_blanks(self) -> None:
        """Moves past blanks, continued lines and a comment. Only right between words."""
        match = _BLANKS.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def take_newline(self) -> bool:
        """Moves past the end of a line, and past here-documents that begin there."""
        if not self.take("\n"):
            return False
        if self._after_here_documents is not None:
            self.at, self._after_here_documents = self._after_here_documents, None
        return True

    def skip_newlines(self) -> None:
        """Moves past blanks, comments and ends of lines."""
        self.skip_blanks()
        while self.take_newline():
            self.skip_blanks()

    def word(self, in_pattern: bool = False) -> Word | None:
        """The next word, None where something else comes next.

        in_pattern: on the right of `==` and `=~` between `[[` and `]]`, where brackets and bars
        belong to the word.
        """
        start, parts, depth = self.at, _Parts(), 0
        while self.next:
            character = self.next
            if character in "<>" and self.text[self.at + 1 : self.at + 2] == "(":
                parts.add(self._process())
            elif in_pattern and (character == "(" or (depth and character == ")")):
                depth += 1 if character == "(" else -1
                parts.add_text(character)
                self.at += 1
            elif in_pattern and character == "|" and not self.text.startswith("||", self.at):
                parts.add_text(character)
                self.at += 1
            elif character in _METACHARACTERS:
                break
            else:
                self._unquoted(parts)
        if self.at == start:
            return None
        return self._word(start, parts)

    def rest_of_name(self, pattern: re.Pattern[str]) -> str | None:
        """The text that the pattern matches here; moves past it."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def index(self) -> Word:
        """What stands between `[`, already taken, and `]`."""
        return self._inner("]", is_quoted=False)

    def arithmetic(self, closing: str) -> Word | None:
        """Text up to `closing` (`))`, `]`, `;`) and past it; None where it ends otherwise."""
        start, parts, depth = self.at, _Parts(), 0
        while self.next:
            if depth == 0 and self.take(closing):
                return self._word(start, parts, end=self.at - len(closing))
            character = self.next
            if character == ")" and depth == 0 and closing == "))":
                return None
            if character == '"':
                self.at += 1
                continue
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
            self._double_quoted(parts)
        return None

    def here_document(self, delimiter: Word, strip_tabs: bool) -> Word:
        """The text of a here-document that begins after this line."""
        start = self._after_here_documents
        if start is None:
            start = self.text.find("\n", self.at) + 1 or len(self.text)
        end_mark = "".join(part.text for part in delimiter.parts if isinstance(part, Literal))
        lines: list[str] = []
        at = start
        while at < len(self.text):
            stop = self.text.find("\n", at) + 1 or len(self.text)
            line, at = self.text[at:stop], stop
            line = line.lstrip("\t") if strip_tabs else line
            if line.rstrip("\n") == end_mark:
                break
            lines.append(line)
        self._after_here_documents = at
        text = "".join(lines)
        if any(isinstance(part, Literal) and part.is_quoted for part in delimiter.parts):
            return Word((Literal(text, is_quoted=True),), text, self.line(start))
        inner = Scanner(text, self.line(start), self._parse)
        parts = _Parts()
        while inner.next:
            inner._double_quoted(parts, escaped="$`\\\n")
        return Word(parts.done(), text, self.line(start))

    def _word(self, start: int, parts: _Parts, end: int | None = None) -> Word:
        return Word(
            parts.done(), self.text[start : self.at if end is None else end], self.line(start)
        )

    def _unquoted(self, parts: _Parts) -> None:
        """Takes one piece outside quotes."""
        character = self.next
        if character == "\\":
            self.at += 1
            if not self.take("\n"):
                parts.add_text(self.next or "\\", is_quoted=True)
                self.at += 1
        elif character == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise self.fault("a quote ' is never closed")
            parts.add_text(self.text[self.at + 1 : end], is_quoted=True)
            self.at = end + 1
        elif character == '"':
            self._string(parts)
        elif self.text.startswith("$'", self.at):
            start = self.at
            text, self.at = ansi_c_text(self.text, start + 2)
            if self.at < 0:
                raise self.fault("a quote $' is never closed", start)
            parts.add_text(text, is_quoted=True)
        elif self.text.startswith('$"', self.at):
            self.at += 1
        elif character in "$`":
            self._expansion(parts, is_quoted=False)
        else:
            parts.add_text(character)
            self.at += 1

    def _string(self, parts: _Parts) -> None:
        """Takes a text between double quotes."""
        start = self.at
        self.at += 1
        if self.next == '"':
            parts.add_text("", is_quoted=True)
        while not self.take('"'):
            if not self.next:
                raise self.fault('a quote " is never closed', start)
            self._double_quoted(parts)

    def _double_quoted(self, parts: _Parts, escaped: str = _ESCAPED_IN_DOUBLE_QUOTES) -> None:
        """Takes one piece as it is meant between double quotes."""
        character = self.next
        following = self.text[self.at + 1 : self.at + 2]
        if character == "\\" and following and following in escaped:
            parts.add_text("" if following == "\n" else following, is_quoted=True)
            self.at += 2
        elif character in "$`":
            self._expansion(parts, is_quoted=True)
        else:
            parts.add_text(character, is_quoted=True)
            self.at += 1

    def _expansion(self, parts: _Parts, is_quoted: bool) -> None:
        """Takes what begins with `$` or a backquote; a `$` alone is text."""
        part = self._backquoted(is_quoted) if self.next == "`" else self._dollar(is_quoted)
        if part is None:
            parts.add_text("$", is_quoted)
            self.at += 1
        else:
            parts.add(part)

    def _dollar(self, is_quoted: bool) -> Part | None:
        start = self.at
        if self.take("$(("):
            expression = self.arithmetic("))")
            if expression is not None:
                return ArithmeticExpansion(
                    expression, self.text[start : self.at], self.line(start), is_quoted
                )
            self.at = start
        if self.take("$["):
            expression = self.arithmetic("]")
            if expression is None:
                raise self.fault("$[ is never closed", start)
            return ArithmeticExpansion(
                expression, self.text[start : self.at], self.line(start), is_quoted
            )
        if self.take("$("):
            body = self._body(start)
            return Substitution(body, self.text[start : self.at], self.line(start), is_quoted)
        if self.take("${"):
            return self._braced(start, is_quoted)
        match = _PARAMETER.match(self.text, start + 1)
        if match is None:
            return None
        self.at = match.end()
        return Parameter(match[0], self.text[start : self.at], self.line(start), is_quoted)

    def _body(self, start: int) -> tuple[Statement, ...]:
        body = self._parse(self)
        if not self.take(")"):
            raise self.fault("a bracket ( is never closed", start)
        return body

    def _process(self) -> ProcessSubstitution:
        start = self.at
        self.at += 2
        body = self._body(start)
        return ProcessSubstitution(body, self.text[start : self.at], self.line(start))

    def _backquoted(self, is_quoted: bool) -> Substitution:
        start = self.at
        end = start + 1
        while self.text[end : end + 1] != "`":
            if end >= len(self.text):
                raise self.fault("a backquote is never closed", start)
            end += 2 if self.text[end] == "\\" else 1
        escaped = r'\\([$`\\"])' if is_quoted else r"\\([$`\\])"
        inner = re.sub(escaped, r"\1", self.text[start + 1 : end])
        self.at = end + 1
        scanner = Scanner(inner, self.line(start), self._parse)
        body = self._parse(scanner)
        if scanner.next:
            raise self.fault(f"{scanner.next!r} is not expected between backquotes", start)
        return Substitution(body, self.text[start : self.at], self.line(start), is_quoted)

    def _braced(self, start: int, is_quoted: bool) -> Parameter:
        """Takes the rest of `${...}`."""
        prefix = ""
        if self.next in ("#", "!") and _NAME_OR_NUMBER.match(self.text, self.at + 1):
            prefix = self.next
            self.at += 1
        name = self.rest_of_name(_BRACED_PARAMETER)
        if name is None:
            raise self.fault(f"{self.text[start : start + 20]!r} is no parameter", start)
        index = self.index() if self.take("[") else None
        operator = self.rest_of_name(_OPERATOR) or ""
        arguments: list[Word] = []
        is_pattern = operator in _PATTERN_OPERATORS
        if operator in _TWO_ARGUMENTS:
            separator = ":" if operator == ":" else "/"
            # The pattern of `//` may begin with `/`.
            may_begin = operator == "//" and self.next == "/"
            arguments.append(
                self._inner(separator + "}", is_quoted and not is_pattern, at_least=int(may_begin))
            )
            if self.text[self.at - 1] == separator:
                arguments.append(self._inner("}", is_quoted and not is_pattern))
        elif operator:
            arguments.append(self._inner("}", is_quoted and not is_pattern))
        elif not self.take("}"):
            raise self.fault(f"{self.text[start : start + 20]!r} is not understood", start)
        return Parameter(
            name,
            self.text[start : self.at],
            self.line(start),
            is_quoted,
            prefix,
            index,
            operator,
            tuple(arguments),
        )

    def _inner(self, closings: str, is_quoted: bool, at_least: int = 0) -> Word:
        """Takes text up to the first of `closings` that is not quoted, and that one.

        at_least: characters that are text whatever they are.
        """
        start, parts = self.at, _Parts()
        while self.next:
            if self.next in closings and self.at >= start + at_least:
                self.at += 1
                return self._word(start, parts, end=self.at - 1)
            if not is_quoted:
                self._unquoted(parts)
            elif self.next == '"':
                self._string(parts)
            else:
                self._double_quoted(parts, _ESCAPED_IN_DOUBLE_QUOTES + "}")
        raise self.fault(f"{closings[-1]} is missing", start)


_NAME_OR_NUMBER = re.compile(r"[A-Za-z0-9_@*]")


class _Parts:
    """Parts of a word, literal text of one kind together."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._text: list[str] = []
        self._is_quoted = False

    def add(self, part: Part) -> None:
        self._end_text()
        self._parts.append(part)

    def add_text(self, text: str, is_quoted: bool = False) -> None:
        if is_quoted != self._is_quoted:
            self._end_text()
        self._is_quoted = is_quoted
        self._text.append(text)

    def done(self) -> tuple[Part, ...]:
        self._end_text()
        return tuple(self._parts)

    def _end_text(self) -> None:
        if self._text:
            self._parts.append(Literal("".join(self._text), self._is_quoted))
            self._text = []

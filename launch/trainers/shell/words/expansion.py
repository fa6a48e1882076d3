"""Words -> texts: what the shell makes of `$name`, `${...}`, `$(...)` and `$((...))`.

After the GNU Bash manual, 3.5 Shell Expansions. What would have to be run becomes `Unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from launch.trainers.shell.grammar.syntax import (
    ArithmeticExpansion,
    Element,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Substitution,
    Word,
)
from launch.trainers.shell.words import patterns
from launch.trainers.shell.words.arithmetic import ArithmeticFaultError, evaluate
from launch.trainers.shell.words.braces import brace_expanded
from launch.trainers.shell.words.fields import DEFAULT_SEPARATORS, Fields
from launch.trainers.shell.words.parameters import Listed, expanded
from launch.trainers.shell.words.state import Array, Key, Shell
from launch.trainers.shell.words.values import Text, UndeterminedError, Unknown, unknown_text
from launch.trainers.shell.words.variables import Variables

_HOME_AFTER_COLON = re.compile(r"(?<=:)~(?=[/:]|$)")


class Expansion:
    """Expands words in one shell.

    script: what `$0` is. file: the one that is being gone through. substitute: what the commands
    of `$(...)` print.
    """

    def __init__(
        self, shell: Shell, script: str, file: str, substitute: Callable[[Substitution], Text]
    ) -> None:
        self._shell = shell
        self._script = script
        self._file = file
        self._substitute = substitute

    def variables(self, line: int) -> Variables:
        """The variables, asked for on a line."""
        return Variables(self._shell, self._script, self._file, line)

    def words(self, words: Iterable[Word]) -> list[Text]:
        """The arguments that words yield: with braces, split."""
        found: list[Text] = []
        for word in words:
            for each in brace_expanded(word):
                fields = Fields(self._separators, word.line, "noglob" not in self._shell.options)
                self._add(fields, self._with_home(each))
                fields.end_word()
                found.extend(fields.words)
        return found

    def text(self, word: Word) -> Text:
        """A word's text where it stays one: in assignments, redirections, `case`."""
        pieces = Text()
        for part in self._with_home(word).parts:
            pieces += self._joined(part)
        return pieces

    def assigned(self, word: Word) -> Text:
        """The text that a variable gets: `~` counts after `:` too."""
        parts: list[Part] = []
        for part in self._with_home(word).parts:
            if not isinstance(part, Literal) or part.is_quoted:
                parts.append(part)
                continue
            before, *others = _HOME_AFTER_COLON.split(part.text)
            parts.append(Literal(before))
            for other in others:
                parts += [Parameter("HOME", "${HOME}", word.line, is_quoted=True), Literal(other)]
        return self.text(Word(tuple(parts), word.source, word.line))

    def pattern(self, word: Word, escape: Callable[[str], str] = patterns.escaped) -> str:
        """A word as a pattern: what is quoted stands for itself. Raises UndeterminedError."""
        pieces: list[str] = []
        for part in word.parts:
            if isinstance(part, Literal):
                is_quoted, text = part.is_quoted, part.text
            else:
                is_quoted = part.is_quoted
                text = self._joined(part).known()
            pieces.append(escape(text) if is_quoted else text)
        return "".join(pieces)

    def number(self, word: Word) -> int:
        """The value of an arithmetic expression.

        Raises UndeterminedError, ArithmeticFaultError, LeaveError.
        """
        return evaluate(self.text(word).known(), self.variables(word.line))

    def array(self, elements: Iterable[Element], old: Array | None, is_associative: bool) -> Array:
        """The array that `(...)` makes. old: what it is appended to."""
        items: dict[Key, Text] = dict(old.items) if old is not None else {}
        following = 1 + max((key for key in items if isinstance(key, int)), default=-1)
        for element in elements:
            if element.key is not None:
                key: Key = (
                    self.text(element.key).known() if is_associative else self.number(element.key)
                )
                items[key] = self.text(element.value)
                following = key + 1 if isinstance(key, int) else following
                continue
            for text in self.words([element.value]):
                items[following] = text
                following += 1
        return Array(items, is_associative)

    @property
    def _separators(self) -> str:
        given = self._shell.text("IFS")
        return str(given) if given is not None and given.is_known else DEFAULT_SEPARATORS

    def _with_home(self, word: Word) -> Word:
        """`~` at the start of a word as `$HOME`."""
        first = word.parts[0] if word.parts else None
        if not isinstance(first, Literal) or first.is_quoted or first.text[:2] not in ("~", "~/"):
            return word
        if first.text == "~" and len(word.parts) > 1:
            return word
        home = Parameter("HOME", "${HOME}", word.line, is_quoted=True)
        return Word((home, Literal(first.text[1:]), *word.parts[1:]), word.source, word.line)

    def _add(self, fields: Fields, word: Word, is_quoted: bool = False) -> None:
        """Adds what a word yields. is_quoted: it stands within `"${name:-word}"`."""
        for part in word.parts:
            if isinstance(part, Literal):
                if part.is_quoted or is_quoted:
                    fields.add(Text.of(part.text))
                else:
                    fields.add_plain(part.text)
                continue
            part_is_quoted = is_quoted or part.is_quoted
            value = self._value(part)
            if isinstance(value, Word):
                self._add_default(fields, value, part_is_quoted)
            elif isinstance(value, Listed):
                self._add_list(fields, value, part_is_quoted)
            elif part_is_quoted:
                fields.add(value)
            else:
                fields.add_split(value)

    def _add_default(self, fields: Fields, word: Word, is_quoted: bool) -> None:
        """The word of `${name:-word}`: unquoted text of it is split, as if it were a value."""
        if is_quoted and not word.parts:
            fields.add(Text())
        for part in self._with_home(word).parts:
            if isinstance(part, Literal) and not part.is_quoted and not is_quoted:
                fields.add_split(Text.of(part.text))
            else:
                self._add(fields, Word((part,), word.source, word.line), is_quoted)

    def _add_list(self, fields: Fields, value: Listed, is_quoted: bool) -> None:
        if is_quoted and value.is_joined:
            fields.add(self._as_one(value))
            return
        for at, item in enumerate(value.items):
            if at:
                fields.end_word()
            if is_quoted:
                fields.add(item)
            else:
                fields.add_split(item)

    def _as_one(self, value: Listed) -> Text:
        separator = self._separators[:1] if value.is_joined else " "
        joined = Text()
        for at, item in enumerate(value.items):
            joined += (Text.of(separator) if at else Text()) + item
        return joined

    def _joined(self, part: Part) -> Text:
        """What a part yields as one text."""
        if isinstance(part, Literal):
            return Text.of(part.text)
        value = self._value(part)
        if isinstance(value, Word):
            return self.text(value)
        return self._as_one(value) if isinstance(value, Listed) else value

    def _value(self, part: Part) -> Text | Listed | Word:
        """What an expansion yields; Unknown where it cannot be told."""
        assert not isinstance(part, Literal)
        try:
            match part:
                case Parameter():
                    return expanded(part, self)
                case Substitution():
                    return self._substitute(part)
                case ArithmeticExpansion():
                    return Text.of(str(self.number(part.expression)))
                case ProcessSubstitution():
                    return unknown_text(part.source, part.line, "the command in it is not run")
        except UndeterminedError as error:
            return Text((error.unknown.derived(part.source, error.unknown.variable),))
        except ArithmeticFaultError as fault:
            return Text((Unknown(part.source, part.line, f"bash cannot compute it: {fault}"),))

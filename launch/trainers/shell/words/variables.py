"""What a name stands for: variables, arguments, and what bash itself provides."""

from __future__ import annotations

import posixpath
import re

from launch.trainers.shell.words.arithmetic import evaluate
from launch.trainers.shell.words.flow import LeaveError, Leaving
from launch.trainers.shell.words.state import Array, Key, Shell
from launch.trainers.shell.words.surroundings import FROM_LOGIN, FROM_TOOLKIT, TOOLKIT_SCRIPTS
from launch.trainers.shell.words.values import Text, Unknown, unknown_text

_INDEXED = re.compile(r"(\w+)\[(.*)\]")


class Variables:
    """The variables of a shell.

    script: what `$0` is. file: what `BASH_SOURCE` is. line: where they are asked for.
    """

    def __init__(self, shell: Shell, script: str, file: str, line: int) -> None:
        self._shell = shell
        self._file = file
        self._script = script
        self._line = line

    def text(self, name: str, key: Key | None = None) -> Text | None:
        """A variable's or an argument's text, None where it is unset."""
        if name.isdecimal():
            return self._argument(int(name))
        if name in ("BASH_SOURCE", "PWD", "LINENO", "#", "?", "$", "!", "-"):
            return self._special(name)
        variable = self._shell.variables.get(name)
        if isinstance(variable, Array) and key is not None:
            return self._element(variable, key)
        if key is not None and key not in (0, "0"):
            return None
        return self._shell.text(name)

    def elements(self, name: str) -> tuple[Text, ...]:
        """All elements of an array, or all arguments."""
        if name in ("@", "*"):
            return self._shell.arguments
        variable = self._shell.variables.get(name)
        if isinstance(variable, Array):
            return variable.values
        text = self.text(name)
        return () if text is None else (text,)

    def keys(self, name: str) -> tuple[str, ...]:
        """The keys of an array's elements."""
        variable = self._shell.variables.get(name)
        if isinstance(variable, Array):
            return tuple(str(key) for key in variable.keys)
        return ("0",) if variable is not None else ()

    def is_associative(self, name: str) -> bool:
        """Whether a name is that of an array by text."""
        variable = self._shell.variables.get(name)
        return isinstance(variable, Array) and variable.is_associative

    def possible(self, name: str) -> Unknown | None:
        """What a variable that nothing here sets may hold all the same."""
        if name in FROM_LOGIN:
            return self._live(name)
        for sourced in self._shell.unread:
            if posixpath.basename(sourced.path) in TOOLKIT_SCRIPTS:
                if name.startswith(FROM_TOOLKIT):
                    return self._live(name)
            elif re.fullmatch(r"[A-Za-z_]\w*", name):
                why = f"{sourced.path} on line {sourced.line} may set it and was not read"
                return Unknown(f"${{{name}}}", self._line, why, name)
        return None

    def unset(self, name: str) -> Text:
        """What an unset variable yields. Raises LeaveError under `set -u`."""
        possible = self.possible(name)
        if possible is not None:
            return Text((possible,))
        if "nounset" in self._shell.options and name not in ("@", "*"):
            why = f"{name} is not set, which `set -u` forbids"
            raise LeaveError(Leaving.EXIT, self._line, 1, why=why)
        return Text()

    def set(self, name: str, value: Text, key: Key | None = None) -> None:
        """Sets a variable or an element."""
        old = self._shell.variables.get(name)
        if key is None and not isinstance(old, Array):
            self._shell.set(name, value, self._line)
            return
        if not isinstance(old, Array):
            old = Array({} if old is None else {0: old})
        place = (0 if not old.is_associative else "0") if key is None else key
        item = self._shell.answered(name, value.given_to(name))
        self._shell.set(name, old.with_item(place, item), self._line)

    def value(self, name: str) -> str:
        """For arithmetic: the text of `name` or `name[index]`. Raises UndeterminedError."""
        plain, key = self._place(name)
        text = self.text(plain, key)
        return (self.unset(plain) if text is None else text).known()

    def assign(self, name: str, value: str) -> None:
        """For arithmetic: sets `name` or `name[index]`."""
        plain, key = self._place(name)
        self.set(plain, Text.of(value), key)

    def _place(self, name: str) -> tuple[str, Key | None]:
        match = _INDEXED.fullmatch(name)
        if match is None:
            return name, None
        variable = self._shell.variables.get(match[1])
        if isinstance(variable, Array) and variable.is_associative:
            return match[1], match[2]
        return match[1], evaluate(match[2], self)

    def _element(self, array: Array, key: Key) -> Text | None:
        if isinstance(key, int) and key < 0 and array.keys:
            last = array.keys[-1]
            key = (last if isinstance(last, int) else 0) + 1 + key
        return array.items.get(key)

    def _argument(self, number: int) -> Text | None:
        if number == 0:
            return Text.of(self._script)
        arguments = self._shell.arguments
        return arguments[number - 1] if number <= len(arguments) else None

    def _special(self, name: str) -> Text | None:
        match name:
            case "BASH_SOURCE":
                return Text.of(self._file)
            case "PWD":
                return self._shell.folder
            case "LINENO":
                return Text.of(str(self._line))
            case "#":
                return Text.of(str(len(self._shell.arguments)))
            case "?":
                if self._shell.status is not None:
                    return Text.of(str(self._shell.status))
                return unknown_text("$?", self._line, "the command before it is not run")
            case "-":
                return Text()
        return unknown_text(f"${name}", self._line, "it is the number of a process", is_live=True)

    def _live(self, name: str) -> Unknown:
        why = "the machine decides it"
        return Unknown(f"${{{name}-}}", self._line, why, name, is_live=True)

"""What a shell remembers: variables, functions, options, where it is."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from launch.trainers.shell.grammar.syntax import Function
from launch.trainers.shell.reading import Exported, Sourced, Step, Unset
from launch.trainers.shell.words.values import Text, Unknown, live_sources

Key = int | str


@dataclass(frozen=True)
class Array:
    """An array, by number or, where it is associative, by text."""

    items: Mapping[Key, Text]
    is_associative: bool = False

    @classmethod
    def of(cls, values: list[Text]) -> Array:
        """The values, numbered from 0."""
        return cls(dict(enumerate(values)))

    @property
    def values(self) -> tuple[Text, ...]:
        """The elements in the order in which they are expanded."""
        return tuple(self.items[key] for key in self.keys)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys in the order of the values."""
        if self.is_associative:
            return tuple(self.items)
        return tuple(sorted(key for key in self.items if isinstance(key, int)))

    def with_item(self, key: Key, value: Text) -> Array:
        """The same with one element set."""
        return replace(self, items={**self.items, key: value})


Variable = Text | Array


@dataclass
class Shell:
    """The state of one shell.

    exported: names that go to the environment of commands. own: names that the script has set or
    exported itself. folder: the working directory. made: paths that were created. status: of the
    last command, None where it is undecided. unread: scripts that were sourced and not read.
    folders: of `pushd`. cluster: the place of `getopts` within `-abc`, 0 between words.
    sourced: the paths of `unread`. live: shell text in what was exported that is to be expanded
    later. answers: what the person has given for variables that only running would tell.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    functions: dict[str, Function] = field(default_factory=dict)
    arguments: tuple[Text, ...] = ()
    folder: Text = field(default_factory=lambda: Text.of("."))
    options: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    unread: list[Sourced] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    status: int | None = 0
    folders: list[Text] = field(default_factory=list)
    cluster: int = 0
    sourced: list[Text] = field(default_factory=list)
    live: set[str] = field(default_factory=set)
    answers: Mapping[str, str] = field(default_factory=dict)

    def fork(self) -> Shell:
        """A shell that begins with the same and goes its own way."""
        return Shell(
            dict(self.variables),
            set(self.exported),
            set(self.own),
            dict(self.functions),
            self.arguments,
            self.folder,
            set(self.options),
            set(self.made),
            list(self.unread),
            list(self.steps),
            self.status,
            list(self.folders),
            self.cluster,
            list(self.sourced),
            set(self.live),
            self.answers,
        )

    def text(self, name: str) -> Text | None:
        """A variable's text, of an array its first element, None where it is unset."""
        variable = self.variables.get(name)
        if isinstance(variable, Array):
            return variable.items.get("0" if variable.is_associative else 0)
        return variable

    def set(self, name: str, value: Variable, line: int) -> None:
        """Sets a variable, and what the environment knows of it.

        What is unknown of it is answered by `answers`.
        """
        if isinstance(value, Text):
            value = self.answered(name, value.given_to(name))
        else:
            items = {key: item.given_to(name) for key, item in value.items.items()}
            value = replace(value, items=items)
        self.variables[name] = value
        if "allexport" in self.options:
            self.exported.add(name)
        if name in self.exported:
            self.export(name, line)

    def answered(self, name: str, value: Text) -> Text:
        """The value, or what the person has given where the script would have to find it out."""
        answer = self.answers.get(name)
        return value if answer is None or value.is_known else Text.of(answer)

    def source(self, path: Text, arguments: tuple[str, ...], line: int) -> None:
        """Notes a script that is sourced and not read."""
        self.sourced.append(path)
        self.unread.append(Sourced(str(path), arguments, str(self.folder), line))
        self.steps.append(self.unread[-1])

    def export(self, name: str, line: int) -> None:
        """From now on commands get the variable."""
        self.exported.add(name)
        value = self.variables.get(name)
        if isinstance(value, Text):
            self.own.add(name)
            self.live |= live_sources(value)
            self.steps.append(Exported(name, str(value), line))

    def unset(self, name: str, line: int) -> None:
        """Forgets a variable."""
        is_inner = name in self.variables and name not in self.exported
        self.variables.pop(name, None)
        self.exported.discard(name)
        self.own.discard(name)
        if name.isidentifier() and not is_inner:
            self.steps.append(Unset(name, line))

    def environment(self) -> dict[str, Text]:
        """What the script itself adds to the environment of a command."""
        found = {name: self.variables.get(name) for name in sorted(self.own & self.exported)}
        return {name: value for name, value in found.items() if isinstance(value, Text)}

    def path(self, path: str) -> str:
        """A path of the working directory, absolute where that is known to be.

        Raises UndeterminedError where the working directory is not known.
        """
        if path.startswith("/"):
            return posixpath.normpath(path)
        return posixpath.normpath(posixpath.join(self.folder.known(), path))


def merged(one: Shell, other: Shell, before: Shell, test: str, line: int) -> Shell:
    """The state after one of two ways was taken, nobody knows which: what differs is unknown."""

    def either(name: str) -> Variable:
        first, second = one.variables.get(name), other.variables.get(name)
        if first is not None and first == second:
            return first
        why = f"it depends on {test!r}, whose answer is not known"
        return one.answered(name, Text((Unknown(f"${{{name}}}", line, why, name),)))

    result = one.fork()
    result.variables = {name: either(name) for name in {**one.variables, **other.variables}}
    result.exported |= other.exported
    result.own |= other.own
    result.functions = {**other.functions, **one.functions}
    result.made |= other.made
    result.options |= other.options
    result.live |= other.live
    result.sourced += [path for path in other.sourced if path not in one.sourced]
    result.unread += [item for item in other.unread if item not in one.unread]
    if one.folder != other.folder:
        why = f"it depends on {test!r}, whose answer is not known"
        result.folder = Text((Unknown("$(pwd)", line, why),))
    if one.status != other.status:
        result.status = None
    added = [*one.steps[len(before.steps) :], *other.steps[len(before.steps) :]]
    result.steps = [*before.steps, *(_settled(step, result) for step in dict.fromkeys(added))]
    return result


def _settled(step: Step, shell: Shell) -> Step:
    """An export that only one of the two ways may have made has the value that came of both."""
    value = shell.variables.get(step.name) if isinstance(step, Exported) else None
    if isinstance(step, Exported) and isinstance(value, Text):
        return replace(step, value=str(value))
    return step

"""Goes through a script's statements as bash would, and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from launch.trainers.shell.grammar.syntax import (
    Arithmetic,
    Case,
    Chain,
    Condition,
    CountingFor,
    For,
    Function,
    Group,
    If,
    Pipeline,
    Simple,
    Statement,
    Substitution,
    While,
    Word,
)
from launch.trainers.shell.walk.branches import run_case, run_if
from launch.trainers.shell.walk.chains import run_chain, run_pipeline
from launch.trainers.shell.walk.commands import dispatch, run_simple
from launch.trainers.shell.walk.conditions import Truth, conditional
from launch.trainers.shell.walk.facts import ShellFacts
from launch.trainers.shell.walk.journal import Journal
from launch.trainers.shell.walk.loops import run_counting_for, run_for, run_while
from launch.trainers.shell.walk.redirections import redirected
from launch.trainers.shell.walk.streams import Stream
from launch.trainers.shell.words.arithmetic import ArithmeticFaultError
from launch.trainers.shell.words.expansion import Expansion
from launch.trainers.shell.words.flow import LeaveError, Leaving
from launch.trainers.shell.words.state import Shell, Variable, merged
from launch.trainers.shell.words.surroundings import Surroundings
from launch.trainers.shell.words.values import Text, UndeterminedError

_DEEPEST = 50
_MOST_STATEMENTS = 100_000


class Execution:
    """One run through a script.

    script: what `$0` is. file: the script whose statements are gone through, which differs
    within sourced ones. shell: the present one. stdin: what commands would read, None for what
    nobody knows. substitution_status: of the last `$(...)`.

    Where a test cannot be decided, both ways are gone, and what differs after them is unknown. A
    way that ends the script or the function is left out where the other goes on: that is how
    scripts check for what they need.
    """

    def __init__(
        self, script: str, surroundings: Surroundings, journal: Journal, shell: Shell
    ) -> None:
        self.script = script
        self.file = script
        self.surroundings = surroundings
        self.journal = journal
        self.shell = shell
        self.stdin: Stream | None = None
        self._sinks: list[list[Text]] = []
        self.substitution_status: int | None = 0
        self._is_tested = False
        self._steps = 0
        self._locals: list[dict[str, Variable | None]] = []

    @property
    def expansion(self) -> Expansion:
        """Expands words in the present shell."""
        return Expansion(self.shell, self.script, self.file, self._substituted)

    @property
    def facts(self) -> ShellFacts:
        """What tests ask for."""
        return ShellFacts(self.shell, self.surroundings, self.journal, self.expansion)

    def run(self, statements: Sequence[Statement]) -> None:
        """The statements, one after the other. Raises LeaveError."""
        for statement in statements:
            self._steps += 1
            if self._steps > _MOST_STATEMENTS:
                why = f"more than {_MOST_STATEMENTS} commands run before it ends"
                raise LeaveError(Leaving.EXIT, statement.line, 1, why=why)
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """One statement; its status is the shell's afterwards. Raises LeaveError."""
        match statement:
            case Simple():
                run_simple(self, statement)
            case Condition():
                self.tell(conditional(statement.tokens, self.facts))
            case Arithmetic():
                self.tell(self.number(statement.expression))
            case Pipeline():
                run_pipeline(self, statement)
            case Group():
                self._group(statement)
            case _:
                self._control(statement)
                return
        self._heed_failure(statement)

    def _control(self, statement: Statement) -> None:
        match statement:
            case Function():
                self.shell.functions[statement.name] = statement
                self.shell.status = 0
            case Chain():
                run_chain(self, statement)
            case If():
                run_if(self, statement)
            case Case():
                run_case(self, statement)
            case While():
                run_while(self, statement)
            case For():
                run_for(self, statement)
            case CountingFor():
                run_counting_for(self, statement)

    def tell(self, truth: Truth) -> None:
        """The status is that of a test."""
        self.shell.status = None if truth is None else int(not truth)

    def number(self, expression: Word) -> Truth:
        """Whether an arithmetic expression is not 0."""
        try:
            return self.expansion.number(expression) != 0
        except UndeterminedError:
            return None
        except ArithmeticFaultError:
            return False

    def decided(self, run: Callable[[], object]) -> Truth:
        """Whether what is run succeeds, None where that is not known."""
        before, self._is_tested = self._is_tested, True
        try:
            run()
        finally:
            self._is_tested = before
        status = self.shell.status
        return None if status is None else status == 0

    def emit(self, text: Text) -> None:
        """A command prints."""
        if self._sinks:
            self._sinks[-1].append(text)
        else:
            self.journal.said = str(text).strip() or self.journal.said

    def captured(self, run: Callable[[], object]) -> Text:
        """What is printed meanwhile."""
        self._sinks.append([])
        try:
            run()
        finally:
            printed = self._sinks.pop()
        return Text.of(*(piece for text in printed for piece in text.pieces))

    def in_subshell(self, run: Callable[[], object], shell: Shell | None = None) -> None:
        """Runs what changes nothing here but the status."""
        before, self.shell = self.shell, shell or self.shell.fork()
        try:
            run()
        except LeaveError as leave:
            self.shell.status = leave.status
        finally:
            before.status, self.shell = self.shell.status, before

    @contextmanager
    def reading(self, stdin: Stream | None) -> Iterator[None]:
        """Meanwhile commands read from `stdin`."""
        before, self.stdin = self.stdin, stdin
        try:
            yield
        finally:
            self.stdin = before

    def dispatch(self, words: list[Text], command: Simple) -> None:
        """A command whose words are expanded."""
        dispatch(self, words, command)

    def call(self, function: Function, arguments: tuple[Text, ...], line: int) -> None:
        """Runs a function."""
        if len(self._locals) >= _DEEPEST:
            why = f"{function.name} calls itself without an end"
            raise LeaveError(Leaving.EXIT, line, 1, why=why)
        before, self.shell.arguments = self.shell.arguments, arguments
        self._locals.append({})
        try:
            self.statement(function.body)
        except LeaveError as leave:
            if leave.leaving is not Leaving.RETURN:
                raise
            self.shell.status = leave.status
        finally:
            self.shell.arguments = before
            for name, value in self._locals.pop().items():
                if value is None:
                    self.shell.variables.pop(name, None)
                else:
                    self.shell.variables[name] = value

    @property
    def is_in_function(self) -> bool:
        """Whether a function runs."""
        return bool(self._locals)

    def make_local(self, name: str) -> None:
        """The function that runs gets a variable of its own."""
        if self._locals and name not in self._locals[-1]:
            self._locals[-1][name] = self.shell.variables.get(name)

    def either(self, test: str, line: int, ways: Sequence[Callable[[], None]]) -> None:
        """Goes both of two ways, of which nobody knows which is the right one."""
        before, said = self.shell, self.journal.said
        self.journal.tests.append(f"`{test}` on line {line}")
        ends = []
        for way in ways:
            self.shell = before.fork()
            leaves = None
            try:
                way()
            except LeaveError as leave:
                leaves = leave
            ends.append((_how_far(leaves), self.shell, leaves))
        self.journal.tests.pop()
        (near, one, stays), (far, other, leaves) = sorted(ends, key=lambda end: end[0])
        if far > near and far >= _how_far_is(Leaving.RETURN):
            self.shell, self.journal.said, leaves = one, said, stays
        else:
            self.shell = merged(one, other, before, test, line)
        # Where only one way goes on to the next pass, the rest of this one is gone through too.
        is_passed_over = stays is None and leaves is not None
        if leaves is not None and not (is_passed_over and leaves.leaving is Leaving.CONTINUE):
            raise leaves

    def _substituted(self, substitution: Substitution) -> Text:
        printed = self.captured(lambda: self.in_subshell(partial(self.run, substitution.body)))
        self.substitution_status = self.shell.status
        return printed.without_last_newlines()

    def _group(self, group: Group) -> None:
        run = partial(self.run, group.body)
        if group.is_subshell:
            run = partial(self.in_subshell, run)
        redirected(self, group.redirections, run)

    def _heed_failure(self, statement: Statement) -> None:
        """Ends the script as `set -e` does."""
        if self.shell.status and "errexit" in self.shell.options and not self._is_tested:
            why = f"{statement.source!r} fails there and `set -e` is on"
            raise LeaveError(Leaving.EXIT, statement.line, self.shell.status, why=why)


def _how_far(leaves: LeaveError | None) -> int:
    """How far away a way leads."""
    return 0 if leaves is None else _how_far_is(leaves.leaving)


def _how_far_is(leaving: Leaving) -> int:
    return 1 + list(Leaving).index(leaving)

"""`while`, `until` and `for`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import CountingFor, For, Statement, While
from launch.trainers.shell.walk.conditions import negated
from launch.trainers.shell.words.flow import LeaveError, Leaving

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution

_MOST_PASSES = 1000


def run_while(execution: Execution, loop: While) -> None:
    """Passes while the condition is true; where it is unknown, one or none. Raises LeaveError."""
    for _ in range(_MOST_PASSES):
        truth = execution.decided(partial(execution.run, loop.condition))
        if loop.is_until:
            truth = negated(truth)
        if truth is None:
            _perhaps_once(execution, loop.body, loop.condition[-1].source, loop.line)
            return
        if not truth:
            execution.shell.status = 0
            return
        if not _goes_on(execution, loop.body):
            return
    raise _endless(loop.line)


def run_for(execution: Execution, loop: For) -> None:
    """One pass for each word; for one that is unknown, perhaps one. Raises LeaveError."""
    execution.shell.status = 0
    words = execution.shell.arguments
    if loop.words is not None:
        words = tuple(execution.expansion.words(loop.words))
    for word in words:
        execution.shell.set(loop.name, word, loop.line)
        if not word.is_known:
            _perhaps_once(execution, loop.body, loop.source.split("\n")[0], loop.line)
        elif not _goes_on(execution, loop.body):
            return


def run_counting_for(execution: Execution, loop: CountingFor) -> None:
    """`for ((...))`. Raises LeaveError."""
    execution.number(loop.start)
    for _ in range(_MOST_PASSES):
        truth = execution.number(loop.condition) if loop.condition.source.strip() else True
        if truth is None:
            _perhaps_once(execution, loop.body, loop.condition.source, loop.line)
            return
        if not truth or not _goes_on(execution, loop.body):
            return
        execution.number(loop.step)
    raise _endless(loop.line)


def _perhaps_once(execution: Execution, body: tuple[Statement, ...], test: str, line: int) -> None:
    execution.either(test, line, (partial(_pass, execution, body), lambda: None))


def _pass(execution: Execution, body: tuple[Statement, ...]) -> None:
    _goes_on(execution, body)


def _goes_on(execution: Execution, body: tuple[Statement, ...]) -> bool:
    """Goes once through a loop's body; whether the loop goes on."""
    try:
        execution.run(body)
    except LeaveError as leave:
        if leave.leaving not in (Leaving.BREAK, Leaving.CONTINUE):
            raise
        if leave.levels > 1:
            raise LeaveError(leave.leaving, leave.line, levels=leave.levels - 1) from None
        return leave.leaving is Leaving.CONTINUE
    return True


def _endless(line: int) -> LeaveError:
    why = f"a loop there does not end within {_MOST_PASSES} passes"
    return LeaveError(Leaving.EXIT, line, 1, why=why)

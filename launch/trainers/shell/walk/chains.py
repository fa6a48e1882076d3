"""`a && b || c` and `a | b`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Chain, Pipeline, Statement
from launch.trainers.shell.walk.conditions import Truth, negated
from launch.trainers.shell.walk.streams import Stream
from launch.trainers.shell.words.state import Array
from launch.trainers.shell.words.values import Text, Unknown

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution


def run_chain(execution: Execution, chain: Chain) -> None:
    """`first && second || third`, from left to right. Raises LeaveError."""
    _run_from(execution, chain, chain.first, 0)


def _run_from(execution: Execution, chain: Chain, operand: Statement, place: int) -> None:
    """Runs an operand and what follows it. place: the number of operators before it."""
    if place == len(chain.rest):
        execution.statement(operand)
        return
    truth = execution.decided(partial(execution.statement, operand))
    if truth is not None:
        _run_after(execution, chain, truth, place)
        return
    ways = [partial(_run_after, execution, chain, way, place) for way in (True, False)]
    execution.either(operand.source, operand.line, ways)


def _run_after(execution: Execution, chain: Chain, truth: bool, place: int) -> None:
    """Goes on behind an operand that was true or false."""
    execution.tell(truth)
    for at in range(place, len(chain.rest)):
        operator, following = chain.rest[at]
        if truth == (operator == "&&"):
            _run_from(execution, chain, following, at + 1)
            return


def run_pipeline(execution: Execution, pipeline: Pipeline) -> None:
    """Commands in shells of their own, each reading what the one before prints."""
    if len(pipeline.commands) == 1:
        truth = execution.decided(partial(execution.statement, pipeline.commands[0]))
    else:
        truth = _run_piped(execution, pipeline)
    if pipeline.is_negated:
        execution.tell(negated(truth))


def _run_piped(execution: Execution, pipeline: Pipeline) -> Truth:
    journal = execution.journal
    first_launch, first_output = len(journal.launches), len(journal.outputs)
    stdin = execution.stdin
    statuses: list[Text] = []
    for command in pipeline.commands:
        alone = partial(
            execution.in_subshell,
            partial(execution.decided, partial(execution.statement, command)),
        )
        with execution.reading(stdin):
            if command is pipeline.commands[-1]:
                alone()
            else:
                stdin = Stream(execution.captured(alone))
        statuses.append(_status(execution, pipeline.line))
    execution.shell.variables["PIPESTATUS"] = Array.of(statuses)
    for path in journal.outputs[first_output:]:
        journal.log(first_launch, path)
    status = execution.shell.status
    return None if status is None else status == 0


def _status(execution: Execution, line: int) -> Text:
    if execution.shell.status is None:
        return Text((Unknown("$?", line, "the command before it is not run"),))
    return Text.of(str(execution.shell.status))

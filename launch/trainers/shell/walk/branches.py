"""`if` and `case`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from launch.trainers.shell.grammar.syntax import Branch, Case, If
from launch.trainers.shell.walk.conditions import Truth
from launch.trainers.shell.words import patterns
from launch.trainers.shell.words.values import Text, UndeterminedError

if TYPE_CHECKING:
    from launch.trainers.shell.walk.execution import Execution


def run_if(execution: Execution, statement: If) -> None:
    """The branch whose condition is true. Raises LeaveError."""
    _if_from(execution, statement, 0)


def _if_from(execution: Execution, statement: If, place: int) -> None:
    if place == len(statement.branches):
        if not statement.otherwise:
            execution.shell.status = 0
        execution.run(statement.otherwise)
        return
    condition, body = statement.branches[place]
    truth = execution.decided(partial(execution.run, condition))
    taken = partial(execution.run, body)
    passed = partial(_if_from, execution, statement, place + 1)
    if truth is None:
        execution.either(condition[-1].source, condition[-1].line, (taken, passed))
    elif truth:
        taken()
    else:
        passed()


def run_case(execution: Execution, case: Case) -> None:
    """The branch whose pattern matches. Raises LeaveError."""
    execution.shell.status = 0
    _case_from(execution, case, execution.expansion.text(case.subject), 0)


def _case_from(execution: Execution, case: Case, subject: Text, first: int) -> None:
    for place in range(first, len(case.branches)):
        truth = _matches(execution, subject, case.branches[place])
        taken = partial(_take, execution, case, subject, place)
        if truth is None:
            test = f"case {case.subject.source} in {case.branches[place].patterns[0].source})"
            passed = partial(_case_from, execution, case, subject, place + 1)
            execution.either(test, case.line, (taken, passed))
            return
        if truth:
            taken()
            return


def _take(execution: Execution, case: Case, subject: Text, place: int) -> None:
    branch = case.branches[place]
    execution.run(branch.body)
    if branch.ending == ";&" and place + 1 < len(case.branches):
        _take(execution, case, subject, place + 1)
    elif branch.ending == ";;&":
        _case_from(execution, case, subject, place + 1)


def _matches(execution: Execution, subject: Text, branch: Branch) -> Truth:
    is_unknown = False
    for word in branch.patterns:
        try:
            pattern = execution.expansion.pattern(word)
            if pattern == "*" or patterns.matches(pattern, subject.known()):
                return True
        except UndeterminedError:
            is_unknown = True
    return None if is_unknown else False

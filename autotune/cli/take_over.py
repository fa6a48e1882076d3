"""`study.take_over`: what an older study is worth to the one that is run."""

from __future__ import annotations

from dataclasses import replace

from autotune.cli.studies import named_study, read_study
from autotune.cli.wiring import Problem
from autotune.errors import UserError
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.combined import combined
from autotune.study.identity import Identity
from autotune.study.paths import StudyPaths
from autotune.study.study import trials_journal
from autotune.study.transfer import Transfer, plan_transfer


class OlderStudyGoneError(UserError):
    """The older study cannot be read, and this study has begun: it can go on without."""


def transfer_of(problem: Problem, identity: Identity, paths: StudyPaths) -> Transfer | None:
    """What the older study is worth here, None where none is named.

    The same when the study goes on as when it began, whatever was added to the older one since.
    Raises UserError; OlderStudyGoneError where its results were taken over before.
    """
    source = problem.config.study.take_over
    if source is None:
        return None
    own = trials_journal(paths).read()
    try:
        folder = named_study(source, paths.root.parent)
        old = read_study(folder)
    except UserError as error:
        if not own:
            raise
        raise OlderStudyGoneError(
            f"the older study {source} cannot be read: the search goes on without what it told"
        ) from error
    if folder.resolve() == paths.root.resolve():
        raise UserError(
            f"study.take_over={source} is the study {problem.config.study.name} itself; give an "
            "older one, or leave study.take_over out to go on with this one"
        )
    return plan_transfer(
        source,
        old.records,
        old.identity,
        identity,
        problem.space,
        problem.memory_limit_bytes,
        native=problem.trainer.native,
        until=min((r.started_at for r in own if r.taken_from is None), default=None),
    )


def knowledge_with(problem: Problem, transfer: Transfer | None) -> Knowledge:
    """What is known beforehand: the limit, what an older study told, the cost model."""
    known = problem.knowledge
    if transfer is None:
        return known
    return replace(known, belief=combined(transfer.belief, known.belief))

"""What the trials of a study are by its journal and its database, and what the database lacks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.search.encoding import Encoding
from autotune.study.told import as_trial, interruption, is_interrupted, slowest
from autotune.study.trial_record import TrialRecord

_KILLED = "interrupted: the sweep was killed"
_UNKNOWN = "interrupted, as trials.jsonl has no result of it"


@dataclass(frozen=True)
class Lack:
    """What makes the database say what it should.

    finish: Optuna's id of a trial that is open there, and what it came to. add: trials that
    follow on the last one there, in their order.
    """

    finish: tuple[tuple[int, FrozenTrial], ...]
    add: tuple[FrozenTrial, ...]


def strangers(
    records: Sequence[TrialRecord], found: Sequence[FrozenTrial], encoding: Encoding
) -> list[int]:
    """Numbers of the trials whose results the database has and the journal has not.

    A study's database is written after its journal. So these are results of another study with
    the same name, or of lines that somebody has changed in the journal or taken out of it.
    """
    results = {record.trial: record for record in records}
    return [
        trial.number
        for trial in found
        if _has_result(trial)
        and not (trial.number in results and _says(trial, results[trial.number], encoding))
    ]


def trials_of(
    records: Sequence[TrialRecord], found: Sequence[FrozenTrial], encoding: Encoding, limit: int
) -> list[FrozenTrial]:
    """All trials of the study in the order of their numbers, every one of them finished.

    Results are those of the journal. Where it has none, a trial that the database knows keeps
    its point as interrupted, for a sweep that was killed to go on with. limit: bytes of peak
    memory.
    """
    results = {record.trial: record for record in records}
    there = {trial.number: trial for trial in found}
    begun = [t.number for t in found if not t.state.is_finished() or is_interrupted(t)]
    worst_s = slowest(records)
    trials = []
    for number in range(max((*results, *begun), default=-1) + 1):
        record, trial = results.get(number), there.get(number)
        if record is None:
            trials.append(_without_result(trial, encoding))
        elif trial is not None and _says(trial, record, encoding):
            trials.append(trial)
        else:
            trials.append(as_trial(record, encoding, limit, worst_s))
    return trials


def lack_of(found: Sequence[FrozenTrial], wanted: Sequence[FrozenTrial]) -> Lack | None:
    """What the database lacks of the trials that it should have, by number.

    None where it has something else, and is to be written again.
    """
    if [trial.number for trial in found] != list(range(len(found))) or len(found) > len(wanted):
        return None
    finish = []
    for there, want in zip(found, wanted, strict=False):
        if there.state.is_finished():
            if not _is_same(there, want):
                return None
        elif there.params != want.params:
            return None
        elif want.state.is_finished():
            finish.append((there._trial_id, want))
    return Lack(tuple(finish), tuple(wanted[len(found) :]))


def _is_same(there: FrozenTrial, want: FrozenTrial) -> bool:
    return (there.state, there.values, there.params, there.user_attrs.get("status")) == (
        want.state,
        want.values,
        want.params,
        want.user_attrs.get("status"),
    )


def _has_result(trial: FrozenTrial) -> bool:
    return trial.state.is_finished() and not is_interrupted(trial)


def _says(trial: FrozenTrial, record: TrialRecord, encoding: Encoding) -> bool:
    """Whether a trial of the database is the record's."""
    measured = record.outcome.batch_time_s
    return (
        _has_result(trial)
        and trial.user_attrs.get("status") == record.status.value
        and trial.params == encoding.encode(record.parameters)
        and (trial.state is not TrialState.COMPLETE or measured in (None, trial.value))
    )


def _without_result(trial: FrozenTrial | None, encoding: Encoding) -> FrozenTrial:
    if trial is None or _has_result(trial) or not _is_point(trial, encoding):
        return create_trial(state=TrialState.FAIL, user_attrs=interruption(_UNKNOWN))
    if trial.state.is_finished():
        return trial
    closed = copy.copy(trial)
    closed.state = TrialState.FAIL
    closed.user_attrs = trial.user_attrs | interruption(_KILLED)
    closed.datetime_complete = datetime.now()
    return closed


def _is_point(trial: FrozenTrial, encoding: Encoding) -> bool:
    """Whether the trial's parameters are values of this space, or there are none yet."""
    if trial.params.keys() - encoding.distributions.keys():
        return False
    try:
        encoding.row(trial.params)
    except ValueError:
        return False
    return True

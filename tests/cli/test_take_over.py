"""`study.take_over`: what the program makes of an older study, at first and when it goes on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.cli.take_over import OlderStudyGoneError, knowledge_with, transfer_of
from autotune.cli.wiring import Problem, compose_problem
from autotune.errors import UserError
from autotune.measure.outcome import Outcome, Status
from autotune.search.guided.combined import CombinedBelief
from autotune.study.identity import Identity
from autotune.study.paths import StudyPaths
from autotune.study.study import Study
from autotune.study.transfer import Transfer
from autotune.study.trial_record import TrialRecord

TORCH = {"torch": "2"}
LARGER = "model.base.model.num_layers=8"


def problem(folder: Path, *overrides: str) -> Problem:
    words = ("model=tiny_dit", f"study.dir='{folder}'", f"study.name={folder.name}")
    return compose_problem((*words, *overrides), None)


def opened(problem: Problem) -> Study:
    return Study.open(
        problem.config.study.name,
        StudyPaths(problem.config.study_dir),
        problem.space,
        Identity.of(problem.config, TORCH),
        problem.data,
        problem.memory_limit_bytes,
    )


def run(study: Study, row: int, started_at: float, time_s: float | None = None) -> None:
    """A finished trial of a legal point, that took longer the further down it is in the space."""
    point = study.space.points[row]
    number = study.ask_for(point)
    study.new_trial_folder(number)
    time_s = 0.3 + 0.01 * row if time_s is None else time_s
    outcome = Outcome(Status.OK, "r", time_s, (0.9 * time_s, 1.1 * time_s), 8, peak_memory_bytes=9)
    end = started_at + 5
    study.finish(TrialRecord(number, point, outcome, 5.0, started_at, end, 1, "f"))


@pytest.fixture
def old(tmp_path: Path) -> Study:
    """Six trials, each in ten seconds, from second 100 on."""
    study = opened(problem(tmp_path / "old"))
    for row in range(6):
        run(study, row, 100.0 + 10 * row)
    return study


def planned(new: Problem) -> Transfer | None:
    return transfer_of(new, Identity.of(new.config, TORCH), StudyPaths(new.config.study_dir))


def test_nothing_is_taken_over_unless_it_is_asked_for(old: Study, tmp_path: Path) -> None:
    assert planned(problem(tmp_path / "new")) is None


def test_the_same_problem_keeps_what_was_measured(old: Study, tmp_path: Path) -> None:
    transfer = planned(problem(tmp_path / "new", "study.take_over=old"))
    assert transfer is not None
    assert [r.parameters for r in transfer.measured] == list(old.space.points[:6])


def test_a_parameter_that_only_the_new_space_has_is_told_by_the_configuration(
    tmp_path: Path,
) -> None:
    """The older space said nothing of loss chunks: its trials ran as the trainer does without."""
    model, name = "model=tiny_vlm", "loss_chunk_size"
    narrow = (model, f"~space.parameters.{name}", f"~space.baseline.{name}")
    study = opened(problem(tmp_path / "old", *narrow))
    for row in range(4):
        run(study, row, 100.0 + 10 * row)
    transfer = planned(problem(tmp_path / "new", model, "study.take_over=old"))
    assert transfer is not None
    assert len(transfer.measured) == 4
    assert {r.parameters[name] for r in transfer.measured} == {0}


def test_another_model_makes_prior_knowledge_beside_the_cost_model(
    old: Study, tmp_path: Path
) -> None:
    new = problem(tmp_path / "new", "study.take_over=old", LARGER)
    transfer = planned(new)
    assert transfer is not None
    assert transfer.measured == ()
    assert transfer.proposals
    assert transfer.belief is not None
    knowledge = knowledge_with(new, transfer)
    assert isinstance(knowledge.belief, CombinedBelief)
    assert knowledge.limit_bytes == new.memory_limit_bytes
    assert knowledge_with(new, None) == new.knowledge
    # What was slower there is believed to be slower here.
    seen = new.space.codes[:2]
    told = knowledge.belief.log_seconds(seen, np.array([0.6, 0.62]), new.space.codes[:6])
    assert told is not None
    assert np.corrcoef(told, np.arange(6))[0, 1] > 0.5


def test_a_study_that_goes_on_plans_as_when_it_began(old: Study, tmp_path: Path) -> None:
    new = problem(tmp_path / "new", "study.take_over=old", LARGER)
    began = planned(new)
    run(opened(new), 9, started_at=160.0)
    run(old, 7, started_at=200.0, time_s=0.01)  # the older study went on meanwhile
    later = planned(new)
    assert began is not None
    assert later is not None
    assert later.proposals == began.proposals
    assert later.explanation.replace("7 of", "6 of") == began.explanation


@pytest.mark.parametrize("way", ["old", "folder", "link"])
def test_a_study_is_not_taken_over_into_itself(old: Study, tmp_path: Path, way: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "old")
    source = str(tmp_path / "old") if way == "folder" else way
    with pytest.raises(
        UserError, match=f"study.take_over={source} is the study old itself"
    ) as told:
        planned(problem(tmp_path / "old", f"study.take_over='{source}'"))
    assert not isinstance(told.value, OlderStudyGoneError)


def test_an_older_study_that_is_gone_ends_only_what_has_not_begun(
    old: Study, tmp_path: Path
) -> None:
    new = problem(tmp_path / "new", "study.take_over=old")
    shutil.rmtree(tmp_path / "old")
    with pytest.raises(UserError) as error:
        planned(new)
    assert not isinstance(error.value, OlderStudyGoneError)
    run(opened(new), 0, started_at=160.0)
    with pytest.raises(OlderStudyGoneError, match="old cannot be read: the search goes on"):
        planned(new)


def test_an_older_study_of_another_environment_is_no_measurement_here(
    old: Study, tmp_path: Path
) -> None:
    new = problem(tmp_path / "new", "study.take_over=old")
    identity = replace(Identity.of(new.config, TORCH), environment={"torch": "3"})
    transfer = transfer_of(new, identity, StudyPaths(new.config.study_dir))
    assert transfer is not None
    assert transfer.measured == ()

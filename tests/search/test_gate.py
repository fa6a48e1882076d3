"""The memory gate: what it refuses, and what it must not."""

from __future__ import annotations

import random

import numpy as np
import optuna
import pytest

from autotune.predict.belief import CostBelief
from autotune.predict.cost_model import CostModel
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.gate import MemoryGatekeeper
from autotune.search.guided.belief import Knowledge
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

from .gate_case import (
    LIMIT,
    PLANTED,
    Run,
    gate_of,
    of_planted,
    planted_peak,
    planted_run,
    refused,
    trial,
)


@pytest.fixture(scope="module")
def planted() -> LegalSpace:
    return LegalSpace.build(SpaceDefinition.parse({"parameters": PLANTED}, {}))


def test_fewer_than_three_whole_peaks_refuse_nothing(planted: LegalSpace) -> None:
    steep: list[Run] = [(of_planted(batch=2), "over_limit", 8000.0)]
    steep += [(of_planted(batch=2, split=2), "over_limit", 8100.0)]
    # What ran out of memory reports how far it got, which is no peak of a whole run.
    died: list[Run] = [(of_planted(batch=8, split=n), "oom", 1000.0) for n in (1, 2)]
    assert refused(gate_of(planted, steep + died), planted) == set()
    steep += [(of_planted(batch=2, blocks=2), "over_limit", 7900.0)]
    gate = gate_of(planted, steep)
    refusal = gate.refusal(of_planted(batch=2, split=2, blocks=1))
    assert refusal is not None
    assert refusal.forecast is not None
    low, high = refusal.forecast.peak_ci95_bytes
    assert LIMIT < low < 8000 < high
    assert "against a limit of 1000 B" in refusal.reason


@pytest.mark.parametrize("runs", [25, 50])
def test_what_the_model_refuses_does_not_fit(planted: LegalSpace, runs: int) -> None:
    """Of the points that a run has not told about; a gate that refuses little is useless too."""
    wrong = right = missed = 0
    for seed in range(6):
        seen = random.Random(seed).sample(list(planted.points), runs)
        gate = gate_of(planted, [planted_run(p) for p in seen], seed=seed)
        for candidate in refused(gate, planted) - set(seen):
            right += planted_peak(candidate) > LIMIT
            wrong += planted_peak(candidate) <= LIMIT
        open_ = set(planted.points) - set(seen) - refused(gate, planted)
        missed += sum(planted_peak(p) > 1.2 * LIMIT for p in open_)
    assert wrong <= 0.05 * right
    assert right > missed


def test_intervals_of_predicted_peaks_hold_the_peak(planted: LegalSpace) -> None:
    inside = count = 0
    for seed in range(6):
        seen = random.Random(seed).sample(list(planted.points), 30)
        gate = gate_of(planted, [planted_run(p) for p in seen])
        for candidate in set(planted.points) - set(seen):
            forecast = gate.forecast(candidate)
            assert forecast is not None
            low, high = forecast.peak_ci95_bytes
            assert low < forecast.peak_bytes < high
            inside += low <= planted_peak(candidate) <= high
            count += 1
    assert inside >= 0.85 * count


def test_the_gate_rests_on_runs_alone(planted: LegalSpace) -> None:
    """What was refused, lost or interrupted is no evidence, and the order of the ends is none."""
    runs = [planted_run(p) for p in random.Random(1).sample(list(planted.points), 20)]
    wanted = refused(gate_of(planted, runs), planted)
    assert wanted
    others: list[Run] = [(p, "skipped", None) for p in wanted]
    others += [(of_planted(batch=1), "infrastructure", None)]
    assert refused(gate_of(planted, [*runs, *others]), planted) == wanted
    encoding = Encoding(planted)
    trials = [trial(encoding, number, run) for number, run in enumerate(runs)]
    keeper = MemoryGatekeeper(encoding, Knowledge(LIMIT), 0)
    keeper.gate(trials[:9])  # what it was asked before does not matter either
    assert refused(keeper.gate(reversed(trials)), planted) == wanted


@pytest.mark.parametrize(
    ("sampler", "is_open"), [("guided", True), ("random", False), ("tpe", False)]
)
def test_what_was_refused_stays_open_to_a_sampler_that_looks_at_the_gate(
    planted: LegalSpace, sampler: str, is_open: bool
) -> None:
    """The gate may change its mind; without one nobody is bound to what it said."""
    encoding, study = Encoding(planted), optuna.create_study()
    study.add_trial(trial(encoding, 0, planted_run(of_planted())))
    refused_row = encoding.row_of(of_planted(batch=8)).tobytes()
    skip = optuna.trial.create_trial(
        state=optuna.trial.TrialState.PRUNED,
        params=encoding.encode(of_planted(batch=8)),
        distributions=encoding.distributions,
        user_attrs={"status": "skipped"},
    )
    study.add_trial(skip)
    made = make_sampler(sampler, encoding, 0, Knowledge(LIMIT))
    assert refused_row not in made.taken(study)
    made.gatekeeper = MemoryGatekeeper(encoding, Knowledge(LIMIT), 0)
    assert (refused_row not in made.taken(study)) is is_open
    assert len(made.untaken(study)) == len(planted.codes) - (1 if is_open else 2)


def ask(study: optuna.Study, encoding: Encoding) -> Point:
    """A proposal, that runs from now on."""
    asked = study.ask()
    for name in asked.relative_params:
        asked._suggest(name, encoding.distributions[name])
    return encoding.decode(asked.params)


@pytest.mark.parametrize("since_check", [9, 10])
@pytest.mark.parametrize("seed", range(3))
def test_the_guided_sampler_proposes_what_passes_and_now_and_then_what_tempts_it(
    planted: LegalSpace, seed: int, since_check: int
) -> None:
    encoding = Encoding(planted)
    seen = random.Random(seed).sample(list(planted.points), 30)
    study = optuna.create_study(
        sampler=(sampler := make_sampler("guided", encoding, seed, Knowledge(LIMIT)))
    )
    for number, p in enumerate(seen):
        # The faster the more memory: whatever tempts does not fit.
        added = trial(encoding, number, planted_run(p), 1000 / planted_peak(p))
        if number == len(seen) - 1 - since_check:
            added.set_user_attr("checked", True)
        study.add_trial(added)
    gatekeeper = sampler.gatekeeper = MemoryGatekeeper(encoding, Knowledge(LIMIT), seed)
    gate = gatekeeper.gate(study.trials)
    assert gate.since_check == since_check
    proposed = ask(study, encoding)
    assert (gate.refusal(proposed) is None) is (since_check < 10)
    if since_check == 10:  # one check at a time
        again = ask(study, encoding)
        assert gatekeeper.gate(study.trials).refusal(again) is None


def test_about_one_in_ten_is_checked_and_always_the_same(planted: LegalSpace) -> None:
    runs = [planted_run(p) for p in planted.points[:5]]
    checked = [p for p in planted.points if gate_of(planted, [], seed=3).is_checked(p)]
    assert 0.05 < len(checked) / len(planted.points) < 0.16
    later = gate_of(planted, runs, seed=3)
    assert [p for p in planted.points if later.is_checked(p)] == checked
    other = gate_of(planted, [], seed=4)
    assert [p for p in planted.points if other.is_checked(p)] != checked


def test_what_passes_is_found_wherever_it_is(planted: LegalSpace) -> None:
    gate = gate_of(planted, [planted_run(p) for p in planted.points[::3]])
    is_refused = gate.refused(planted.codes)
    passing = planted.codes[~is_refused]
    found = gate.some_admitted(planted.codes, seed=1, most=len(planted.codes))
    assert sorted(map(tuple, found)) == sorted(map(tuple, passing))
    needle = np.vstack([planted.codes[is_refused], passing[:1]])
    for seed in range(5):
        assert gate.some_admitted(needle, seed).tolist() == passing[:1].tolist()
    assert len(gate.some_admitted(planted.codes[is_refused], seed=0)) == 0


def test_a_cost_model_is_of_use_before_a_peak_is_known() -> None:
    """A baseline that runs out of memory tells no peak."""
    dims = {"hidden_size": 64, "num_layers": 4, "seq_length": 128, "vocab_size": 512}
    facts = {"model": dims, "cluster": {"world_size": 4}}
    parameters = {"micro_batch_size": {"choices": [1, 2, 4, 8], "ordered": True}}
    space = LegalSpace.build(SpaceDefinition.parse({"parameters": parameters}, facts))
    model = CostModel.of(space, facts)
    assert model is not None
    knowledge = Knowledge(LIMIT, CostBelief(model))
    gate = gate_of(space, [({"micro_batch_size": 8}, "oom", None)], knowledge)
    assert refused(gate, space) == set()
    # The peaks that physics would have it, twice as large: three of them show the factor.
    peaks = 2 * np.exp(CostBelief(model).log_bytes(space.codes[:0], np.zeros(0), space.codes))
    known: list[Run] = [(space.point(n), "over_limit", float(peaks[n])) for n in range(3)]
    forecast = gate_of(space, known, knowledge).forecast(space.point(3))
    assert forecast is not None
    assert forecast.peak_bytes == pytest.approx(peaks[3], rel=0.05)

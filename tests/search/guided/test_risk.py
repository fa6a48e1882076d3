"""How sure the sampler must be, from how often it was wrong."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.guided.risk import Risk

RUNS = np.array([0.02, 0.2, 0.5, 0.8, 0.95, 0.99])


@pytest.fixture(params=[np.array([0.0, 0.0]), np.array([1.0, 0.0])], ids=["unknown", "known"])
def risk(request: pytest.FixtureRequest) -> Risk:
    """Where it is not known which way memory goes, and where it is."""
    return Risk.of(request.param)


def test_without_a_failure_everything_is_allowed(risk: Risk) -> None:
    assert risk.allowed(10, 0, RUNS).all()


def test_after_many_failures_only_what_is_sure_is_allowed(risk: Risk) -> None:
    allowed = risk.allowed(10, 10, RUNS)
    assert not allowed[RUNS <= 0.5].any()
    assert allowed[RUNS >= 0.95].all()


def test_every_failure_allows_less(risk: Risk) -> None:
    allowed = np.array([risk.allowed(20, failures, RUNS) for failures in range(20)])
    assert (allowed[1:] <= allowed[:-1]).all()
    assert not allowed[-1].all()


def test_a_space_where_most_fails_forgives_more(risk: Risk) -> None:
    """What counts is how much better than random search the sampler is."""
    mostly_fails = np.array([0.01] * 95 + [0.5, 0.6, 0.7, 0.8, 0.9])
    mostly_runs = np.array([0.99] * 95 + [0.5, 0.6, 0.7, 0.8, 0.9])
    assert risk.allowed(20, 5, mostly_fails).all()
    assert not risk.allowed(20, 5, mostly_runs).all()


@pytest.mark.parametrize("runs", [RUNS, np.full(4, 1e-9), np.full(4, 0.3), np.ones(3), RUNS[:1]])
@pytest.mark.parametrize("failures", [0, 3, 50])
def test_the_surest_is_always_allowed(risk: Risk, runs: np.ndarray, failures: int) -> None:
    assert risk.allowed(50, failures, runs)[np.argmax(runs)]


def test_where_all_is_alike_all_is_allowed(risk: Risk) -> None:
    assert risk.allowed(30, 30, np.full(5, 0.3)).all()


def test_where_nothing_is_known_more_is_forgiven() -> None:
    unknown, known = Risk.of(np.zeros(3)), Risk.of(np.array([0.0, -1.0, 0.0]))
    for failures in range(10):
        assert (known.allowed(10, failures, RUNS) <= unknown.allowed(10, failures, RUNS)).all()


def test_the_first_failure_may_come_early_and_then_counts_in_full(risk: Risk) -> None:
    """log(improvement) + weight log P: a point that is twice as good at P = 0.3 is worth a try."""
    bold, careful = np.log(2.0), 0.0
    chances = np.log(0.3), np.log(0.95)
    assert bold + risk.weight(0) * chances[0] > careful + risk.weight(0) * chances[1]
    assert bold + risk.weight(1) * chances[0] < careful + risk.weight(1) * chances[1]

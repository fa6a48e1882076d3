"""Every technique, and pairs of them, give the plain run's loss and gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from oracle import gradients
from rank_processes import run_ranks
from reference_cases import CASES, HERE, WORLD_SIZE, content

from launch.reference.config import parse_config
from launch.reference.data.generate import ensure_dataset
from launch.reference.layout import Layout

pytestmark = pytest.mark.ranks

TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def found(cache: Path, tmp_path_factory):
    """All cases on four ranks, in one run."""
    folder = tmp_path_factory.mktemp("gradients")
    results = folder / "results.pt"
    program = [str(HERE / "reference_cases.py"), str(results)]
    ended = run_ranks(program, WORLD_SIZE, folder, cache)
    assert [rank.returncode for rank in ended] == [0] * WORLD_SIZE, ended[0].stderr
    return torch.load(results)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_equal_those_of_the_plain_run(name, found, cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    base, changes = CASES[name]
    config = parse_config(content(base, changes))
    dp = Layout.of(config, WORLD_SIZE).dp
    expected_loss, expected = gradients(config, ensure_dataset(config), dp)
    loss, actual = found[name]
    assert loss == pytest.approx(expected_loss, rel=TOLERANCE)
    assert actual.keys() == expected.keys()
    for parameter, gradient in expected.items():
        difference = (actual[parameter] - gradient).norm() / gradient.norm()
        assert difference < TOLERANCE, parameter

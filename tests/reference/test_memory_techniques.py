"""Each memory technique lowers the observed peak, and the peak repeats."""

from __future__ import annotations

import json

import pytest
from rank_processes import run_ranks
from reference_cases import HERE, WORLD_SIZE

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def peaks(tmp_path_factory):
    """Highest peak over the ranks, by case."""
    folder = tmp_path_factory.mktemp("memory")
    results = folder / "peaks.json"
    program = [str(HERE / "memory_cases.py"), str(results)]
    ended = run_ranks(program, WORLD_SIZE, folder, folder / "cache")
    assert [rank.returncode for rank in ended] == [0] * WORLD_SIZE, ended[0].stderr
    return {name: max(values) for name, values in json.loads(results.read_text()).items()}


@pytest.mark.parametrize(
    ("case", "share"),
    [
        ("ulysses 2", 0.7),
        ("ulysses 4", 0.6),
        ("ring 4", 0.6),
        ("offload 2", 0.95),
        ("chunk 32", 0.7),
        ("micro batch 1", 0.8),
    ],
)
def test_a_technique_lowers_the_peak(case, share, peaks):
    assert peaks[case] < share * peaks["plain"]


def test_more_of_a_technique_lowers_the_peak_further(peaks):
    assert peaks["ulysses 4"] < peaks["ulysses 2"]
    assert peaks["offload 4"] < peaks["offload 2"]


def test_the_peak_repeats(peaks):
    assert peaks["plain again"] == pytest.approx(peaks["plain"], rel=0.01)
    assert peaks["offload 4 again"] == pytest.approx(peaks["offload 4"], rel=0.01)


def test_the_peak_does_not_grow_with_the_number_of_steps(peaks):
    """Memory that the communication library's threads free must not be counted as held."""
    assert peaks["ulysses 4, five times as long"] == pytest.approx(peaks["ulysses 4"], rel=0.01)

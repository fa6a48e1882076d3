"""What is known of model, cluster and point, and what is left unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.errors import UserError
from autotune.predict.layout import Layout
from autotune.predict.lengths import LengthSpread, largest_of_normals, padded_length
from autotune.predict.machine import Machine
from autotune.predict.settings import ALL, understood
from autotune.predict.workload import Workload
from autotune.space.definition import Parameter

KNOWN = {"hidden_size": 64, "num_layers": 2, "seq_length": 100}


def workload(**dims: Any) -> Workload:
    found = Workload.from_facts({"model": {**KNOWN, **dims}, "cluster": {"world_size": 8}})
    assert found is not None
    return found


@pytest.mark.parametrize("missing", KNOWN)
def test_too_little_is_known(missing: str) -> None:
    dims = {name: value for name, value in KNOWN.items() if name != missing}
    assert Workload.from_facts({"model": dims, "cluster": {"world_size": 8}}) is None


def test_nothing_is_known() -> None:
    assert Workload.from_facts({"model": {}, "cluster": {}}) is None
    assert Workload.from_facts({}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", -64),
        ("num_layers", 0),
        ("num_layers", 2.5),
        ("seq_length", "long"),
        ("seq_length", float("nan")),
        ("seq_length_cv", -0.1),
        ("seq_length_max", 50),
        ("vocab_size", True),
        ("gated_mlp", 1),
        ("parameters", -1),
        ("encoder_hidden_size", -1),
    ],
)
def test_a_figure_that_cannot_be_is_named(name: str, value: object) -> None:
    with pytest.raises(UserError, match=r"model\.dims"):
        workload(**{name: value})


def test_parameters_are_counted() -> None:
    """By hand: 12 h^2 a layer with an MLP of 4 h, embedding and head apart."""
    assert workload(vocab_size=1000).total_parameters == 2 * 12 * 64**2 + 2 * 1000 * 64
    tied = workload(vocab_size=1000, tied_embeddings=True)
    assert tied.total_parameters == 2 * 12 * 64**2 + 1000 * 64
    assert workload(parameters=4e9).total_parameters == 4e9
    # Three matrices in a gated MLP; six more in adaLN-Zero.
    assert workload(gated_mlp=True).total_parameters == 2 * 16 * 64**2
    assert workload(kind="dit").total_parameters == 2 * 18 * 64**2


def test_a_machine_has_usual_figures_and_takes_given_ones() -> None:
    cluster = {"world_size": 16, "nodes": 2, "devices_per_node": 8, "device": "cuda"}
    machine = Machine.from_facts({"cluster": {**cluster, "link_gb_s": 123.0}})
    assert machine.link_bytes_s(8) == 123e9
    assert machine.link_bytes_s(16) == machine.node_link_gb_s * 1e9
    assert Machine.from_facts({}).world_size == 1
    with pytest.raises(UserError, match=r"cluster\.device_tflops=-1"):
        Machine.from_facts({"cluster": {"device_tflops": -1}})


@pytest.mark.parametrize(
    ("settings", "degrees"),
    [
        ({}, (1, 1)),
        ({"sp_degree": 4}, (4, 1)),
        ({"sp_degree": 4, "sp_algorithm": "ulysses"}, (4, 1)),
        ({"sp_degree": 4, "sp_algorithm": "ring"}, (1, 4)),
        ({"sp_degree": 8, "sp_algorithm": "usp", "ulysses_degree": 4}, (4, 2)),
        ({"ulysses_degree": 4, "ring_degree": 2}, (4, 2)),
        ({"ulysses_degree": 4}, (4, 1)),
        ({"sp_degree": 1, "sp_algorithm": "ring"}, (1, 1)),
    ],
)
def test_sequence_parallel_degrees(settings: dict[str, Any], degrees: tuple[int, int]) -> None:
    layout = Layout.of(settings, workload(), 8)
    assert (layout.ulysses, layout.ring) == degrees


def test_accumulation_makes_up_for_data_parallelism() -> None:
    model = workload(global_batch_size=64)
    assert Layout.of({}, model, 8).accumulation == 8
    assert Layout.of({"sp_degree": 4, "micro_batch_size": 2}, model, 8).accumulation == 16
    assert Layout.of({"micro_batch_size": 32}, model, 8).accumulation == 1


@pytest.mark.parametrize(
    ("name", "choices", "meaning"),
    [
        ("ulysses_parallel_size", [1, 2], ("ulysses_degree", (1, 2))),
        (
            "context_parallel_algo",
            ["ulysses_cp_algo", "megatron_cp_algo", "hybrid_cp_algo"],
            ("sp_algorithm", ("ulysses", "ring", "usp")),
        ),
        ("enable_activation_offload", [False, True], ("offload_blocks", (0, ALL))),
        ("loss_chunk_size", [None, 0, 512], ("loss_chunk_size", (0, 0, 512))),
        ("fully_shard_parallel_size", ["auto", 2], ("shards", (ALL, 2))),
        ("recompute_granularity", [None, "full"], ("recompute", (False, True))),
        ("priority_mode", ["data_reordering_img"], ("bucket_order", ("reordering",))),
    ],
)
def test_names_and_values_of_mindspeed_mm(name: str, choices: list[Any], meaning: object) -> None:
    assert understood(Parameter(name, tuple(choices))) == meaning


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("prefetch", [1, 2]),
        ("sp_algorithm", ["ring", "adaptive_cp_algo"]),
        ("micro_batch_size", [1, "2"]),
        ("micro_batch_size", [True]),
        ("offload_blocks", [[0, 1]]),
        ("bucket_order", [{"by": "length"}]),
    ],
)
def test_what_cannot_be_read_is_left_to_the_runs(name: str, choices: list[Any]) -> None:
    assert understood(Parameter(name, tuple(choices))) is None


def test_the_largest_of_normals() -> None:
    """Exact: 1/sqrt(pi) of two, 3/(2 sqrt(pi)) of three."""
    assert largest_of_normals(1) == 0
    assert largest_of_normals(2) == pytest.approx(np.pi**-0.5, rel=0.01)
    assert largest_of_normals(3) == pytest.approx(1.5 * np.pi**-0.5, rel=0.01)


def test_padded_lengths_agree_with_draws() -> None:
    """Against 200,000 micro-batches drawn from the log-normal."""
    spread = LengthSpread(100.0, 0.6)
    generator = np.random.default_rng(1)
    variance = np.log(1 + 0.6**2)
    drawn = generator.lognormal(np.log(100) - variance / 2, np.sqrt(variance), (200_000, 4))
    longest = drawn.max(axis=1)
    found = padded_length(spread, 4, "none", None)
    assert found.mean == pytest.approx(longest.mean(), rel=0.01)
    assert found.mean_square == pytest.approx((longest**2).mean(), rel=0.03)
    work = 3.0 * longest + 0.01 * longest**2
    assert found.deviation(3.0, 0.01) == pytest.approx(work.std(), rel=0.05)


def test_bucketed_lengths_agree_with_a_sorted_window() -> None:
    """Against 2000 windows of 64 samples, sorted and cut into micro-batches of 8."""
    generator = np.random.default_rng(2)
    variance = np.log(1 + 0.5**2)
    windows = generator.lognormal(np.log(100) - variance / 2, np.sqrt(variance), (2000, 64))
    longest = np.sort(windows, axis=1).reshape(2000, 8, 8).max(axis=2)
    found = padded_length(LengthSpread(100.0, 0.5), 8, "bucketing", 64)
    assert found.mean == pytest.approx(longest.mean(), rel=0.02)


def test_a_cut_off_spread_keeps_its_mean() -> None:
    cut = LengthSpread(134.0, 0.73, 448.0)
    shares = (np.arange(1000) + 0.5) / 1000
    lengths = cut.quantiles(shares)
    assert lengths.max() <= 448
    assert lengths.mean() == pytest.approx(134, rel=0.01)

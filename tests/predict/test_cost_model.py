"""The cost model of a space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autotune.predict.cost_model import CostModel
from autotune.predict.layout import Layout
from autotune.predict.memory_terms import MEMORY_TERMS, memory_terms
from autotune.predict.time_terms import TIME_TERMS, time_terms
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

FACTS: dict[str, dict[str, Any]] = {
    "model": {
        "hidden_size": 512,
        "num_layers": 8,
        "num_heads": 8,
        "seq_length": 1024,
        "vocab_size": 32000,
        "global_batch_size": 64,
    },
    "cluster": {"world_size": 8, "device": "npu"},
}
SPACE: dict[str, Any] = {
    "parameters": {
        "sp_degree": {"choices": [1, 2, 4]},
        "sp_algorithm": {"choices": ["ulysses", "ring", "usp"], "when": "sp_degree > 1"},
        "ulysses_degree": {"choices": [2], "when": "sp_algorithm == 'usp'"},
        "prefetch": {"choices": [1, 2]},
        "micro_batch_size": {"choices": [1, 2, 4]},
        "offload_blocks": {"choices": [2, 4], "when": "sp_degree == 1"},
    }
}


def build(parameters: dict[str, Any] | None = None, facts: Any = FACTS) -> LegalSpace:
    space = {"parameters": parameters} if parameters else SPACE
    return LegalSpace.build(SpaceDefinition.parse(space, facts))


def codes_of(space: LegalSpace, points: list[Point]) -> np.ndarray:
    rows = [
        [p.index_of(point[p.name]) if p.name in point else -1 for p in space.parameters]
        for point in points
    ]
    return np.array(rows, dtype=np.int16)


def test_every_row_has_the_terms_of_its_point() -> None:
    space = build()
    model = CostModel.of(space, FACTS)
    assert model is not None
    points = list(space.points)
    codes = codes_of(space, points)
    times, memory = model.time_terms(codes), model.memory_terms(codes)
    assert times.shape == (len(points), len(TIME_TERMS))
    assert memory.shape == (len(points), len(MEMORY_TERMS))
    for row, point in enumerate(points):
        settings = {name: value for name, value in point.items() if name != "prefetch"}
        layout = Layout.of(settings, model.workload, 8)
        expected = time_terms(model.workload, model.machine, layout)
        assert times[row] == pytest.approx(list(expected.values()))
        assert memory[row] == pytest.approx(list(memory_terms(model.workload, layout).values()))


def test_what_is_not_understood_changes_nothing() -> None:
    space = build()
    model = CostModel.of(space, FACTS)
    assert model is not None
    both = codes_of(
        space, [Point({"sp_degree": 1, "prefetch": n, "micro_batch_size": 2}) for n in (1, 2)]
    )
    first, second = model.time_terms(both)
    assert (first == second).all()


def test_no_rows_have_no_terms() -> None:
    space = build()
    model = CostModel.of(space, FACTS)
    assert model is not None
    assert model.time_terms(np.empty((0, 6), np.int16)).shape == (0, len(TIME_TERMS))


def test_nothing_is_predicted_without_figures_or_known_parameters() -> None:
    assert CostModel.of(build(), {"model": {"num_heads": 8}, "cluster": {"world_size": 8}}) is None
    assert CostModel.of(build({"prefetch": {"choices": [1, 2]}}), FACTS) is None


def test_figures_fix_what_is_not_tuned() -> None:
    facts = {**FACTS, "model": {**FACTS["model"], "micro_batch_size": 4}}
    model = CostModel.of(build({"sp_degree": {"choices": [1, 2]}}, facts), facts)
    assert model is not None
    assert model.layout(np.array([1], np.int16)).micro_batch_size == 4


def test_priors_have_a_weight_a_term() -> None:
    model = CostModel.of(build(), FACTS)
    assert model is not None
    assert model.time_prior.shape == (len(TIME_TERMS),)
    assert model.memory_prior.shape == (len(MEMORY_TERMS),)
    assert (model.time_prior > 0).all()


@pytest.mark.parametrize("name", ["tiny_vlm", "tiny_dit"])
def test_the_examples_can_be_predicted(name: str) -> None:
    from autotune.config.compose import compose_config

    config = compose_config((f"model={name}",), None).config
    space = LegalSpace.build(SpaceDefinition.parse(config.space, config.facts))
    model = CostModel.of(space, config.facts)
    assert model is not None
    terms = model.time_terms(codes_of(space, list(space.points)))
    assert np.isfinite(terms).all()
    assert (terms >= 0).all()


def test_the_users_files_fix_what_a_point_leaves_out() -> None:
    """Names as MindSpeed-MM's trainers use them; the model's figures and the point come first."""
    space = build(
        {
            "loss_chunk": {"choices": ["none", "static", "dynamic"]},
            "micro_batch_size": {"choices": [2, 4]},
        }
    )
    base = {
        "fsdp_size": "auto",
        "micro_batch_size": 1,
        "loss_chunk": "static",
        "loss_chunk_size": 512,
        "loss_total_chunk_size": 5000,
        "image_encoder_sp_degree": 2,
        "recompute_modules": ["layers"],
    }
    model = CostModel.of(space, FACTS, base)
    assert model is not None
    layouts = [
        model.layout(np.array(row, np.int16)) for row in ([0, 0], [1, 0], [2, 0], [2, 1], [-1, -1])
    ]
    assert [layout.loss_chunk for layout in layouts] == [0, 512, 2048, 1024, 512]
    assert [layout.micro_batch_size for layout in layouts] == [2, 2, 2, 4, 1]
    assert {layout.shards for layout in layouts} == {8}
    assert {layout.encoder_sp for layout in layouts} == {2}

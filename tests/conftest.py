"""What several test files need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace

SPACE: dict[str, Any] = {
    "parameters": {
        "sp_degree": {"choices": [1, 2, 4], "ordered": True},
        "sp_algorithm": {"choices": ["ulysses", "ring", "usp"], "when": "sp_degree > 1"},
        "ulysses_degree": {"choices": [2], "ordered": True, "when": "sp_algorithm == 'usp'"},
        "loss_chunk_size": {"choices": [0, 256, 64]},
        "micro_batch_size": {"choices": [1, 2, 4], "ordered": True, "memory": "increases"},
    },
    "constraints": [
        {"rule": "sp_algorithm != 'ulysses' or model.num_heads % sp_degree == 0"},
        {"rule": "ulysses_degree < sp_degree"},
    ],
}
FACTS = {"model": {"num_heads": 6}, "cluster": {"world_size": 4}}


@pytest.fixture(scope="session")
def space() -> LegalSpace:
    """45 legal points: five SP layouts, three chunk sizes, three micro-batch sizes."""
    return LegalSpace.build(SpaceDefinition.parse(SPACE, FACTS))


@pytest.fixture(scope="session")
def make_space() -> Callable[..., LegalSpace]:
    """A space from its `parameters`, without constraints unless they are given."""

    def make(parameters: dict[str, Any], **rest: Any) -> LegalSpace:
        return LegalSpace.build(SpaceDefinition.parse({"parameters": parameters, **rest}, FACTS))

    return make

"""What the gate refuses since a point that needs no more memory did not fit."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from autotune.search.guided.belief import Knowledge
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

from .gate_case import HINTED, Run, gate_of, point, refused


@pytest.fixture(scope="module")
def hinted() -> LegalSpace:
    return LegalSpace.build(SpaceDefinition.parse({"parameters": HINTED}, {}))


def test_what_needs_no_less_than_a_point_that_did_not_fit_is_refused(hinted: LegalSpace) -> None:
    gate = gate_of(hinted, [(point(batch=4, split=2), "oom", None)])
    assert refused(gate, hinted) == {
        point(batch=batch, split=split) for batch in (4, 8) for split in (1, 2)
    }
    refusal = gate.refusal(point(batch=8, split=1))
    assert refusal is not None
    assert refusal.fits == 0
    assert refusal.forecast is None
    assert "batch=4 split=2 order=none kernel=16" in refusal.reason
    assert gate.refusal(point(batch=8, split=4)) is None


def needs_no_less(candidate: Point, violator: Point) -> bool:
    return (
        candidate["batch"] >= violator["batch"]
        and candidate["split"] <= violator["split"]
        and candidate["order"] == violator["order"]
        and candidate["kernel"] == violator["kernel"]
    )


@pytest.mark.parametrize("seed", range(5))
def test_dominance_is_that_of_every_pair(hinted: LegalSpace, seed: int) -> None:
    """Without a limit there are no peaks to learn from: the hints decide alone."""
    draw = random.Random(seed)
    violators = draw.sample(list(hinted.points), 6)
    gate = gate_of(hinted, [(v, "over_limit", 1200.0) for v in violators], Knowledge())
    assert refused(gate, hinted) == {
        p for p, v in itertools.product(hinted.points, violators) if needs_no_less(p, v)
    }
    for candidate in hinted.points:
        assert (gate.refusal(candidate) is not None) == (candidate in refused(gate, hinted))


def test_a_name_alone_refuses_nothing(make_space: Callable[..., LegalSpace]) -> None:
    space = make_space({"micro_batch_size": {"choices": [1, 2, 4, 8], "ordered": True}})
    gate = gate_of(space, [({"micro_batch_size": 2}, "oom", None)])
    assert refused(gate, space) == set()


def test_a_parameter_that_is_inactive_is_no_less_and_no_more(
    make_space: Callable[..., LegalSpace],
) -> None:
    space = make_space(
        {
            "offload": {"choices": [False, True]},
            "blocks": {
                "choices": [1, 2, 4],
                "ordered": True,
                "memory": "decreases",
                "when": "offload",
            },
        }
    )
    gate = gate_of(space, [({"offload": True, "blocks": 2}, "oom", None)])
    assert refused(gate, space) == {
        Point({"offload": True, "blocks": 1}),
        Point({"offload": True, "blocks": 2}),
    }
    assert refused(gate_of(space, [({"offload": False}, "oom", None)]), space) == {
        Point({"offload": False})
    }


def test_a_hint_that_a_run_refutes_is_not_believed_any_more(hinted: LegalSpace) -> None:
    violator: Run = (point(batch=2, split=2), "oom", None)
    fits: Run = (point(batch=8, split=2), "ok", 300.0)
    gate = gate_of(hinted, [violator, fits], Knowledge())
    # Nothing follows from a larger batch any more; a smaller split still needs more.
    assert refused(gate, hinted) == {point(batch=2, split=2), point(batch=2, split=1)}


def test_a_run_that_barely_fits_refutes_nothing(hinted: LegalSpace) -> None:
    over: Run = (point(batch=2, split=2), "over_limit", 1001.0)
    barely: Run = (point(batch=4, split=2), "ok", 999.0)
    assert point(batch=8, split=2) in refused(gate_of(hinted, [over, barely]), hinted)

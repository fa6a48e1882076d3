"""Spaces that are too large to list: their sizes, samples and exclusions."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from autotune.errors import UserError
from autotune.space import build, diagram, enumeration, exclusion, sampling
from autotune.space.components import Components
from autotune.space.definition import SpaceDefinition
from autotune.space.diagram import Work
from autotune.space.legal import LegalSpace
from autotune.space.walk import Walk
from tests.space import reference

FACTS: dict[str, dict[str, Any]] = {"model": {}, "cluster": {}}
# The choice of `a` decides how much may follow: 1, 4 or 12 points of `b` and `c`, times 5.
UNEVEN: dict[str, Any] = {
    "parameters": {
        "a": {"choices": [0, 1, 2]},
        "b": {"choices": [0, 1, 2, 3]},
        "c": {"choices": [0, 1, 2], "when": "a == 2"},
        "d": {"choices": [1, 2, 3, 4, 5, 6]},
    },
    "constraints": [{"rule": "a > 0 or b == 3"}, {"rule": "d != 4"}],
    "baseline": {"a": 2},
}


def definition(content: dict[str, Any]) -> SpaceDefinition:
    return SpaceDefinition.parse(content, FACTS)


def drawn(space: LegalSpace) -> set[str]:
    keys = {point.key for point in space.points}
    assert len(keys) == len(space.points)
    return keys


@pytest.mark.parametrize("merged", [0, 40, 10_000])
def test_every_point_is_drawn_as_often(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "_MERGED", merged)
    space = Components.of(definition(UNEVEN))
    found = enumeration.find_all(Walk(space, space.rules), Work(10**6))
    assert found.total == (1 + 4 + 12) * 5
    assert found.paths is not None
    times = 400
    places = found.paths.draw(found.total * times, np.random.default_rng(1))
    counts = Counter(map(tuple, places.T.tolist()))
    assert len(counts) == found.total
    # Chi-square with 84 degrees of freedom: 84 on average, above 150 once in 10^5.
    assert sum((count - times) ** 2 / times for count in counts.values()) < 150


def test_a_space_that_is_counted_but_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_LISTED", 80)
    monkeypatch.setattr(build, "SAMPLED", 30)
    space = LegalSpace.build(definition(UNEVEN))
    assert (space.is_listed, space.size, space.size_text) == (False, 85, "85")
    assert space.size_estimate == 85
    legal = reference.count(definition(UNEVEN)).points
    keys = {space.decode(space.encode(values)).key for values in legal}
    assert drawn(space) < keys
    assert 25 <= len(space.points) <= 31
    assert space.index_of(space.baseline) is not None
    assert space.codes.tolist() == sorted(space.codes.tolist())
    again = LegalSpace.build(definition(UNEVEN))
    assert again.codes.tolist() == space.codes.tolist()
    # Points outside the sample are legal all the same.
    found = [space.find(values) for values in legal]
    assert {point.key for point in found if point} == keys
    assert sum(space.index_of(values) is None for values in legal) == 85 - len(space.points)
    assert space.find({"a": 0, "b": 0, "d": 1}) is None
    assert space.find({"a": 1, "b": 0, "c": 0, "d": 1}) is None


def test_a_space_that_cannot_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "_MERGED", 0)
    monkeypatch.setattr(build, "_CELLS", 100)
    monkeypatch.setattr(exclusion, "_CELLS_ALONE", 100)
    monkeypatch.setattr(build, "SAMPLED", 30)
    content = {**UNEVEN, "parameters": {**UNEVEN["parameters"], "c": {"choices": [0, 1, 2]}}}
    # Counting the combinations themselves is to succeed.
    monkeypatch.setattr(
        build, "_all_combinations", lambda _: enumeration.Found(3 * 4 * 3 * 6, None)
    )
    space = LegalSpace.build(definition(content))
    everything = itertools.product((0, 1, 2), (0, 1, 2, 3), (0, 1, 2), (1, 2, 3, 5, 6))
    legal = {values for values in everything if values[0] > 0 or values[1] == 3}
    assert space.size is None
    assert not space.is_listed
    assert space.size_text == f"about {len(legal):.1e}".replace("e+0", "e")
    assert {tuple(point.values()) for point in space.points} <= legal
    assert len(space.points) >= 30
    assert [e.excluded for e in space.exclusions] == [54, 36]
    assert [e.alone for e in space.exclusions] == [None, None]


@pytest.mark.parametrize("merged", [0, 40])
def test_the_estimate_is_right_on_average(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "_MERGED", merged)
    monkeypatch.setattr(sampling, "_BEAM", 4)
    monkeypatch.setattr(sampling, "_ATTEMPTS", 1)
    space = Components.of(definition(UNEVEN))
    estimates = []
    for seed in range(600):
        monkeypatch.setattr(sampling, "_SEED", seed)
        estimates.append(sampling.sample(Walk(space, space.rules), 10).estimate)
    error = np.std(estimates) / len(estimates) ** 0.5
    assert error > 0
    assert abs(np.mean(estimates) - 85) < 4 * error


def test_a_rule_without_a_diagram_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its share of the combinations, from 4 standard errors of what was drawn."""
    monkeypatch.setattr(diagram, "_LARGEST_LAYER", 1)
    monkeypatch.setattr(diagram, "_LARGEST_LAST_LAYER", 1)
    monkeypatch.setattr(exclusion, "_CELLS", 1)
    monkeypatch.setattr(exclusion, "_DRAWN", 4000)
    names = ["a", "b", "c", "d"]
    content = {
        "parameters": {name: {"choices": list(range(10))} for name in names},
        "constraints": [{"rule": "a * 1.5 + b * c <= 7.25 * d"}],
    }
    broken = sum(
        a * 1.5 + b * c > 7.25 * d for a, b, c, d in itertools.product(range(10), repeat=4)
    )
    space = LegalSpace.build(definition(content))
    (rule,) = space.exclusions
    assert rule.estimated
    assert rule.excluded_text == rule.alone_text == f"about {rule.excluded:.1e}"
    # Drawn without repetition: at most the error of drawing with repetition.
    assert abs(rule.excluded - broken) < 4 * 10_000 * (0.25 / 4000) ** 0.5
    assert space.size == 10_000 - broken


def test_an_empty_space_tells_an_estimate_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagram, "_LARGEST_LAYER", 1)
    monkeypatch.setattr(diagram, "_LARGEST_LAST_LAYER", 1)
    monkeypatch.setattr(exclusion, "_CELLS", 1)
    parameters = {name: {"choices": list(range(10))} for name in "abc"}
    content = {"parameters": parameters, "constraints": [{"rule": "a * 1.5 + b * c > 1000"}]}
    with pytest.raises(UserError, match=r"all 1000 combinations\n  about 1.0e\+03  a \* 1.5"):
        LegalSpace.build(definition(content))


def test_a_sample_that_dies_out_is_filled_with_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """a == b == c == d, but for one step: hardly any beam of one row ends at a legal point."""
    monkeypatch.setattr(enumeration, "_MERGED", 0)
    monkeypatch.setattr(diagram, "_LARGEST_LAYER", 1)
    monkeypatch.setattr(diagram, "_LARGEST_LAST_LAYER", 1)
    monkeypatch.setattr(build, "_CELLS", 1)
    monkeypatch.setattr(build, "SAMPLED", 20)
    monkeypatch.setattr(sampling, "_BEAM", 1)
    monkeypatch.setattr(sampling, "_WIDER", 1)
    monkeypatch.setattr(build, "_all_combinations", lambda _: enumeration.Found(10**6, None))
    names = ["a", "b", "c", "d", "e", "f"]
    content = {
        "parameters": {name: {"choices": list(range(10))} for name in names},
        "constraints": [{"rule": "max(a, b, c, d, e, f) - min(a, b, c, d, e, f) <= 1"}],
        "baseline": dict.fromkeys(names, 3),
    }
    space = LegalSpace.build(definition(content))
    rows = space.codes
    assert len(rows) == 20
    assert (rows.max(axis=1) - rows.min(axis=1) <= 1).all()
    assert space.index_of(dict.fromkeys(names, 3)) is not None
    assert space.size is None
    assert space.size_estimate >= 20


def test_more_combinations_than_any_machine_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not decreasing from parameter to parameter: C(n + 9, 9) of 10^n."""
    monkeypatch.setattr(build, "SAMPLED", 500)
    names = [f"p{n}" for n in range(30)]
    content = {
        "parameters": {name: {"choices": list(range(10))} for name in names},
        "constraints": [
            {"rule": f"{left} <= {right}"} for left, right in itertools.pairwise(names)
        ],
    }
    space = LegalSpace.build(definition(content))
    assert space.combinations == 10**30
    assert space.size == 211_915_132  # 39! / (30! 9!)
    assert space.size_text == "211,915,132"
    # The two that are compared are in the wrong order 45 times of 100.
    assert {e.excluded for e in space.exclusions} == {45 * 10**28}
    assert (np.diff(space.codes, axis=1) >= 0).all()
    assert 450 <= len(space.codes) <= 501
    free = LegalSpace.build(definition({"parameters": content["parameters"]}))
    assert (free.size, free.size_text) == (10**30, "about 1.0e30")


def test_many_conditions_far_from_what_they_read() -> None:
    """Forty switches, then what each of them switches on: 1 + 3 combinations each."""
    switches = {f"s{n}": {"choices": [False, True]} for n in range(40)}
    options = {f"o{n}": {"choices": [1, 2, 3], "when": f"s{n}"} for n in range(40)}
    switched_on = " + ".join(switches)
    space = LegalSpace.build(
        definition(
            {
                "parameters": {**switches, **options},
                "constraints": [{"rule": f"{switched_on} <= 2"}],
            }
        )
    )
    assert space.combinations == 4**40
    assert space.size == 1 + 40 * 3 + 40 * 39 // 2 * 9
    assert space.is_listed


@pytest.mark.parametrize("cells", [10**9, 1])
def test_what_cannot_be_evaluated_is_told_of_a_sample_too(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumeration, "_MERGED", 0)
    monkeypatch.setattr(build, "_CELLS", cells)
    parameters = {name: {"choices": list(range(10))} for name in "abcd"}
    rule = {"rule": "8 % a < 9 and b + c + d < 99"}
    with pytest.raises(UserError, match=r"cannot evaluate '8 % a < 9 .* with {'a': 0, 'b': "):
        LegalSpace.build(definition({"parameters": parameters, "constraints": [rule]}))
    parameters["c"]["when"] = "8 % b < 9"
    with pytest.raises(UserError, match=r"cannot evaluate '8 % b < 9' with {'b': 0}"):
        LegalSpace.build(definition({"parameters": parameters}))


def test_entangled_conditions_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "_MERGED", 0)
    monkeypatch.setattr(build, "_CELLS", 1)
    space = LegalSpace.build(definition(UNEVEN))
    # The whole space fits the beam, so that nothing is left to chance.
    assert space.combinations == (4 + 4 + 12) * 6
    assert len(space.codes) == 85
    assert space.size is None
    assert space.size_estimate == 85


def test_a_million_combinations_against_numpy() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    content = {
        "parameters": {name: {"choices": list(range(10))} for name in names},
        "constraints": [
            {"rule": "(a + 3 * b + 7 * c + 2 * d + 5 * e + 11 * f) % 17 == 4"},
            {"rule": "a * b + c * d <= e * f + 0.5 * a"},
            {"rule": "a != f"},
        ],
        "baseline": {"b": 0, "c": 2, "d": 0, "e": 1, "f": 4},
    }
    a, b, c, d, e, f = np.indices((10,) * 6).reshape(6, -1)
    holds = [
        (a + 3 * b + 7 * c + 2 * d + 5 * e + 11 * f) % 17 == 4,
        a * b + c * d <= e * f + 0.5 * a,
        a != f,
    ]
    values = np.stack([a, b, c, d, e, f], axis=1)
    content["baseline"] = dict(
        zip(names, values[np.logical_and.reduce(holds)][0].tolist(), strict=True)
    )
    space = LegalSpace.build(definition(content))
    assert (space.codes == values[np.logical_and.reduce(holds)]).all()
    assert [e.excluded for e in space.exclusions] == [int((~held).sum()) for held in holds]
    broken = sum((~held).astype(int) for held in holds)
    assert [e.alone for e in space.exclusions] == [
        int((~held & (broken == 1)).sum()) for held in holds
    ]

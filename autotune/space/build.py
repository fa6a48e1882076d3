"""From a checked space file to its legal points: counted, and listed or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UserError
from autotune.space.codes import MOST_CHOICES, Coding, in_order
from autotune.space.components import Axis, Components
from autotune.space.definition import SpaceDefinition
from autotune.space.diagram import TooMuchWorkError, Work
from autotune.space.enumeration import EvaluationFailedError, Found, find_all
from autotune.space.exclusion import Exclusion, count_exclusions, empty_space
from autotune.space.paths import Paths
from autotune.space.point import Point
from autotune.space.sampling import FEW, draw, neighbours, sample
from autotune.space.scope import active_scope, broken_rules, is_active, legal_baseline
from autotune.space.walk import Walk

# Up to this many legal points are listed: about 2 bytes a point and parameter, and some seconds.
MOST_LISTED = 2_000_000
SAMPLED = 100_000
_CELLS = 200_000_000
_FAILING_DRAWN = 1_000


@dataclass(frozen=True, eq=False)
class Content:
    """What a space file says, worked out; the fields are those of `LegalSpace`."""

    components: Components
    baseline: Point
    codes: NDArray[np.int16]
    combinations: int
    exclusions: tuple[Exclusion, ...]
    is_listed: bool
    size: int | None
    size_estimate: float


def build_content(definition: SpaceDefinition) -> Content:
    """Works the space out. Raises UserError when it is empty or the baseline is illegal."""
    space = _components(definition)
    try:
        return _content(definition, space)
    except EvaluationFailedError as error:
        raise _failure(definition, space, error.paths) from None


def combinations_of(definition: SpaceDefinition) -> int:
    """The number of combinations before the rules. Raises UserError as `build_content`."""
    space = _components(replace(definition, rules=()))
    try:
        return _all_combinations(space).total
    except EvaluationFailedError as error:
        raise _failure(definition, space, error.paths) from None


def _content(definition: SpaceDefinition, space: Components) -> Content:
    everything = _all_combinations(space)
    size, estimate, places = _legal_places(space)
    exclusions = count_exclusions(space, definition.rules, everything)
    if size == 0:
        raise UserError(empty_space(everything.total, exclusions))
    baseline = legal_baseline(definition)
    codes = in_order(_codes(space.axes, places))
    listed = size is not None and size <= MOST_LISTED
    if not listed:
        codes = _with_baseline(definition, space, codes, baseline)
        estimate = max(estimate, float(len(codes)))
    codes.flags.writeable = False
    return Content(space, baseline, codes, everything.total, exclusions, listed, size, estimate)


def _components(definition: SpaceDefinition) -> Components:
    """The conditions and rules of a space. Raises UserError for what is too large."""
    for parameter in definition.parameters:
        if len(parameter.choices) > MOST_CHOICES:
            raise UserError(
                f"space.parameters.{parameter.name} has {len(parameter.choices)} choices; "
                f"allowed are at most {MOST_CHOICES}, so leave some out"
            )
    return Components.of(definition)


def _all_combinations(space: Components) -> Found:
    """The combinations before the rules."""
    walk = Walk(space, ())
    try:
        return find_all(walk, Work(_CELLS))
    except TooMuchWorkError:
        # Dozens of conditions that all matter to each other: a number close by has to do.
        return Found(round(sample(walk, SAMPLED).estimate), None)


def _legal_places(space: Components) -> tuple[int | None, float, NDArray[np.integer[Any]]]:
    """The number of legal points, or an estimate of it, and the places of all or of some."""
    walk = Walk(space, space.rules)
    try:
        found = find_all(walk, Work(_CELLS))
    except TooMuchWorkError:
        drawn = sample(walk, SAMPLED)
        return None, drawn.estimate, drawn.places
    if found.paths is None:
        places = sample(walk, SAMPLED).places
    else:
        listed = found.total <= MOST_LISTED
        places = found.paths.all() if listed else draw(found.paths, SAMPLED)
    return found.total, _as_float(found.total), places


def _codes(axes: Sequence[Axis], places: NDArray[np.integer[Any]]) -> NDArray[np.int16]:
    """The codes of combinations, array (combinations, parameters of the space)."""
    codes = np.full((places.shape[1], len(axes)), -1, np.int16)
    for axis, decided in zip(axes, places, strict=False):
        codes[:, axis.column] = decided - axis.offset
    return codes


def _with_baseline(
    definition: SpaceDefinition, space: Components, codes: NDArray[np.int16], baseline: Point
) -> NDArray[np.int16]:
    own = Coding(definition.parameters).encode(baseline)
    assert own is not None, "the baseline is made of choices"
    codes = in_order(np.concatenate([own[None], codes]))
    if len(codes) < FEW:
        codes = in_order(neighbours(space, codes, SAMPLED))
    return codes


def _failure(definition: SpaceDefinition, space: Components, paths: Paths) -> UserError:
    """What evaluation says of the first of combinations for which it fails."""
    random = np.random.default_rng(0)
    listed = paths.total <= MOST_LISTED
    places = paths.all() if listed else paths.draw(_FAILING_DRAWN, random)
    row = in_order(_codes(space.axes, places))[0]
    scope = active_scope(definition, Coding(definition.parameters).decode(row))
    try:
        for axis in space.axes[: len(places) + 1]:
            is_active(axis.parameter, scope)
        broken_rules(definition, scope)
    except UserError as error:
        return error
    raise AssertionError("what failed for many combinations fails for each of them")


def _as_float(count: int) -> float:
    return float(Decimal(count))  # infinite where a float cannot hold it

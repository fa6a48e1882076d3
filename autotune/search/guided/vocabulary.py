"""Which way memory goes, as the names of parameters tell it.

The names are those of Megatron-LM, DeepSpeed, MindSpeed-MM, Hugging Face Accelerate and
NeMo. What is read from a name is a leaning that runs correct; `memory:` in a space file says it
for certain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from autotune.search.guided.geometry import Floats
from autotune.space.definition import Parameter

_SUFFIXES = {"size", "degree", "num", "number", "of", "model", "dim", "world"}
_INCREASES = (
    {"micro", "batch"},
    {"mbs"},
    {"train", "micro", "batch", "per", "gpu"},
    {"per", "device", "batch"},
    {"per", "device", "train", "batch"},
    {"seq", "length"},
    {"sequence", "length"},
    {"seqlen"},
)
_DECREASES = (
    {"tp"},
    {"tensor", "parallel"},
    {"parallel"},  # model_parallel_size
    {"mp"},
    {"pp"},
    {"pipe", "parallel"},
    {"pipeline", "parallel"},
    {"cp"},
    {"context", "parallel"},
    {"sp"},
    {"sequence", "parallel"},
    {"ep"},
    {"expert", "parallel"},
    {"dp", "shard"},
    {"zero", "stage"},
    {"sharding"},
    {"sharding", "stage"},
)


# By how much the logarithm of memory changes from the middle of the choices to their end, where
# the choices do not tell: for blocks that are offloaded, 0 of them included, or for names.
_UNTOLD = 0.25
# Beyond such a ratio of the last choice to the first, numbers say nothing of memory.
_LARGEST_RATIO = 1_000_000


def memory_slopes(parameters: Sequence[Parameter]) -> Floats:
    """(parameters,): how the logarithm of peak memory is expected to grow, 0 for no expectation.

    From the middle of the choices to the last; below 0 where memory falls. The direction is from
    `memory:` where it is given, else from the names of ordered parameters. Activations, most of
    what varies, go with the product of batch sizes and degrees.
    """
    return np.array([_direction(p) * _reach(p.choices) for p in parameters], dtype=float)


def _reach(choices: Sequence[object]) -> float:
    numbers = [choice for choice in choices if isinstance(choice, int | float)]
    if len(numbers) < len(choices) or min(numbers) <= 0 or not all(map(_is_finite, numbers)):
        return _UNTOLD
    # As fractions: numbers of a table may be too large, or too far apart, for floats.
    ratio = Fraction(max(numbers)) / Fraction(min(numbers))
    return math.log(float(min(ratio, Fraction(_LARGEST_RATIO)))) / 2


def _is_finite(number: int | float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _direction(parameter: Parameter) -> int:
    if parameter.memory is not None:
        return 1 if parameter.memory == "increases" else -1
    if not parameter.ordered:
        return 0
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", parameter.name).lower()))
    words -= _SUFFIXES
    up = -1 if _fall(parameter.choices) else 1
    if words in _INCREASES:
        return up
    return -up if words in _DECREASES else 0


def _fall(choices: Sequence[object]) -> bool:
    """Whether they are numbers from large to small."""
    first, last = choices[0], choices[-1]
    return isinstance(first, int | float) and isinstance(last, int | float) and first > last

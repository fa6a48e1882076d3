"""Choices of `pipeline_split`, looked at one by one: what no point could make right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.errors import UserError
from autotune.space.point import plain
from launch.trainers.mindspeed.megatron_settings import EVEN


def require_splits(
    splits: Sequence[Any], rounds: int, dims: Mapping[str, Any], facts: Mapping[str, Any]
) -> None:
    """Raises UserError for a split that no layout makes right.

    rounds: the most virtual stages of any choice. facts: `empty_stages` and
    `empty_virtual_stages`, whether a stage may be without a layer of the split model.
    """
    layers = dims.get("num_layers")
    for split in splits:
        where = f"space.parameters.pipeline_split.choices: {plain(split)} cannot be; "
        if isinstance(split, str):
            if split != EVEN:
                raise UserError(f"{where}write {EVEN}, or a list of the stages' layers")
            continue
        numbers = [one for one in split if isinstance(one, int) and not isinstance(one, bool)]
        if len(numbers) != len(split) or not numbers:
            raise UserError(
                f"{where}write the layers of every stage in one list, with virtual stages round "
                "after round: [0, 0, 4, 4, 10, 10]"
            )
        if layers is not None and sum(numbers) != layers:
            raise UserError(f"{where}its stages have {sum(numbers)} layers, the model {layers}")
        least = 0 if facts["empty_virtual_stages" if rounds > 1 else "empty_stages"] else 1
        if min(numbers) < least:
            raise UserError(f"{where}every stage needs a layer that is trained")

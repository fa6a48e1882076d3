"""Profiles with figures that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.analyze.profile import Profile, ProfilerKind, StepTime
from autotune.analyze.summary import ProfileSet
from autotune.measure.records import PHASES


def step(
    number: int | None = 1,
    computing: float = 60e3,
    exposed: float = 20e3,
    hidden: float = 10e3,
    free: float = 15e3,
    preparing: float = 5e3,
    **rest: Any,
) -> StepTime:
    """A step of 100 ms, in which Computing + Communication(Not Overlapped) + Free = Stage."""
    return StepTime(
        step=number,
        computing_us=computing,
        not_overlapped_us=exposed,
        overlapped_us=hidden,
        communication_us=exposed + hidden,
        free_us=free,
        stage_us=computing + exposed + free,
        preparing_us=preparing,
        **rest,
    )


def phases(**us: float) -> Mapping[str, float]:
    """All six phases, 0 where nothing is given."""
    return {name: us.get(name, 0.0) for name in PHASES}


def profile(rank: int | None = 0, steps: Sequence[StepTime] = (), **rest: Any) -> Profile:
    """A profile of torch_npu, in the folder of one capture."""
    given = {
        "source": Path(f"/capture/rank{rank}_ascend_pt"),
        "kind": ProfilerKind.TORCH_NPU,
        "device": "npu",
        "steps": tuple(steps),
        **rest,
    }
    return Profile(rank=rank, **given)


def job(works: Sequence[Sequence[float]], **rest: Any) -> ProfileSet:
    """Ranks that compute so long in each step (us), and wait in collectives for the slowest."""
    longest = [max(of_step) for of_step in zip(*works, strict=True)]
    return ProfileSet(
        tuple(
            profile(
                rank,
                [
                    step(at, computing=work, exposed=longest[at] - work + 5e3, **rest)
                    for at, work in enumerate(steps)
                ],
            )
            for rank, steps in enumerate(works)
        )
    )

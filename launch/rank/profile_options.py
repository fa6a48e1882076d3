"""What a profile is asked to hold.

Runs inside the trainer's own Python, so: standard library only, Python 3.8 on. The fields are
those of `autotune.ports.ProfilePlan`, which cannot be imported here.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Mapping  # noqa: UP035 (Python 3.8 subscripts no other)


@dataclass(frozen=True)
class ProfileOptions:
    """One collection of profiles; options are named as in `torch_npu.profiler`.

    steps: profiled steps. warmup_steps: steps under the profiler before them whose events are
    thrown away. ranks: which collect, -1 for all. with_cpu: host events too.
    record_shapes to with_modules: of torch.profiler and torch_npu.profiler alike.
    profiler_level to gc_detect_threshold (ms): torch_npu's `_ExperimentalConfig`.
    """

    steps: int = 1
    warmup_steps: int = 0
    ranks: tuple[int, ...] = (0,)
    with_cpu: bool = True
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    profiler_level: str = "Level0"
    aic_metrics: str = "AiCoreNone"
    l2_cache: bool = False
    record_op_args: bool = False
    data_simplification: bool = True
    export_type: str = "Text"
    gc_detect_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if not self.ranks or min(self.ranks) < -1:
            raise ValueError(f"ranks must be rank numbers or [-1] for all, got {list(self.ranks)}")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ProfileOptions:
        """The options from plain values. Raises ValueError for an unknown name or a wrong type."""
        if not isinstance(values, dict):
            raise ValueError(f"profile options must be a mapping, got {values!r}")
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        for name in values:
            if name not in defaults:
                raise ValueError(f"unknown option {name}; allowed: {', '.join(defaults)}")
        return cls(**{name: _read(name, value, defaults[name]) for name, value in values.items()})

    @property
    def total_steps(self) -> int:
        """Steps under the profiler, warm-up included."""
        return self.warmup_steps + self.steps

    def collects(self, rank: int) -> bool:
        """Whether this rank's steps are profiled."""
        return -1 in self.ranks or rank in self.ranks


def _read(name: str, value: Any, default: Any) -> Any:
    if name == "ranks":
        if isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
            return tuple(value)
        raise ValueError(f"ranks must be a list of whole numbers, got {value!r}")
    if name == "gc_detect_threshold":
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        raise ValueError(f"gc_detect_threshold must be a number of ms or null, got {value!r}")
    if type(value) is not type(default):
        wanted = {int: "a whole number", bool: "true or false", str: "text"}[type(default)]
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return value

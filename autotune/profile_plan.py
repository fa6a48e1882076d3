"""What one collection of profiles holds."""

from __future__ import annotations

from dataclasses import dataclass

PROFILER_LEVELS = ("Level_none", "Level0", "Level1", "Level2")
AIC_METRICS = (
    "AiCoreNone",
    "PipeUtilization",
    "ArithmeticUtilization",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "ResourceConflictRatio",
    "L2Cache",
    "MemoryAccess",
)
EXPORT_TYPES = ("Text", "Db")


@dataclass(frozen=True)
class ProfilePlan:
    """One collection of profiles; options are named as in `torch_npu.profiler`.

    steps: profiled steps (`active`). warmup_steps: steps under the profiler before them whose
    events are thrown away (`warmup`). ranks: which collect, -1 for all. with_cpu: host events
    too. profiler_level, aic_metrics, l2_cache, record_op_args, data_simplification,
    export_type, gc_detect_threshold (ms): `_ExperimentalConfig`, on npu only. The other
    options: `profile`, wherever they exist.
    Source: torch_npu 2.13, profiler/profiler.py and profiler/experimental_config.py.
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
        if self.steps < 1 or self.warmup_steps < 0:
            raise ValueError(
                f"steps={self.steps}, warmup_steps={self.warmup_steps}: a profile needs at least "
                "1 step, and no fewer than 0 before"
            )
        if not self.ranks or any(rank < -1 for rank in self.ranks):
            raise ValueError(f"ranks={list(self.ranks)}: give rank numbers, or [-1] for all")
        for name, allowed in (
            ("profiler_level", PROFILER_LEVELS),
            ("aic_metrics", AIC_METRICS),
            ("export_type", EXPORT_TYPES),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: allowed are {', '.join(allowed)}"
                )

    def collects(self, rank: int) -> bool:
        """Whether this rank's steps are profiled."""
        return -1 in self.ranks or rank in self.ranks

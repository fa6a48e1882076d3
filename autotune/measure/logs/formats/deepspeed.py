"""Lines of DeepSpeed.

Sources: `utils/timer.py`, `runtime/engine.py`, `runtime/pipe/engine.py` and the optimizers in
deepspeedai/DeepSpeed. `CurrSamplesPerSec` is the rate of the last step alone; older versions
print only a running mean (`SamplesPerSec=`), which is no step's. Its GB are 2**30 bytes, and
the memory is what was allocated, not what was reserved.
"""

from __future__ import annotations

import re

from autotune.measure.logs.format import PatternFormat
from autotune.measure.logs.pattern import Field, LinePattern
from autotune.measure.logs.quantities import NUMBER

_RATE = Field(re.compile(r"\bCurrSamplesPerSec="), re.compile(rf"(?P<samples_per_s>{NUMBER}),"))
_PEAK = Field(re.compile(r"\bMaxMemAllocated="), re.compile(rf"(?P<peak_allocated>{NUMBER}GB)"))
_TIME = Field(re.compile(r"\biter time \(s\): "), re.compile(r"(?P<time_s>\d+\.\d{3})(?!\S)"))

DEEPSPEED = PatternFormat(
    "deepspeed",
    (
        LinePattern(
            start=re.compile(r"(?<![a-z_])epoch=\d+/micro_step=\d+/global_step=(?P<step>\d+),"),
            fields=(_RATE, _PEAK),
            is_mean=False,
        ),
        LinePattern(
            start=re.compile(r"\[timer\.py:\d+:stop\]\s*\d+/(?P<step>\d+),"),
            fields=(_RATE, _PEAK),
            is_mean=False,
        ),
        # The pipeline engine, a mean over `steps_per_print`; the time has three decimals.
        LinePattern(
            start=re.compile(
                rf"(?<![a-z_])steps: (?P<step>\d+) loss: (?P<loss>{NUMBER}) (?=[a-z])"
            ),
            fields=(_TIME,),
        ),
        LinePattern(
            start=re.compile(r"(?<![a-z_])step=(?P<step>\d+), skipped=(?P<skipped_so_far>\d+), lr=")
        ),
        # `see_memory_usage`: what was reserved is rounded to whole GB there.
        LinePattern(start=re.compile(rf"\bMax_MA (?P<peak_allocated>{NUMBER} GB)\s")),
    ),
    # Rank 0 also prints the steps; a mark of another rank may come after them.
    skip_marks=(
        re.compile(r"overflow\b(?!.{0,80}\bRank [1-9])[^|]{0,80}\bskipping step", re.IGNORECASE),
    ),
)

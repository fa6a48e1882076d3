"""Lines of Megatron-LM and its kin.

Sources: `training_log` in NVIDIA/Megatron-LM (2019 to 2026), bigscience-workshop and
argonne-lcf Megatron-DeepSpeed, EleutherAI/gpt-neox, AMD-AGI/Primus; `train_engine.py`,
`training.py`, `memory_profiler.py` in Ascend/MindSpeed-MM; huggingface/nanotron, which writes
`11.5K`. They differ in the order and the number of columns, in `:`, `=` or a space after a
name, and in spaces or underscores within it.
"""

from __future__ import annotations

import re

from autotune.measure.logs.format import PatternFormat
from autotune.measure.logs.pattern import Field, LinePattern
from autotune.measure.logs.quantities import NUMBER, SCALED

_IS = r"(?:\s*[:=]\s*|\s+)"
_END = r"\s*\|"


def _column(name: str, group: str, value: str = NUMBER, end: str = _END) -> Field:
    """A column between bars, with `_` in `name` for a space or an underscore.

    A number is whole only where the bar follows it.
    """
    words = name.replace("_", "[ _]")
    return Field(
        re.compile(rf"(?<![\w ])\s*{words}{_IS}(?=[\w.+-])", re.IGNORECASE),
        re.compile(rf"(?P<{group}>{value}){end}", re.IGNORECASE),
    )


# Primus prints the present time and the mean so far: `13100.0/13240.9`.
_TIME_END = rf"(?:/{NUMBER})?{_END}"

# nanotron's `global_batch_size:` counts samples or, in later versions, tokens.
_SAMPLES = Field(
    re.compile(r"\|\s*global(?: batch size:?|_batch_size=)\s*", re.IGNORECASE),
    re.compile(rf"(?P<samples>\d+){_END}"),
)

# What tells of skipped updates comes near the end, so a line that was cut off before it must
# not count. Some have no such column; they are known by what they end with.
_UNCUT = re.compile(
    rf".*?(?<![\w ])\s*number[ _]of[ _]skipped[ _]iterations{_IS}\d+{_END}"
    r"|.*?\| tokens_per_sec_per_gpu: "  # nanotron
    # MindSpeed-MM's FSDP2 trainer, and that of its autoencoders
    rf"|(?:(?!loss scale:).)*\| (?:(?!lm loss)[\w ]*loss|grad norm): {NUMBER}{_END}\s*$"
    rf"| elapsed time per iteration \(s\):.*\| loss scale: {NUMBER}{_END}\s*$"
    rf"|.*\| (?:lm loss|loss scale) {NUMBER}{_END}\s*$",  # Megatron-LM of 2019
    re.IGNORECASE,
)

_ITERATION = LinePattern(
    start=re.compile(
        r"(?<![a-z_-])iteration\s*[:=]?\s*(?P<step>\d+)\s*/\s*(?:\d+|infinity)\s*\|", re.IGNORECASE
    ),
    fields=(
        _column(r"(?:elapsed_)?time_per_iteration_\(?ms\)?", "time_ms", SCALED, _TIME_END),
        _column(r"(?:elapsed_)?time_per_iteration_\(?s\)?", "time_s", SCALED, _TIME_END),
        # The main loss before those of experts, predicted tokens and other helpers.
        _column(r"(?:lm_|reduced_|reduced_train_|total_|train_)?loss", "loss"),
        _column(r"(?![\w ]*(?:balanc|z_loss|mtp|aux|router|indexer))\w[\w ]*loss", "loss"),
        _column("grad_norm", "grad_norm"),
        # The last column of nanotron, without a bar: only a word cannot be a part of a number.
        _column("grad_norm", "grad_norm", "nan|inf", r"\s*$"),
        _SAMPLES,
        _column("number_of_skipped_iterations", "skipped", r"\d+"),
    ),
    end=_UNCUT,
)

# `[Rank 0] (after 2 iterations) memory (MB) | allocated: ... | max reserved: 722.5703125`.
# The last number ends the line, but it always has decimals. Reserved was called cached once.
_DECIMALS = r"\d+\.\d+"
_MEMORY = LinePattern(
    start=re.compile(r"after (?P<step>\d+) iterations?\)? memory \(MB\)"),
    fields=(
        Field(
            re.compile(r"\| max allocated: "), re.compile(rf"(?P<peak_allocated_mib>{_DECIMALS})")
        ),
        Field(
            re.compile(r"\| max (?:reserved|cached): "),
            re.compile(rf"(?P<peak_reserved_mib>{_DECIMALS})"),
        ),
        Field(
            re.compile(r"\| total device memory used: "),
            re.compile(rf"(?P<peak_device_mib>{_DECIMALS})"),
        ),
    ),
    needs=("peak_reserved_mib",),
)
# MindSpeed-MM's `mem_info`: the peak since the line before.
_STEP_MEMORY = LinePattern(
    start=re.compile(r"(?<![a-z_])step: (?P<step>\d+)\s+global_rank: (?P<rank>\d+)\s"),
    fields=(
        Field(re.compile(r"max_memory_reserved: "), re.compile(r"(?P<peak_reserved_bytes>\d+)\s")),
        Field(
            re.compile(r"max_memory_allocated: "),
            re.compile(r"(?P<peak_allocated_bytes>\d+)(?!\S)"),
        ),
    ),
    needs=("peak_reserved_bytes",),
)

MEGATRON = PatternFormat(
    "megatron",
    (_ITERATION, _MEMORY, _STEP_MEMORY),
    # Since 2025 the first iteration has a line whatever the log interval, without a new start
    # of the clock.
    first_step_counts_again=True,
)

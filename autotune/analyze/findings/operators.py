"""Operators that should not take this long, or be there at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from autotune.analyze.advice import Advice
from autotune.analyze.names import kernel
from autotune.analyze.profile import OperatorTime, StepTime
from autotune.analyze.summary import HOST, ProfileSet, own_us, sum_operators
from autotune.analyze.techniques import techniques

_DOMINATES = 0.30
_LAYOUT = 0.10
_AI_CPU = 0.01
# Of the step: less than this nobody would notice.
_WORTH_NAMING = 0.01
_SHORT_KERNEL_US = 20.0
# nccl and rccl run as kernels among the others.
_COMMUNICATION = re.compile(r"(?i)^(void )?[nr]ccl|^hcom_|^hccl")
# What only converts formats, layouts or precisions, by the start of its name.
_CONVERSIONS = ("transdata", "trans_transdata", "cast", "trans_cast", "transpose", "viewcopy")


def device_operators(profiles: ProfileSet) -> tuple[OperatorTime, ...]:
    """What computed or copied on the devices, over all ranks, the longest first.

    Kernels of the communication library are left out: how long they take is mostly waiting.
    """
    return sum_operators(
        o
        for profile in profiles.profiles
        for o in profile.operators
        if o.where != HOST and not _COMMUNICATION.search(o.name)
    )


def operator_findings(profiles: ProfileSet, step: StepTime | None) -> Iterator[Advice]:
    """One operator above all, conversions of layout, operators on the AI CPU.

    Where the step is known, only what takes some of it: the device may have little to do.
    """
    operators = device_operators(profiles)
    total_us = sum(own_us(o) for o in operators)
    computing = step.computing_us / step.total_us if step and step.total_us else 1.0
    kinds = (
        ("operators", "One operator takes much of the device's time", operators[:1], _DOMINATES),
        (
            "layout",
            "Tensors are converted between layouts or precisions",
            [operator for operator in operators if _converts(operator)],
            _LAYOUT,
        ),
        (
            "ai_cpu",
            "Operators run on the AI CPU, not on the AI cores",
            [operator for operator in operators if _is_on_ai_cpu(operator)],
            _AI_CPU,
        ),
    )
    for topic, what, found, least in kinds:
        share = sum(own_us(o) for o in found) / total_us if total_us else 0.0
        if share >= least and share * computing >= _WORTH_NAMING:
            ways = techniques(topic, profiles.device)
            yield Advice(topic, what, _evidence(found, share), ways, share * computing)


def _converts(operator: OperatorTime) -> bool:
    return operator.name.lower().startswith(_CONVERSIONS)


def _is_on_ai_cpu(operator: OperatorTime) -> bool:
    return "AI_CPU" in operator.where.upper()


def _evidence(operators: Sequence[OperatorTime], share: float) -> str:
    names = ", ".join(kernel(operator.name, 40) for operator in operators[:3])
    more = ", ..." if len(operators) > 3 else ""
    count = sum(operator.count for operator in operators)
    return f"{names}{more}: {share:.0%} of the device's time in {count:,} calls"


def short_kernels_evidence(profiles: ProfileSet) -> str:
    """Says that kernels are short, where they are; launching one takes the host about as long."""
    operators = device_operators(profiles)
    count = sum(operator.count for operator in operators)
    mean_us = sum(own_us(o) for o in operators) / count if count else _SHORT_KERNEL_US
    if mean_us >= _SHORT_KERNEL_US:
        return ""
    calls = count / profiles.steps_with("operators")
    return f"{calls:.0f} kernels a step of {mean_us:.1f} us on average"

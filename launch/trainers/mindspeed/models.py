"""What MindSpeed-MM's native models can do, by the name under which they are registered.

Source: fsdp/models at commit 57069cd5. A model without code for context parallelism repeats the
whole work on each rank of a group, so a larger degree is no error there, and of no use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ModelSupport:
    """algorithms: of sequence parallelism. chunk_loss: whether the loss can be taken in chunks.

    linear_attention: whether some layers are gated linear attention, with heads of their own.
    """

    algorithms: tuple[str, ...] = ()
    chunk_loss: bool = False
    linear_attention: bool = False


_EVERY = ("ulysses", "ring", "usp")
_SUPPORT: Mapping[str, ModelSupport] = MappingProxyType(
    {
        "qwen3_5": ModelSupport(("ulysses",), chunk_loss=True, linear_attention=True),
        "qwen3_5_moe": ModelSupport(("ulysses",), chunk_loss=True, linear_attention=True),
        "qwen3_vl_moe": ModelSupport(_EVERY, chunk_loss=True),
        "qwen3_omni_moe": ModelSupport(_EVERY, chunk_loss=True),
        "kimi_k25": ModelSupport(("ulysses",), chunk_loss=True),
        "kimi_k3": ModelSupport(chunk_loss=True),
        "wan2_2_container": ModelSupport(_EVERY),
    }
)


def support_of(model_id: str | None) -> ModelSupport:
    """What a model can do; nothing where it is not known to have the code."""
    return _SUPPORT.get(model_id or "", ModelSupport())

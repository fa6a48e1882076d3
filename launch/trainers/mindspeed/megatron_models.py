"""What the models of MindSpeed-MM's Megatron backends can do, by the names in their files.

Source: mindspeed_mm/models at commit 57069cd5: predictor/dits, transformers, vlm_model.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from launch.trainers.mindspeed.degrees import ALGORITHMS

VISION_LANGUAGE, DIFFUSION, TRANSFORMERS = "vlm", "dit", "transformers"
PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        "pretrain_vlm.py": VISION_LANGUAGE,
        "pretrain_sora.py": DIFFUSION,
        "pretrain_transformers.py": TRANSFORMERS,
    }
)
"""Training programs, and the kind of model that they train."""


@dataclass(frozen=True)
class MegatronSupport:
    """algorithms: of sequence parallelism. tensor, pipeline: parallelism that the model's code has.

    recompute: it heeds --recompute-granularity. skips_attention: recomputation can leave core
    attention out, whose activations can then go to the host. offload: activations can go to the
    host by another switch. chunk_loss: the loss can be taken in chunks.
    """

    algorithms: tuple[str, ...] = ()
    tensor: bool = False
    pipeline: bool = False
    recompute: bool = False
    skips_attention: bool = False
    offload: bool = False
    chunk_loss: bool = False


_VLM = MegatronSupport(ALGORITHMS, tensor=True, pipeline=True, recompute=True)
_DIFFUSION: Mapping[str, MegatronSupport] = MappingProxyType(
    {
        # Its norms of queries and keys are as wide as all heads, so tensor parallelism fails.
        "wandit": MegatronSupport(
            ALGORITHMS, pipeline=True, recompute=True, skips_attention=True, offload=True
        ),
        # Its own `diffusion.sp_size` leaves the data loader on other groups, so it is left alone.
        "hunyuanvideo15dit": MegatronSupport(),
    }
)
_TRANSFORMERS: Mapping[str, MegatronSupport] = MappingProxyType(
    {
        "qwen3_vl": MegatronSupport(ALGORITHMS, offload=True, chunk_loss=True),
        "qwen3_vl_moe": MegatronSupport(ALGORITHMS, offload=True, chunk_loss=True),
        "qwen3_omni_moe": MegatronSupport(("ulysses",), offload=True, chunk_loss=True),
        "mistral3": MegatronSupport(("ulysses",), chunk_loss=True),
    }
)


def support_of(kind: str, model_id: str | None) -> MegatronSupport:
    """What a model can do; nothing where it is not known to have the code."""
    if kind == VISION_LANGUAGE:
        return _VLM
    table = _DIFFUSION if kind == DIFFUSION else _TRANSFORMERS
    return table.get(model_id or "", MegatronSupport())

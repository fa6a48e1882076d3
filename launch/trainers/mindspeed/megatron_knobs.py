"""Parameters of the search that are one key of a Megatron launch each, by backend and model kind.

Names that the native FSDP2 trainer has too mean the same there. Sources of keys and defaults:
mindspeed_mm/arguments.py, patchs/validate_args_patch.py, models/transformers/base_model.py,
MindSpeed's features_manager, Megatron-LM's arguments.py, at the commits in docs/mindspeed_mm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launch.trainers.mindspeed.choices import (
    COUNT,
    SIZE,
    SIZE_OR_AUTO,
    SWITCH,
    Values,
    one_of,
)
from launch.trainers.mindspeed.degrees import ALGORITHMS
from launch.trainers.mindspeed.megatron_files import OpenFiles
from launch.trainers.mindspeed.megatron_models import (
    DIFFUSION,
    TRANSFORMERS,
    VISION_LANGUAGE,
)
from launch.trainers.mindspeed.megatron_modules import AUDIO, IMAGE


@dataclass(frozen=True)
class Knob:
    """A parameter. key: what it stands for, None where it is more than one key.

    default: what the program takes where the key is absent.
    """

    key: str | None
    values: Values
    default: Any = None

    def read(self, files: OpenFiles) -> Any:
        """The present value."""
        assert self.key is not None
        if not self.key.startswith("--"):
            return files.get(self.key, self.default)
        if self.values == SWITCH:
            return files.arguments.has(self.key)
        if self.values.kinds == (int,):
            number = files.arguments.number(self.key)
            return self.default if number is None else number
        return files.get(self.key, self.default)


def _degree(key: str | None) -> Knob:
    return Knob(key, SIZE, 1)


_EVERYWHERE: Mapping[str, Knob] = {
    "micro_batch_size": _degree("--micro-batch-size"),
    "sp_degree": _degree(None),
    "sp_algorithm": Knob(None, one_of(*ALGORITHMS)),
    "ulysses_degree": _degree(None),
    "ring_window": _degree("--cp-window-size"),
    "send_recv_overlap": Knob("--use-cp-send-recv-overlap", SWITCH),
    "dataloader_workers": Knob("--num-workers", COUNT, 2),
}
_MEGATRON: Mapping[str, Knob] = {
    "tensor_parallel_size": _degree(None),
    "pipeline_parallel_size": _degree(None),
    "virtual_pipeline_size": _degree("--virtual-pipeline-model-parallel-size"),
    "pipeline_split": Knob(None, Values((str, list))),
    "expert_parallel_size": _degree("--expert-model-parallel-size"),
    "sequence_parallel": Knob("--sequence-parallel", SWITCH),
    "distributed_optimizer": Knob("--use-distributed-optimizer", SWITCH),
    "overlap_grad_reduce": Knob("--overlap-grad-reduce", SWITCH),
    "overlap_param_gather": Knob("--overlap-param-gather", SWITCH),
    "recompute": Knob(None, one_of("none", "full", "selective")),
    "recompute_method": Knob(None, one_of("block", "uniform")),
    "recompute_layers": Knob(None, COUNT),
}
_SKIPPED_ATTENTION = Knob(None, COUNT, 0)
_OFFLOADED_ATTENTION = Knob("model:predictor.attention_async_offload", SWITCH, False)
_BUCKETS = Knob(None, one_of("none", "bucketing", "reordering"))
_LENGTHS = Knob(None, one_of("none", "data", "frame", "resolution", "frame_and_resolution"))
_HETERO: Mapping[str, Knob] = {
    "swap_attention": Knob("--swap-attention", SWITCH),
    "hetero_parallel": Knob("--hetero-parallel", SWITCH),
    "encoder_micro_batch_scale": _degree("--hetero-encoder-mbs-scale"),
    "image_encoder_tensor_parallel_size": _degree(f"model:{IMAGE}.tp"),
    "image_encoder_pipeline_parallel_size": _degree(f"model:{IMAGE}.pp"),
    "image_encoder_sp_degree": _degree(f"model:{IMAGE}.cp"),
    "audio_encoder_tensor_parallel_size": _degree(f"model:{AUDIO}.tp"),
    "audio_encoder_pipeline_parallel_size": _degree(f"model:{AUDIO}.pp"),
    "audio_encoder_sp_degree": _degree(f"model:{AUDIO}.cp"),
}
_FSDP2: Mapping[str, Knob] = {
    "fsdp_size": Knob("fsdp2:sharding_size", SIZE_OR_AUTO, "auto"),
    "reshard_after_forward": Knob("fsdp2:reshard_after_forward", SWITCH, True),
    "forward_prefetch": Knob("fsdp2:num_to_forward_prefetch", COUNT, 0),
    "backward_prefetch": Knob("fsdp2:num_to_backward_prefetch", COUNT, 0),
    "recompute_modules": Knob("fsdp2:recompute_modules", Values((list, type(None)))),
}
_BY_KIND: Mapping[tuple[bool, str], Mapping[str, Knob]] = {
    (False, VISION_LANGUAGE): {**_MEGATRON, **_HETERO, "bucket_order": _BUCKETS},
    (False, DIFFUSION): {
        **_MEGATRON,
        "skip_attention_layers": _SKIPPED_ATTENTION,
        "activation_offload": _OFFLOADED_ATTENTION,
        "layerzero": Knob("--layerzero", SWITCH),
        "length_grouping": _LENGTHS,
    },
    (True, DIFFUSION): {
        **_FSDP2,
        "recompute": _MEGATRON["recompute"],
        "recompute_method": _MEGATRON["recompute_method"],
        "recompute_layers": _MEGATRON["recompute_layers"],
        "skip_attention_layers": _SKIPPED_ATTENTION,
        "activation_offload": _OFFLOADED_ATTENTION,
        "length_grouping": _LENGTHS,
    },
    (True, TRANSFORMERS): {
        **_FSDP2,
        "activation_offload": Knob("model:text_decoder.activation_offload", SWITCH, False),
        "loss_chunk": Knob(None, one_of("none", "static", "dynamic")),
        "loss_chunk_size": Knob(None, SIZE),
        "loss_total_chunk_size": Knob(None, SIZE),
        "bucket_order": _BUCKETS,
    },
    (True, VISION_LANGUAGE): {**_FSDP2, "bucket_order": _BUCKETS},
}


CONDITIONAL = (
    *("ring_window", "virtual_pipeline_size", "pipeline_split", "expert_parallel_size"),
    *(
        "sequence_parallel",
        "distributed_optimizer",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "layerzero",
    ),
    *("recompute_method", "recompute_layers", "skip_attention_layers"),
    *("activation_offload", "loss_total_chunk_size"),
    *_HETERO,
)
"""Parameters to which rules must apply where they have no value at a point.

`recompute_modules` is not among them, whose null is a value.
"""


def knobs_of(fsdp2: bool, kind: str) -> dict[str, Knob]:
    """The parameters of a backend for a kind of model; none where it does not train that kind."""
    own = _BY_KIND.get((fsdp2, kind))
    return {} if own is None else {**_EVERYWHERE, **own}

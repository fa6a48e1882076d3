"""What shortens a step or its peak memory, by topic.

Sources: MindSpeed-MM's guide to performance tuning and its feature list (sequence parallelism,
activation offload, heterogeneous parallelism, ChunkLoss, bucket reordering), the environment
variables of torch_npu, and PyTorch's tuning guide.
"""

from __future__ import annotations

from collections.abc import Mapping

from autotune.analyze.technique import Condition, Parameters, Technique


def _above(name: str, least: float) -> Condition:
    def holds(parameters: Parameters) -> bool:
        value = parameters.get(name)
        return isinstance(value, (int, float)) and value > least

    return Condition(f"if {name} is above {least:g}", holds)


def _is(name: str, wanted: object) -> Condition:
    return Condition(f"if {name} is {wanted}", lambda parameters: parameters.get(name) == wanted)


def _is_not(name: str, unwanted: object) -> Condition:
    return Condition(
        f"if it is not {unwanted}",
        lambda parameters: name in parameters and parameters[name] != unwanted,
    )


_LESS_SP = Technique(
    "sp_degree",
    "smaller",
    "fewer ranks share a sequence, so kernels are larger and exchanges fewer",
    "space",
    _above("sp_degree", 1),
    costs_memory=True,
)
_LARGER_MICRO_BATCH = Technique(
    "micro_batch_size",
    "larger",
    "fewer passes for the same global batch, each with larger kernels",
    "space",
    costs_memory=True,
)
_LESS_OFFLOAD = Technique(
    "offload_blocks",
    "fewer",
    "activations that fit need not be copied to the host and back",
    "space",
    _above("offload_blocks", 0),
    costs_memory=True,
)
_LARGER_LOSS_CHUNK = Technique(
    "loss_chunk_size",
    "larger, or 0 for the whole sequence",
    "fewer, larger kernels for the logits",
    "space",
    _above("loss_chunk_size", 0),
    costs_memory=True,
)
_EQUAL_WORK = Technique(
    "bucket_order",
    "reordering",
    "all ranks get equal work, so none waits for the one with the longest samples",
    "space",
    _is_not("bucket_order", "reordering"),
)
_LIKE_LENGTHS = Technique(
    "bucket_order",
    "bucketing",
    "samples of like length in a micro-batch, so less padding is computed",
    "space",
    _is("bucket_order", "none"),
)
_TASK_QUEUE = Technique(
    "TASK_QUEUE_ENABLE=2",
    "",
    "operators are prepared and launched by threads of their own",
    "npu",
)
_CPU_AFFINITY = Technique(
    "CPU_AFFINITY_CONF=1", "", "the threads that launch kernels keep their cores", "npu"
)
_NO_SYNCHRONISATION = Technique(
    "", "no .item(), .cpu() or printed tensor inside the step", "each makes the host wait"
)
_PREFETCH = Technique(
    "parallel.fsdp_plan.num_to_forward_prefetch, num_to_backward_prefetch",
    "1 or 2",
    "sharded parameters are gathered while the layer before computes",
    "npu",
)
_LESS_RECOMPUTE = Technique(
    "features.recompute_plan.apply_modules",
    "fewer modules",
    "their forward pass is not computed twice",
    "npu",
    costs_memory=True,
)
_LESS_CHECKPOINTING = Technique(
    "",
    "less activation checkpointing",
    "what it covers is computed twice",
    "other",
    costs_memory=True,
)
_ENCODER_SCALE = Technique(
    "encoder_micro_batch_scale",
    "larger",
    "the encoder takes several micro-batches at once (heterogeneous layout)",
    "space",
    costs_memory=True,
)
_ENCODER_SP = Technique(
    "encoder_sp_degree",
    "another",
    "the encoder splits its work differently from the decoder (heterogeneous layout)",
    "space",
)

# By what takes the time, the most promising first.
TECHNIQUES: Mapping[str, tuple[Technique, ...]] = {
    "data_loading": (
        Technique(
            "data.dataloader_param.num_workers",
            "more",
            "samples are decoded while the device computes",
            "npu",
        ),
        Technique(
            "data.dataloader_param.enable_preload: true",
            "",
            "the next batch is fetched early",
            "npu",
        ),
        Technique(
            "DataLoader(num_workers, prefetch_factor, pin_memory)",
            "more workers, pinned memory",
            "samples are decoded and copied while the device computes",
            "other",
        ),
        Technique("", "decode and resize media once, before training", "the same work every epoch"),
        Technique("", "keep the data on a local disk", "shared storage is slow in small reads"),
    ),
    "communication": (
        _LESS_SP,
        Technique(
            "sp_algorithm",
            "another",
            "ulysses moves least, ring hides its traffic behind attention, usp keeps the "
            "all-to-all inside a node",
            "space",
            _above("sp_degree", 1),
        ),
        Technique(
            "ulysses_degree",
            "another",
            "as large as the fast links reach, the ring over the slow ones",
            "space",
            _is("sp_algorithm", "usp"),
        ),
        _PREFETCH,
        Technique("", "larger gradient buckets, prefetched parameters", "hides traffic", "other"),
        _LARGER_MICRO_BATCH,
        _EQUAL_WORK,
        _ENCODER_SP,
        Technique(
            "parallel.fsdp_plan.reshard_after_forward: false",
            "",
            "the backward pass needs no second gather",
            "npu",
            costs_memory=True,
        ),
    ),
    "waiting": (
        _EQUAL_WORK,
        Technique(
            "--encoder-dp-balance, --use-data-balance",
            "",
            "images and sequences are spread evenly over ranks (Megatron backend)",
            "npu",
        ),
        _TASK_QUEUE,
        _CPU_AFFINITY,
        _NO_SYNCHRONISATION,
    ),
    "late": (_TASK_QUEUE, _CPU_AFFINITY, _NO_SYNCHRONISATION, _EQUAL_WORK),
    "one_rank": (
        Technique("", "profile all ranks, and look for the slow one", "the others wait for it"),
    ),
    "scheduling": (
        _LARGER_MICRO_BATCH,
        _LESS_SP,
        _TASK_QUEUE,
        _CPU_AFFINITY,
        _NO_SYNCHRONISATION,
        Technique("", "fused operators", "fewer kernels to launch"),
        Technique("", "torch.compile or CUDA graphs", "many kernels a launch", "other"),
        _ENCODER_SCALE,
        _LARGER_LOSS_CHUNK,
        _LESS_OFFLOAD,
    ),
    "optimizer": (
        Technique("torch_npu.optim.NpuFusedAdamW", "as the optimizer", "one kernel for all", "npu"),
        Technique("AdamW(fused=True)", "as the optimizer", "one kernel for all", "other"),
        Technique(
            "training.optimizer: adamw",
            "if it is adamw_swap",
            "states that fit need not be swapped",
            "npu",
            costs_memory=True,
        ),
        Technique("", "shard parameters over more ranks", "each rank updates its share only"),
    ),
    "post_processing": (
        _NO_SYNCHRONISATION,
        Technique("", "clip gradients with fused (foreach) kernels", "one pass over all of them"),
        Technique("", "reduce and log the loss every few steps", "each time all ranks meet"),
    ),
    "forward_backward": (
        _LARGER_MICRO_BATCH,
        _LESS_OFFLOAD,
        _LESS_RECOMPUTE,
        _LESS_CHECKPOINTING,
        _LIKE_LENGTHS,
        Technique("", "fused attention, normalisation and rotary embedding", "less memory traffic"),
        _LARGER_LOSS_CHUNK,
        _ENCODER_SP,
        _ENCODER_SCALE,
    ),
    "bubble": (
        Technique(
            "micro_batch_size",
            "smaller",
            "more micro-batches fill the pipeline",
            "space",
            _above("micro_batch_size", 1),
        ),
        Technique(
            "pipeline_num_layers",
            "fewer layers in the stage the others wait for",
            "all stages take equally long",
            "npu",
        ),
        Technique("--virtual-pipeline-model-parallel-size", "2 or more", "shorter bubbles", "npu"),
        Technique(
            "--hetero-parallel --hetero-encoder-mbs-scale",
            "",
            "encoder and decoder each with their own layout",
            "npu",
        ),
        _ENCODER_SP,
        _ENCODER_SCALE,
    ),
    "memory": (
        Technique(
            "loss_chunk_size",
            "on, or smaller",
            "never all logits of a sequence at once",
            "space",
        ),
        Technique("offload_blocks", "more", "their activations wait on the host", "space"),
        Technique("sp_degree", "larger", "each rank holds a part of the sequence", "space"),
        Technique(
            "micro_batch_size",
            "smaller",
            "fewer samples at once",
            "space",
            _above("micro_batch_size", 1),
        ),
        Technique(
            "features.enable_chunk_loss: true",
            "with chunkloss_plan.chunk_size 1024 or less",
            "never all logits of a sequence at once",
            "npu",
        ),
        Technique(
            "features.enable_activation_offload: true",
            "with features.recompute",
            "layer inputs wait on the host",
            "npu",
        ),
        Technique(
            "features.recompute_plan.apply_modules",
            "more modules",
            "their activations are computed again, not kept",
            "npu",
        ),
        Technique("", "activation checkpointing", "computed again, not kept", "other"),
    ),
    "headroom": (
        _LARGER_MICRO_BATCH,
        _LESS_OFFLOAD,
        _LARGER_LOSS_CHUNK,
        _LESS_SP,
        _LESS_RECOMPUTE,
        _LESS_CHECKPOINTING,
    ),
    "fragmentation": (
        Technique(
            "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
            "",
            "blocks grow instead of leaving holes",
            "npu",
        ),
        Technique(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "",
            "blocks grow instead of leaving holes",
            "other",
        ),
    ),
    "outside": (
        Technique(
            "HCCL_BUFFSIZE", "smaller", "every communicator keeps buffers of this size", "npu"
        ),
        Technique("", "fewer process groups", "each keeps buffers of its own"),
    ),
    "operators": (
        Technique("", "a fused or faster kernel for it", "it is where the device's time goes"),
        Technique("", "fewer, larger calls", "small shapes waste the device"),
    ),
    "layout": (
        Technique(
            "torch.npu.config.allow_internal_format = False",
            "",
            "tensors keep one format, so none is converted",
            "npu",
        ),
        Technique("", "one precision and one layout through the model", "no casts and copies"),
    ),
    "ai_cpu": (
        Technique("", "int32 instead of int64, no dynamic shapes", "AI cores lack these operators"),
        Technique("", "another operator for the same", "AI CPUs are many times slower"),
    ),
    "small_messages": (
        Technique("", "larger gradient buckets or FSDP units", "fewer messages, each larger"),
        _LARGER_MICRO_BATCH,
    ),
    "links": (
        Technique("", "check the card, cable and switch port of the link", "its like are faster"),
        Technique(
            "", "ranks that exchange most on one node", "what crosses the slow link gets less"
        ),
    ),
    "slow_rank": (
        Technique("", "check the rank's clock, temperature, and other processes", "like hardware"),
        _CPU_AFFINITY,
        _EQUAL_WORK,
    ),
    "slow_step": (
        Technique("", "profile after more warm-up steps", "first steps compile and allocate"),
        _LIKE_LENGTHS,
        _EQUAL_WORK,
    ),
}


def techniques(
    topic: str,
    device: str = "",
    parameters: Parameters | None = None,
    memory_is_full: bool = False,
) -> tuple[str, ...]:
    """What to try about `topic`, in words, the most promising first.

    Parameters that the space does not have, or that cannot move further, are left out.
    """
    return tuple(
        technique.text(parameters)
        for technique in TECHNIQUES[topic]
        if technique.fits(device, parameters) and not (memory_is_full and technique.costs_memory)
    )

"""Time of a global batch by cause, in seconds of a rank.

Sources: PaLM (arXiv 2204.02311, appendix B) for operations, DeepSpeed-Ulysses (2309.14509),
Ring Attention (2310.01889) and USP (2405.07719) for sequence parallelism, Megatron-LM
(2104.04473) for tensor parallelism and the pipeline's bubble, ZeRO (1910.02054) for gradients.
Messages cost a latency and their bytes over a bandwidth (Hockney 1994).
"""

from __future__ import annotations

import math

from autotune.predict.encoder_time import encoder_seconds, exchange_seconds
from autotune.predict.layout import Layout
from autotune.predict.lengths import PaddedLength, largest_of_normals, padded_length
from autotune.predict.machine import Machine
from autotune.predict.memory_terms import activation_bytes
from autotune.predict.operations import attention_operations, stack_operations
from autotune.predict.sp_traffic import ring_seconds, ulysses_seconds
from autotune.predict.workload import Workload

TIME_TERMS = (
    "compute",
    "attention",
    "padding",
    "imbalance",
    "bubble",
    "launch",
    "ulysses",
    "ring",
    "tensor_parallel",
    "update",
    "offload",
    "hidden",
    "loss_chunks",
    "encoder",
    "encoder_exchange",
)
# What is taken for granted of the terms before any run: traffic that compute hides costs little.
TIME_WEIGHTS = {"hidden": 0.1}

# Forward and backward of a block.
_KERNELS_A_LAYER = 60
# Merging a block of ring attention, and adding its gradients.
_KERNELS_A_RING_STEP = 20
_KERNELS_A_CHUNK = 12
# Adam reads weight, gradient and both moments and writes all but the gradient, in float32.
_UPDATE_BYTES = 28


def time_terms(workload: Workload, machine: Machine, layout: Layout) -> dict[str, float]:
    """Seconds by cause, in the order of `TIME_TERMS`; their sum is the batch time."""
    stack = workload.decoder
    padded = padded_length(
        stack.lengths, layout.micro_batch_size, layout.bucket_order, workload.window
    )
    linear, quadratic = _seconds_a_sample(workload, machine, layout)
    samples = layout.accumulation * layout.micro_batch_size
    compute = samples * linear * stack.lengths.mean
    padding = samples * linear * max(padded.mean - stack.lengths.mean, 0.0)
    attention = samples * quadratic * padded.mean_square
    launch = _launch_seconds(workload, machine, layout)
    imbalance = _imbalance(workload, layout, padded, linear, quadratic)
    bubble = (layout.pipeline_parallel - 1) / layout.accumulation
    hideable = compute + padding + attention
    offload, hidden_offload = _offload_seconds(workload, machine, layout, padded, hideable)
    ring, hidden_ring = ring_seconds(workload, machine, layout, padded.mean, attention)
    return {
        "compute": compute,
        "attention": attention,
        "padding": padding,
        "imbalance": imbalance,
        "bubble": bubble * (hideable + launch),
        "launch": launch,
        "ulysses": ulysses_seconds(workload, machine, layout, padded.mean),
        "ring": ring,
        "tensor_parallel": _tensor_parallel_seconds(workload, machine, layout, padded.mean),
        "update": _update_seconds(workload, machine, layout),
        "offload": offload,
        "hidden": hidden_offload + hidden_ring,
        "loss_chunks": _chunk_seconds(workload, machine, layout, padded.mean),
        "encoder": encoder_seconds(workload, machine, layout),
        "encoder_exchange": exchange_seconds(workload, machine, layout),
    }


def _seconds_a_sample(workload: Workload, machine: Machine, layout: Layout) -> tuple[float, float]:
    """Seconds of one sample: a position, and a position squared."""
    stack = workload.decoder
    head = 6 * workload.vocab_size * stack.hidden_size
    dense = stack_operations(stack, layout.layers, layout.recompute) + head
    quadratic = attention_operations(stack, layout.layers, layout.recompute)
    flops = machine.flops * layout.sp * layout.tensor_parallel
    return dense / flops, quadratic / flops


def _launch_seconds(workload: Workload, machine: Machine, layout: Layout) -> float:
    """The host's time to start kernels, which small micro-batches do not hide."""
    again = 4 / 3 if layout.recompute else 1
    kernels = again * _KERNELS_A_LAYER + (layout.ring - 1) * _KERNELS_A_RING_STEP
    started = layout.accumulation * layout.layers * kernels
    if workload.encoder is not None:
        started += layout.encoder_rounds * workload.encoder.num_layers * _KERNELS_A_LAYER
    return started * machine.kernel_s


def _imbalance(
    workload: Workload, layout: Layout, padded: PaddedLength, linear: float, quadratic: float
) -> float:
    """Waiting for the data-parallel group with the longest samples, where ranks meet.

    Sums of independent micro-batches are taken as normal, so that the slowest of n groups lies
    E[largest of n normals] deviations above the mean. Reordering gives groups like work.
    """
    if layout.bucket_order == "reordering":
        return 0.0
    meetings = 1.0
    if workload.encoder is not None:
        meetings = layout.encoder_rounds  # features are exchanged between all ranks
    if layout.shards > 1:
        meetings = layout.accumulation  # every rank gathers the same weights
    apart = math.sqrt(layout.accumulation / meetings)
    deviation = layout.micro_batch_size * padded.deviation(linear, quadratic)
    return meetings * apart * deviation * largest_of_normals(layout.data_parallel)


def _offload_seconds(
    workload: Workload,
    machine: Machine,
    layout: Layout,
    padded: PaddedLength,
    hideable: float,
) -> tuple[float, float]:
    """Traffic of offloaded activations that compute does not hide, and what it hides.

    A third of the offloaded blocks' compute is forward, which hides the way out; the rest hides
    the way back.
    """
    if layout.offloaded_layers == 0:
        return 0.0, 0.0
    stack = workload.decoder
    each = activation_bytes(stack, workload.bytes_per_element, layout.tensor_parallel, padded.mean)
    if layout.recompute:
        each = stack.hidden_size * workload.bytes_per_element
    positions = layout.accumulation * layout.micro_batch_size * padded.mean / layout.sp
    one_way = layout.offloaded_layers * positions * each / machine.host_bytes_s
    behind = hideable * layout.offloaded_layers / layout.layers if machine.overlaps else 0.0
    exposed = max(one_way - behind / 3, 0.0) + max(one_way - behind * 2 / 3, 0.0)
    return exposed, max(2 * one_way - exposed, 0.0)


def _tensor_parallel_seconds(
    workload: Workload, machine: Machine, layout: Layout, length: float
) -> float:
    """Four all-reduces of the hidden states a layer (Megatron-LM)."""
    ranks = layout.tensor_parallel
    if ranks == 1:
        return 0.0
    positions = layout.micro_batch_size * length / layout.sp
    message = positions * workload.decoder.hidden_size * workload.bytes_per_element
    each = machine.latency_s + 2 * (ranks - 1) / ranks * message / machine.link_bytes_s(ranks)
    return 4 * layout.layers * layout.accumulation * each


def _update_seconds(workload: Workload, machine: Machine, layout: Layout) -> float:
    """Reducing the gradients and updating the weights.

    Replicas reduce once a global batch, 2 (n-1)/n of the gradients; shards gather the weights
    twice and scatter the gradients once a micro-batch, 3 (n-1)/n (ZeRO, section 7).
    """
    own = workload.total_parameters / (layout.tensor_parallel * layout.pipeline_parallel)
    message = own * workload.bytes_per_element
    replicas = layout.data_parallel * layout.sp // layout.shards
    seconds = _UPDATE_BYTES * own / layout.shards / machine.memory_bytes_s
    if layout.shards > 1:
        share = 3 * (layout.shards - 1) / layout.shards
        each = share * message / machine.link_bytes_s(layout.shards)
        seconds += layout.accumulation * (each + 3 * layout.layers * machine.latency_s)
    if replicas > 1:
        share = 2 * (replicas - 1) / replicas / layout.shards
        seconds += share * message / machine.link_bytes_s(layout.world_size) + machine.latency_s
    return seconds


def _chunk_seconds(workload: Workload, machine: Machine, layout: Layout, length: float) -> float:
    """Each chunk starts its kernels, reads the head, and reads and writes its gradient."""
    if workload.vocab_size == 0 or layout.loss_chunk == 0:
        return 0.0
    local = length / layout.sp
    head = workload.vocab_size * workload.decoder.hidden_size * workload.bytes_per_element
    each = _KERNELS_A_CHUNK * machine.kernel_s
    each += 3 * head / layout.tensor_parallel / machine.memory_bytes_s
    return layout.accumulation * math.ceil(local / layout.loss_chunk) * each

"""What sequence parallelism sends, in seconds of a global batch."""

from __future__ import annotations

from autotune.predict.layout import Layout
from autotune.predict.machine import Machine
from autotune.predict.workload import Workload

# Queries, keys, values and the output, in forward and as gradients in backward.
_ALL_TO_ALLS = 8


def ulysses_seconds(workload: Workload, machine: Machine, layout: Layout, length: float) -> float:
    """Four all-to-alls a layer forward and four backward (DeepSpeed-Ulysses, section 3.2).

    length: padded positions of a sequence. Of its share a rank keeps 1/n and sends the rest.
    """
    ranks = layout.ulysses
    if ranks == 1:
        return 0.0
    stack = workload.decoder
    positions = layout.micro_batch_size * length / layout.sp
    width = 4 * stack.hidden_size + 4 * stack.kv_width  # all eight together
    sent = positions * width * workload.bytes_per_element * (ranks - 1) / ranks
    sent /= layout.tensor_parallel
    each = _ALL_TO_ALLS * machine.latency_s + sent / machine.link_bytes_s(ranks)
    return layout.accumulation * layout.layers * each


def ring_seconds(
    workload: Workload, machine: Machine, layout: Layout, length: float, attention: float
) -> tuple[float, float]:
    """Seconds of the ring that attention does not hide, and those that it hides.

    length: padded positions of a sequence. attention: the rank's seconds of attention in a
    global batch. Keys and values take n - 1 steps in forward and again in backward, their
    gradients n steps, the last of which nothing hides (Ring Attention, section 3). A step of
    forward hides behind 1/n of forward's attention, one of backward behind 1/n of backward's.
    """
    ranks = layout.ring
    if ranks == 1:
        return 0.0, 0.0
    runs = layout.accumulation * layout.layers
    positions = layout.micro_batch_size * length / layout.sp
    message = 2 * positions * workload.decoder.kv_width * workload.bytes_per_element
    message /= layout.tensor_parallel
    step = machine.latency_s + message / machine.link_bytes_s(layout.sp)
    behind = attention / runs / ranks if machine.overlaps else 0.0
    forward = max(step - behind / 3, 0.0)
    backward = max(2 * step - behind * 2 / 3, 0.0)
    exposed = (ranks - 1) * (forward + backward) + step
    total = (3 * (ranks - 1) + 1) * step
    return runs * exposed, runs * max(total - exposed, 0.0)

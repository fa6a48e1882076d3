"""Time of a vision-language model's encoder, in seconds of a global batch."""

from __future__ import annotations

from autotune.predict.layout import Layout
from autotune.predict.lengths import PaddedLength, padded_length
from autotune.predict.machine import Machine
from autotune.predict.operations import attention_operations, stack_operations
from autotune.predict.workload import Transformer, Workload


def encoder_seconds(workload: Workload, machine: Machine, layout: Layout) -> float:
    """Compute of the encoder; a round takes as long as a group that has at least one image."""
    encoder = workload.encoder
    if encoder is None:
        return 0.0
    padded = _round_lengths(encoder, layout)
    layers = encoder.num_layers
    linear = stack_operations(encoder, layers) * padded.mean
    quadratic = attention_operations(encoder, layers) * padded.mean_square
    images = layout.encoder_rounds * max(layout.encoder_images, 1.0)
    return images * (linear + quadratic) / (machine.flops * layout.encoder_sp)


def exchange_seconds(workload: Workload, machine: Machine, layout: Layout) -> float:
    """Features to the decoder's ranks and back, and the encoder's own Ulysses exchange."""
    encoder = workload.encoder
    if encoder is None or layout.world_size == 1:
        return 0.0
    padded = _round_lengths(encoder, layout)
    local = max(layout.encoder_images, 1.0) * padded.mean / layout.encoder_sp
    size = workload.bytes_per_element
    features = local * workload.decoder.hidden_size * size
    each = 2 * (machine.latency_s + features / machine.link_bytes_s(layout.world_size))
    if layout.encoder_sp > 1:
        message = 4 * local * encoder.hidden_size * size / machine.link_bytes_s(layout.encoder_sp)
        share = (layout.encoder_sp - 1) / layout.encoder_sp
        each += 2 * encoder.num_layers * (4 * machine.latency_s + share * message)
    return layout.encoder_rounds * each


def _round_lengths(encoder: Transformer, layout: Layout) -> PaddedLength:
    """Padded length of the images that an encoder group takes at once."""
    images = max(round(layout.encoder_images), 1)
    return padded_length(encoder.lengths, images, "none", None)

"""Peak memory of a rank by cause, in bytes.

The peak is reached where the loss is made, with everything alive that backward needs, or in
the backward of a block. Sources: Korthikanti et al. 2022 (arXiv 2205.05198) for activations,
ZeRO (arXiv 1910.02054) for states, Liger Kernel (arXiv 2410.10989) for the chunked loss.
"""

from __future__ import annotations

import math

from autotune.predict.layout import Layout
from autotune.predict.workload import Transformer, Workload

MEMORY_TERMS = ("states", "activations", "loss", "workspace", "encoder")

# ZeRO, section 3.1: weights, gradients, and Adam's copies and moments, whether in float32
# (4 + 4 + 8) or in mixed precision (2 + 2 + 12).
_STATE_BYTES = 16
# Logits, their log-softmax and its gradient, in float32.
_LOGIT_COPIES = 3
_LOGIT_BYTES = 4
# Blocks whose activations are on the device at once while they come back: one runs backward,
# its predecessor's are on their way.
_OFFLOAD_BUFFERS = 2


def memory_terms(workload: Workload, layout: Layout) -> dict[str, float]:
    """Bytes by cause, in the order of `MEMORY_TERMS`; their sum is the peak."""
    positions = layout.micro_batch_size * workload.decoder.lengths.most
    local = positions / layout.sp
    block = local * _block_bytes(workload, layout)
    # With recomputation a block keeps its input only, and makes the rest again in backward.
    width = workload.decoder.hidden_size * workload.bytes_per_element
    kept, again = (local * width, block) if layout.recompute else (block, 0.0)
    # The first stage of a 1F1B pipeline holds as many micro-batches as there are stages.
    in_flight = min(layout.pipeline_parallel, layout.accumulation)
    resident = (layout.layers - layout.offloaded_layers) * kept * in_flight
    loss = _loss_bytes(workload, layout, local)
    # Offloaded blocks come back when those that stayed are done with.
    returning = min(_OFFLOAD_BUFFERS, layout.offloaded_layers) * kept
    backward = resident + local * _gradient_bytes(workload, layout, held=False)
    if returning > 0:
        backward = max(backward, returning + local * _gradient_bytes(workload, layout, held=True))
    peak = max(resident + loss, backward + again)
    return {
        "states": _state_bytes(workload, layout),
        "activations": resident,
        "loss": loss,
        "workspace": peak - resident - loss,
        "encoder": _encoder_bytes(workload, layout),
    }


def activation_bytes(
    stack: Transformer, element_bytes: float, tensor_parallel: int = 1, sequence: float = 0.0
) -> float:
    """Bytes that one block keeps for backward, a position of a sequence.

    With dropout and attention's weights as a tensor: h (34 + 5 a s / h) for 2-byte elements and
    an MLP of 4 h, or h (10 + 24 / t + 5 a s / (h t)) under tensor parallelism.
    sequence: its positions, for attention's weights. Source: Korthikanti et al., section 4.
    """
    width = stack.hidden_size
    # Inputs of both norms, of the projection to queries, keys and values, and of the MLP.
    whole = 4 * width
    # Queries, keys and values, the input of attention's last projection, the MLP's inside.
    split = 2 * width + 2 * stack.kv_width + (3 if stack.gated else 2) * stack.ffn_size
    if stack.adaptive:
        # The norms' outputs before they are shifted, and what the gates scale (adaLN-Zero).
        whole += 4 * width
    masks = 2 * width if stack.dropout else 0
    weights = 0.0
    if stack.materialised:
        # The softmax; with dropout its mask (1 byte) and what is left of it.
        copies = 2 * element_bytes + 1 if stack.dropout else element_bytes
        weights = copies * stack.num_heads * sequence
    return whole * element_bytes + masks + (split * element_bytes + weights) / tensor_parallel


def _state_bytes(workload: Workload, layout: Layout) -> float:
    """ZeRO-3 where the layout shards: 16 bytes a parameter over all shards."""
    shares = layout.tensor_parallel * layout.pipeline_parallel * layout.shards
    return _STATE_BYTES * workload.total_parameters / shares


def _block_bytes(workload: Workload, layout: Layout) -> float:
    """What one block keeps without recomputation, a position."""
    stack, size = workload.decoder, workload.bytes_per_element
    kept = activation_bytes(stack, size, layout.tensor_parallel, stack.lengths.most)
    if layout.ulysses > 1:
        # Attention keeps its output by heads, the projection its input by positions.
        kept += stack.hidden_size * size / layout.tensor_parallel
    return kept


def _loss_bytes(workload: Workload, layout: Layout, local: float) -> float:
    """Logits of all positions; with chunks those of one, and the gradients made at once."""
    vocabulary = workload.vocab_size / layout.tensor_parallel
    each = _LOGIT_BYTES * vocabulary * layout.micro_batch_size
    sequence = local / layout.micro_batch_size
    if layout.loss_chunk == 0:
        return _LOGIT_COPIES * each * sequence
    # Logits turn into their gradient in place; the last chunk's lives until the next is made.
    copies = _LOGIT_COPIES if layout.loss_chunk < sequence else _LOGIT_COPIES - 1
    gradients = (vocabulary + local) * workload.decoder.hidden_size * workload.bytes_per_element
    has_head = workload.vocab_size > 0
    return copies * each * min(layout.loss_chunk, sequence) + (gradients if has_head else 0.0)


def _gradient_bytes(workload: Workload, layout: Layout, held: bool) -> float:
    """What a block's backward needs besides activations, a position: gradients and messages.

    held: all activations of the block stay until it is done, as offload's buffers do; else
    each is freed when it was used, so that the MLP's have made room when attention comes.
    """
    stack, tensor = workload.decoder, layout.tensor_parallel
    width, inside = stack.hidden_size, stack.ffn_size / tensor
    mlp = 2 * width + inside
    heads = (width + 2 * stack.kv_width) / tensor
    attention = width + heads
    if layout.ulysses > 1:
        attention += 2 * heads  # sent and received
    if layout.ring > 1:
        # Keys, values and their gradients, each sent and received at once, and a block's
        # gradients before they are added.
        attention += 8 * stack.kv_width / tensor + heads
    if held:
        mlp += inside
    else:
        attention -= 2 * width + (3 if stack.gated else 2) * inside
    return workload.bytes_per_element * max(mlp, attention)


def _encoder_bytes(workload: Workload, layout: Layout) -> float:
    """Activations of a round's images, and their features with gradients for the decoder."""
    encoder = workload.encoder
    if encoder is None:
        return 0.0
    longest = encoder.lengths.most
    images = max(math.ceil(layout.encoder_images), 1)
    local = images * longest / layout.encoder_sp
    each = activation_bytes(encoder, workload.bytes_per_element, 1, longest)
    projector = encoder.hidden_size + 2 * workload.decoder.hidden_size
    features = 3 * workload.decoder.hidden_size
    kept = encoder.num_layers * each + (projector + features) * workload.bytes_per_element
    return local * kept

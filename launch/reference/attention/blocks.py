"""Attention of one block of queries with one block of keys, per device.

The one pair of functions that ring attention is built from: forward returns the
log-sum-exp that merging blocks needs, backward takes the merged output and log-sum-exp.
Shapes: q (batch, heads, queries, head_dim), k and v (batch, heads, keys, head_dim),
out as q, lse float32 (batch, heads, queries). Scores are scaled by 1/sqrt(head_dim).
"""

from __future__ import annotations

import torch
from torch import Tensor

# The memory-efficient CUDA kernel pads the log-sum-exp to a multiple of this.
_CUDA_LSE_MULTIPLE = 32


def block_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """`(out, lse)`. causal needs as many keys as queries."""
    if q.device.type == "cpu":
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
        return out, lse
    if q.device.type == "cuda":
        return _cuda_forward(q, k, v, causal)
    return _npu_forward(q, k, v, causal)


def block_backward(
    grad_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; `out` and `lse` are those over all key blocks."""
    if q.device.type == "cpu":
        grads = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad_out, q, k, v, out, lse, 0.0, causal
        )
        return grads[0], grads[1], grads[2]
    if q.device.type == "cuda":
        return _cuda_backward(grad_out, q, k, v, out, lse, causal)
    return _npu_backward(grad_out, q, k, v, out, lse, causal)


def _cuda_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    # The memory-efficient kernel, because the flash kernel takes no float32. Not run so far.
    out, lse, _, _ = torch.ops.aten._scaled_dot_product_efficient_attention(
        q, k, v, None, True, 0.0, causal
    )
    return out, lse[..., : q.shape[2]].contiguous()


def _cuda_backward(
    grad_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    missing = -lse.shape[2] % _CUDA_LSE_MULTIPLE
    padded = torch.nn.functional.pad(lse, (0, missing), value=float("inf"))
    no_dropout = torch.zeros((), dtype=torch.int64)
    grads = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
        grad_out,
        q,
        k,
        v,
        None,
        out,
        padded,
        no_dropout,
        no_dropout,
        0.0,
        [True, True, True, False],
        causal,
    )
    return grads[0], grads[1], grads[2]


def _npu_mask(q: Tensor, causal: bool) -> Tensor | None:
    if not causal:
        return None
    size = q.shape[2]
    return torch.ones(size, size, dtype=torch.bool, device=q.device).triu(1)


def _npu_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    # npu_fusion_attention gives the softmax's maximum and sum, each repeated 8 times over
    # a last dimension. Not run so far.
    import torch_npu

    out, maximum, total = torch_npu.npu_fusion_attention(
        q, k, v, q.shape[1], "BNSD", atten_mask=_npu_mask(q, causal), scale=q.shape[-1] ** -0.5
    )[:3]
    return out, (maximum + total.log())[..., 0].contiguous()


def _npu_backward(
    grad_out: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    import torch_npu

    # A maximum of lse with a sum of one is the same softmax.
    maximum = lse.unsqueeze(-1).expand(*lse.shape, 8).contiguous()
    grads = torch_npu.npu_fusion_attention_grad(
        q,
        k,
        v,
        grad_out,
        q.shape[1],
        "BNSD",
        atten_mask=_npu_mask(q, causal),
        softmax_max=maximum,
        softmax_sum=torch.ones_like(maximum),
        attention_in=out,
        scale_value=q.shape[-1] ** -0.5,
    )
    return grads[0], grads[1], grads[2]

"""Cross entropy of the vocabulary head without all logits at once.

The gradient with respect to the logits is known as soon as the logits are, so each chunk
of the sequence is taken forward and backward before the next one; only the gradients of
the hidden states and of the head's weight outlive it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from launch.reference.data.labels import IGNORED


def token_loss(hidden: Tensor, weight: Tensor, labels: Tensor, chunk: int) -> Tensor:
    """Sum of the token losses.

    hidden: (batch, positions, hidden_size); weight: (vocab_size, hidden_size);
    labels: (batch, positions) int64, IGNORED where there is none.
    chunk: positions whose logits exist at once; 0 for all, in plain autograd.
    """
    if chunk == 0:
        logits = functional.linear(hidden, weight)
        return functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
        )
    loss: Tensor = ChunkedCrossEntropy.apply(hidden, weight, labels, chunk)
    return loss


class ChunkedCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    """`token_loss` by chunks of the sequence."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, chunk: int) -> Tensor:
        """The loss; also makes both gradients."""
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, hidden.shape[1], chunk):
            part = slice(start, start + chunk)
            rows = hidden[:, part].flatten(0, 1)
            grad_logits = _loss_and_gradient(rows @ weight.T, labels[:, part].flatten(), loss)
            grad_hidden[:, part] = (grad_logits @ weight).view_as(grad_hidden[:, part])
            grad_weight.addmm_(grad_logits.T, rows)
        ctx.save_for_backward(grad_hidden, grad_weight)
        return loss

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Scales what forward has made, in place: it is used once."""
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden.mul_(grad_loss), grad_weight.mul_(grad_loss), None, None


def _loss_and_gradient(logits: Tensor, labels: Tensor, loss: Tensor) -> Tensor:
    """Adds the chunk's loss to `loss`; the gradient takes the place of the logits."""
    valid = labels != IGNORED
    targets = labels.clamp_min(0).unsqueeze(1)
    log_total = torch.logsumexp(logits, dim=1, keepdim=True)
    token_losses = (log_total - logits.gather(1, targets)).squeeze(1)
    loss += (token_losses * valid).sum()
    gradient = logits.sub_(log_total).exp_()
    gradient.scatter_add_(1, targets, torch.full_like(log_total, -1.0))
    return gradient.mul_(valid.unsqueeze(1))

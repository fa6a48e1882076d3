"""The chunked loss is the plain loss, for any chunk."""

from __future__ import annotations

import pytest
import torch

from launch.reference.chunked_loss import IGNORED, token_loss


@pytest.mark.parametrize("chunk", [1, 4, 7, 13, 100])
def test_chunks_give_the_loss_and_gradients_of_plain_cross_entropy(chunk):
    torch.manual_seed(0)
    labels = torch.randint(0, 11, (2, 13))
    labels[0, :5] = IGNORED
    results = []
    for size in (0, chunk):
        torch.manual_seed(1)
        hidden = torch.randn(2, 13, 8, requires_grad=True)
        weight = torch.randn(11, 8, requires_grad=True)
        loss = token_loss(hidden, weight, labels, size)
        (0.3 * loss).backward()
        results.append((loss.detach(), hidden.grad, weight.grad))
    for plain, chunked in zip(*results, strict=True):
        torch.testing.assert_close(chunked, plain, rtol=1e-5, atol=1e-6)

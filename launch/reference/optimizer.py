"""AdamW over flat buffers.

All parameters are views of one flat tensor and their gradients of another, so that
gradients are reduced in place, in buckets, and the update needs few operators.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from launch.reference.collectives import Collectives
from launch.reference.config import TrainingConfig
from launch.reference.parallel import Group

# Elements a bucket: of one all-reduce, and of the optimizer's temporaries.
BUCKET_ELEMENTS = 1 << 20
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class FlatParameters:
    """A model's parameters and gradients, each in one flat tensor."""

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self.values = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.gradients = torch.zeros_like(self.values)
        offset = 0
        for parameter in parameters:
            part = slice(offset, offset + parameter.numel())
            parameter.data = self.values[part].view(parameter.shape)
            parameter.grad = self.gradients[part].view(parameter.shape)
            offset = part.stop

    def reduce_gradients(self, collectives: Collectives, world: Group) -> None:
        """Sums the gradients over all ranks, a bucket after the other."""
        for bucket in self.gradients.split(BUCKET_ELEMENTS):
            collectives.all_reduce_sum(bucket, world)

    def clip_gradients(self, max_norm: float) -> float:
        """Scales the gradients so that their global norm is at most `max_norm`.

        Returns the norm before, the same on all ranks; it is not finite where a gradient is
        not, which scaling does not mend.
        """
        norm = torch.linalg.vector_norm(self.gradients)
        self.gradients.mul_((max_norm / (norm + 1e-6)).clamp_max(1.0))
        return float(norm)


class AdamW:
    """Adam with decoupled weight decay (arXiv 1711.05101)."""

    def __init__(self, parameters: FlatParameters, config: TrainingConfig) -> None:
        self._parameters = parameters
        self._config = config
        self._first = torch.zeros_like(parameters.values)
        self._second = torch.zeros_like(parameters.values)
        self._steps = 0

    def step(self) -> None:
        """Updates the parameters and sets the gradients to zero."""
        self._steps += 1
        buckets = zip(
            self._parameters.values.split(BUCKET_ELEMENTS),
            self._parameters.gradients.split(BUCKET_ELEMENTS),
            self._first.split(BUCKET_ELEMENTS),
            self._second.split(BUCKET_ELEMENTS),
            strict=True,
        )
        for values, gradients, first, second in buckets:
            self._update(values, gradients, first, second)
        self._parameters.gradients.zero_()

    def skip(self) -> None:
        """Sets the gradients to zero and leaves the parameters as they are."""
        self._parameters.gradients.zero_()

    def _update(self, values: Tensor, gradients: Tensor, first: Tensor, second: Tensor) -> None:
        beta1, beta2 = _BETAS
        rate = self._config.learning_rate
        first.lerp_(gradients, 1 - beta1)
        second.mul_(beta2).addcmul_(gradients, gradients, value=1 - beta2)
        scale = (second / (1 - beta2**self._steps)).sqrt_().add_(_EPSILON)
        values.mul_(1 - rate * self._config.weight_decay)
        values.addcdiv_(first, scale, value=-rate / (1 - beta1**self._steps))

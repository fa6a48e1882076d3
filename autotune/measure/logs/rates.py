"""Rates that programs print in place of times, and the times that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Counted(StrEnum):
    """What a rate counts."""

    SAMPLES = "samples"
    TOKENS = "tokens"
    STEPS = "steps"


@dataclass(frozen=True)
class Batch:
    """What is known beforehand of one global batch.

    samples, tokens: in the whole batch. devices: that work on it together.
    """

    samples: int | None = None
    tokens: int | None = None
    devices: int | None = None

    def __post_init__(self) -> None:
        for name in ("samples", "tokens", "devices"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} of a batch is {value!r}; give at least 1, or None")


UNKNOWN_BATCH = Batch()


@dataclass(frozen=True)
class Rate:
    """How much was done in a second, by all devices together or by each."""

    per_s: float
    of: Counted
    per_device: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.per_s < math.inf:
            raise ValueError(f"{self.per_s!r} {self.of} a second is no rate; give more than 0")

    def seconds(self, batch: Batch) -> float | None:
        """Seconds of one global batch, None where too little is known of it."""
        per_batch = self._per_batch(batch)
        devices = batch.devices if self.per_device else 1
        if per_batch is None or devices is None:
            return None
        return per_batch / (self.per_s * devices)

    def _per_batch(self, batch: Batch) -> int | None:
        if self.of is Counted.STEPS:
            return 1
        return batch.samples if self.of is Counted.SAMPLES else batch.tokens

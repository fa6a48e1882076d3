"""What makes two sweeps the same study, and what differs when they are not.

Results may be mixed only while space, model, trainer, cluster layout, limit, measurement
and environment are the same. How the space is searched may change between two starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.config.schema import Config, TrainerConfig
from autotune.space.point import canonical, plain

_ABSENT = object()


@dataclass(frozen=True)
class Identity:
    """parts: what must stay the same, by part. environment: versions, as probed."""

    parts: Mapping[str, Any]
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, config: Config, environment: Mapping[str, Any]) -> Identity:
        """The identity of a sweep with this configuration in this environment."""
        cluster, placement = config.cluster, config.cluster.placement
        parts = {
            "space": config.space,
            "model": {
                "name": config.model.name,
                "dims": config.model.dims,
                "base": config.model.base,
            },
            "trainer": _trainer(config.trainer),
            "cluster": {
                "device": placement.device,
                "devices_per_trial": cluster.devices_per_trial,
                "nodes_per_trial": cluster.nodes_per_trial,
                "device_memory": cluster.device_memory,
            },
            "memory": {"limit": config.memory.limit},
            "measure": {
                "warmup_steps": config.measure.warmup_steps,
                "min_steps": config.measure.min_steps,
                "max_steps": config.measure.max_steps,
            },
        }
        return cls(parts, dict(environment))

    @property
    def space_hash(self) -> str:
        """Short hash of parameters, constraints and baseline."""
        return _hash(self.parts["space"])

    @property
    def fingerprint(self) -> str:
        """Short hash of the environment, kept with every trial."""
        return _hash(self.environment)

    def to_data(self) -> dict[str, Any]:
        """As it is kept in the study's `config.yaml`."""
        return {
            "space_hash": self.space_hash,
            "fingerprint": self.fingerprint,
            "environment": dict(self.environment),
            "parts": dict(self.parts),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Identity:
        """From what `to_data` gave."""
        return cls(data["parts"], data["environment"])


# Versions of what these lead to are part of the environment.
_PROBED = ("python", "root", "setup")


def _trainer(trainer: TrainerConfig) -> dict[str, Any]:
    """What results depend on; keys that a trainer does not use are not among it."""
    plain_one = TrainerConfig(trainer.name)
    values = {
        key: value
        for key, value in vars(trainer).items()
        if key not in _PROBED and value != getattr(plain_one, key)
    }
    if trainer.sources:
        values["sources"] = {name: _hash(text) for name, text in trainer.sources.items()}
    return {"name": trainer.name, **values}


@dataclass(frozen=True)
class Difference:
    """One value that changed between two identities."""

    key: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.key}: was {self.old}, is now {self.new}"


def differences(old: Identity, new: Identity) -> list[Difference]:
    """Every value in which the two differ, by its dotted key."""
    before = {**old.parts, "environment": old.environment}
    after = {**new.parts, "environment": new.environment}
    return _compare("", before, after)


def _compare(key: str, old: Any, new: Any) -> list[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        prefix = f"{key}." if key else ""
        return [
            difference
            for name in names
            for difference in _compare(
                f"{prefix}{name}", old.get(name, _ABSENT), new.get(name, _ABSENT)
            )
        ]
    if _show(old) == _show(new):
        return []
    return [Difference(key, _show(old), _show(new))]


def _show(value: Any) -> str:
    return "absent" if value is _ABSENT else plain(value)


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()[:16]

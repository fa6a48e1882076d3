"""Runs of which everything about memory is known, and the gate after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna

from autotune.search.encoding import Encoding
from autotune.search.gate import MemoryGate, MemoryGatekeeper
from autotune.search.guided.belief import Knowledge
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

LIMIT = 1000.0
HINTED: dict[str, Any] = {
    "batch": {"choices": [1, 2, 4, 8], "ordered": True, "memory": "increases"},
    "split": {"choices": [1, 2, 4], "ordered": True, "memory": "decreases"},
    "order": {"choices": ["none", "bucketed"]},
    "kernel": {"choices": [16, 32, 64], "ordered": True},
}
# (point, status, peak in bytes); a peak only where the run told one.
Run = tuple[Mapping[str, Any], str, float | None]


def gate_of(
    space: LegalSpace, runs: Sequence[Run], knowledge: Knowledge | None = None, seed: int = 0
) -> MemoryGate:
    encoding = Encoding(space)
    return MemoryGatekeeper(encoding, knowledge or Knowledge(LIMIT), seed).gate(
        [trial(encoding, number, run) for number, run in enumerate(runs)]
    )


def trial(
    encoding: Encoding, number: int, run: Run, time_s: float = 1.0
) -> optuna.trial.FrozenTrial:
    point, status, peak = run
    params = encoding.encode(point)
    timed = status in ("ok", "over_limit", "stopped")
    made = optuna.trial.create_trial(
        params=params,
        distributions={name: encoding.distributions[name] for name in params},
        value=time_s,
        constraints={"memory": 0.0},
        user_attrs={"status": status, "measured": timed, "peak_memory_bytes": peak},
    )
    made.number = number
    return made


def refused(gate: MemoryGate, space: LegalSpace) -> set[Point]:
    return {space.point(int(row)) for row in np.flatnonzero(gate.refused(space.codes))}


def point(**values: Any) -> Point:
    return Point({"batch": 1, "split": 1, "order": "none", "kernel": 16, **values})


PLANTED: dict[str, Any] = {
    "batch": {"choices": [1, 2, 4, 8], "ordered": True},
    "split": {"choices": [1, 2, 4, 8], "ordered": True},
    "order": {"choices": ["none", "bucketed", "sorted"]},
    "blocks": {"choices": [0, 1, 2, 3], "ordered": True},
}


def planted_peak(p: Mapping[str, Any]) -> float:
    """Bytes: states, and activations that the sequence split and offloaded blocks make smaller."""
    return 150 + 420 * p["batch"] / p["split"] * (1 - 0.2 * p["blocks"])


def planted_run(p: Mapping[str, Any]) -> Run:
    peak = planted_peak(p)
    if peak > 1.5 * LIMIT:
        return p, "oom", LIMIT
    return p, "ok" if peak <= LIMIT else "over_limit", peak


def of_planted(**values: Any) -> Point:
    return Point({"batch": 1, "split": 1, "order": "none", "blocks": 0, **values})

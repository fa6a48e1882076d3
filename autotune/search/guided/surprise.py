"""Runs that took longer than what is like them leads one to expect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotune.search.guided.belief import Knowledge
from autotune.search.guided.compression import Compression
from autotune.search.guided.geometry import Codes, Floats, Geometry
from autotune.search.guided.history import of_times
from autotune.search.guided.time_model import fit_time, left_out_times

# Before it is looked at, so many runs are taken to have been disturbed, by factors between
# these, each as likely as the other on a logarithmic scale.
_DISTURBED_SHARE = 0.1
_FACTORS = np.geomspace(1.15, 2.5, 12)
_LEAST_RUNS = 3


@dataclass(frozen=True)
class Surprise:
    """Of each run.

    disturbed: probability (runs,) that something slowed it down. hides_best: probability
    (runs,) of that, and that without it the point would be among the fastest.
    """

    disturbed: Floats
    hides_best: Floats


def surprise(
    geometry: Geometry, rows: Codes, seconds: Floats, near_s: float, knowledge: Knowledge
) -> Surprise:
    """Of runs with a time, (runs,) seconds; near_s: a point this fast would matter."""
    if len(seconds) < _LEAST_RUNS:
        return Surprise(np.zeros(len(seconds)), np.zeros(len(seconds)))
    history = of_times(rows, seconds)
    compression = Compression.of(np.log(seconds))
    mean, deviation = left_out_times(fit_time(geometry, history, knowledge), history, knowledge)
    logs = np.log(seconds)
    undisturbed = compression(logs[:, None] - np.log(_FACTORS))
    likely = _density(undisturbed, mean[:, None], deviation[:, None]) / len(_FACTORS)
    as_it_is = _density(compression(logs), mean, deviation)
    weight = _DISTURBED_SHARE * likely
    total = weight.sum(axis=1) + (1 - _DISTURBED_SHARE) * as_it_is
    matters = logs[:, None] - np.log(_FACTORS) <= np.log(near_s)
    return Surprise(weight.sum(axis=1) / total, (weight * matters).sum(axis=1) / total)


def _density(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Of normal distributions, elementwise; never 0, so that shares can be taken."""
    away = (values - mean) / deviation
    return np.asarray(np.exp(-0.5 * away**2) / deviation + 1e-300)

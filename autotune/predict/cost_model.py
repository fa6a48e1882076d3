"""Predicted terms of time and memory for the points of a space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.predict.calibrated import prior_weights
from autotune.predict.layout import Layout
from autotune.predict.machine import Machine
from autotune.predict.memory_terms import MEMORY_TERMS, memory_terms
from autotune.predict.settings import fixed_settings, understood
from autotune.predict.time_terms import TIME_TERMS, TIME_WEIGHTS, time_terms
from autotune.predict.workload import Workload
from autotune.space.definition import Facts
from autotune.space.legal import LegalSpace

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]


@dataclass(frozen=True)
class CostModel:
    """What physics says of a space's points, up to the weights of its terms.

    columns: of the parameters that are understood, by their place among the codes: the setting
    that each is, and what its choices mean. fixed: settings that no parameter varies.
    """

    workload: Workload
    machine: Machine
    columns: Mapping[int, tuple[str, tuple[Any, ...]]]
    fixed: Mapping[str, Any]

    @classmethod
    def of(
        cls, space: LegalSpace, facts: Facts, base: Mapping[str, Any] | None = None
    ) -> CostModel | None:
        """The model of a space, None where nothing can be said of it.

        facts: `model` and `cluster`, as rules read them. base: what the user's files say of
        parameters that a point may leave out. Raises UserError for a figure that cannot be.
        """
        workload = Workload.from_facts(facts)
        found = {i: understood(parameter) for i, parameter in enumerate(space.parameters)}
        columns = {index: meaning for index, meaning in found.items() if meaning is not None}
        if workload is None or not columns:
            return None
        fixed = {**fixed_settings(base or {}), **fixed_settings(facts.get("model", {}))}
        return cls(workload, Machine.from_facts(facts), columns, fixed)

    @property
    def time_prior(self) -> Floats:
        """Weights of the terms of time before any run, (terms,)."""
        return prior_weights(TIME_TERMS, TIME_WEIGHTS)

    @property
    def memory_prior(self) -> Floats:
        """Weights of the terms of memory before any run, (terms,)."""
        return prior_weights(MEMORY_TERMS, {})

    def time_terms(self, codes: Codes) -> Floats:
        """Seconds by cause, (points, TIME_TERMS), of rows of codes as in `LegalSpace.codes`."""
        return self._rows(
            codes, lambda layout: time_terms(self.workload, self.machine, layout), len(TIME_TERMS)
        )

    def memory_terms(self, codes: Codes) -> Floats:
        """Bytes by cause, (points, MEMORY_TERMS), of rows of codes as in `LegalSpace.codes`."""
        return self._rows(
            codes, lambda layout: memory_terms(self.workload, layout), len(MEMORY_TERMS)
        )

    def layout(self, row: Codes) -> Layout:
        """The layout of one row of codes."""
        settings = dict(self.fixed)
        for index, (setting, values) in self.columns.items():
            if row[index] >= 0:  # else the parameter is inactive
                settings[setting] = values[row[index]]
        return Layout.of(settings, self.workload, self.machine.world_size)

    def _rows(
        self, codes: Codes, terms: Callable[[Layout], dict[str, float]], width: int
    ) -> Floats:
        """The terms of each distinct combination of what is understood, dealt to its rows."""
        key = np.zeros(len(codes), dtype=np.int64)
        for index, (_, values) in self.columns.items():
            key = key * (len(values) + 1) + codes[:, index] + 1
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        distinct = [list(terms(self.layout(codes[row])).values()) for row in first]
        rows: Floats = np.array(distinct, dtype=float).reshape(len(first), width)[inverse]
        return rows

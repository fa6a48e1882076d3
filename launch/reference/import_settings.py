"""Environment variables that the libraries of the reference trainer read when they are imported."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULTS: Mapping[str, str] = {
    # Several ranks share a host's cores; more threads than cores ruin speed and repeats.
    "OMP_NUM_THREADS": "1",
    # numpy's own, which start with its import: it only makes data, and threads hinder a fork.
    "OPENBLAS_NUM_THREADS": "1",
    # Huge pages for large tensors: fewer page faults where memory goes back when freed.
    "THP_MEM_ALLOC_ENABLE": "1",
    # The profiler behind the memory meter says on stderr when it starts and stops.
    "KINETO_LOG_LEVEL": "99",
}
"""Their values where the user has set none."""


def with_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Each of the variables, as the environment has it or else by default."""
    return {name: environment.get(name, value) for name, value in DEFAULTS.items()}

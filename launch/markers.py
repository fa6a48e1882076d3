"""Environment variables by which the processes of a sweep are recognised in `/proc`.

Every process inherits them from its parent, so they find what no list of process
ids would hold: Ray's daemons, data loader workers, whatever a rank starts.
"""

from __future__ import annotations

SWEEP = "AUTOTUNE_SWEEP"
"""The sweep that a process belongs to: a random id."""

TRIAL = "AUTOTUNE_TRIAL"
"""The launch that a supervisor and its ranks belong to: `<sweep>/<number of the launch>`."""

SHORT_RUN = "AUTOTUNE_SHORT_RUN"
"""A program that is asked something before a sweep, such as a setup script: a random id."""

ROLE = "AUTOTUNE_ROLE"
"""`supervisor` in a supervisor's own environment; ranks do not have it."""

SUPERVISOR_ROLE = "supervisor"


def launch_marker(sweep: str, number: int) -> str:
    """The value of `TRIAL` for a sweep's launch with a number of its own."""
    return f"{sweep}/{number}"

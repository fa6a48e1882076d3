"""Which rank a line is from, as far as what it begins with tells."""

from __future__ import annotations

import re

# `[Rank 3 | Local Rank 1]`, `[rank0]:`, `rank-7/8`; `[default3]:` of torchrun; `3:` of srun.
# A local rank names no process where there are several nodes.
_LABEL = re.compile(
    r"(?<![\w-])(?<!local )(?:global_)?rank[\s_:=-]*(?P<rank>\d+)"
    r"|\[(?P<role>[a-z_]+)(?P<number>\d+)\]:"
    r"|^\s*(?P<task>\d+):\s",
    re.IGNORECASE,
)
_RANK = re.compile(r"rank (\d+)")


def label_of(prefix: str) -> str | None:
    """The label in the text before what a line says, the nearest to it where there are several."""
    label = None
    for match in _LABEL.finditer(prefix):
        if match["rank"]:
            label = f"rank {int(match['rank'])}"
        else:
            label = f"{(match['role'] or 'task').lower()} {int(match['number'] or match['task'])}"
    return label


def rank_of(label: str | None) -> int | None:
    """The global rank that a label names, None where it names none."""
    match = _RANK.fullmatch(label or "")
    return int(match[1]) if match else None

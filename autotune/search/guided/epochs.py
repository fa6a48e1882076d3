"""When models are fitted anew: what takes long is worked out only now and then."""

from __future__ import annotations


def epoch_start(runs: int) -> int:
    """The largest number of runs, up to this one, at which an epoch begins."""
    start = 0
    while True:
        following = start + min(max(1, start // 12), 32)
        if following > runs:
            return start
        start = following

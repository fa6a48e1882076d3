"""One rank that speaks for all: programs of which not every rank records its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autotune.measure.records import RankRecords


def spoken_for_all(
    ranks: Sequence[RankRecords], printed: Sequence[RankRecords]
) -> list[RankRecords]:
    """The ranks, where those that recorded no step have the steps of one that did.

    printed: what the processes' lines said, a value a node. It counts where no rank recorded a
    step: the same step would be told twice. Memory is each rank's own, where it is told. What is
    wrong with the lines counts as said by the first rank.
    """
    is_recorded = any(rank.steps for rank in ranks)
    voices = ranks if is_recorded else printed
    voice = max(voices, key=lambda one: len(one.steps), default=None)
    if voice is None:
        return list(ranks)
    spoken = [
        replace(rank, started=True, steps=rank.steps or voice.steps)
        for rank in with_own_memory(ranks, printed)
    ]
    if not is_recorded and voice.errors:
        spoken[0] = replace(spoken[0], errors=(*spoken[0].errors, *voice.errors))
    return spoken


def with_own_memory(
    ranks: Sequence[RankRecords], printed: Sequence[RankRecords] = ()
) -> list[RankRecords]:
    """The ranks, each with what was told of its memory in any file of records."""
    memory = [one for source in (*ranks, *printed) for one in source.memory]
    return [
        replace(rank, memory=tuple(one for one in memory if one.rank == rank.rank))
        for rank in ranks
    ]

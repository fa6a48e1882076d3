"""Process groups of a layout."""

from __future__ import annotations

from dataclasses import dataclass

import torch.distributed as dist

from launch.reference.layout import Layout


@dataclass(frozen=True)
class Group:
    """Ranks that talk to each other. `handle` is None for a group of one."""

    ranks: tuple[int, ...]
    index: int
    handle: dist.ProcessGroup | None

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)


@dataclass(frozen=True)
class Groups:
    """The groups that one rank belongs to."""

    rank: int
    world: Group
    ulysses: Group
    ring: Group
    encoder: Group


class GroupFactory:
    """Makes groups, each set of ranks once. Every rank makes the same calls in order."""

    def __init__(self, rank: int, world_size: int) -> None:
        self._rank = rank
        self._world_size = world_size
        self._made: dict[tuple[int, ...], dist.ProcessGroup | None] = {}

    def make(self, partition: list[tuple[int, ...]]) -> Group:
        """This rank's group of a partition of all ranks. Collective."""
        for ranks in partition:
            if ranks not in self._made:
                self._made[ranks] = self._open(ranks)
        mine = next(ranks for ranks in partition if self._rank in ranks)
        return Group(mine, mine.index(self._rank), self._made[mine])

    def _open(self, ranks: tuple[int, ...]) -> dist.ProcessGroup | None:
        if len(ranks) == 1:
            return None
        if len(ranks) == self._world_size:
            return dist.group.WORLD
        return dist.new_group(list(ranks))


def make_groups(layout: Layout, factory: GroupFactory, rank: int) -> Groups:
    """All groups of a layout. Collective over the world."""
    world, split = layout.world_size, layout.split
    starts = range(0, world, layout.sp)
    ulysses = [
        tuple(range(start, start + split.ulysses)) for start in range(0, world, split.ulysses)
    ]
    ring = [
        tuple(range(start + index, start + layout.sp, split.ulysses))
        for start in starts
        for index in range(split.ulysses)
    ]
    degree = layout.encoder_split.degree
    encoder = [tuple(range(start, start + degree)) for start in range(0, world, degree)]
    return Groups(
        rank=rank,
        world=factory.make([tuple(range(world))]),
        ulysses=factory.make(ulysses),
        ring=factory.make(ring),
        encoder=factory.make(encoder),
    )

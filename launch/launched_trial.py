"""What the launcher keeps of a trial while it runs, and how its nodes' ends become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.ports import EndKind, RankExit, TrialEnd, TrialRequest
from launch.node_job import NodeEnd


@dataclass
class LaunchedTrial:
    """A trial with one actor a node; `runs` maps the reference of a node's run to the node."""

    request: TrialRequest
    marker: str
    started_at: float
    actors: list[Any]
    meeting: Any
    runs: dict[Any, int]
    group: Any = None
    placed: bool = False
    stopping: bool = False
    ends: dict[int, NodeEnd] = field(default_factory=dict)
    causes: list[int] = field(default_factory=list)

    def note_end(self, node: int, end: NodeEnd) -> None:
        """Takes the end of one node into account."""
        self.ends[node] = end
        self.causes.append(node)

    @property
    def is_over(self) -> bool:
        """Whether every node has ended."""
        return len(self.ends) == self.request.placement.nodes

    @property
    def was_lost(self) -> bool:
        """Whether an actor, a supervisor or a node was lost on the way."""
        return any(end.kind is EndKind.LOST for end in self.ends.values())


def combine(trial: LaunchedTrial, ended_at: float) -> TrialEnd:
    """The trial's end: the first bad end of a node explains the others, which it caused."""
    end = first_cause([trial.ends[node] for node in trial.causes], trial.stopping)
    return TrialEnd(
        trial=trial.request.trial,
        kind=end.kind,
        reason=end.reason,
        started_at=trial.started_at,
        ended_at=ended_at,
        exits=_exits(trial.ends),
    )


def first_cause(in_order: list[NodeEnd], stopping: bool) -> NodeEnd:
    """The end that stands for all, from the nodes' ends in the order in which they came."""
    if stopping and any(end.kind is not EndKind.FINISHED for end in in_order):
        return NodeEnd(EndKind.STOPPED, "the trial was stopped")
    bad = [end for end in in_order if end.kind is not EndKind.FINISHED]
    return bad[0] if bad else in_order[0]


def _exits(ends: Mapping[int, NodeEnd]) -> tuple[RankExit, ...]:
    exits = [one for end in ends.values() for one in end.exits]
    return tuple(sorted(exits, key=lambda one: one.rank))

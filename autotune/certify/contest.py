"""The finalists and the baseline, run again in turns.

Runs are interleaved (A B C, C B A, ...) so that a machine that changes meanwhile changes for
all of them alike, and points are compared by the ratio of their times within a round. Where the
devices hold several runs at once, they go on side by side: machines that differ widen the interval
then, and favour nobody, since who runs where changes from round to round.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.certify.standing import undisturbed
from autotune.measure.spread import RunSpread
from autotune.measure.student import student_t_975
from autotune.measure.timing import Speedup
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role

_ATTEMPTS = 2


@dataclass(frozen=True)
class ContestRules:
    """How long finalists run against each other.

    min_rounds, max_rounds: runs of each. precision: half of the 95 % interval of a ratio that
    is narrow enough to call two points equal.
    """

    min_rounds: int = 3
    max_rounds: int = 6
    precision: float = 0.05


@dataclass(frozen=True)
class Contest:
    """points: who takes part, the baseline first where it can run. runs: by point and round."""

    points: tuple[Point, ...]
    runs: Mapping[Point, Mapping[int, Repeat]]
    lost: Mapping[tuple[Point, int], int]
    spread: RunSpread

    @classmethod
    def of(cls, points: Sequence[Point], repeats: Sequence[Repeat], spread: RunSpread) -> Contest:
        """The contest of these points, as far as it has been run."""
        key = contest_key(points)
        runs: dict[Point, dict[int, Repeat]] = {point: {} for point in points}
        lost: dict[tuple[Point, int], int] = {}
        for repeat in repeats:
            if repeat.role is not Role.CERTIFY or repeat.contest != key:
                continue
            place = (repeat.record.parameters, repeat.round)
            if place[0] not in runs:
                continue  # a line that somebody has edited
            if repeat.record.status.may_retry:
                lost[place] = lost.get(place, 0) + 1
            else:
                runs[place[0]][place[1]] = repeat
        return cls(tuple(points), runs, lost, spread)

    @property
    def key(self) -> str:
        """Names the contest in `repeats.jsonl`."""
        return contest_key(self.points)

    def times(self, point: Point) -> dict[int, float]:
        """Seconds by round, without disturbed runs."""
        times = self._measured(point)
        if not times:
            return {}
        rounds = list(times)
        steady = [times[number] / math.exp(self._machine(number)) for number in rounds]
        return {rounds[n]: times[rounds[n]] for n in undisturbed(steady, self.spread)}

    def _measured(self, point: Point) -> dict[int, float]:
        return {
            number: time_s
            for number, repeat in sorted(self.runs[point].items())
            if (time_s := repeat.record.outcome.batch_time_s) is not None
        }

    def _machine(self, number: int) -> float:
        """By how much the machine was slower in a round than at its best, as a logarithm.

        What all points of the round have in common: the least that one of them was slower than
        its own fastest run. It is no disturbance, as it falls out of the round's ratios.
        """
        slower = [
            math.log(times[number] / min(times.values()))
            for point in self.points
            if number in (times := self._measured(point))
        ]
        return min(slower, default=0.0)

    def ratio(self, slower: Point, faster: Point) -> Speedup | None:
        """How many times as long `slower` takes, from the rounds in which both ran undisturbed.

        The 95 % interval is Student's, of the mean logarithm of the rounds' ratios; None where
        no round has both.
        """
        ours, theirs = self.times(faster), self.times(slower)
        logs = [math.log(theirs[r] / ours[r]) for r in sorted(set(ours) & set(theirs))]
        if not logs:
            return None
        mean = statistics.fmean(logs)
        if len(logs) < 2:
            return Speedup(math.exp(mean), None)
        error = statistics.stdev(logs) / math.sqrt(len(logs))
        half = student_t_975(len(logs) - 1) * error
        return Speedup(math.exp(mean), (math.exp(mean - half), math.exp(mean + half)))

    def leader(self) -> Point:
        """The fastest so far, by its ratio to the first point."""
        first = self.points[0]

        def against_first(point: Point) -> float:
            ratio = self.ratio(first, point)
            return -math.inf if ratio is None else ratio.ratio

        return max(self.points, key=against_first)

    def alive(self, rules: ContestRules) -> list[Point]:
        """Who still runs: the leader and whoever is not clearly behind it."""
        leader = self.leader()
        return [
            point
            for point in self.points
            if point == leader or not self._is_behind(point, leader, rules)
        ]

    def _is_behind(self, point: Point, leader: Point, rules: ContestRules) -> bool:
        if len(self.times(point)) < rules.min_rounds:
            return False
        ratio = self.ratio(point, leader)
        return ratio is not None and ratio.ci95 is not None and ratio.ci95[0] > 1

    def next_runs(self, rules: ContestRules) -> list[tuple[int, Point]]:
        """Rounds and who has yet to run in them, in turn; empty when the contest is decided.

        The first rounds are run in any case, so all of them are there at once, and of the others
        one at a time.
        """
        if len(self.points) < 2:
            return []
        alive, certain = self.alive(rules), min(rules.min_rounds, rules.max_rounds)
        first = [run for n in range(certain) for run in self._waiting(alive, n)]
        if first:
            return first
        for number in range(certain, rules.max_rounds):
            if self._is_decided(alive, number, rules):
                return []
            if waiting := self._waiting(alive, number):
                return waiting
        return []

    def speaks(self, rules: ContestRules) -> bool:
        """Whether all have run in the first rounds; further ones make its answer more precise."""
        certain = min(rules.min_rounds, rules.max_rounds)
        return all(number >= certain for number, _ in self.next_runs(rules))

    def _waiting(self, alive: Sequence[Point], number: int) -> list[tuple[int, Point]]:
        turns = alive if number % 2 == 0 else reversed(alive)
        return [(number, point) for point in turns if self._is_to_run(point, number)]

    def _is_to_run(self, point: Point, number: int) -> bool:
        given_up = self.lost.get((point, number), 0) >= _ATTEMPTS
        return number not in self.runs[point] and not given_up

    def _is_decided(self, alive: Sequence[Point], rounds: int, rules: ContestRules) -> bool:
        """Whether, with so many rounds finished, more would not tell more."""
        leader = self.leader()
        if any(len(self.times(point)) < rules.min_rounds for point in alive):
            return False
        return all(
            self._is_told(self.ratio(point, leader), rules) for point in alive if point != leader
        )

    @staticmethod
    def _is_told(ratio: Speedup | None, rules: ContestRules) -> bool:
        if ratio is None or ratio.ci95 is None:
            return False
        low, high = ratio.ci95
        return low > 1 or (high - low) / 2 <= rules.precision


def contest_key(points: Sequence[Point]) -> str:
    """A short name of a set of points."""
    text = "\n".join(point.key for point in points)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]

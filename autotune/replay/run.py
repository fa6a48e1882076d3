"""One sampler with one seed on a recorded table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.certify.doubts import next_doubt, steady_seconds
from autotune.certify.results import Results, next_repeat
from autotune.certify.verdict import verdict_of
from autotune.errors import UserError
from autotune.replay.case import RecordedDevice, RecordedSpace, ReplayCase
from autotune.replay.outcomes import Floats
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.guided.belief import Knowledge
from autotune.search.point_sampler import FixedPointSampler, PointSampler
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role
from autotune.study.storage import OptunaStore
from autotune.study.trial_record import TrialRecord

NEAR = 1.05
"""A time is near the optimum up to this many times the optimum."""

_NO_POINT = Point({})


@dataclass(frozen=True)
class SeedRun:
    """What one run came to, judged by true times.

    rows: the row of each launch, -1 for an illegal point. best_s: by launch, the least true
    time of a usable point so far, the table's worst before there is one. exported_s: the true
    time of the point that would be exported, the worst where none would be. launches: with
    those of certification. ask_ms: mean milliseconds of one proposal.
    """

    seed: int
    rows: tuple[int, ...]
    best_s: Floats
    exported_s: float
    launches: int
    ask_ms: float

    def evaluations_to(self, bound_s: float) -> int | None:
        """The number of the first launch after which the best is at most `bound_s`."""
        near = np.flatnonzero(self.best_s <= bound_s)
        return int(near[0]) + 1 if len(near) else None

    @property
    def duplicates(self) -> int:
        """Launches of a point that had been launched before."""
        return len(self.rows) - len(set(self.rows))

    @property
    def illegal(self) -> int:
        """Launches of a point that is not in the table."""
        return self.rows.count(-1)


def checked_sampler(
    setting: Any,
    encoding: Encoding,
    seed: int,
    knowledge: Knowledge | None = None,
    *,
    rehearsed: bool = True,
) -> PointSampler:
    """The sampler that a setting names. Raises UserError, in the words of `replay`."""
    try:
        return make_sampler(setting, encoding, seed, knowledge, rehearsed=rehearsed)
    except UserError as error:
        raise UserError(str(error).replace("search.sampler", "replay.samplers")) from None


def run_seed(case: ReplayCase, space: RecordedSpace, setting: Any, seed: int) -> SeedRun:
    """Searches with one sampler and seed, and decides on an export as a sweep does."""
    encoding = space.encoding
    knowledge = Knowledge(case.limit_bytes)
    # Whoever starts the runs has tried it: once, not for every seed.
    sampler = checked_sampler(setting, encoding, seed, knowledge, rehearsed=False)
    store = OptunaStore.in_memory(encoding, case.limit_bytes)
    device = RecordedDevice(case, space, seed)
    records: list[TrialRecord] = []
    asked_s: list[float] = []
    slowest_s = 0.0
    repeats: tuple[Repeat, ...] = ()
    # Without a planted baseline no point is compared with one.
    baseline = _NO_POINT if case.baseline is None else space.legal.baseline
    for launch in range(case.evaluations):
        planted = case.baseline if launch == 0 else None
        asks = sampler if planted is None else FixedPointSampler(encoding, space.legal.baseline)
        begin = time.perf_counter()
        number, point = store.ask(asks)
        if planted is None:
            asked_s.append(time.perf_counter() - begin)
        record = device.run(number, point)
        records.append(record)
        slowest_s = max(slowest_s, record.outcome.batch_time_s or 0.0)
        store.tell(record, slowest_s or 1.0)
        if case.noise.is_planted:
            repeats = _rechecked(case, space, device, records, repeats, baseline, knowledge)
            results = Results(records, repeats, baseline, case.certify)
            sampler.steady_s = steady_seconds(space.legal, results)
    exported = _exported(case, device, records, repeats, baseline)
    row = None if exported is None else space.row(exported)
    found = [space.row(record.parameters) for record in records]
    rows = tuple(-1 if number is None else number for number in found)
    return SeedRun(
        seed,
        rows,
        _best_so_far(case, rows),
        case.table.worst_s if row is None else float(case.table.counted_s[row]),
        device.launches,
        1e3 * statistics.fmean(asked_s) if asked_s else 0.0,
    )


def _best_so_far(case: ReplayCase, rows: Sequence[int]) -> Floats:
    times = [case.table.worst_s if row < 0 else case.table.counted_s[row] for row in rows]
    best: Floats = np.minimum.accumulate(times)
    return best


def _rechecked(
    case: ReplayCase,
    space: RecordedSpace,
    device: RecordedDevice,
    records: Sequence[TrialRecord],
    repeats: tuple[Repeat, ...],
    baseline: Point,
    knowledge: Knowledge,
) -> tuple[Repeat, ...]:
    """The repeats, with those that a sweep would make before its search goes on."""
    while True:
        results = Results(records, repeats, baseline, case.certify)
        point = next_doubt(space.legal, results, knowledge)
        if point is None:
            return repeats
        record = device.run(len(repeats), point)
        repeats = (*repeats, Repeat(Role.RECHECK, record, "", 0))


def _exported(
    case: ReplayCase,
    device: RecordedDevice,
    records: Sequence[TrialRecord],
    repeats: tuple[Repeat, ...],
    baseline: Point,
) -> Point | None:
    """What would be exported: the measured best; with noise, what certification decides."""
    if not case.noise.is_planted:
        timed = [r for r in records if r.status.is_usable and r.outcome.batch_time_s is not None]
        best = min(timed, key=lambda r: r.outcome.batch_time_s or 0.0, default=None)
        return None if best is None else best.parameters
    verdict = verdict_of(certify(case, device, records, baseline, repeats))
    return None if verdict is None else verdict.winner.point


def certify(
    case: ReplayCase,
    device: RecordedDevice,
    records: Sequence[TrialRecord],
    baseline: Point,
    repeats: tuple[Repeat, ...] = (),
) -> Results:
    """Runs points again until nothing is left to certify, as a sweep does after its search."""
    results = Results(records, repeats, baseline, case.certify)
    while (order := next_repeat(results)) is not None:
        role, point, round_ = order
        contest = results.contest.key if role is Role.CERTIFY else ""
        record = device.run(len(results.repeats), point)
        repeats = (*results.repeats, Repeat(role, record, contest, round_))
        results = Results(records, repeats, baseline, case.certify)
    return results

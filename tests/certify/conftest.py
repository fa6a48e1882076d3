"""Made-up runs of made-up points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from autotune.certify.results import Results, next_repeat
from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import Verdict, verdict_of
from autotune.measure.outcome import Outcome, Status, Work
from autotune.measure.spread import RunSpread, interval95
from autotune.measure.timing import RunEstimate
from autotune.space.point import Point
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord

RUN_S = 10.0
Times = Callable[[str, int, float], float]
"""A point's name, how often it has run, the moment -> seconds a batch."""


def point(name: str) -> Point:
    return Point({"name": name})


@dataclass
class Night:
    """A night of trials: each point once, then whatever certification asks for.

    time: seconds a batch of a run. status: of every run of a point, ok unless told.
    """

    time: Times
    names: Sequence[str]
    settings: CertifySettings = field(default_factory=CertifySettings)
    status: dict[str, Status] = field(default_factory=dict)
    losses: dict[str, tuple[float, ...]] = field(default_factory=dict)
    control_every: int = 0
    records: list[TrialRecord] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)
    now: float = 0.0
    runs: dict[str, int] = field(default_factory=dict)

    def measure(self, name: str, number: int) -> TrialRecord:
        begin, self.now = self.now, self.now + RUN_S
        time_s = self.time(name, self.runs.get(name, 0), self.now - RUN_S / 2)
        self.runs[name] = self.runs.get(name, 0) + 1
        run = RunEstimate(time_s, 0.005 * time_s, 7, tuple(range(8)))
        status = self.status.get(name, Status.OK)
        outcome = Outcome(
            status,
            "as planned",
            time_s,
            interval95(run, self.settings.spread),
            8,
            within_error_s=run.error_s,
            peak_memory_bytes=900,
            work=Work(64, 1000, self.losses.get(name, (2.0, 1.5))),
        )
        if status in (Status.FAILED, Status.OOM):
            outcome = replace(outcome, batch_time_s=None, batch_time_ci95_s=None)
        return TrialRecord(number, point(name), outcome, RUN_S, begin, self.now, 1, "f")

    def search(self) -> None:
        for name in self.names:
            self.records.append(self.measure(name, len(self.records)))
            if self.control_every and len(self.records) % self.control_every == 0:
                self.repeat(Role.CONTROL, self.names[0], 0)

    def repeat(self, role: Role, name: str, round_: int) -> None:
        contest = self.results.contest.key if role is Role.CERTIFY else ""
        record = self.measure(name, len(self.repeats))
        self.repeats.append(Repeat(role, record, contest, round_))

    @property
    def results(self) -> Results:
        return Results(
            tuple(self.records), tuple(self.repeats), point(self.names[0]), self.settings
        )

    def certify(self) -> Verdict:
        while (order := next_repeat(self.results)) is not None:
            role, chosen, round_ = order
            self.repeat(role, chosen["name"], round_)
            assert len(self.repeats) < 200, "certification does not end"
        verdict = verdict_of(self.results)
        assert verdict is not None
        return verdict

    def all_of_it(self) -> Verdict:
        self.search()
        return self.certify()


@pytest.fixture
def steady() -> CertifySettings:
    return CertifySettings(spread=RunSpread(0.02))

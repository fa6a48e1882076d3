"""What is launched next: the sampler proposes, and the memory gate may refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from autotune.measure.outcome import Outcome, Status
from autotune.search.gate import Forecast, MemoryGate, MemoryGatekeeper, Refusal
from autotune.search.guided.blas import one_thread
from autotune.search.guided.geometry import Codes
from autotune.search.point_sampler import FixedPointSampler, PointSampler
from autotune.space.point import Point
from autotune.study.study import Study
from autotune.study.trial_record import GateNote, TrialRecord

# After so many refusals in a row a sampler is not asked again: some point that passes is taken.
_MOST_REFUSALS = 50
# The gate may end a sweep only when so many refused points have shown that it is right.
_LAST_CHECKS = 3


@dataclass(frozen=True)
class Proposal:
    """A trial to launch. note: what the gate expects of it, None where it expects nothing."""

    number: int
    point: Point
    note: GateNote | None = None


@dataclass
class Proposer:
    """Asks the sampler, and keeps what the gate refuses as skipped trials.

    gatekeeper: None for no gate. now: seconds since the epoch. refused: called with every
    skipped trial.
    """

    study: Study
    sampler: PointSampler
    gatekeeper: MemoryGatekeeper | None
    now: Callable[[], float]
    refused: Callable[[TrialRecord], None]
    _used_up_after: int = -1
    _gate_after: tuple[int, MemoryGate] | None = None

    def __post_init__(self) -> None:
        # One gate for both: what the sampler avoids is what would be refused.
        self.sampler.gatekeeper = self.gatekeeper

    def propose(self) -> Proposal | None:
        """The next trial, None where the gate refuses every point that is left.

        Before it says so the likeliest of them are launched, if few were launched to check the
        gate so far. There is at least one point that was not launched. Side effect: points that
        are refused on the way are kept in the study.
        """
        if self.gatekeeper is None:
            return Proposal(*self.study.ask(self.sampler))
        # As long as no further trial has ended, the gate does not change its mind.
        if self._used_up_after == len(self.study.records):
            return None
        with one_thread():
            proposal = self._through_gate()
        if proposal is None:
            self._used_up_after = len(self.study.records)
        return proposal

    def _through_gate(self) -> Proposal | None:
        while len(left := self._admitted(self.sampler)):
            if self._refusals_in_a_row() >= _MOST_REFUSALS:
                return self._proposal_of(left[0])
            proposal = self._asked()
            if proposal is not None:
                return proposal
        return self._last_resort()

    def note(self, point: Point) -> GateNote | None:
        """What the gate expects of a point that is launched whatever it says."""
        if self.gatekeeper is None:
            return None
        with one_thread():
            return self._expected(point)

    def _expected(self, point: Point, passed_over: Point | None = None) -> GateNote | None:
        gate = self._gate()
        refusal = gate.refusal(point)
        if refusal is not None:
            return _note(refusal.fits, refusal.forecast, checked=True)
        forecast = gate.forecast(point)
        if forecast is None and passed_over is None:
            return None
        fits = None if forecast is None else forecast.fits
        return replace(_note(fits, forecast, checked=False), passed_over=passed_over)

    def _asked(self) -> Proposal | None:
        """The sampler's proposal, None where the gate refuses it for good."""
        number, point = self.study.ask(self.sampler)
        gate = self._gate()
        refusal = gate.refusal(point)
        # A sampler that looks at the gate would propose the same again.
        if refusal is None or gate.is_checked(point) or self.sampler.avoids_refused:
            return Proposal(number, point, self._expected(point, self.sampler.passed_over))
        self._skip(number, point, refusal)
        return None

    def _last_resort(self) -> Proposal | None:
        """When nothing that is open to the sampler passes the gate.

        A point that the gate refused earlier and would not refuse now, or the likeliest one as
        long as too few have shown that the gate is right.
        """
        anyone = FixedPointSampler(self.study.encoding, self.study.space.baseline)
        left = self._admitted(anyone)
        if len(left):
            return self._proposal_of(left[0])
        rows = self._open_rows(anyone)
        if self._is_checked() or not len(rows):
            return None
        return self._proposal_of(rows[self._gate().likeliest(rows)])

    def _proposal_of(self, row: Codes) -> Proposal:
        point = self.study.space.decode(row)
        return Proposal(self.study.ask_for(point), point, self._expected(point))

    def _skip(self, number: int, point: Point, refusal: Refusal) -> None:
        now = self.now()
        record = TrialRecord(
            trial=number,
            parameters=point,
            outcome=Outcome(Status.SKIPPED, refusal.reason),
            cost_s=0.0,
            started_at=now,
            ended_at=now,
            attempt=self.study.attempts(point) + 1,
            fingerprint=self.study.identity.fingerprint,
            gate=_note(refusal.fits, refusal.forecast, checked=False),
        )
        self.study.finish(record)
        self.refused(record)

    def _gate(self) -> MemoryGate:
        """The gate of this moment; asked for several times between two ends of trials."""
        assert self.gatekeeper is not None, "asked for only where there is a gate"
        count = len(self.study.records)
        if self._gate_after is None or self._gate_after[0] != count:
            trials = self.study.optuna_study.get_trials(deepcopy=False)
            self._gate_after = (count, self.gatekeeper.gate(trials))
        return self._gate_after[1]

    def _admitted(self, sampler: PointSampler) -> Codes:
        """A row that is open to the sampler and not refused, if there is one."""
        return self._gate().some_admitted(self._open_rows(sampler), seed=0)

    def _open_rows(self, sampler: PointSampler) -> Codes:
        rows: Codes = self.study.space.codes[sampler.untaken(self.study.optuna_study)]
        return rows

    def _is_checked(self) -> bool:
        """Whether the latest refused points that were launched have all shown the gate right."""
        checks = [r for r in self.study.records if r.was_checked and r.taken_from is None]
        last = [record.status.violates_memory for record in checks[-_LAST_CHECKS:]]
        return len(last) == _LAST_CHECKS and all(last)

    def _refusals_in_a_row(self) -> int:
        """How many proposals the gate has refused since the last trial that was launched."""
        count = 0
        for record in reversed(self.study.records):
            if record.was_launched:
                break
            count += 1
        return count


def _note(fits: float | None, forecast: Forecast | None, checked: bool) -> GateNote:
    peak = None if forecast is None else round(forecast.peak_bytes)
    return GateNote(fits, peak, checked)

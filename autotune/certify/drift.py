"""Whether the machine got slower or faster during a sweep, by runs of the baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.student import student_t_975

# A control run this much slower than the fastest is no drift: something slowed that run, or the
# machine for a while. Certification compares within rounds, and need not call it disturbed.
SLOW_FROM = 0.15
_NAMED = 0.03
_NAMED_SPREADS = 2.5


@dataclass(frozen=True)
class Control:
    """One run of the baseline. at: seconds since the epoch, its middle; time_s: a batch."""

    at: float
    time_s: float


@dataclass(frozen=True)
class Drift:
    """controls: all runs of the baseline in the order of time. noise: relative standard
    deviation of one run, by which separate runs differ on a steady machine.
    """  # noqa: D205 (the fields are the summary)

    controls: tuple[Control, ...]
    noise: float

    @property
    def steady(self) -> tuple[Control, ...]:
        """The controls that are not so slow that they tell nothing of drift."""
        fastest = min((control.time_s for control in self.controls), default=0.0)
        return tuple(c for c in self.controls if c.time_s <= fastest * (1 + SLOW_FROM))

    def factor(self, at: float) -> float:
        """How many times as long a batch takes at the moment `at` as at the first control.

        Between controls linear, before and after them constant, and shrunk towards 1 by the
        share of the controls' differences that noise explains (James and Stein).
        """
        steady = self.steady
        if len(steady) < 2:
            return 1.0
        logs = [math.log(control.time_s / steady[0].time_s) for control in steady]
        signal = statistics.fmean(log**2 for log in logs[1:])
        noise = 2 * self.noise**2
        if signal <= noise:
            return 1.0
        return math.exp((1 - noise / signal) * _interpolate(steady, logs, at))

    @property
    def change(self) -> float:
        """Last against first of the steady controls, as a share: 0.05 is 5 % slower."""
        steady = self.steady
        return steady[-1].time_s / steady[0].time_s - 1 if len(steady) > 1 else 0.0

    @property
    def largest(self) -> Control | None:
        """The steady control that differs most from the first, None where there is none."""
        steady = self.steady
        first = steady[0].time_s if steady else 1.0
        return max(
            steady[1:], key=lambda control: abs(math.log(control.time_s / first)), default=None
        )

    @property
    def is_notable(self) -> bool:
        """Whether a person should know: 3 % or more, and far more than two runs usually differ."""
        largest = self.largest
        if largest is None:
            return False
        difference = abs(math.log(largest.time_s / self.steady[0].time_s))
        if difference >= max(_NAMED, _NAMED_SPREADS * math.sqrt(2) * self.noise):
            return True
        return abs(self._trend()) >= _NAMED

    def _trend(self) -> float:
        """Change from the first to the last control along a line; 0 where there is no line.

        Least squares of the logarithm of the time, where Student's t says at 95 % that the
        slope is not noise.
        """
        steady = self.steady
        freedom = len(steady) - 2
        if freedom < 2:
            return 0.0
        at = [control.at for control in steady]
        logs = [math.log(control.time_s) for control in steady]
        slope, intercept = statistics.linear_regression(at, logs)
        residual = sum((y - intercept - slope * x) ** 2 for x, y in zip(at, logs, strict=True))
        spread = sum((x - statistics.fmean(at)) ** 2 for x in at)
        error = math.sqrt(residual / freedom / spread)
        return slope * (at[-1] - at[0]) if abs(slope) > student_t_975(freedom) * error else 0.0


def _interpolate(controls: Sequence[Control], logs: Sequence[float], at: float) -> float:
    if at <= controls[0].at:
        return logs[0]
    for number in range(1, len(controls)):
        before, after = controls[number - 1].at, controls[number].at
        if at <= after:
            share = (at - before) / (after - before) if after > before else 1.0
            return logs[number - 1] + share * (logs[number] - logs[number - 1])
    return logs[-1]

"""What stays the same during a sweep."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from autotune.certify.settings import CertifySettings
from autotune.config.schema import SearchConfig
from autotune.measure.judge import JudgeSettings
from autotune.measure.racing import RaceRules
from autotune.ports import Deadlines, MeasurementPlan, Placement
from autotune.profile_plan import ProfilePlan


@dataclass(frozen=True)
class ProfilePlans:
    """What is profiled after the scored steps, None for nothing.

    light: of every trial. full: of the baseline and of the finalists. budget_bytes: what all
    profiles of a study may take on the disk.
    """

    light: ProfilePlan | None = None
    full: ProfilePlan | None = None
    budget_bytes: int = 4 << 30


@dataclass(frozen=True)
class SweepPlan:
    """How points are searched, run and judged.

    race: when a trial has run for long enough. control_every: trials after which the baseline
    runs again, 0 for never.
    """

    search: SearchConfig
    placement: Placement
    deadlines: Deadlines
    measurement: MeasurementPlan
    judge: JudgeSettings
    race: RaceRules
    certify: CertifySettings = field(default_factory=CertifySettings)
    control_every: int = 12
    profiles: ProfilePlans = field(default_factory=ProfilePlans)

    def with_profile(self, profile: ProfilePlan | None) -> MeasurementPlan:
        """The measurement with a profile after it."""
        return replace(self.measurement, profile=profile)

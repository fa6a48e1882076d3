"""A trial's breakdown from the profile that was taken after its scored steps."""

from __future__ import annotations

import statistics
from pathlib import Path

from autotune.measure.records import PHASES
from autotune.study.paths import profile_folder


def profiled_phases(trial_folder: Path, batch_time_s: float) -> dict[str, float] | None:
    """Seconds by phase, adding up to `batch_time_s`; None where no profile tells.

    A profiled step takes longer than a scored one, so its phases are taken as shares, the mean
    over the profiled ranks and steps. Raises UserError for a profile that cannot be read.
    """
    folder = profile_folder(trial_folder)
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    # Here, since pandas comes with it and most trials record their phases themselves.
    from autotune.analyze.find import open_profiles

    shares = [
        {name: phases[name] / sum(phases.values()) for name in PHASES}
        for profile in open_profiles(folder)
        for step in profile.steps
        if (phases := step.phases_us) is not None and sum(phases.values()) > 0
    ]
    if not shares:
        return None
    return {name: statistics.fmean(s[name] for s in shares) * batch_time_s for name in PHASES}

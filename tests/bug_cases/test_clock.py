"""The host's clock is set while a sweep runs: by NTP, by a person, by a machine that slept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from autotune.cli import sweep as sweep_verb
from autotune.config.schema import Config
from autotune.ports import TrialEnd
from launch.simulated import SimulatedLauncher

from .conftest import Program

CERTIFIED = ("certify.enabled=true", "measure.control_every=3", "measure.race=false")


def set_clock(program: Program, monkeypatch: pytest.MonkeyPatch, trial: int, by_s: float) -> None:
    """While that trial runs, and for good."""

    def make_launcher(config: Config) -> SimulatedLauncher:
        made = program.make_launcher(config)
        wait, now, offset = made.wait, made.now, [0.0]

        def moved(timeout_s: float) -> Sequence[TrialEnd]:
            ends = wait(timeout_s)
            shifted = []
            for end in ends:
                before = offset[0]
                if end.trial == trial:
                    offset[0] = by_s
                start, stop = end.started_at + before, end.ended_at + offset[0]
                shifted.append(replace(end, started_at=start, ended_at=stop))
            return shifted

        made.wait = moved  # type: ignore[method-assign]
        made.now = lambda: now() + offset[0]  # type: ignore[method-assign]
        return made

    monkeypatch.setattr(sweep_verb, "make_launcher", make_launcher)


@pytest.mark.parametrize("by_s", [-7200.0, 7200.0, -1e9])
def test_the_winner_is_the_same(
    program: Program, monkeypatch: pytest.MonkeyPatch, by_s: float
) -> None:
    set_clock(program, monkeypatch, 3, by_s)
    assert program.run(*CERTIFIED) == 0
    assert len(program.trials) == 12
    assert program.best["parameters"]["batch"] == 4
    assert program.best["certified"] is True
    assert program.best["gain"]["speedup"] == pytest.approx(4.0, rel=0.01)

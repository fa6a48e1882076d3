"""The launchers that the contract holds for, and requests that all of them understand."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.ports import (
    Deadlines,
    EndKind,
    Launcher,
    Placement,
    RankExit,
    RankProgram,
    TrialRequest,
)
from launch.cluster_settings import ClusterSettings
from launch.simulated import SimulatedLauncher, SimulatedTrial

STAND_IN = Path(__file__).parent / "stand_in.py"
RANKS = 2
SLOTS = 2

START = {"event": "start"}
STEP = {"event": "step", "step": 0, "time_s": 0.01}
PROFILE = {"event": "profile", "id": None, "path": "profile/t.json.gz", "steps": [1], "bytes": 1}
END = {"event": "end"}
ENDED = RankExit(0, -15, by_us=True)

Request = Callable[..., TrialRequest]


@pytest.fixture(
    params=[
        "simulated",
        pytest.param("ray", marks=pytest.mark.ray),
        pytest.param("ray, forked ranks", marks=pytest.mark.ray),
    ]
)
def way(request: pytest.FixtureRequest) -> str:
    """Who runs the trials and how it starts their ranks."""
    return str(request.param)


@pytest.fixture
def request_trial(tmp_path: Path, way: str) -> Request:
    """Makes a request for a trial of the stand-in program, in a folder with a difficult name."""

    def make(
        trial: int,
        scenario: str,
        *words: str,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        deadlines: Deadlines | None = None,
    ) -> TrialRequest:
        folder = tmp_path / f"run 50% a=b,c#1 调优 {trial}"
        folder.mkdir()
        start, preload, env = ("-S", str(STAND_IN)), None, dict(env or {})
        if way == "ray, forked ranks":
            start, preload = ("-m", STAND_IN.stem), "json"
            env["PYTHONPATH"] = str(STAND_IN.parent)
        argv = (sys.executable, *start, scenario, *words)
        return TrialRequest(
            trial=trial,
            attempt=1,
            folder=folder,
            program=RankProgram(argv, folder, env, files or {}, preload),
            placement=Placement(1, RANKS, "cpu"),
            deadlines=replace(deadlines or Deadlines(), stop_grace_s=1.0),
        )

    return make


def simulated_stand_in(request: TrialRequest) -> SimulatedTrial:
    """What the stand-in program does, without running it."""
    scenario = request.program.argv[3]
    if scenario == "fail":
        exits = (ENDED, RankExit(1, 3))
        reason = "rank 1 exited with code 3"
        return SimulatedTrial(1.5, [[START, STEP]] * RANKS, EndKind.RANK_FAILED, reason, exits)
    if scenario == "silent":
        limit_s = request.deadlines.first_step_s
        reason = f"rank 0 made no first step within first_step_s={limit_s:g} s"
        return SimulatedTrial(limit_s, [[START]] * RANKS, EndKind.HUNG, reason)
    if scenario == "run":
        return SimulatedTrial(math.inf, [[START, STEP]] * RANKS, finishing_s=math.inf)
    if scenario == "heed":
        return SimulatedTrial(
            math.inf, [[START, STEP]] * RANKS, finishing_records=[[PROFILE, END]] * RANKS
        )
    return SimulatedTrial(0.1, [[START, *[STEP] * 3, END]] * RANKS)


@pytest.fixture(scope="session")
def users_variable() -> Iterator[tuple[str, str]]:
    """A variable that the user exported before the sweep."""
    name, value = "USER_S_IB_HCA", "=mlx5_0:1,mlx5_3:1;$HOME 'x' \"y\" 调优"
    os.environ[name] = value
    os.environ["CUDA_VISIBLE_DEVICES"] = "5,6"  # which Ray likes to set as it sees fit
    yield name, value
    del os.environ[name], os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.fixture(scope="session")
def ray_launcher(users_variable: tuple[str, str]) -> Iterator[Launcher]:
    """One Ray for all tests: it takes seconds to start."""
    from launch.ray_launcher import RayLauncher

    settings = ClusterSettings(devices_per_trial=RANKS, max_concurrent_trials=SLOTS)
    launcher = RayLauncher(settings)
    yield launcher
    launcher.close()


@pytest.fixture
def launcher(request: pytest.FixtureRequest, way: str) -> Launcher:
    if way == "simulated":
        return SimulatedLauncher(simulated_stand_in, slots=SLOTS)
    return request.getfixturevalue("ray_launcher")

"""Which points are launched, how often, and how many at a time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autotune.config.compose import compose_config
from autotune.ports import Placement, TrialRequest
from launch.capacity import require_room
from launch.simulated import SimulatedTrial

from .conftest import Program, Values, broken, out_of_memory, usual

MODELS = sorted(
    path.stem for path in (Path(__file__).parents[2] / "search_spaces" / "model").glob("*.yaml")
)
TAKEN = (
    "RuntimeError: The server socket has failed to listen on any local network address. "
    "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE\n"
)


def points(program: Program) -> list[str]:
    return [json.dumps(trial["parameters"]) for trial in program.trials]


@pytest.mark.parametrize("sampler", ["guided", "tpe", "random", "exhaustive"])
def test_twelve_points_are_twelve_trials_whatever_the_budget(
    program: Program, capsys: pytest.CaptureFixture[str], sampler: str
) -> None:
    """Case 13."""
    assert program.run("search.max_trials=30", f"search.sampler={sampler}") == 0
    assert len(points(program)) == len(set(points(program))) == len(program.requests) == 12
    assert "no legal point is left to try: 12 of 30 trials" in capsys.readouterr().out


def test_a_port_that_is_taken_once_costs_a_retry_and_no_point(program: Program) -> None:
    """Case 14, and case 44: what the program says of it is in its log alone."""
    tries: Counter[str] = Counter()

    def behave(values: Values, request: TrialRequest) -> SimulatedTrial:
        tries[values["chunk"]] += 1
        is_taken = values["chunk"] == "64" and tries["64"] == 1
        return broken([{"event": "start"}], TAKEN) if is_taken else usual(values, request)

    program.behave = behave
    assert program.run() == 0
    lost = [trial for trial in program.trials if trial["status"] == "infrastructure"]
    assert [trial["failure"]["kind"] for trial in lost] == ["port_in_use"]
    again = [t for t in program.trials if t["parameters"] == lost[0]["parameters"]]
    assert [(t["attempt"], t["status"] in ("ok", "stopped")) for t in again] == [
        (1, False),
        (2, True),
    ]


def test_a_port_that_stays_taken_is_tried_as_often_as_is_said(program: Program) -> None:
    """Case 14."""
    program.behave = lambda values, request: (
        broken([], TAKEN) if values["chunk"] == "64" else usual(values, request)
    )
    assert program.run("search.max_attempts=3") == 0
    tries = Counter(points(program))
    assert {count for point, count in tries.items() if '"chunk": 64' in point} == {3}
    assert {count for point, count in tries.items() if '"chunk": 64' not in point} == {1}


def test_out_of_memory_is_tried_once(program: Program) -> None:
    """Case 14; but for the baseline, which is known to fit elsewhere."""
    program.behave = lambda values, request: (
        out_of_memory() if values["batch"] == "4" else usual(values, request)
    )
    assert program.run() == 0
    assert max(Counter(points(program)).values()) == 1


@pytest.mark.parametrize("sampler", ["guided", "tpe", "random", "gp"])
def test_memory_runs_out_first_and_without_a_number(program: Program, sampler: str) -> None:
    """Cases 15 and 23."""
    program.behave = lambda values, request: (
        out_of_memory() if request.trial < 5 else usual(values, request)
    )
    assert program.run(f"search.sampler={sampler}") == 0
    assert [trial["status"] for trial in program.trials[1:5]] == ["oom"] * 4
    assert program.best["parameters"]["batch"] == 4


def test_memory_runs_out_last(program: Program) -> None:
    """Case 23, the other way round."""
    program.behave = lambda values, request: (
        out_of_memory() if request.trial >= 5 else usual(values, request)
    )
    assert program.run() == 0
    fastest = min(trial["batch_time_s"] for trial in program.trials[:5])
    assert program.best["batch_time"]["mean_s"] == fastest


def test_one_crash_ends_one_trial(program: Program) -> None:
    """Case 35."""
    crash = {"event": "error", "kind": "exception", "message": "KeyError: 'learning_rate'"}
    program.behave = lambda values, request: (
        broken([crash]) if request.trial == 2 else usual(values, request)
    )
    assert program.run("search.max_trials=10") == 0
    assert len(program.trials) == 10
    assert [trial["trial"] for trial in program.trials if trial["status"] == "failed"] == [2]


@pytest.mark.parametrize("model", MODELS)
def test_by_default_trials_never_share_the_devices(model: str) -> None:
    """Case 40."""
    assert compose_config([f"model={model}"]).config.cluster.max_concurrent_trials == 1


@pytest.mark.parametrize("device", ["NPU", "GPU", "CPU"])
def test_a_host_of_8_devices_holds_one_trial_of_8(device: str) -> None:
    """Case 40, also where more are asked for."""
    kind: Any = {"NPU": "npu", "GPU": "cuda", "CPU": "cpu"}[device]
    assert require_room(Placement(1, 8, kind), [{device: 8.0}]) == 1


def test_what_the_user_has_excluded_is_never_launched(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 70: with numbers, texts and lists, and `check` says what each rule excludes."""
    program.model["space"] = {
        "parameters": {
            "batch": {"choices": [1, 2, 4]},
            "chunk": {"choices": [0, 64]},
            "split": {"choices": [[2, 6], [4, 4], [8, 0]]},
        },
        "constraints": [
            {"rule": "batch * chunk <= 128", "reason": "too large"},
            {"rule": "min(split) > 0", "reason": "no stage is empty"},
            {"rule": "split != [4, 4] or batch > 1", "reason": "even splits need two"},
        ],
    }
    command = "train --batch {batch} --chunk {chunk} --split {split} --steps {steps}"
    program.model["trainer"]["command"] = command
    assert program.run(verb="check") == 0
    table = capsys.readouterr().out
    for reason, excluded in (("too large", 3), ("no stage", 6), ("even splits", 2)):
        (row,) = [line for line in table.splitlines() if reason in line]
        assert row.split()[0] == str(excluded)
    assert program.run("search.max_trials=100") == 0
    launched = [trial["parameters"] for trial in program.trials]
    legal = [
        {"batch": batch, "chunk": chunk, "split": split}
        for batch in (1, 2, 4)
        for chunk in (0, 64)
        for split in ([2, 6], [4, 4], [8, 0])
        if batch * chunk <= 128 and min(split) > 0 and (split != [4, 4] or batch > 1)
    ]
    assert sorted(map(json.dumps, launched)) == sorted(map(json.dumps, legal))

"""What a rank finds when Ray started it: the user's environment and nothing of Ray's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from autotune.ports import EndKind, Launcher, TrialRequest

pytestmark = pytest.mark.ray
Request = Callable[..., TrialRequest]
WORDS = ("--lr=1e-4", "NCCL_IB_HCA=mlx5_0:1,mlx5_3:1", "a b", "$HOME", "*", "", "'q\"", "调优=%#")


@pytest.fixture(params=["ray", "ray, forked ranks"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def echoes(ray_launcher: Launcher, request_trial: Request) -> list[dict[str, Any]]:
    """What each rank of a trial found: argv, env, cwd."""
    env = {"TRIAL_S": "k=v,w:x;y z", "PATH": os.environ["PATH"] + ":/added"}
    request = request_trial(0, "echo", *WORDS, env=env)
    ray_launcher.start(request)
    (end,) = ray_launcher.wait(30.0)
    assert end.kind is EndKind.FINISHED
    files = [request.folder / f"echo{rank}.json" for rank in range(2)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def test_words_and_variables_arrive_unchanged(
    echoes: list[dict[str, Any]], users_variable: tuple[str, str]
) -> None:
    for echo in echoes:
        assert echo["argv"] == list(WORDS)
        assert echo["env"]["TRIAL_S"] == "k=v,w:x;y z"
        assert echo["env"]["PATH"].endswith(":/added")
        assert echo["env"][users_variable[0]] == users_variable[1]
        assert echo["env"]["CUDA_VISIBLE_DEVICES"] == "5,6"


def test_ranks_have_torchruns_variables(echoes: list[dict[str, Any]]) -> None:
    first, second = (echo["env"] for echo in echoes)
    assert [first["RANK"], second["RANK"]] == ["0", "1"]
    assert [first["LOCAL_RANK"], second["LOCAL_RANK"]] == ["0", "1"]
    assert first["WORLD_SIZE"] == first["LOCAL_WORLD_SIZE"] == "2"
    assert first["MASTER_ADDR"] == "127.0.0.1"
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert 20000 <= int(first["MASTER_PORT"]) < 32768


def test_ray_adds_nothing_to_a_ranks_environment(echoes: list[dict[str, Any]]) -> None:
    env = echoes[0]["env"]
    ours = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    ours |= {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "TRIAL_S", "PYTHONPATH"}
    added = {name for name in env if name not in os.environ and not name.startswith("AUTOTUNE_")}
    assert added <= ours | {"LC_CTYPE"}  # Python sets LC_CTYPE for itself in the C locale
    changed = {name for name in os.environ if env.get(name) != os.environ[name]}
    assert changed - ours <= {"PATH", "PYTHONPATH", "PYTEST_CURRENT_TEST"}


def test_nothing_of_a_trial_is_alive_after_its_end(
    ray_launcher: Launcher, request_trial: Request
) -> None:
    request = request_trial(0, "fail")
    ray_launcher.start(request)
    assert ray_launcher.wait(30.0)
    mine = [one for one in psutil.process_iter() if _is_in(one, str(request.folder))]
    assert mine == []


def _is_in(process: psutil.Process, folder: str) -> bool:
    try:
        return process.cwd() == folder
    except psutil.Error:
        return False

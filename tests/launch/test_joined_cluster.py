"""Trials on a Ray cluster that somebody else started: two nodes, here both on this host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.ranks]
DRIVER = Path(__file__).parent / "cluster_driver.py"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver met; one run, since the cluster takes seconds to start."""
    folder = tmp_path_factory.mktemp("joined")
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_trial_spans_two_nodes(found: dict[str, Any]) -> None:
    kind, environments = found["two nodes"]
    assert kind == "finished"
    assert [env["RANK"] for env in environments] == ["0", "1", "2", "3"]
    assert [env["LOCAL_RANK"] for env in environments] == ["0", "1", "0", "1"]
    assert {env["WORLD_SIZE"] for env in environments} == {"4"}
    assert {env["LOCAL_WORLD_SIZE"] for env in environments} == {"2"}
    assert len({(env["MASTER_ADDR"], env["MASTER_PORT"]) for env in environments}) == 1
    assert {env["NCCL_DEBUG"] for env in environments} == {"from the sweep"}


def test_slots_are_what_the_cluster_holds(found: dict[str, Any]) -> None:
    assert found["slots"] == 1  # two nodes of two CPUs hold one trial of two on each of two


def test_a_failed_rank_ends_the_ranks_of_the_other_node(found: dict[str, Any]) -> None:
    kind, reason, exits = found["one failed"]
    assert (kind, reason) == ("rank_failed", "rank 1 exited with code 3")
    assert exits == [[-15, True], [3, False], [-15, True], [-15, True]]


def test_ranks_see_the_npus_that_ray_gave_them_in_the_users_order(found: dict[str, Any]) -> None:
    kind, environments = found["npu"]
    assert kind == "finished"
    assert [env["ASCEND_RT_VISIBLE_DEVICES"] for env in environments] == ["7,4,6"] * 3
    assert environments[0]["HCCL_IF_BASE_PORT"] == environments[1]["HCCL_IF_BASE_PORT"]
    assert 1024 <= int(environments[0]["HCCL_IF_BASE_PORT"]) <= 65520


def test_what_the_cluster_can_never_give_is_refused(found: dict[str, Any]) -> None:
    assert "needs 2 device(s) on each of 3 nodes" in found["too many"]
    assert "there are 2 node(s) with [2, 2] CPU" in found["too many"]


def test_taken_devices_are_waited_for_within_a_limit(found: dict[str, Any]) -> None:
    assert "there were only 0 CPU free for 4 s" in found["no room"]
    assert "cluster.wait_for_devices_s" in found["no room"]


def test_a_lost_node_loses_its_trial_and_refuses_the_next(found: dict[str, Any]) -> None:
    trial, kind, seconds = found["node lost"]
    assert (trial, kind) == (3, "lost")
    assert seconds < 20
    assert "there are 1 node(s) with [2] CPU" in found["node missing"]


def test_a_node_that_joins_is_used(found: dict[str, Any]) -> None:
    assert found["slots without it"] == 0
    assert found["node joined"] == [1, "finished"]

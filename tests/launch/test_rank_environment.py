"""Which variables a rank gets, and who wins when several set the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.ports import Deadlines, DeviceType
from launch.device_environment import NodeUnfitError, node_environment
from launch.node_job import Meeting, NodeJob
from launch.rank_environment import rank_environment

MEETING = Meeting("10.0.0.1", 23456)


def job(env: dict[str, str], device: DeviceType = "cpu", node: int = 0, nodes: int = 1) -> NodeJob:
    return NodeJob(Path("/t"), ("p",), Path("/"), env, "m", device, node, nodes, 4, Deadlines())


def test_ranks_are_numbered_over_all_nodes() -> None:
    env = rank_environment(job({}, node=1, nodes=2), MEETING, rank=6)
    assert {name: env[name] for name in ("RANK", "LOCAL_RANK")} == {"RANK": "6", "LOCAL_RANK": "2"}
    assert (env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) == ("8", "4")
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("10.0.0.1", "23456")
    assert env["AUTOTUNE_RECORDS"] == "/t/rank6.jsonl"


def test_the_trials_own_meeting_place_wins() -> None:
    assert rank_environment(job({"MASTER_PORT": "29500"}), MEETING, 0)["MASTER_PORT"] == "23456"


@pytest.mark.parametrize(
    ("device", "nodes", "users", "threads", "interface"),
    [
        ("cpu", 1, {}, "1", "lo"),
        ("cpu", 2, {}, "1", None),
        ("cpu", 1, {"OMP_NUM_THREADS": "8", "GLOO_SOCKET_IFNAME": "eth0"}, "8", "eth0"),
        ("npu", 1, {}, None, None),
    ],
)
def test_defaults_give_way_to_the_user(
    device: DeviceType,
    nodes: int,
    users: dict[str, str],
    threads: str | None,
    interface: str | None,
) -> None:
    env = rank_environment(job(users, device, nodes=nodes), MEETING, 0)
    assert (env.get("OMP_NUM_THREADS"), env.get("GLOO_SOCKET_IFNAME")) == (threads, interface)


def test_a_job_survives_its_way_to_the_supervisor() -> None:
    odd = {"A": "b=c,d:e\n\u8c03\udcff", "B": ""}  # a lone surrogate: a byte that is no UTF-8
    there = job(odd, "npu", node=1, nodes=2)
    assert NodeJob.from_json(there.to_json()) == there


def test_a_nodes_own_names_win_over_the_sweeps() -> None:
    wanted = {"HOSTNAME": "login", "NCCL_SOCKET_IFNAME": "eth0", "PATH": "/a"}
    node = {"HOSTNAME": "node7", "NCCL_SOCKET_IFNAME": "bond0", "PATH": "/b", "RAY_X": "1"}
    assert node_environment(wanted, node, "cpu", 4) == {
        "HOSTNAME": "node7",
        "NCCL_SOCKET_IFNAME": "bond0",
        "PATH": "/a",
    }


def test_ranks_see_the_devices_that_ray_gave() -> None:
    node = {"ASCEND_RT_VISIBLE_DEVICES": "4,5"}
    wanted = {"ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
    assert node_environment(wanted, node, "npu", 2) == node


@pytest.mark.parametrize(
    ("given", "users", "seen"),
    [
        ("1,0,3,2", "3,1,2,0", "3,1,2,0"),
        ("2,3", "3,1,2,0", "3,2"),
        ("10,9", None, "9,10"),
        ("0, 1", "0,1", "0,1"),
        ("5,4", "0,1", "4,5"),
        ("GPU-b,GPU-a", None, "GPU-b,GPU-a"),
    ],
)
def test_devices_come_in_the_users_order(given: str, users: str | None, seen: str) -> None:
    name = "ASCEND_RT_VISIBLE_DEVICES"
    listed = {} if users is None else {name: users}
    count = len(given.split(","))
    assert node_environment({}, {name: given}, "npu", count, listed)[name] == seen


@pytest.mark.parametrize("visible", [{}, {"CUDA_VISIBLE_DEVICES": "0"}])
def test_other_devices_than_asked_for_are_refused(visible: dict[str, str]) -> None:
    with pytest.raises(NodeUnfitError, match="RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"):
        node_environment({}, visible, "cuda", 2)

"""How many trials a cluster holds, against a search that tries every assignment."""

from __future__ import annotations

import itertools

import pytest

from autotune.ports import Placement
from launch.capacity import actor_devices, trials_that_fit


def by_search(devices: tuple[int, ...], per_node: int, nodes: int) -> int:
    best = 0
    for chosen in itertools.combinations(range(len(devices)), nodes):
        left = list(devices)
        for node in chosen:
            left[node] -= per_node
        if min(left, default=0) >= 0 and chosen:
            best = max(best, 1 + by_search(tuple(left), per_node, nodes))
    return best


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_against_a_search(nodes: int) -> None:
    for devices in itertools.product(range(5), repeat=3):
        for per_node in (1, 2):
            expected = by_search(devices, per_node, nodes)
            assert trials_that_fit(devices, per_node, nodes) == expected, (devices, per_node)


@pytest.mark.parametrize(
    ("devices", "per_node", "nodes", "trials"),
    [([8, 8], 16, 1, 0), ([8, 8], 8, 2, 1), ([8, 8], 4, 2, 2), ([8, 4, 4], 4, 2, 2), ([], 1, 1, 0)],
)
def test_known_clusters(devices: list[int], per_node: int, nodes: int, trials: int) -> None:
    assert trials_that_fit(devices, per_node, nodes) == trials


def test_an_actor_owns_the_devices_of_its_node() -> None:
    assert actor_devices(Placement(1, 8, "npu")) == {
        "num_cpus": 0,
        "num_gpus": 0,
        "resources": {"NPU": 8},
    }
    assert actor_devices(Placement(2, 4, "cuda")) == {"num_cpus": 0, "num_gpus": 4}
    assert actor_devices(Placement(1, 4, "cpu")) == {"num_cpus": 4, "num_gpus": 0}

"""What trials ask of a cluster's devices, and how many trials it holds at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.ports import DeviceType, Placement
from launch.errors import DevicesUnavailable

_RESOURCES: dict[DeviceType, str] = {"cpu": "CPU", "cuda": "GPU", "npu": "NPU"}


def resource_name(device: DeviceType) -> str:
    """Ray's name for a kind of device. On `cpu` a device is one of Ray's CPUs."""
    return _RESOURCES[device]


def actor_devices(placement: Placement) -> dict[str, Any]:
    """The options with which a Ray actor owns a trial's devices on one node."""
    count = placement.devices_per_node
    devices: dict[str, Any] = {"num_cpus": 0, "num_gpus": 0}
    if placement.device == "npu":
        return {**devices, "resources": {resource_name("npu"): count}}
    return {**devices, "num_cpus" if placement.device == "cpu" else "num_gpus": count}


def describe_placement(placement: Placement) -> str:
    """A placement in words, such as "8 device(s) on each of 2 nodes"."""
    devices = f"{placement.devices_per_node} device(s)"
    return f"{devices} on each of {placement.nodes} nodes" if placement.nodes > 1 else devices


def trials_that_fit(devices_of_nodes: Sequence[int], devices_per_node: int, nodes: int) -> int:
    """The largest number of trials that can run side by side.

    devices_of_nodes: how many devices each node of the cluster has. A trial takes
    `devices_per_node` devices on each of `nodes` different nodes.

    >>> trials_that_fit([8, 8], devices_per_node=4, nodes=2)
    2
    """
    shares = [devices // devices_per_node for devices in devices_of_nodes]
    # k trials fit if and only if the shares, none counted more than k times (a trial uses
    # a node once), are enough for all the trials' nodes.
    fitting = 0
    while sum(min(share, fitting + 1) for share in shares) >= nodes * (fitting + 1):
        fitting += 1
    return fitting


def require_room(placement: Placement, nodes: Sequence[Mapping[str, float]]) -> int:
    """How many trials fit on nodes with these resources, at least one.

    nodes: what Ray has on each living node. Raises `DevicesUnavailable`.
    """
    name = resource_name(placement.device)
    devices = [int(resources.get(name, 0)) for resources in nodes]
    fitting = trials_that_fit(devices, placement.devices_per_node, placement.nodes)
    if fitting == 0:
        raise DevicesUnavailable(
            placement.device,
            describe_placement(placement),
            f"are {len(devices)} node(s) with {devices} {name}",
            "Lower cluster.devices_per_trial or cluster.nodes_per_trial, or add nodes",
        )
    return fitting


def still_taken(
    placement: Placement, free: Mapping[str, float], waited_s: float
) -> DevicesUnavailable:
    """The error for devices that exist, but that others kept for too long."""
    name = resource_name(placement.device)
    return DevicesUnavailable(
        placement.device,
        describe_placement(placement),
        f"were only {free.get(name, 0):g} {name} free for {waited_s:g} s",
        "Wait until others have finished, or raise cluster.wait_for_devices_s",
    )

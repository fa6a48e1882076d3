"""What a node changes in a rank's environment: its own names, and the devices it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.ports import DeviceType

VISIBLE_DEVICES: Mapping[DeviceType, str] = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "npu": "ASCEND_RT_VISIBLE_DEVICES",
}
"""The variables in which Ray names the devices that it gave to a worker."""

HOST_VARIABLES = (
    "HOSTNAME",
    "HCCL_IF_IP",
    "GLOO_SOCKET_IFNAME",
    "HCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
)
"""Variables that describe one host: the node's own value counts, not the sweep's."""


class NodeUnfitError(Exception):
    """The node cannot run the ranks as asked; the text says why."""


def node_environment(
    wanted: Mapping[str, str],
    node: Mapping[str, str],
    device: DeviceType,
    count: int,
    users: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The sweep's environment for ranks, made to fit one node.

    wanted: what the sweep wants ranks to have. node: the environment of Ray's worker
    there. count: how many devices the ranks must see. users: the environment in which Ray was
    started on the node, whose own list of devices gives their order. Raises `NodeUnfitError` when
    Ray made another number visible.
    """
    env = {**wanted, **{name: node[name] for name in HOST_VARIABLES if name in node}}
    name = VISIBLE_DEVICES.get(device)
    if name is None:
        return env
    visible = node.get(name, "")
    devices = _names(visible)
    if len(devices) != count:
        raise NodeUnfitError(
            f"Ray was asked for {count} devices and set {name}={visible!r}. "
            f"Unset RAY_EXPERIMENTAL_NOSET_{name} where Ray is started"
        )
    return {**env, name: ",".join(_in_order(devices, _names((users or {}).get(name, ""))))}


def visible_devices(env: Mapping[str, str], device: DeviceType) -> tuple[str, ...]:
    """The devices that a process with this environment sees, in its order; none on `cpu`."""
    name = VISIBLE_DEVICES.get(device)
    return () if name is None else tuple(_names(env.get(name, "")))


def _names(listed: str) -> list[str]:
    return [one.strip() for one in listed.split(",") if one.strip()]


def _in_order(devices: Sequence[str], listed: Sequence[str]) -> list[str]:
    """As the user lists them, else by number.

    Ray 2.60 hands them on as a set (`Worker.get_accelerator_ids_for_accelerator_resource`), so
    that neighbours, such as chips that share a fast link, would come apart.
    """
    if all(one in listed for one in devices):
        return sorted(devices, key=listed.index)
    if all(one.isdecimal() for one in devices):
        return sorted(devices, key=int)
    return list(devices)

"""What is known of the cluster: its shape, and how fast its devices and links are.

The figures are orders of magnitude of what programs reach, not peaks. Only their ratios
matter, and runs correct those too (`calibrated`).
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.predict.figures import Figures
from autotune.space.definition import Facts


@dataclass(frozen=True)
class Machine:
    """A cluster of equal devices, one rank each.

    device_tflops: matrix products of a device, 1e12 operations a second. memory_gb_s: device
    memory. link_gb_s: between devices of a node, node_link_gb_s: between nodes, host_link_gb_s:
    device to host, each a rank's share in one direction. All GB (1e9 bytes) a second.
    latency_s: of one message or collective. kernel_s: host time to start one kernel.
    overlaps: whether copies and messages run beside compute; on a cpu they take its cores.
    """

    world_size: int
    devices_per_node: int
    device_tflops: float
    memory_gb_s: float
    link_gb_s: float
    node_link_gb_s: float
    host_link_gb_s: float
    latency_s: float
    kernel_s: float
    overlaps: bool = True

    @classmethod
    def from_facts(cls, facts: Facts) -> Machine:
        """From `facts["cluster"]`: its shape, its device, and any of the figures by name.

        Raises UserError for a figure that cannot be.
        """
        cluster = Figures(facts.get("cluster", {}), "cluster")
        world_size = cluster.count("world_size") or 1
        nodes = cluster.count("nodes") or 1
        device = cluster.get("device")
        typical = {"cpu": _CPU, "cuda": _CUDA}.get(str(device), _NPU)
        figures = {name: cluster.number(name) or value for name, value in typical.items()}
        return cls(
            world_size=world_size,
            devices_per_node=cluster.count("devices_per_node") or max(world_size // nodes, 1),
            overlaps=device != "cpu",
            **figures,
        )

    @property
    def flops(self) -> float:
        """Operations a second of one device."""
        return self.device_tflops * 1e12

    @property
    def memory_bytes_s(self) -> float:
        """Bytes a second of device memory."""
        return self.memory_gb_s * 1e9

    @property
    def host_bytes_s(self) -> float:
        """Bytes a second between device and host, one way."""
        return self.host_link_gb_s * 1e9

    def link_bytes_s(self, ranks: int) -> float:
        """Bytes a second of the slowest link within a group of neighbouring ranks."""
        within = ranks <= self.devices_per_node
        return (self.link_gb_s if within else self.node_link_gb_s) * 1e9


# Ascend 910B: 8 devices a node over HCCS, RoCE between nodes, PCIe 4 to the host.
_NPU = {
    "device_tflops": 150.0,
    "memory_gb_s": 1000.0,
    "link_gb_s": 60.0,
    "node_link_gb_s": 20.0,
    "host_link_gb_s": 20.0,
    "latency_s": 50e-6,
    "kernel_s": 10e-6,
}
# A100: NVLink, InfiniBand, PCIe 4.
_CUDA = {
    "device_tflops": 150.0,
    "memory_gb_s": 1500.0,
    "link_gb_s": 200.0,
    "node_link_gb_s": 20.0,
    "host_link_gb_s": 20.0,
    "latency_s": 30e-6,
    "kernel_s": 6e-6,
}
# A core, and gloo over the loopback: a message wakes another process.
_CPU = {
    "device_tflops": 0.03,
    "memory_gb_s": 5.0,
    "link_gb_s": 1.0,
    "node_link_gb_s": 1.0,
    "host_link_gb_s": 2.0,
    "latency_s": 500e-6,
    "kernel_s": 10e-6,
}

"""Phases of a step without a trace: `operator_details.csv` tells sums, but no times.

MindSpeed-MM's breakdown from tables: data loading is the loader's time on the host, the
optimizer's that of the kernels which `Optimizer.step` launched. The rows are of all steps
together, so this works for a profile of one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autotune.analyze.ascend.table import Table
from autotune.analyze.ascend.values import amount
from autotune.analyze.profile import Missing, StepTime

_COLUMNS = ("Name", "Host Total Duration(us)", "Device Total Duration(us)")
_POST_PROCESSING = Missing(
    "post_processing",
    "without trace_view.json it cannot be told from forward_backward, where it is counted",
)
_NO_OPTIMIZER = Missing(
    "the optimizer's share",
    "operator_details.csv has no Optimizer.step#...: it is counted in forward_backward",
)


@dataclass(frozen=True)
class HostSums:
    """Microseconds of a whole profile: loading on the host, the optimizer on the device.

    optimizer_us: None where the file has no optimizer.
    """

    loading_us: float
    optimizer_us: float | None


def read_sums(table: Table) -> HostSums | None:
    """None where the columns are not there, or nothing in the file belongs to training."""
    if table.lacks(_COLUMNS):
        return None
    loading: list[float] = []
    optimizer: list[float] = []
    trains = False
    for name, host, device in table.rows(*_COLUMNS):
        trains = trains or name.startswith("autograd::engine::evaluate_function")
        if name.startswith("enumerate(DataLoader)#"):
            loading.append(amount(host) or 0.0)
        elif name.startswith("Optimizer.step#"):
            optimizer.append(amount(device) or 0.0)
    if not (trains or optimizer):
        return None
    return HostSums(sum(loading), sum(optimizer) if optimizer else None)


def notes(sums: HostSums) -> tuple[Missing, ...]:
    """What the sums cannot tell."""
    return (
        (_POST_PROCESSING,) if sums.optimizer_us is not None else (_POST_PROCESSING, _NO_OPTIMIZER)
    )


def with_phases(step: StepTime, sums: HostSums) -> StepTime:
    """The step with phases that add up to `total_us`, as far as sums can tell them apart.

    A loader that works while the device does costs nothing: only idle time can be loading.
    """
    exposed = step.not_overlapped_without_bubble_us
    if step.host_us is not None:
        exposed = step.not_overlapped_us
    computing = min(step.computing_us, max(step.total_us - exposed, 0.0))
    optimizer = min(sums.optimizer_us or 0.0, computing)
    idle = max(step.total_us - computing - exposed, 0.0)
    loading = min(sums.loading_us, idle)
    phases = {
        "data_loading": loading,
        "forward_backward": computing - optimizer,
        "optimizer": optimizer,
        "post_processing": 0.0,
        "communication": exposed,
        "scheduling": idle - loading,
    }
    return replace(step, phases_us=phases)

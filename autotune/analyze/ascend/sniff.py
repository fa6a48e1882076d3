"""What a file is by its content, where its name does not tell."""

from __future__ import annotations

import gzip
import zlib
from enum import StrEnum
from pathlib import Path

from autotune.analyze.ascend import cluster, files
from autotune.analyze.ascend.table import Table
from autotune.errors import UserError

_HEAD_BYTES = 1 << 16
_SQLITE = b"SQLite format 3\x00"
# Names in the first events of torch_npu's traces: processes, flows.
_ASCEND_MARKS = (b"Ascend Hardware", b"torch_to_npu", b"async_npu", b'"CANN"', b"Overlap Analysis")
# Header cells that only this table has; the first match counts.
_HEADERS = (
    (cluster.CLUSTER_STEPS, ("Type", "Index", "Computing")),
    (files.STEP_TIMES, ("Computing", "Communication(Not Overlapped)")),
    (files.KERNELS, ("Name", "Start Time(us)", "Duration(us)")),
    (files.KERNEL_TYPES, ("OP Type", "Count", "Total Time(us)")),
    (files.OPERATORS, ("Name", "Host Total Duration(us)")),
    (files.OPERATOR_MEMORY, ("Name", "Size(KB)", "Allocation Time(us)")),
    (files.MEMORY, ("Component", "Timestamp(us)", "Total Allocated(MB)")),
    (files.MODULE_MEMORY, ("Component", "Timestamp(us)", "Total Reserved(MB)")),
)


class TraceKind(StrEnum):
    """Who wrote a Chrome trace."""

    TORCH_NPU = "torch_npu"
    KINETO = "kineto"


def trace_kind(path: Path) -> TraceKind | None:
    """The kind of a Chrome trace, plain or gzipped; None for all else.

    torch_npu writes a bare list of events, Kineto an object.
    """
    head = _head(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"[" and b'"ph"' in head:
        return TraceKind.TORCH_NPU
    # A trace that was cut in its header has no events yet.
    if head[:1] == b"{" and any(key in head for key in (b'"traceEvents"', b'"schemaVersion"')):
        return TraceKind.TORCH_NPU if any(m in head for m in _ASCEND_MARKS) else TraceKind.KINETO
    return None


def table_name(path: Path) -> str | None:
    """Which of the profiler's tables a CSV file is, by its columns."""
    table = Table(path)
    return next((name for name, columns in _HEADERS if not table.lacks(columns)), None)


def json_name(path: Path) -> str | None:
    """Which of the communication files a JSON file is."""
    head = _head(path)
    if b'"Communication Time Info"' in head:
        by_rank = head.lstrip()[:2] in (b'{"', b"{'") and b'{"(' in head[:64]
        return cluster.CLUSTER_COMMUNICATION if by_rank else files.COMMUNICATION
    if b'"Transport Type"' in head:
        by_rank = head.lstrip().startswith((b'{"p2p"', b'{"collective"', b'{"('))
        return cluster.CLUSTER_LINKS if by_rank else files.LINKS
    return None


def is_database(path: Path) -> bool:
    """Whether it is a SQLite file."""
    return _head(path).startswith(_SQLITE)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if not head.startswith(b"\x1f\x8b"):
            return head
        with gzip.open(path) as packed:
            return packed.read(_HEAD_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return b""
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error

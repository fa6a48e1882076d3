"""What `export_type` Db writes: the same step as in the texts, in tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from autotune.analyze.find import open_profiles
from autotune.errors import UserError
from tests.analyze import ascend_cases as cases

MIB = 1024**2
HOST_EVENTS = cases.host()


class Tables:
    """A database under construction; texts become numbers of STRING_IDS."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: dict[str, int] = {}
        self._connection = sqlite3.connect(path)

    def name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names) + 1)

    def add(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.execute(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join("?" for _ in columns.split(","))
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def close(self) -> Path:
        self.add("STRING_IDS", "id, value", [(i, text) for text, i in self._names.items()])
        self._connection.commit()
        self._connection.close()
        return self._path


def ns(time: float) -> int:
    return cases.ORIGIN * 1000 + round(time * 1000)


def write_profile(folder: Path, rank: int = 5) -> Path:
    """`ascend_pytorch_profiler_<rank>.db` with the step of `ascend_cases`."""
    tables = Tables(folder / f"ascend_pytorch_profiler_{rank}.db")
    kind, collective = tables.name("KERNEL_AICORE"), tables.name("hcom_allReduce__586_0_1")
    rows = [(ns(s), ns(e), 0, i, i, kind) for i, (_, _, s, e) in enumerate(cases.KERNELS)]
    # A core's task without a kernel's row is a part of the collective.
    rows.append((ns(510), ns(690), 0, 9, 9, kind))
    columns = "startNs, endNs, deviceId, connectionId, globalTaskId, taskType"
    tables.add("TASK", columns, rows)
    named = [(i, tables.name(k[0]), tables.name("N/A")) for i, k in enumerate(cases.KERNELS)]
    tables.add("COMPUTE_TASK_INFO", "globalTaskId, name, taskType", named)
    call = (collective, ns(500), ns(700), tables.name("group"), 9)
    tables.add("COMMUNICATION_OP", "opName, startNs, endNs, groupName, connectionId", [call])
    _add_host(tables)
    _add_memory(tables)
    return tables.close()


def _add_host(tables: Tables) -> None:
    operators = [(e["name"], float(e["ts"]) - cases.ORIGIN, e["dur"]) for e in HOST_EVENTS]
    rows: list[tuple[object, ...]] = [
        (str(ns(start)), str(ns(start + length)), tables.name(name), 50001, None)
        for name, start, length in operators
        if not name.startswith("ProfilerStep")
    ]
    launched = [*(kernel[1] for kernel in cases.KERNELS), 320]
    for number, start in enumerate(launched):
        row = (str(ns(start)), str(ns(start + 1)), tables.name("launcher"), 50001, 100 + number)
        rows.append(row)
    tables.add("PYTORCH_API", "startNs TEXT, endNs TEXT, name, type, connectionId", rows)
    links = [(100 + number, number) for number in range(4)] + [(104, 9)]
    tables.add("CONNECTION_IDS", "id, connectionId", links)
    tables.add("STEP_TIME", "id, startNs, endNs", [(7, ns(0), ns(1000))])


def _add_memory(tables: Tables) -> None:
    framework = tables.name("PTA")
    records = [(framework, ns(t), size * MIB, 200 * MIB) for t, size in ((10, 100), (20, 140))]
    tables.add("MEMORY_RECORD", "component, timestamp, totalAllocated, totalReserved", records)
    allocation = (tables.name("aten::mm"), 30 * MIB, ns(15), None)
    tables.add("OP_MEMORY", "name, size, allocationTime, releaseTime", [allocation])
    tables.add("ENUM_MODULE", "id, name", [(3, "HCCL")])
    module = (3, ns(0), 400 * MIB)
    tables.add("NPU_MODULE_MEM", "moduleId, timestampNs, totalReserved", [module])
    process = (tables.name("app"), 900 * MIB, 0, ns(0))
    tables.add("NPU_MEM", "type, hbm, ddr, timestampNs", [process])


def write_analysis(folder: Path) -> Path:
    tables = Tables(folder / "analysis.db")
    figures = "computing, communication_not_overlapped, overlapped, communication, free, stage"
    columns = (
        f"step, {figures}, bubble, communication_not_overlapped_and_exclude_receive, preparing"
    )
    row = ("7", 520, 140, 60, 200, 50, 710, 0, 140, 150)
    tables.add("StepTraceTime", columns, [row])
    times = "elapse_time, transit_time, wait_time, synchronization_time, idle_time"
    # Databases place the same call some microseconds elsewhere.
    call = ("hcom_allReduce__586_0_1", "11", cases.ORIGIN + 513.25, 0.2, 0.05, 0.1, 0, 0.05)
    total = ("Total Op Info", "11", 0, 9, 9, 9, 9, 9)
    rows = [(*call, "step7", "collective"), (*total, "step7", "")]
    columns = f"hccl_op_name, group_name, start_timestamp, {times}, step, type"
    tables.add("CommAnalyzerTime", columns, rows)
    sizes = [("HCCS", 4), ("HCCS", 4), ("SDMA", 4)]  # a row a packet size
    bandwidth = [("hcom_allReduce__586_0_1", "11", name, size, "step7") for name, size in sizes]
    columns = "hccl_op_name, group_name, transport_type, transit_size, step"
    tables.add("CommAnalyzerBandwidth", columns, bandwidth)
    columns = (
        "hccl_op_name, group_name, src_rank, dst_rank, transport_type, transit_size, transit_time"
    )
    links = [
        (name, "11", "0", "1", "HCCS", 4, 0.5) for name in ("allreduce-top1", "allreduce-total")
    ]
    tables.add("CommAnalyzerMatrix", columns, links)
    return tables.close()


def test_tasks_alone_give_the_step_and_its_phases(tmp_path: Path) -> None:
    write_profile(tmp_path)
    (profile,) = open_profiles(tmp_path)
    (step,) = profile.steps
    assert (profile.rank, step.step) == (5, 7)
    assert {name: asdict(step)[name] for name in cases.STEP} == pytest.approx(cases.STEP)
    assert step.phases_us == pytest.approx(cases.PHASES)
    kernels = {o.name for o in profile.operators if o.where != "host"}
    assert kernels == {kernel[0] for kernel in cases.KERNELS}


def test_memory(tmp_path: Path) -> None:
    write_profile(tmp_path)
    memory = open_profiles(tmp_path)[0].memory
    assert memory is not None
    sizes = {"APP": 900 * MIB, "module HCCL": 400 * MIB, "PTA": 200 * MIB}
    assert memory.peaks_bytes == sizes
    assert memory.peak_at_us == pytest.approx(20)
    assert [(holder.by, holder.size_bytes / MIB) for holder in memory.holders] == [
        ("allocated before profiling began", 110),
        ("aten::mm", 30),
    ]


def test_the_analysis_has_steps_collectives_and_links(tmp_path: Path) -> None:
    write_analysis(tmp_path)
    write_profile(tmp_path)
    (profile,) = open_profiles(tmp_path)
    (step,) = profile.steps
    assert {name: asdict(step)[name] for name in cases.STEP} == cases.STEP
    assert step.phases_us == pytest.approx(cases.PHASES)
    (call,) = profile.collectives
    assert (call.operation, call.step, call.size_bytes) == ("allReduce", 7, 4e6)
    assert (call.elapsed_us, call.wait_us, call.overlapped_us) == (200, 100, pytest.approx(60))
    (link,) = profile.links
    assert link.bandwidth_gb_per_s == pytest.approx(8)


def test_an_analysis_by_itself(tmp_path: Path) -> None:
    (profile,) = open_profiles(write_analysis(tmp_path))
    assert profile.steps[0].computing_us == 520
    assert {"phases", "memory", "operators"} <= {missing.what for missing in profile.missing}


def test_tables_that_are_not_there_are_named(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "ascend_pytorch_profiler.db")
    tables.add("STEP_TIME", "id, startNs, endNs", [(7, 1, 2)])
    _add_memory(tables)
    (profile,) = open_profiles(tables.close())
    assert (profile.rank, profile.steps) == (None, ())
    assert any(missing.what == "step times" for missing in profile.missing)


def test_a_database_that_was_cut(tmp_path: Path) -> None:
    path = write_profile(tmp_path)
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(UserError, match="ascend_pytorch_profiler_5"):
        open_profiles(tmp_path)


def test_a_broken_database_does_not_hide_the_texts(tmp_path: Path) -> None:
    (tmp_path / "analysis.db").write_bytes(b"no database at all")
    cases.write_trace(tmp_path, cases.one_step())
    (profile,) = open_profiles(tmp_path)
    assert profile.steps[0].computing_us == pytest.approx(520)
    assert any("analysis.db" in missing.why for missing in profile.missing)

"""Kernels, operators and memory: the tables, their units and their bad cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.analyze.find import open_profiles
from autotune.analyze.profile import Profile
from autotune.errors import UserError
from tests.analyze import ascend_cases as cases

MIB = 1024**2


def read(folder: Path, name: str, text: str) -> Profile:
    (folder / name).write_text(text)
    (profile,) = open_profiles(folder / name)
    return profile


def kernels(*rows: str) -> str:
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
    return header + "".join(f"{row}\n" for row in rows)


def test_kernels_alone(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        "kernel_details.csv",
        kernels(
            f"3,a,MatMul,AI_CORE,{cases.us(0)}\t,100,0",
            f"3,b,Add,AI_VECTOR_CORE,{cases.us(50)}\t, 100\t,0",  # at the same time as a
            f"3,b,Add,AI_VECTOR_CORE,{cases.us(50)}\t, 100\t,0",  # twice
            f"3,hcom_allReduce__1_0_1,hcom_allReduce_,HCCL,{cases.us(100)},70,0",
            f"3,AllReduceMesh,AllReduceMesh,COMMUNICATION,{cases.us(150)},50,0",
            f"4,c,MatMul,AI_CORE,{cases.us(1000)}\t,10,N/A",
            f"4,d,MatMul,AI_CORE,{cases.us(1030)}\t,20,0",
            f"4,e,MatMul,AI_CORE,{cases.us(1060)}\t,N/A,0",
            "4,f,MatMul,AI_CORE,N/A,5,0",
            f"4,g,MatMul,AI_CORE,{cases.us(1070)},-20,0",
        ),
    )
    first, second = profile.steps
    assert (first.step, first.computing_us, first.communication_us) == (3, 150, 100)
    assert (first.overlapped_us, first.not_overlapped_us, first.stage_us) == (50, 50, 200)
    assert (second.step, second.computing_us, second.free_us, second.stage_us) == (4, 30, 20, 50)
    matmul = next(operator for operator in profile.operators if operator.name == "MatMul")
    assert (matmul.where, matmul.count, matmul.total_us, matmul.longest_us) == (
        "AI_CORE", 3, 130, 100,
    )  # fmt: skip
    add = next(operator for operator in profile.operators if operator.name == "Add")
    assert (add.count, add.total_us) == (1, 100)
    assert [call.operation for call in profile.collectives] == ["allReduce", "AllReduceMesh"]
    assert any(missing.what == "phases" for missing in profile.missing)


def test_level_0_kernels_without_types(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        "kernel_details.csv",
        kernels(f",trans_TransData_0,N/A,N/A,{cases.us(0)},100,0"),
    )
    (step,) = profile.steps
    assert (step.step, step.computing_us) == (None, 100)
    assert profile.operators[0].name == "trans_TransData_0"


def test_operators_by_kernel_type(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        "op_statistic.csv",
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "Add,AI_VECTOR_CORE,2,30,10,15,20,10\nMatMul,AI_CORE,4,300,1,75,200,90\nBad,X,N/A,5,1,1,1,1\n",
    )
    assert [(o.name, o.where, o.count, o.total_us, o.longest_us) for o in profile.operators] == [
        ("MatMul", "AI_CORE", 4, 300, 200),
        ("Add", "AI_VECTOR_CORE", 2, 30, 20),
    ]


def test_operators_of_the_host_and_what_they_launched(tmp_path: Path) -> None:
    profile = read(
        tmp_path,
        "operator_details.csv",
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
        "Device Self Duration(us),Device Total Duration(us)\n"
        'aten::mm,"8,8;\n8,8","a.py(1): f;\nb.py(2): g",10,15,100,100\n'
        "aten::mm,,,12,30,50,50\naten::linear,,,5,50,0,150\n",
    )
    host = {o.name: o for o in profile.operators if o.where == "host"}
    device = {o.name: o for o in profile.operators if o.where != "host"}
    assert (host["aten::mm"].count, host["aten::mm"].total_us, host["aten::mm"].self_us) == (
        2,
        45,
        22,
    )
    assert host["aten::mm"].longest_us == 30
    assert {name: operator.total_us for name, operator in device.items()} == {"aten::mm": 150}


RECORDS = (
    "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type\n"
    f"APP,{cases.us(0)}\t,,2100,,NPU:0\n"
    f"PTA,{cases.us(10)}\t,100,150,100,NPU:0\n"
    f"PTA,{cases.us(20)}\t,140,150,140,NPU:0\n"
    f"PTA,{cases.us(30)}\t,90,150,90,NPU:0\n"
    f"PTA,N/A,900,900,90,NPU:0\nPTA,{cases.us(40)},N/A,N/A,,NPU:0\n"
)
MODULES = (
    "Device_id,Component,Timestamp(us),Total Reserved(MB),Device\n"
    f"0,HCCL,{cases.us(0)}\t,404.5,NPU:0\n0,SLOG,{cases.us(0)}\t,0.0,NPU:0\n0,LP,{cases.us(0)},-1,NPU:0\n"
)
ALLOCATIONS = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us)\n"
    f"aten::mm,20480,{cases.us(15)}\t,{cases.us(25)}\t,,10\n"  # 20 MiB, live at 20
    f"aten::add,10240,{cases.us(16)}\t,,,\n"  # 10 MiB, live at 20
    f"aten::gone,10240,{cases.us(11)}\t,{cases.us(19)}\t,,8\n"
    f"aten::later,10240,{cases.us(21)}\t,,,\n"
    f"cann::Graph_1,10240,{cases.us(15)}\t,,,\n"  # the graph engine's own
)


def test_memory_with_its_peak_and_what_held_it(tmp_path: Path) -> None:
    (tmp_path / "memory_record.csv").write_text(RECORDS)
    (tmp_path / "npu_module_mem.csv").write_text(MODULES)
    (tmp_path / "operator_memory.csv").write_text(ALLOCATIONS)
    (profile,) = open_profiles(tmp_path)
    memory = profile.memory
    assert memory is not None
    assert memory.peaks_bytes == {
        "APP": 2100 * MIB,
        "module HCCL": 404.5 * MIB,
        "PTA": 150 * MIB,  # reserved
    }
    assert memory.peak_at_us == pytest.approx(20)  # of what was allocated
    assert [(holder.by, holder.size_bytes / MIB) for holder in memory.holders] == [
        ("allocated before profiling began", 110),
        ("aten::mm", 20),
        ("aten::add", 10),
    ]
    assert memory.holders[1].released_at_us == pytest.approx(25)
    framework = [point for point in memory.points if point.component == "PTA"]
    assert [point.allocated_bytes / MIB for point in framework] == [100, 140, 90]


def test_a_curve_of_many_points_keeps_its_peak(tmp_path: Path) -> None:
    rows = [f"PTA,{cases.us(i)}\t,{i % 7},10,1,NPU:0\n" for i in range(20_000)]
    rows[12_345] = f"PTA,{cases.us(12_345)}\t,9,10,9,NPU:0\n"
    header = RECORDS.splitlines(keepends=True)[0]
    memory = read(tmp_path, "memory_record.csv", header + "".join(rows)).memory
    assert memory is not None
    assert len(memory.points) <= 2000
    assert max(point.allocated_bytes for point in memory.points) == 9 * MIB
    assert memory.peak_at_us == pytest.approx(12_345)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("step_trace_time.csv", "Step,Computing\n7,5\n"),
        ("kernel_details.csv", "Name,Duration(us)\na,5\n"),
        ("memory_record.csv", "Component,Timestamp(us)\n"),
        ("op_statistic.csv", ""),
        ("communication.json", "[]"),
        ("trace_view.json", "[]"),
    ],
)
def test_files_without_what_is_needed(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=name):
        open_profiles(tmp_path)


def test_a_file_that_is_no_json_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "trace_view.json").write_text("not a trace")
    (tmp_path / "kernel_details.csv").write_text(kernels(f"3,a,M,AI_CORE,{cases.us(0)},100,0"))
    (tmp_path / "op_statistic.csv").write_text("OP Type,Count,Total Time(us)\nM,1,100\n")
    (profile,) = open_profiles(tmp_path)
    assert profile.steps[0].computing_us == 100
    assert any("trace_view.json" in missing.why for missing in profile.missing)


def test_old_text_with_bytes_that_are_no_utf_8(tmp_path: Path) -> None:
    text = kernels(f"3,caf\xe9,M,AI_CORE,{cases.us(0)},100,0").encode("latin-1")
    (tmp_path / "kernel_details.csv").write_bytes(b"\xef\xbb\xbf" + text)
    (profile,) = open_profiles(tmp_path)
    assert profile.steps[0].computing_us == 100

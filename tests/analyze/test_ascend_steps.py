"""Step times and phases, against the step in `ascend_cases` that was reckoned by hand."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from autotune.analyze.find import open_profiles
from autotune.analyze.profile import Profile, StepTime
from tests.analyze import ascend_cases as cases


def read(tmp_path: Path, events: list[cases.Event]) -> Profile:
    (profile,) = open_profiles(cases.write_trace(tmp_path, events))
    return profile


def assert_step(step: StepTime) -> None:
    assert {name: asdict(step)[name] for name in cases.STEP} == pytest.approx(cases.STEP)


def test_one_step(tmp_path: Path) -> None:
    (step,) = read(tmp_path, cases.one_step()).steps
    assert step.step == 7
    assert_step(step)
    assert step.bubble_us == 0
    assert step.total_us == pytest.approx(1000)
    assert step.phases_us == pytest.approx(cases.PHASES)


def test_kernels_do_where_the_overlap_analysis_is_not_there(tmp_path: Path) -> None:
    events = [*cases.metadata(), *cases.host(), *cases.device()]
    (step,) = read(tmp_path, events).steps
    assert_step(step)
    assert step.phases_us == pytest.approx(cases.PHASES)


def test_events_in_any_order_and_twice(tmp_path: Path) -> None:
    events = cases.one_step() * 2
    random.Random(3).shuffle(events)
    profile = read(tmp_path, events)
    (step,) = profile.steps
    assert_step(step)
    assert step.phases_us == pytest.approx(cases.PHASES)
    assert sum(operator.count for operator in profile.operators if operator.where != "host") == 4


@pytest.mark.parametrize("kind", [float, str, lambda time: f" {time}\t"])
def test_timestamps_as_numbers_and_text(tmp_path: Path, kind: Any) -> None:
    events = cases.one_step()
    for event in events:
        if "ts" in event:
            event["ts"] = kind(event["ts"])
        if "dur" in event:
            event["dur"] = str(event["dur"])
    (step,) = read(tmp_path, events).steps
    assert {name: asdict(step)[name] for name in cases.STEP} == pytest.approx(cases.STEP, abs=1)


def test_a_gzipped_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace_view.json.gz"
    path.write_bytes(gzip.compress(json.dumps(cases.one_step()).encode()))
    (profile,) = open_profiles(path)
    assert_step(profile.steps[0])


def test_waiting_for_a_stage_is_a_bubble(tmp_path: Path) -> None:
    device = cases.device(collective="hcom_receive__822_0_1")
    profile = read(tmp_path, [*cases.metadata(), *cases.host(), *device, *cases.overlap()])
    (step,) = profile.steps
    assert step.bubble_us == pytest.approx(200)
    assert step.stage_us == pytest.approx(510)  # the device's span of 710 less the bubble
    assert step.not_overlapped_without_bubble_us == 0  # 140 - 200
    (gap,) = (gap for gap in profile.gaps if gap.cause == "receive")
    assert (gap.start_us, gap.duration_us, gap.step) == (pytest.approx(500), pytest.approx(200), 7)
    assert sum((step.phases_us or {}).values()) == pytest.approx(step.total_us)


def test_steps_follow_each_other_when_the_host_runs_ahead(tmp_path: Path) -> None:
    # The host needs 1000 a step, the device is 600 and 1200 behind: steps of 1460 and 1600.
    events = cases.metadata()
    for number, lag in enumerate((600, 1200)):
        events += cases.host(at=1000 * number, number=7 + number)
        events += cases.device(at=1000 * number, lag=lag, offset=100 * number)
    steps = read(tmp_path, events).steps
    assert [step.step for step in steps] == [7, 8]
    assert [step.total_us for step in steps] == pytest.approx([1460, 1600])
    for step in steps:
        assert step.computing_us == pytest.approx(520)
        assert sum((step.phases_us or {}).values()) == pytest.approx(step.total_us)
        assert (step.phases_us or {})["optimizer"] == pytest.approx(100)


def test_work_after_the_optimizer_is_post_processing(tmp_path: Path) -> None:
    late = cases.complete("LossSum", cases.HARDWARE, 2, 900, 930, args={"Task Type": "AI_CORE"})
    events = [*cases.metadata(), *cases.host(), *cases.device(), late]
    events += cases.flow("late", 650, 900, cases.HARDWARE, 2)
    (step,) = read(tmp_path, events).steps
    assert (step.phases_us or {})["post_processing"] == pytest.approx(20 + 30)


def test_a_kernel_between_two_steps_is_of_neither(tmp_path: Path) -> None:
    stray = cases.complete("Stray", cases.HARDWARE, 2, 1050, 1060, args={"Task Type": "AI_CORE"})
    events = [*cases.metadata(), stray]
    for number in range(2):
        at = 1000 * number
        events += cases.host(at=at, number=number) + cases.device(at=at, offset=100 * number)
    steps = read(tmp_path, events).steps
    assert [step.computing_us for step in steps] == pytest.approx([520, 520])


def test_kernels_do_where_the_overlap_analysis_was_cut(tmp_path: Path) -> None:
    later = cases.complete("Next", cases.HARDWARE, 2, 1100, 1110, args={"Task Type": "AI_CORE"})
    events = [*cases.metadata(), *cases.host(), *cases.device(), later, *cases.overlap()]
    text = json.dumps(events)
    path = tmp_path / "trace_view.json"
    path.write_text(text[: text.index('"Communication(Not Overlapped)"')])
    (profile,) = open_profiles(path)
    assert profile.cut == ("trace_view.json",)
    (step,) = profile.steps
    figures = (step.computing_us, step.communication_us, step.not_overlapped_us)
    assert figures == pytest.approx((520, 200, 140))
    # As in CANN's analysis, the time to the next step's first kernel is free time of this one.
    assert (step.free_us, step.stage_us) == pytest.approx((50 + 240, 710 + 240))


def test_a_loader_that_the_device_hides_costs_nothing(tmp_path: Path) -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    hidden = cases.complete(loader, cases.HOST, cases.HOST, 200, 300, cat="cpu_op")
    (step,) = read(tmp_path, [*cases.one_step(), hidden]).steps
    assert step.phases_us == pytest.approx(cases.PHASES)


def test_without_profiler_steps_all_is_one_step(tmp_path: Path) -> None:
    events = [e for e in cases.one_step() if not e["name"].startswith("ProfilerStep")]
    profile = read(tmp_path, events)
    (step,) = profile.steps
    assert step.step is None
    assert step.computing_us == pytest.approx(520)
    assert sum((step.phases_us or {}).values()) == pytest.approx(step.total_us)
    assert any("borders of the steps" in missing.what for missing in profile.missing)


def test_without_the_host_there_are_no_phases(tmp_path: Path) -> None:
    profile = read(tmp_path, [*cases.metadata(), *cases.device(), *cases.overlap()])
    (step,) = profile.steps
    assert (step.phases_us, step.host_us) == (None, None)
    (missing,) = (entry for entry in profile.missing if entry.what == "phases")
    assert "with_cpu" in missing.why


def test_without_flows_the_hosts_clock_cuts_the_steps(tmp_path: Path) -> None:
    events = [event for event in cases.one_step() if event["ph"] not in "sf"]
    profile = read(tmp_path, events)
    assert_step(profile.steps[0])
    assert any("exact borders" in missing.what for missing in profile.missing)


def test_without_an_optimizer_that_is_named(tmp_path: Path) -> None:
    events = [e for e in cases.one_step() if not e["name"].startswith("Optimizer")]
    profile = read(tmp_path, events)
    assert (profile.steps[0].phases_us or {})["optimizer"] == 0
    assert any("optimizer" in missing.what for missing in profile.missing)


def test_a_trace_without_kernels(tmp_path: Path) -> None:
    profile = read(tmp_path, [*cases.metadata(), *cases.host()])
    assert profile.steps == ()
    assert any(missing.what == "step times" for missing in profile.missing)
    assert {operator.where for operator in profile.operators} == {"host"}


def test_of_two_devices_the_busier_one(tmp_path: Path) -> None:
    other = cases.complete("Small", 99, 2, 100, 110, args={"Task Type": "AI_CORE"})
    label = {"ph": "M", "name": "process_labels", "pid": 99, "tid": 0, "args": {"labels": "NPU 1"}}
    profile = read(tmp_path, [*cases.one_step(), label, other])
    assert_step(profile.steps[0])
    assert any("NPU 1" in missing.what for missing in profile.missing)


def test_idle_gaps_with_what_ran_around_them(tmp_path: Path) -> None:
    gaps = read(tmp_path, cases.one_step()).gaps
    found = [(gap.start_us, gap.duration_us, gap.before, gap.after, gap.cause) for gap in gaps]
    assert found == [
        (350, 10, "MatMul", "MatMulGrad", "host"),
        (700, 20, "hcom_allReduce__586_0_1", "ClipNorm", "host"),
        (740, 20, "ClipNorm", "ApplyAdamW", "host"),
    ]


def test_a_gap_that_is_a_copy(tmp_path: Path) -> None:
    copy = cases.complete(
        "MEMCPY_ASYNC", cases.HARDWARE, 3, 701, 719, args={"Task Type": "SDMA_SQE"}
    )
    gaps = read(tmp_path, [*cases.one_step(), copy]).gaps
    assert [gap.cause for gap in gaps] == ["host", "copy", "host"]


HEADER = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def read_csv(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "step_trace_time.csv"
    path.write_text(text)
    (profile,) = open_profiles(path)
    return profile


def test_the_csv_wins_over_the_trace(tmp_path: Path) -> None:
    cases.write_trace(tmp_path, cases.one_step())
    (tmp_path / "step_trace_time.csv").write_text(f"{HEADER}\n7,521,139,61,200,50,710,0,139,150\n")
    (profile,) = open_profiles(tmp_path)
    (step,) = profile.steps
    assert step.computing_us == 521
    assert step.phases_us == pytest.approx(cases.PHASES)


def test_cells_with_tabs_blanks_and_nothing(tmp_path: Path) -> None:
    profile = read_csv(
        tmp_path,
        f"Device_id,{HEADER}\r\n"
        "0,3, 520.5\t,140,60,200,50\t,710.5,N/A,,\r\n"
        "0,4,N/A,1,1,1,1,1,1,1,1\r\n",
    )
    (step,) = profile.steps  # of the second row nothing can be told
    assert (step.step, step.computing_us, step.stage_us, step.bubble_us) == (3, 520.5, 710.5, 0)


def test_an_older_csv_without_preparing(tmp_path: Path) -> None:
    (step,) = read_csv(
        tmp_path, "Step,Computing,Communication(Not Overlapped),Free\n2,5,3,2\n"
    ).steps
    assert (step.stage_us, step.communication_us, step.preparing_us) == (10, 3, 0)


def test_a_csv_whose_last_row_was_cut(tmp_path: Path) -> None:
    row = "520,140,60,200,50,710,0,140,150"
    profile = read_csv(tmp_path, f"{HEADER}\n7,{row}\n8,520,140,60")
    assert [step.step for step in profile.steps] == [7]
    assert profile.cut == ("step_trace_time.csv",)
    assert not profile.complete


def test_rows_of_several_devices(tmp_path: Path) -> None:
    rest = "1,1,2,1,10,0,1,1"
    profile = read_csv(tmp_path, f"Device_id,{HEADER}\n0,7,8,{rest}\n1,7,9,{rest}\n1,8,9,{rest}\n")
    assert [(step.step, step.computing_us) for step in profile.steps] == [(7, 9), (8, 9)]


def test_phases_from_tables_where_the_trace_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "step_trace_time.csv").write_text(f"{HEADER}\n7,520,140,60,200,50,710,0,140,150\n")
    (tmp_path / "operator_details.csv").write_text(
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
        "Device Self Duration(us),Device Total Duration(us)\n"
        'enumerate(DataLoader)#X.__next__,,"a, b;\nc",1,100,0,0\n'
        "Optimizer.step#AdamW.step,,,1,120,0,100\n"
    )
    (profile,) = open_profiles(tmp_path)
    # 860 = preparing + stage; what neither computes, communicates nor loads is scheduling.
    assert profile.steps[0].phases_us == pytest.approx(
        {
            "data_loading": 100,
            "forward_backward": 420,
            "optimizer": 100,
            "post_processing": 0,
            "communication": 140,
            "scheduling": 100,
        }
    )
    assert any(missing.what == "post_processing" for missing in profile.missing)

"""Collectives and links: what is counted, what is not, and in which units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.analyze.ascend.groups import hash_of
from autotune.analyze.find import open_profiles
from autotune.analyze.profile import Profile
from tests.analyze import ascend_cases as cases

GROUP = "17522688603477080586"


def facts(start: float | None, elapsed_ms: float, **times: float) -> dict[str, Any]:
    named = {f"{name} Time(ms)": value for name, value in times.items()}
    began = {} if start is None else {"Start Timestamp(us)": cases.ORIGIN + start}
    return {
        "Communication Time Info": {**began, "Elapse Time(ms)": elapsed_ms, **named},
        "Communication Bandwidth Info": {
            "RDMA": {"Transit Size(MB)": 1},
            "HCCS": {"Transit Size(MB)": 2},
            "PCIE": {"Transit Size(MB)": 3},
            "SDMA": {"Transit Size(MB)": 5},
        },
    }


def communication(**calls: dict[str, Any]) -> str:
    named = {f"{name}@{GROUP}": value for name, value in calls.items()}
    total = {"Total Op Info": facts(None, 99)}
    return json.dumps({"step7": {"p2p": {}, "collective": {**named, **total}}})


def read(folder: Path, **files: str) -> Profile:
    named = {name.replace("__", "."): text for name, text in files.items()}
    (profile,) = open_profiles(cases.write_rank(folder / "rank", 3, named))
    return profile


def test_a_collective_with_what_computing_hides_of_it(tmp_path: Path) -> None:
    call = facts(500.2, 0.2, Transit=0.05, Wait=0.1, Synchronization=0.04, Idle=0.05)
    text = communication(hcom_allReduce__586_0_1=call)
    trace = json.dumps(cases.one_step())
    (found,) = read(tmp_path, communication__json=text, trace_view__json=trace).collectives
    assert (found.operation, found.group, found.step, found.count) == ("allReduce", GROUP, 7, 1)
    times = (found.elapsed_us, found.transit_us, found.wait_us, found.synchronization_us)
    assert times == pytest.approx((200, 50, 100, 40))
    # SDMA is what HCCS and PCIE moved within the server, RDMA goes between servers.
    assert found.size_bytes == pytest.approx(6e6)
    assert found.bandwidth_gb_per_s == pytest.approx(6e6 / 50e-6 / 1e9)
    assert found.overlapped_us == pytest.approx(60)


def test_a_call_of_another_time_is_not_the_traces(tmp_path: Path) -> None:
    text = communication(hcom_allReduce__586_0_1=facts(9_000_000, 0.2))
    trace = json.dumps(cases.one_step())
    (found,) = read(tmp_path, communication__json=text, trace_view__json=trace).collectives
    assert found.overlapped_us is None


def test_what_has_no_elapsed_time_is_left_out(tmp_path: Path) -> None:
    broken = facts(1, 0)
    broken["Communication Time Info"]["Elapse Time(ms)"] = "N/A"
    text = communication(hcom_broadcast__1_0_1=broken, hcom_allGather__1_1_1=facts(1, 1))
    found = read(tmp_path, communication__json=text).collectives
    assert [call.operation for call in found] == ["allGather"]


def test_a_cut_file_is_named_and_the_trace_asked(tmp_path: Path) -> None:
    text = communication(hcom_allReduce__586_0_1=facts(500, 0.2))
    trace = json.dumps(cases.one_step())
    profile = read(tmp_path, communication__json=text[:300], trace_view__json=trace)
    assert profile.cut == ("communication.json",)
    (found,) = profile.collectives
    assert (found.elapsed_us, found.overlapped_us) == (pytest.approx(200), pytest.approx(60))
    assert (found.transit_us, found.size_bytes) == (None, None)


def link(size: float, spent: float, name: str = "") -> dict[str, Any]:
    named = {"Op Name": name} if name else {}
    return {"Transport Type": "HCCS", "Transit Size(MB)": size, "Transit Time(ms)": spent, **named}


def matrix(**operations: dict[str, Any]) -> str:
    named = {f"{name.replace('_', '-')}@{GROUP}": links for name, links in operations.items()}
    return json.dumps({"step7": {"p2p": {}, "collective": named}})


def test_links_are_the_sums_not_the_selected_calls(tmp_path: Path) -> None:
    text = matrix(
        allreduce_top1={"0-1": link(40, 2, "a")},
        allreduce_bottom1={"0-1": link(20, 2, "b")},
        allreduce_total={"0-1": link(60, 4), "0-0": link(5, 1)},
    )
    (found,) = read(tmp_path, communication_matrix__json=text).links
    assert (found.source, found.target, found.transport) == (0, 1, "HCCS")
    assert found.bandwidth_gb_per_s == pytest.approx(15)


def test_selected_calls_count_once_where_there_are_no_sums(tmp_path: Path) -> None:
    text = matrix(
        allreduce_top1={"0-1": link(40, 2, "a")},
        allreduce_middle={"0-1": link(20, 2, "b")},
        allreduce_bottom1={"0-1": link(20, 2, "b")},
    )
    (found,) = read(tmp_path, communication_matrix__json=text).links
    assert (found.size_bytes, found.transit_us) == (pytest.approx(60e6), pytest.approx(4000))


def test_groups_get_the_names_and_ranks_of_training(tmp_path: Path) -> None:
    # A pair that CANN 8.3 wrote: the communicator of the pipeline and its number in the JSON.
    assert hash_of("group_name_19") == "3985310405473756128"
    group = {"group_name": "pp", "group_rank": 0, "global_ranks": [3, 7]}
    folder = cases.write_rank(
        tmp_path / "rank",
        3,
        {
            "communication_matrix.json": matrix(send={"0-1": link(1, 1)}).replace(
                GROUP, "3985310405473756128"
            )
        },
    )
    metadata = {"parallel_group_info": {"group_name_19": group}}
    (folder / "profiler_metadata.json").write_text(json.dumps(metadata))
    (profile,) = open_profiles(folder)
    (found,) = profile.links
    assert (found.source, found.target) == (3, 7)
    assert found.group == "pp (3985310405473756128)"


def test_an_exchange_between_pipeline_stages_is_a_bubble(tmp_path: Path) -> None:
    name, group = "hcom_batchSendRecv__128_0_1", "3985310405473756128"
    events = [
        *cases.metadata(),
        *cases.host(),
        *cases.device(collective=name),
        *cases.overlap(),
    ]
    text = json.dumps({"step7": {"p2p": {f"{name}@{group}": facts(500, 0.2)}}})
    files = {"trace_view.json": json.dumps(events), "communication.json": text}
    folder = cases.write_rank(tmp_path / "rank", 3, files)
    described = {"group_name": "pp", "global_ranks": [3, 7]}
    metadata = {"parallel_group_info": {"group_name_19": described}}
    (folder / "profiler_metadata.json").write_text(json.dumps(metadata))
    (profile,) = open_profiles(folder)
    (gap,) = (gap for gap in profile.gaps if gap.cause == "receive")
    assert (gap.start_us, gap.duration_us) == (pytest.approx(560), pytest.approx(140))


CLUSTER_STEPS = (
    "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,"
    "Bubble,Communication(Not Overlapped and Exclude Receive)\n"
    "7,rank,0,10,2,1,3,4,16,0,2\n7,rank,1,11,2,1,3,4,17,0,2\n8,rank,1,12,2,1,3,4,18,0,2\n"
    '7,stage,"(0, 1)",11,2,1,3,4,17,0,2\n7,stage,1,99,2,1,3,4,17,0,2\n'
)


def test_the_files_of_a_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "cluster_analysis_output"
    folder.mkdir()
    (folder / "cluster_step_trace_time.csv").write_text(CLUSTER_STEPS)
    calls = {f"hcom_send__1_0@{GROUP}": {"0": facts(1, 1), "1": facts(1, 2)}}
    (folder / "cluster_communication.json").write_text(json.dumps({"(0, 1)": {"step7": calls}}))
    links = {f"hcom_send__1_0@{GROUP}": {"0-1": link(1, 1)}}
    (folder / "cluster_communication_matrix.json").write_text(json.dumps({"p2p": {"step7": links}}))
    first, second = open_profiles(tmp_path)
    assert (first.rank, second.rank) == (0, 1)
    assert [step.computing_us for step in second.steps] == [11, 12]
    assert [call.elapsed_us for call in second.collectives] == [2000]
    assert [(link.source, link.target) for link in first.links] == [(0, 1)]
    assert any("phases" in missing.what for missing in first.missing)

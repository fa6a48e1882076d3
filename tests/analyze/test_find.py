"""What a person may point `analyze` at, and what they are told when it is no profile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from autotune.analyze.find import open_profiles
from autotune.analyze.profile import ProfilerKind
from autotune.errors import UserError
from tests.analyze import ascend_cases as cases

STEPS = "Step,Computing,Communication(Not Overlapped),Free\n7,{computing},2,3\n"
KINETO = {
    "schemaVersion": 1,
    "distributedInfo": {"rank": 4},
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
    ],
}


def rank_folder(parent: Path, name: str, rank: int, computing: float = 5) -> Path:
    files = {"step_trace_time.csv": STEPS.format(computing=computing)}
    return cases.write_rank(parent / name, rank, files)


def test_a_folder_of_ranks_by_their_info_not_their_names(tmp_path: Path) -> None:
    rank_folder(tmp_path, "host_1_20250101_ascend_pt", 1)
    rank_folder(tmp_path, "host_2_20250101_ascend_pt", 0)
    profiles = open_profiles(tmp_path)
    assert {profile.source.name: profile.rank for profile in profiles} == {
        "host_1_20250101_ascend_pt": 1,
        "host_2_20250101_ascend_pt": 0,
    }


def test_the_folder_its_output_and_its_file(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, "x_ascend_pt", 6)
    output = folder / "ASCEND_PROFILER_OUTPUT"
    for path in (folder, output, output / "step_trace_time.csv"):
        (profile,) = open_profiles(path)
        assert (profile.rank, profile.steps[0].computing_us) == (6, 5)


def test_a_trial_of_a_study(tmp_path: Path) -> None:
    trial = tmp_path / "trials" / "0012"
    rank_folder(trial / "profile" / "rank0", "x_ascend_pt", 0)
    (trial / "rank0.jsonl").write_text('{"event": "start"}\n')
    (trial / "point.json").write_text('{"sp_degree": 2}')
    assert [profile.rank for profile in open_profiles(trial)] == [0]


def test_several_collections_of_one_rank_are_all_kept(tmp_path: Path) -> None:
    rank_folder(tmp_path, "first_ascend_pt", 0, computing=5)
    rank_folder(tmp_path, "second_ascend_pt", 0, computing=6)
    profiles = open_profiles(tmp_path)
    assert [(p.rank, p.source.name, p.steps[0].computing_us) for p in profiles] == [
        (0, "first_ascend_pt", 5),
        (0, "second_ascend_pt", 6),
    ]


def test_a_rank_without_a_number(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, "x_ascend_pt", 0)
    (folder / "profiler_info_0.json").rename(folder / "profiler_info.json")
    (folder / "profiler_info.json").write_text('{"rank_id": -1}')
    assert open_profiles(folder)[0].rank is None


def test_cluster_files_add_the_ranks_that_have_no_folder(tmp_path: Path) -> None:
    rank_folder(tmp_path, "x_ascend_pt", 0, computing=5)
    cluster = tmp_path / "cluster_analysis_output"
    cluster.mkdir()
    (cluster / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Communication(Not Overlapped),Free\n"
        "7,rank,0,50,2,3\n7,rank,1,60,2,3\n"
    )
    profiles = open_profiles(tmp_path)
    assert [(profile.rank, profile.steps[0].computing_us) for profile in profiles] == [
        (0, 5),
        (1, 60),
    ]


def test_tables_and_traces_under_other_names(tmp_path: Path) -> None:
    table = tmp_path / "steps_of_yesterday.csv"
    table.write_text(STEPS.format(computing=9))
    trace = tmp_path / "exported.json"
    trace.write_text(json.dumps(cases.one_step()))
    assert open_profiles(table)[0].steps[0].computing_us == 9
    assert open_profiles(trace)[0].steps[0].computing_us == pytest.approx(520)


def test_traces_of_kineto_plain_packed_and_in_a_folder(tmp_path: Path) -> None:
    text = json.dumps(KINETO)
    (tmp_path / "a.pt.trace.json").write_text(text)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "settings.json").write_text('{"a": [1, 2]}')
    profiles = open_profiles(tmp_path)
    assert [profile.kind for profile in profiles] == [ProfilerKind.KINETO] * 2
    assert [profile.rank for profile in profiles] == [4, 4]
    assert open_profiles(tmp_path / "b.json.gz")[0].rank == 4


def test_output_that_was_not_analysed_yet(tmp_path: Path) -> None:
    raw = tmp_path / "host_1_ascend_pt"
    (raw / "PROF_000001_20250101000000_ABC" / "host").mkdir(parents=True)
    (raw / "FRAMEWORK").mkdir()
    for path in (tmp_path, raw):
        with pytest.raises(UserError, match="analyse") as caught:
            open_profiles(path)
        assert "torch_npu.profiler" in str(caught.value)
        assert str(raw) in str(caught.value)


def test_raw_output_beside_profiles_is_named(tmp_path: Path) -> None:
    rank_folder(tmp_path, "x_ascend_pt", 0)
    (tmp_path / "y_ascend_pt" / "FRAMEWORK").mkdir(parents=True)
    (profile,) = open_profiles(tmp_path)
    assert any("y_ascend_pt" in missing.what for missing in profile.missing)


def test_a_broken_profile_beside_others_is_named(tmp_path: Path) -> None:
    rank_folder(tmp_path, "x_ascend_pt", 0)
    cases.write_rank(tmp_path / "y_ascend_pt", 1, {"step_trace_time.csv": ""})
    (profile,) = open_profiles(tmp_path)
    assert any("y_ascend_pt" in missing.why for missing in profile.missing)


def test_a_folder_without_profiles_says_what_was_found_and_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "src").mkdir()
    with pytest.raises(UserError) as caught:
        open_profiles(tmp_path)
    message = str(caught.value)
    assert "notes.txt" in message
    assert "src/" in message
    assert "ASCEND_PROFILER_OUTPUT" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.json", b""),
        ("empty.csv", b""),
        ("other.csv", b"a,b\n1,2\n"),
        ("other.json", b'{"a": 1}'),
        ("picture.png", b"\x89PNG\r\n\x1a\n"),
        ("cut.json.gz", b"\x1f\x8b\x08"),
    ],
)
def test_a_file_that_is_no_profile(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=name):
        open_profiles(path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        open_profiles(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("version", "done", "complete"),
    [
        (None, False, True),
        ("2.1.0.post17", False, True),
        ("2.13.0", False, False),
        ("2.13.0", True, True),
    ],
)
def test_whether_the_profiler_came_to_its_end(
    tmp_path: Path, version: str | None, done: bool, complete: bool
) -> None:
    folder = rank_folder(tmp_path, "x_ascend_pt", 0)
    info = {} if version is None else {"torch_npu_version": version}
    (folder / "profiler_info_0.json").write_text(json.dumps(info))
    if done:
        (folder / "ASCEND_PROFILER_OUTPUT" / "analyse.done").touch()
    (profile,) = open_profiles(folder)
    assert profile.complete is complete
    assert (version or "") in profile.version


def test_a_loop_of_folders_ends(tmp_path: Path) -> None:
    rank_folder(tmp_path / "deep", "x_ascend_pt", 0)
    (tmp_path / "deep" / "again").symlink_to(tmp_path / "deep", target_is_directory=True)
    assert [profile.rank for profile in open_profiles(tmp_path)] == [0]

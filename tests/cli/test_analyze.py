"""`python -m autotune analyze`: paths as people have them, mistakes in one message."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from autotune.cli.arguments import parse_arguments
from autotune.cli.main import main
from autotune.errors import UserError

SHARED = Path(__file__).parents[3] / "shared" / "data" / "profiles"


def trace(path: Path, kernel_us: float = 600.0) -> Path:
    """Two steps of 1 ms, each with one kernel, as torch.profiler writes them."""

    def event(
        cat: str, name: str, tid: int, ts: float, dur: float, **args: int
    ) -> dict[str, object]:
        pid = 0 if cat == "kernel" else 1
        times = {"ts": ts, "dur": dur}
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}

    events = []
    for number in (3, 4):
        at = number * 1000.0
        events += [
            event("user_annotation", f"ProfilerStep#{number}", 1, at, 1000.0),
            event("cpu_op", "aten::mm", 1, at + 10, 50.0),
            event("cuda_runtime", "cudaLaunchKernel", 1, at + 20, 5.0, correlation=number),
            event("kernel", "sgemm", 7, at + 100, kernel_us, correlation=number, device=0),
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}
    data = json.dumps(content).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_everything_behind_the_verb_is_a_path() -> None:
    found = parse_arguments(["analyze", "a=b/c", "--out", "t", "sweep", "--compare=x y"])
    assert found.verb == "analyze"
    assert [str(path) for path in found.paths] == ["a=b/c", "sweep"]
    assert (str(found.out), str(found.compare), found.overrides) == ("t", "x y", ())
    assert [str(p) for p in parse_arguments(["analyze", "--", "-odd"]).paths] == ["-odd"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["analyze"], "analyze what. give a profile, or a folder of them: python -m autotune"),
        (["analyze", ""], "analyze what"),
        (["check", "--compare", "x"], "--compare goes with analyze, not with check"),
        (["check", "--out", "x"], "--out goes with export and analyze, not with check"),
        (["analyze", "x", "--config-dir", "y"], "--config-dir goes with configurations"),
        (["a=b", "analyze"], "the verb comes first: autotune analyze a=b"),
        (["analyse", "x"], "unknown verb 'analyse'; did you mean 'analyze'"),
    ],
)
def test_mistakes_are_named(argv: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_arguments(argv)


@pytest.mark.parametrize("name", ["a b", "study=1", "50%", "[bold]", "überprüfung", "训练"])
def test_paths_as_people_have_them(name: str, tmp_path, capsys) -> None:
    path = trace(tmp_path / name / f"{name}.pt.trace.json.gz")
    assert main(["analyze", str(path), "--out", str(tmp_path / f"{name} out")]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert f"{name}.pt.trace.json.gz" in printed.out
    assert "steps.csv" in printed.out
    assert (tmp_path / f"{name} out" / "steps.csv").is_file()
    assert main(["analyze", str(path.parent)]) == 0


def test_the_breakdown_and_the_advice_are_printed_in_100_columns(tmp_path, capsys) -> None:
    assert main(["analyze", str(trace(tmp_path / "rank0.pt.trace.json"))]) == 0
    text = capsys.readouterr().out
    assert "rank 0; 2 steps (3 to 4)" in text
    assert "0.600 (60%)" in text
    assert "What to do" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_tables_hold_what_was_read_and_what_was_left_out_is_said(tmp_path, capsys) -> None:
    out = tmp_path / "tables"
    assert main(["analyze", str(trace(tmp_path / "t.json")), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    steps = pd.read_csv(out / "steps.csv")
    assert steps.computing_us.to_list() == [600, 600]
    operators = pd.read_csv(out / "operators.csv")
    assert operators[operators.name == "sgemm"].total_us.to_list() == [1200]
    assert "left out communication.csv: no communication was recorded" in text


def test_two_profiles_are_compared(tmp_path, capsys) -> None:
    base = trace(tmp_path / "before" / "rank0.pt.trace.json", 400.0)
    now = trace(tmp_path / "after" / "rank0.pt.trace.json", 600.0)
    out = tmp_path / "tables"
    argv = ["analyze", str(now), "--compare", str(base), "--out", str(out)]
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert "Ranks in both: 1" in text
    assert "sgemm  cuda" in text
    assert "0.400  0.600  +0.200  +50.0%" in text
    operators = pd.read_csv(out / "compare_operators.csv").set_index("name")
    assert operators.loc["sgemm", ["base_us", "other_us"]].to_list() == [400, 600]
    assert operators.loc["sgemm", "difference_share"] == pytest.approx(0.5)


def refused(argv: list[str], capsys) -> str:
    """The one message of a command that ends with exit code 2, before it prints anything."""
    assert main(["analyze", *argv]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("autotune: ")
    assert "Traceback" not in printed.err
    assert len(printed.err.splitlines()) <= 8
    return printed.err


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8b\x08", b"[1, 2", b"hello", b"a,b\n1,2\n"])
@pytest.mark.parametrize("name", ["x.json", "x.csv", "x.json.gz"])
def test_what_is_no_profile_is_one_message(content: bytes, name: str, tmp_path, capsys) -> None:
    (tmp_path / name).write_bytes(content)
    refused([str(tmp_path / name)], capsys)


def test_a_path_without_profiles_is_one_message(tmp_path, capsys) -> None:
    assert "nope" in refused([str(tmp_path / "nope")], capsys)
    refused([str(tmp_path)], capsys)
    good = str(trace(tmp_path / "good.pt.trace.json"))
    assert "nope" in refused([good, str(tmp_path / "nope")], capsys)
    assert "nope" in refused([good, "--compare", str(tmp_path / "nope")], capsys)


def test_an_out_that_is_a_file_is_one_message(tmp_path, capsys) -> None:
    path = trace(tmp_path / "good.pt.trace.json")
    (tmp_path / "file").write_text("mine")
    assert main(["analyze", str(path), "--out", str(tmp_path / "file")]) == 2
    assert "cannot write to --out" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_only_one_capture_is_compared_with_one(tmp_path, capsys) -> None:
    several = tmp_path / "several"
    for name in ("a", "b"):
        trace(several / f"{name}.pt.trace.json")
    message = refused([str(several), "--compare", str(several / "a.pt.trace.json")], capsys)
    assert "holds 2" in message
    assert str(several / "b.pt.trace.json") in message.replace("\n", "")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("ascend_level1/rank0_ascend_pt", "8.87 (5.7%)    102.0 (66%)  25.7 (17%)"),
        ("ascend_level1", "No rank stands out among 2"),
        ("ascend_cluster", "No single rank stands out, but they are uneven"),
        ("kineto/nccl_data.json.gz", "nccl:allreduce"),
        ("kineto", "The device waits for data"),
    ],
)
def test_real_profiles_read_well(path: str, says: str, tmp_path, capsys) -> None:
    assert main(["analyze", str(SHARED / path), "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert says in text
    assert max(map(len, text.splitlines())) <= 100
    assert (tmp_path / "advice.csv").is_file()

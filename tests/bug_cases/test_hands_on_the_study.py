"""The study's folder under other people's hands, and in places that are not made for it."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program, once, usual

NAN = math.nan


def edit(program: Program, changes: Mapping[str, Any], line: int = 1) -> None:
    """Somebody changes a line of `trials.jsonl`."""
    lines = program.trials
    lines[line] |= changes
    text = "".join(f"{json.dumps(one)}\n" for one in lines)
    (program.study / "trials.jsonl").write_text(text, encoding="utf-8")


def refused_by_line(program: Program, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether every verb that reads results answers with the line, and changes no result."""
    before = (program.study / "trials.jsonl").read_bytes()
    for verb, more in (("sweep", "search.max_trials=4"), ("status", ""), ("export", "")):
        capsys.readouterr()
        code = program.run(*filter(None, [more]), verb=verb)
        printed = capsys.readouterr().err
        if code != 2 or "trials.jsonl, line 2 is no trial record" not in printed:
            return False
    return (program.study / "trials.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_time_s": NAN},
        {"batch_time_s": math.inf},
        {"batch_time_s": "0.25"},
        {"within_error_s": NAN},
        {"steps": NAN},
        {"peak_memory_bytes": NAN},
        {"peak_memory_bytes": "much"},
        {"cost_s": NAN},
        {"started_at": "today"},
        {"work": {"samples": 1, "tokens": None, "losses": [NAN]}},
        {"breakdown_s": {"optimizer": "much"}},
        {"parameters": [1]},
        {"status": "fine"},
    ],
    ids=str,
)
def test_a_result_that_was_edited_into_nonsense_is_named(
    program: Program, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    assert program.run("search.max_trials=3") == 0
    edit(program, changes)
    assert refused_by_line(program, capsys)


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_time_ci95_s": [NAN, NAN]},
        {"batch_time_ci95_s": [2.0, 1.0]},
        {"batch_time_ci95_s": ["a", "b"]},
        {"batch_time_ci95_s": [None, None]},
        {"breakdown_s": {"optimizer": 0.1}},
        {"steps": -5},
        {"peak_memory_bytes": -1},
        {"cost_s": -5.0},
        {"taken_from": "elsewhere"},
        {"trial": -1},
        {"trial": 1.5},
    ],
    ids=str,
)
def test_this_nonsense_is_named_too(
    program: Program, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    assert program.run("search.max_trials=3") == 0
    edit(program, changes)
    assert refused_by_line(program, capsys)


def test_a_point_that_is_not_legal_is_named_also_when_nothing_is_left_to_run(
    program: Program,
) -> None:
    assert program.run("search.max_trials=3") == 0
    edit(program, {"parameters": {"batch": 3, "chunk": 0}, "batch_time_s": 0.001})
    assert program.run("search.max_trials=3") == 2
    assert program.best["parameters"]["batch"] != 3


def test_lines_of_windows_are_read(program: Program) -> None:
    assert program.run("search.max_trials=3") == 0
    path = program.study / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert program.run("search.max_trials=4") == 0
    assert [trial["trial"] for trial in program.trials] == [0, 1, 2, 3]


def test_the_folders_of_all_trials_may_vanish_under_the_sweep(program: Program) -> None:
    def vanish() -> None:
        shutil.rmtree(program.study / "trials")
        program.requests[-1].folder.mkdir(parents=True)

    program.behave = once(3, vanish)
    assert program.run() == 0
    assert len(program.trials) == 12


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("trial", [1, 3])
def test_results_that_vanish_under_the_sweep_are_written_again(
    program: Program, trial: int, emptied: bool
) -> None:
    """While a trial runs after them, be it the last one."""

    def remove() -> None:
        for name in ("trials.jsonl", "best.yaml", "repeats.jsonl"):
            path = program.study / name
            if emptied and path.exists():
                path.write_bytes(b"")
            else:
                path.unlink(missing_ok=True)

    program.behave = once(trial, remove)
    assert program.run("search.max_trials=4") == 0
    assert [line["trial"] for line in program.trials] == [0, 1, 2, 3]
    assert program.best["trial"] in range(4)
    assert "(baseline)" in program.report


def test_a_space_that_is_tried_out_asks_for_no_more_trials(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    for trials in (12, 3):
        assert program.run(f"search.max_trials={trials}") == 0
        printed = capsys.readouterr().out
        assert "none of the 12 legal points is left" in printed
        assert "to go on" not in printed


def test_a_line_nested_without_end_is_named(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python's reader gives up on it in another way than on other nonsense."""
    assert program.run("search.max_trials=3") == 0
    path = program.study / "trials.jsonl"
    first, _, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(first + "[" * 100_000 + "\n" + "".join(rest), encoding="utf-8")
    assert refused_by_line(program, capsys)


def test_a_configuration_that_vanishes_under_the_sweep_is_written_again(program: Program) -> None:
    program.behave = once(3, lambda: (program.study / "config.yaml").unlink())
    assert program.run() == 0
    assert program.run() == 0


def test_a_folder_that_turns_read_only_costs_no_earlier_result(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file system that found errors mounts itself anew; root's own right to write stays."""
    real = os.open

    def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).endswith("trials.jsonl") and flags & os.O_WRONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, flags, *rest, **more)

    program.behave = once(2, lambda: monkeypatch.setattr(os, "open", refuse))
    assert program.run() == 2
    assert "trials.jsonl: Read-only file system" in capsys.readouterr().err
    monkeypatch.setattr(os, "open", real)
    program.behave = usual
    assert program.run("search.max_trials=4") == 0
    assert program.states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


def test_a_study_may_be_a_link(program: Program) -> None:
    (program.folder / "real").mkdir()
    (program.folder / "link").symlink_to("real")
    assert program.run("study.dir=link", "search.max_trials=2") == 0
    assert program.run("study.dir=real", "search.max_trials=3") == 0
    assert len((program.folder / "real" / "trials.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("what", ["a file", "in a file", "a link to nowhere"])
def test_a_study_that_can_be_no_folder_is_named(
    program: Program, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    (program.folder / "file").touch()
    (program.folder / "link").symlink_to("nowhere")
    place = {"a file": "file", "in a file": "file/x", "a link to nowhere": "link"}[what]
    assert program.run(f"study.dir={place}") == 2
    assert str(program.folder / place) in capsys.readouterr().err


def test_a_name_too_long_for_a_folder_is_named(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run(f"study.name={'x' * 300}") == 2
    assert "File name too long" in capsys.readouterr().err


def test_a_path_too_long_for_sqlite_has_an_answer(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite takes 512 bytes, Linux 4096: the study may be kept, or refused in words."""
    deep = Path(program.folder, *["调" * 40] * 4)
    assert len(os.fsencode(deep)) > 512
    code = program.run(f"study.dir={deep}", "search.max_trials=2")
    assert code in (0, 2)
    assert code == 0 or "study.db" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_database_is_put_aside(program: Program) -> None:
    (program.study / "study.db" / "notes").mkdir(parents=True)
    assert program.run("search.max_trials=2") == 0
    (aside,) = program.study.glob("study.db.broken-*")
    assert (aside / "notes").is_dir()


@pytest.mark.parametrize("key", ["study.dir", "trainer.cwd"])
def test_a_home_that_there_is_not_is_named(
    program: Program, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """A misspelt ~user; the same where HOME is unset and the user has no entry in passwd."""
    assert program.run(f"{key}=~nobody-of-that-name/x", verb="check") == 2
    assert "~nobody-of-that-name" in capsys.readouterr().err

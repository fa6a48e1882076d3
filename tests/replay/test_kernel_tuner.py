"""Cache files of Kernel Tuner: real ones, unfinished ones, and every way to say that it failed."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import UserError
from autotune.replay.table import ReplayTable, read_table
from autotune.space.point import Point

TABLES = Path(__file__).parents[3] / "shared/data/tables"
HEADER = '{\n"kernel_name": "k",\n"tune_params_keys": [\n"x",\n"mode"\n],\n"cache": {'
ENTRIES = [
    '"1,a": {"x": 1, "mode": "a", "time": 250.0, "times": [250.0]}',
    '"2,a": {"x": 2, "mode": "a", "time": "RuntimeFailedConfig"}',
    '"2,b": {"x": 2, "mode": "b", "time": 500}',
]


@pytest.fixture
def read_text(tmp_path: Path):
    def read(text: str) -> ReplayTable:
        path = tmp_path / "cache.json"
        path.write_text(text)
        return read_table(path)

    return read


def test_milliseconds_become_seconds_and_failures_do_not_run(read_text) -> None:
    table = read_text(HEADER + "\n" + ",\n".join(ENTRIES) + "}\n}\n")
    assert [p.name for p in table.parameters] == ["x", "mode"]
    times = {table.point(row): float(table.time_s[row]) for row in np.flatnonzero(table.usable)}
    assert times == {Point({"x": 1, "mode": "a"}): 0.25, Point({"x": 2, "mode": "b"}): 0.5}
    assert int(table.refused.sum()) == 1
    assert table.notes == ("read as points that do not run: 1 x RuntimeFailedConfig",)


@pytest.mark.parametrize(
    "failure",
    [
        '"InvalidConfig"',
        '"CompilationFailedConfig"',
        '{"__error__": "RuntimeFailedConfig"}',
        *("1e20", "NaN", "Infinity", "0", "-1.5", "null", "[]", "true", "1" + "0" * 400),
    ],
)
def test_every_spelling_of_a_failure(read_text, failure: str) -> None:
    entry = f'"9,a": {{"x": 9, "mode": "a", "time": {failure}}}'
    table = read_text(HEADER + ",".join([*ENTRIES[:1], entry]) + "}}")
    assert [status.value for status in table.status] == ["ok", "oom"]
    assert len(table.notes) == 1


@pytest.mark.parametrize("times", ['[3, "x"]', "[]", "[true]", "3", "null", "[[3]]"])
def test_times_that_are_no_numbers_tell_no_time(read_text, times: str) -> None:
    entry = f'"9,a": {{"x": 9, "mode": "a", "times": {times}}}'
    table = read_text(HEADER + ",".join([*ENTRIES[:1], entry]) + "}}")
    assert [status.value for status in table.status] == ["ok", "oom"]


def test_where_only_times_are_there_their_mean_counts(read_text) -> None:
    """As Kernel Tuner works its `time` out."""
    entries = ['"1,a": {"x": 1, "mode": "a", "times": [200, 300.0]}', *ENTRIES[1:]]
    entries[2] = entries[2].replace("500", '500, "times": [1, 2]')
    table = read_text(HEADER + ",".join(entries) + "}}")
    times = {table.point(row): float(table.time_s[row]) for row in np.flatnonzero(table.usable)}
    assert times == {Point({"x": 1, "mode": "a"}): 0.25, Point({"x": 2, "mode": "b"}): 0.5}
    assert "entries without a time, read as the mean of their times: 1" in table.notes
    only = read_text(HEADER + entries[0] + "}}")
    assert only.optimum_s == 0.25
    huge = entries[0].replace("200", "1" + "0" * 400)
    assert [s.value for s in read_text(HEADER + huge + "," + entries[2] + "}}").status] == [
        "oom",
        "ok",
    ]


def test_an_entry_without_a_time_failed(read_text) -> None:
    table = read_text(HEADER + ",".join([*ENTRIES[:1], '"9,a": {"x": 9, "mode": "a"}']) + "}}")
    assert [status.value for status in table.status] == ["ok", "oom"]


@pytest.mark.parametrize("end", [",", "", ",\n", "}", "\n}\n"])
def test_a_file_that_kernel_tuner_still_writes(read_text, end: str) -> None:
    table = read_text(HEADER + "\n" + ",\n".join(ENTRIES) + end)
    assert len(table) == 3
    assert "the file is unfinished and was read as far as it goes" in table.notes


def test_an_entry_that_is_cut_off_is_left_out(read_text) -> None:
    table = read_text(HEADER + "\n" + ",\n".join(ENTRIES)[:-20])
    assert len(table) == 2
    assert "the last entry is cut off and left out" in table.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "is no cache file of Kernel Tuner: it lacks tune_params_keys or cache; it"),
        ('{"tune_params_keys": [], "cache": {}}', "must name the parameters"),
        ('{"tune_params_keys": ["x"], "cache": {"1": 3}}', "entry '1': 3 is no mapping"),
        ('{"tune_params_keys": ["x"], "cache": {}}', "has no usable row among its 0"),
        ('{"tune_params_keys": ["x", "time"], "cache": {}}', "once, and not the time"),
        (
            '{"tune_params_keys": ["x"], "objective": "score", "cache": {"1": {"x": 1}}}',
            "no entry has a time; it holds the objective 'score'",
        ),
        (HEADER + '"1": {"x": 1, "time": 3}}}', "entry '1': the parameter 'mode' is missing"),
        (
            HEADER + '"1": {"x": 1, "mode": [2], "time": 3}}}',
            r"entry '1': mode=\[2\]: a list is no number",
        ),
        (
            HEADER
            + '"1": {"x": 1, "mode": "a", "time": 3}, "1": {"x": 2, "mode": "a", "time": 3}}}',
            "cache.json names '1' twice",
        ),
        (
            HEADER
            + '"1": {"x": 1, "mode": "a", "time": 3}, "2": {"x": "1", "mode": "a", "time": 3}}}',
            "entry '2': x=1 is text, but a number in entry '1'",
        ),
        (
            HEADER
            + '"1": {"x": 1, "mode": "a", "time": 3}, "2": {"x": 1, "mode": "a", "time": 4}}}',
            "entry '2': the same point as in entry '1', with another result",
        ),
        ("{" * 100_000, "cannot be read as JSON"),
    ],
    ids=range(12),
)
def test_what_is_wrong_is_named(read_text, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "convolution_milo__A100.json.gz",
        "dedispersion_milo__A100.json.gz",
        "unused_KT__pnpoly__RTX_2080_Ti.json.gz",
    ],
)
def test_real_tables_hold_what_their_text_holds(name: str) -> None:
    """Counted with a regular expression, which knows nothing of JSON."""
    path = TABLES / name
    if not path.exists():
        pytest.skip("the shared data are not here")
    text = gzip.decompress(path.read_bytes()).decode()
    times = [float(number) for number in re.findall(r'"time": ([0-9.eE+-]+),', text)]
    failures = re.findall(r'"time": "\w+"', text)
    table = read_table(path)
    assert int(table.usable.sum()) == len(times)
    assert int(table.refused.sum()) == len(failures)
    assert table.optimum_s == pytest.approx(min(times) / 1000)
    keys = json.loads(text)["tune_params_keys"]
    assert [p.name for p in table.parameters] == keys

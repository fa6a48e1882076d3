"""CSV and Parquet as people have them."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pandas as pd
import pytest

from autotune.errors import UserError
from autotune.measure.outcome import Outcome, Status
from autotune.measure.records import PHASES
from autotune.replay.case import RecordedSpace
from autotune.replay.table import read_table
from autotune.report.table import trials_table
from autotune.space.point import Point
from autotune.study.trial_record import TrialRecord


def points(table) -> dict[Point, tuple[str, float]]:
    return {
        table.point(row): (table.status[row].value, float(table.time_s[row]))
        for row in range(len(table))
    }


def test_numbers_are_ordered_and_words_are_categories_as_they_come(read) -> None:
    table = read("n,word,flag,batch_time_s\n16,usp,true,1\n2,ring,False,2\n8,usp,TRUE,3\n")
    n, word, flag = table.parameters
    assert (n.choices, n.ordered) == ((2, 8, 16), True)
    assert (word.choices, word.ordered) == (("usp", "ring"), False)
    assert (flag.choices, flag.ordered) == ((True, False), False)
    assert points(table)[Point({"n": 8, "word": "usp", "flag": True})] == ("ok", 3.0)


def test_numbers_compare_by_value_however_they_are_written(read) -> None:
    table = read("n,batch_time_s\n2.0,1\n1e1,2\n0.5,3\n 3 ,4\n")
    assert table.parameters[0].choices == (0.5, 2, 3, 10)
    assert [type(choice) for choice in table.parameters[0].choices] == [float, int, int, int]


def test_an_empty_cell_is_an_inactive_parameter(read) -> None:
    table = read("sp,algorithm,batch_time_s\n1,,1\n2,ring,2\n2,usp,3\n")
    assert set(points(table)) == {
        Point({"sp": 1}),
        Point({"sp": 2, "algorithm": "ring"}),
        Point({"sp": 2, "algorithm": "usp"}),
    }
    assert table.codes[:, 1].tolist() == [-1, 0, 1]


def test_a_column_with_one_value_stays_and_one_without_any_is_left_out(read) -> None:
    table = read("a,b,c,batch_time_s\n1,7,,1\n2,7,,2\n")
    assert [p.name for p in table.parameters] == ["a", "b"]
    assert table.notes == ("parameters without a value in any row, left out: c",)


def test_the_order_of_the_lines_does_not_matter(read) -> None:
    lines = ["1,4,1.5", "2,4,2.5", "1,8,3.5", "2,8,"]
    one = read("\n".join(["a,b,batch_time_s", *lines]))
    other = read("\n".join(["a,b,batch_time_s", *reversed(lines)]))
    assert one.codes.tolist() == other.codes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    np.testing.assert_array_equal(one.time_s, other.time_s)


def test_names_need_not_be_words(read) -> None:
    table = read('GFLOP/s limit,"a,b",class,batch_time_s\n1,2,3,0.5\n')
    assert [p.name for p in table.parameters] == ["GFLOP/s limit", "a,b", "class"]
    assert RecordedSpace(table).row(table.point(0)) == 0


@pytest.mark.parametrize(
    ("status", "time", "read_as"),
    [
        ("", "0.5", ("ok", 0.5)),
        ("", "", ("oom", None)),
        ("ok", "0.5", ("ok", 0.5)),
        ("OK", "0.5", ("ok", 0.5)),
        ("ok", "", ("failed", None)),
        ("oom", "", ("oom", None)),
        ("oom", "0.5", ("oom", None)),
        ("failed", "", ("failed", None)),
        ("hung", "0.5", ("hung", None)),
        ("skipped", "", ("oom", None)),
        ("over_limit", "0.5", ("over_limit", 0.5)),
        ("stopped", "0.5", ("ok", 0.5)),
    ],
)
def test_a_status_and_a_time_are_read_together(read, status, time, read_as) -> None:
    table = read(f"a,status,batch_time_s\n1,ok,9\n2,{status},{time}\n")
    found, seconds = points(table)[Point({"a": 2})]
    assert (found, None if math.isnan(seconds) else seconds) == read_as


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        ("0", "a time of 0 or below"),
        ("-1", "a time of 0 or below"),
        ("-inf", "a time of 0 or below"),
        ("nan", "NaN for a time"),
        ("inf", "a time of 1e7 s or more"),
        ("1e20", "a time of 1e7 s or more"),
    ],
)
def test_times_that_cannot_be_are_failures_and_said_once(read, cell, reading) -> None:
    table = read(f"a,batch_time_s\n1,0.5\n\n2,{cell}\n3,{cell}\n")
    assert [status.value for status in table.status] == ["ok", "oom", "oom"]
    assert table.notes == (f"rows with {reading}, read as failures: 2 (first: line 4)",)


def test_rows_that_repeat_are_merged_and_lost_runs_left_out(read) -> None:
    table = read("a,status,batch_time_s\n1,ok,0.5\n1,ok,0.50\n2,infrastructure,\n2,ok,0.7\n")
    assert points(table) == {Point({"a": 1}): ("ok", 0.5), Point({"a": 2}): ("ok", 0.7)}
    assert table.notes == (
        "rows of runs lost to the infrastructure, left out: 1 (first: line 4)",
        "rows that repeat an earlier one, merged: 1 (first: line 3)",
    )


def test_parquet_says_what_csv_says(read, tmp_path) -> None:
    text = "n,word,flag,batch_time_s,peak_memory_bytes\n16,a,true,1,5\n2,,false,,7\n3,b,true,2,9\n"
    frame = pd.DataFrame(
        {
            "n": [16, 2, 3],
            "word": ["a", None, "b"],
            "flag": [True, False, True],
            "batch_time_s": [1.0, None, 2.0],
            "peak_memory_bytes": [5, 7, 9],
        }
    )
    frame.to_parquet(tmp_path / "T.parquet")
    by_csv, by_parquet = read(text), read_table(tmp_path / "T.parquet")
    assert by_parquet.parameters == by_csv.parameters
    assert by_parquet.codes.tolist() == by_csv.codes.tolist()
    assert by_parquet.status == by_csv.status
    np.testing.assert_array_equal(by_parquet.time_s, by_csv.time_s)
    np.testing.assert_array_equal(by_parquet.peak_bytes, by_csv.peak_bytes)


def test_the_kind_of_a_file_is_told_by_its_content(tmp_path) -> None:
    path = tmp_path / "table"
    path.write_bytes(gzip.compress("\ufeffa,batch_time_s\r\n1,0.5\r\n".encode()))
    assert read_table(path).parameters[0].name == "a"


def test_the_report_of_a_study_is_a_table(tmp_path) -> None:
    def record(number: int, values: dict[str, object], outcome: Outcome) -> TrialRecord:
        return TrialRecord(number, Point(values), outcome, 9.5, 0, 9, 1, "f")

    baseline = Point({"sp_degree": 1, "offload": False})
    records = [
        record(0, dict(baseline), Outcome(Status.OK, "m", 0.5, (0.4, 0.6), 8, peak_memory_bytes=9)),
        record(
            1,
            {"sp_degree": 2, "sp_algorithm": "ring", "offload": True},
            Outcome(Status.OVER_LIMIT, "m", 0.4, None, 8, peak_memory_bytes=12),
        ),
        record(
            2, {"sp_degree": 4, "sp_algorithm": "usp", "offload": True}, Outcome(Status.OOM, "m")
        ),
    ]
    path = tmp_path / "trials.csv"
    names = ["sp_degree", "sp_algorithm", "offload"]
    path.write_text(trials_table(records, names, baseline).to_csv(index=False))
    table = read_table(path)
    assert [p.name for p in table.parameters] == names
    assert points(table).keys() == {r.parameters for r in records}
    assert [status.value for status in table.status] == ["ok", "over_limit", "oom"]
    assert table.point(table.recorded_baseline) == baseline
    assert table.cost_s.tolist() == [9.5, 9.5, 9.5]
    assert table.separating_limit_bytes == 9


def a_study() -> pd.DataFrame:
    """Its report: every column is filled."""
    points = [Point({"sp_degree": n}) for n in (1, 2, 4)]
    phases = dict.fromkeys(PHASES, 0.1)
    records = [
        TrialRecord(
            number,
            point,
            Outcome(Status.OK, f"m{number}", 0.5 + number, (0.4, 9.0), 8 + number, 0, 0, 0.1, 9)
            if number
            else Outcome(Status.OK, "m", 0.5, (0.4, 0.6), 8, breakdown_s=phases),
            9.5,
            0,
            9,
            1 + number,
            "f",
            {"study": "old", "trial": number},
        )
        for number, point in enumerate(points)
    ]
    return trials_table(records, ["sp_degree"], points[0])


@pytest.mark.parametrize(
    "kept", [name for name in a_study().columns if name not in ("sp_degree", "steps")]
)
def test_no_column_of_a_study_becomes_a_parameter(kept: str, tmp_path) -> None:
    """Whatever was taken out of its report: what is left of it would tell the time."""
    path = tmp_path / "trials.csv"
    columns = dict.fromkeys(["sp_degree", "batch_time_s", "steps", kept])
    a_study()[list(columns)].to_csv(path, index=False)
    is_result = kept in ("batch_time_s", "status", "peak_memory_bytes", "cost_s")
    names = [parameter.name for parameter in read_table(path).parameters]
    assert names == (["sp_degree", "steps"] if is_result else ["sp_degree"])


def test_what_is_taken_for_no_parameter_is_said(read) -> None:
    table = read("a,trial,optimizer_s,steps,batch_time_s\n1,0,0.1,8,0.5\n2,1,0.2,8,0.6\n")
    assert [parameter.name for parameter in table.parameters] == ["a"]
    assert table.notes == (
        "read as the trials of a study: no parameters are trial, optimizer_s, steps",
    )
    assert table.recorded_baseline is None
    # By itself it may be any number of steps.
    alone = read("a,steps,batch_time_s\n1,8,0.5\n2,4,0.6\n")
    assert [parameter.name for parameter in alone.parameters] == ["a", "steps"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_numbers_of_rows_are_no_parameter(kind: str, tmp_path) -> None:
    """As pandas writes them after a filter, or reads them without an index."""
    frame = pd.DataFrame({"sp": [1, 2, 4, 8], "batch_time_s": [4.0, 3.0, 2.0, 1.0]})
    path = tmp_path / "T"
    if kind == "parquet":
        frame[frame["sp"] != 2].to_parquet(path)
    else:
        frame.to_csv(path)
        pd.read_csv(path).to_csv(path, index=False)
    table = read_table(path)
    assert [parameter.name for parameter in table.parameters] == ["sp"]
    name = "__index_level_0__" if kind == "parquet" else "Unnamed: 0"
    assert table.notes == (f"columns that number the rows, left out: {name}",)


def test_an_index_with_a_name_is_a_parameter(tmp_path) -> None:
    frame = pd.DataFrame({"sp": [1, 2, 4], "batch_time_s": [4.0, 3, 2]}).set_index("sp")
    frame.to_parquet(tmp_path / "T")
    assert [p.name for p in read_table(tmp_path / "T").parameters] == ["sp"]


def test_a_limit_decides_about_rows_whose_peak_and_time_are_known(read) -> None:
    table = read(
        "a,batch_time_s,peak_memory_bytes,status\n"
        "1,0.5,100,ok\n2,0.4,200,over_limit\n3,0.3,300,ok\n4,,400,oom\n5,0.2,,ok\n"
    )
    within = table.within(200)
    assert [status.value for status in within.status] == ["ok", "ok", "over_limit", "oom", "ok"]
    assert (table.optimum_s, table.within(50).optimum_s) == (0.2, 0.2)
    with pytest.raises(UserError, match="has no peak_memory_bytes to hold against it"):
        read("a,batch_time_s\n1,0.5\n").within(100)
    with pytest.raises(UserError, match=r"no row of T\.csv is within 50 bytes; the least peak"):
        read("a,batch_time_s,peak_memory_bytes\n1,0.5,70\n").within(50)

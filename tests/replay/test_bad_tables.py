"""What is wrong with a table is said in one message that names the line."""

from __future__ import annotations

import os

import pytest

from autotune.errors import UserError
from autotune.replay.table import read_table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "T.csv is empty; the first line names the columns"),
        ("\n\n", "T.csv is empty"),
        ("a,time\n1,2\n", "T.csv has no column batch_time_s; its columns are: a, time. A replay"),
        ("batch_time_s,status\n1,ok\n", "no column of a parameter besides its results"),
        ("a,batch_time_s\n", "T.csv has no usable row among its 0"),
        ("a,batch_time_s\n1,\n2,0\n", "T.csv has no usable row among its 2: none has a time"),
        ("a,batch_time_s\n,1\n", "every parameter is empty in every row"),
        ("a,batch_time_s\n1,1\n2\n", "line 3: 1 cells, but the header names 2 columns"),
        ("a,batch_time_s\n1,1\n2,2,2\n", "line 3: 3 cells, but the header names 2 columns"),
        ('a,batch_time_s\n1,1\n"2,2\n', "this is no CSV: unexpected end of data"),
        ("a,a,batch_time_s\n1,1,1\n", "two columns are called 'a'"),
        (",a,batch_time_s\n0,1,1\n", "column 1 has no name; name it or leave it out"),
        ("a,batch_time_s\n1,1\nx,2\n", "line 3: a=x is text, but a number in line 2 .a=1."),
        ("a,batch_time_s\n1,1\n\ntrue,2\n", "line 4: a=true is true or false, but a number in"),
        ("a,batch_time_s\nring,1\n2,2\n", "line 3: a=2 is a number, but text in line 2"),
        ("a,batch_time_s\n1,1\n1e999,2\n", "line 3: a=inf is no finite number"),
        ("a,batch_time_s\n1,1\n2,fast\n", "line 3: batch_time_s='fast' is no number; leave it"),
        ("a,batch_time_s\n1,1\n2,true\n", "line 3: batch_time_s='True' is no number"),
        ("a,batch_time_s\n1,1\n2,1 s\n", "line 3: batch_time_s='1 s' is no number"),
        ("a,batch_time_s\n1,1\n2,2\n1,3\n", "line 4: the same point as in line 2, with another"),
        ("a,batch_time_s\n1,1\n2,2\n1,\n", r"line 4: the same .*\(oom, there ok, 1 s\); keep one"),
        ("a,status,batch_time_s\n1,ok,1\n2,okay,1\n", "line 3: status='okay' is unknown; did you"),
        ("a,batch_time_s\n1,1\n2,1_0\n", "line 3: batch_time_s='1_0' is no number; leave"),
        ("a,batch_time_s\n1,1\n2,١٢\n", "line 3: batch_time_s='١٢' is no number; leave it"),
        ('a,batch_time_s\n1,"1,5"\n', "batch_time_s='1,5' is no number; write .* point: 1.5"),
        ("a;batch_time_s\n1;1,5\n", "T.csv separates its columns with semicolons; separate col"),
        ("a\tb\tbatch_time_s\n1\t1\t2\n", "separates its columns with tabs; separate columns w"),
        ("a,batch_time_s\n1,1,5\n", "line 2: 3 cells, but .* 2 columns; decimals need a point"),
        ("a,batch_time_s\n1,1\n2,1e-100\n", "line 3: batch_time_s=1e-100 is shorter than a pic"),
        ("a,batch_time_s\n1,1.5\n1,1.50000001\n", "ok, 1.50000001 s, there ok, 1.5 s"),
        (
            "a,batch_time_s,peak_memory_bytes\n1,1,5.25\n1,1,5.5\n",
            "ok, 1 s, 5.5 bytes, there ok, 1 s, 5.25 bytes",
        ),
        ("a,cost_s,batch_time_s\n1,-3,1\n", "line 2: cost_s=-3 must be a finite number, at"),
        ("a,cost_s,batch_time_s\n1,1e300,1\n", "line 2: cost_s=1e.300 must .* at most 1e.09"),
        (
            "a,peak_memory_bytes,batch_time_s\n1,1e300,1\n",
            "line 2: peak_memory_bytes=1e.300 must be a finite number, at least 0 and at most 1.15",
        ),
        ("a,peak_memory_bytes,batch_time_s\n1,60GiB,1\n", "line 2: peak_memory_bytes='60GiB' is"),
    ],
)
def test_it_is_named(text: str, message: str, csv_path) -> None:
    with pytest.raises(UserError, match=message):
        read_table(csv_path(text))


@pytest.mark.parametrize(("rows", "line"), [('"two\nlines",1\nb,x', 4), ('"two\nlines",x\nb,1', 2)])
def test_a_cell_may_span_lines_and_the_count_stays_right(csv_path, rows: str, line: int) -> None:
    with pytest.raises(UserError, match=f"line {line}: batch_time_s='x'"):
        read_table(csv_path(f"a,batch_time_s\n{rows}\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF\x00\x00", "is neither UTF-8 text nor Parquet"),
        (b"a,batch_time_s\n\xff\xfe,1\n", "is neither UTF-8 text nor Parquet"),
        (b"\x1f\x8b\x08junk", "cannot be read"),
        (b"PAR1 and no more", "cannot be read as Parquet"),
        (b'{"a', "cannot be read as JSON"),
        (
            b"a,batch_time_s\n" + b"x" * 200_000 + b",1\n",
            "line 2: this is no CSV of measurements: a cell has 200000",
        ),
        (b"a,batch_time_s\n" + b"9" * 5000 + b",1\n", "a=inf is no finite number"),
    ],
)
def test_files_that_are_no_table(content: bytes, message: str, tmp_path) -> None:
    path = tmp_path / "T"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_table(path)


def test_what_is_no_file(tmp_path) -> None:
    with pytest.raises(UserError, match="is a folder; give one file of it"):
        read_table(tmp_path)
    with pytest.raises(UserError, match=r"nope\.csv does not exist"):
        read_table(tmp_path / "nope.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is no file"):
        read_table(tmp_path / "pipe")


def test_more_values_than_a_parameter_can_have(csv_path) -> None:
    text = "a,batch_time_s\n" + "".join(f"{number},1\n" for number in range(32768))
    with pytest.raises(UserError, match="a has 32768 different values, more than 32767"):
        read_table(csv_path(text))


def test_damaged_parquet_is_named_wherever_the_damage_is(tmp_path) -> None:
    """Some of it does not show: one value for another. None of it ends the program."""
    import pandas as pd

    path, refused = tmp_path / "T.parquet", 0
    frame = pd.DataFrame({"größe": list("abcd"), "b": [1, 2, 3, 4], "batch_time_s": [1.0] * 4})
    frame.to_parquet(path, compression=None)
    data = path.read_bytes()
    for start in range(4, len(data) - 8, 11):
        path.write_bytes(data[:start] + b"\xaa" * 6 + data[start + 6 :])
        try:
            read_table(path)
        except UserError as error:
            refused += "T.parquet cannot be read as Parquet" in str(error)
    assert refused > 20


def test_a_parquet_column_of_no_single_values_is_named(tmp_path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [[1, 2], [3]], "batch_time_s": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "T.parquet")
    with pytest.raises(UserError, match=r"row 1: a=\[1, 2\]: a list is no number, text, true or"):
        read_table(tmp_path / "T.parquet")

"""Reading Chrome traces: the shapes that profilers write, and what killed jobs leave of them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.analyze.trace_json import NotATraceError, nanoseconds, read_events
from autotune.errors import UserError

EVENTS: list[dict[str, Any]] = [
    {"ph": "X", "name": "aten::add", "ts": "1736408883688177.930", "dur": 145.57, "args": {"a": 1}},
    {"ph": "i", "name": '}],{"[\\', "ts": 7, "args": {"nested": [{"deep": [1, 2]}]}},
    {"ph": "X", "name": "größer", "ts": 8.5, "dur": 0},
]
REAL = Path(__file__).parents[3] / "shared/data/profiles"


def write(folder: Path, content: str | bytes, *, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any], bool]:
    trace = read_events(path)
    events = list(trace.events())
    return events, trace.other, trace.cut


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_bare_list(tmp_path: Path, *, indent: int | None, packed: bool) -> None:
    content = json.dumps(EVENTS, indent=indent).encode()
    path = write(tmp_path, gzip.compress(content) if packed else content)
    assert read(path) == (EVENTS, {}, False)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_object_with_the_events_at_any_place(tmp_path: Path, place: int) -> None:
    other = [
        ("deviceProperties", [{"id": 0, "name": "A100", "traceEvents": [1]}]),
        ("distributedInfo", {"rank": 3, "world_size": 8}),
    ]
    members = [*other[:place], ("traceEvents", EVENTS), *other[place:]]
    path = write(tmp_path, json.dumps(dict(members)))
    assert read(path) == (EVENTS, dict(other), False)


def test_events_can_be_read_twice(tmp_path: Path) -> None:
    trace = read_events(write(tmp_path, json.dumps({"a": 1, "traceEvents": EVENTS})))
    assert list(trace.events()) == list(trace.events())
    assert trace.other == {"a": 1}


def test_an_event_and_a_number_across_the_borders_of_what_is_read_at_once(tmp_path: Path) -> None:
    events = [{"ph": "X", "name": "n" * 50_000, "ts": 10**15 + i, "args": {}} for i in range(80)]
    events[40]["args"] = {"stack": "s" * 3_000_000}
    assert read(write(tmp_path, json.dumps(events))) == (events, {}, False)
    for pad in range((1 << 20) - 40, (1 << 20) - 10):
        path = write(tmp_path, '{"pad":"' + "p" * pad + '","base":1234567890,"traceEvents":[]}')
        assert read(path)[1]["base"] == 1234567890


@given(st.integers(1))
def test_cut_anywhere_gives_the_events_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    whole = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "traceName": "t"}).encode()
    first = whole.index(b"[")
    length = first + 1 + seed % (len(whole) - first - 1)
    path = write(tmp_path_factory.mktemp("cut"), whole[:length])
    events, _, cut = read(path)
    assert cut
    assert events == EVENTS[: len(events)]
    # Every event whose closing brace is there is given.
    ends = [len(whole[: whole.index(json.dumps(e).encode())]) + len(json.dumps(e)) for e in EVENTS]
    assert len(events) == sum(end <= length for end in ends)


def test_a_cut_gzip_stream_gives_what_could_be_unpacked(tmp_path: Path) -> None:
    events = [{"ph": "X", "name": f"op{i}", "ts": i * 7919} for i in range(20_000)]
    packed = gzip.compress(json.dumps(events).encode())
    got, _, cut = read(write(tmp_path, packed[: len(packed) // 2]))
    assert cut
    assert 5_000 < len(got) < 20_000
    assert got == events[: len(got)]


def test_a_byte_that_is_no_json_ends_the_events(tmp_path: Path) -> None:
    content = json.dumps(EVENTS[:2])[:-1] + ", \x00\x00" + json.dumps(EVENTS[2]) + "]"
    assert read(write(tmp_path, content)) == (EVENTS[:2], {}, True)


def test_a_broken_event_far_from_the_end_does_not_pull_in_the_rest(tmp_path: Path) -> None:
    rest = json.dumps([{"ph": "X", "name": "x" * 1000}] * 40_000)[1:]
    path = write(tmp_path, '[{"ph": "X", "name": "a"}, {"ph": oops}, ' + rest)
    tracemalloc.start()
    assert read(path) == ([{"ph": "X", "name": "a"}], {}, True)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_what_profilers_write_and_strict_json_forbids(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf[{"ph": "X", "a": NaN, "b": -Infinity, "name": "\xff\x01"},]'
    (event,), _, cut = read(write(tmp_path, content))
    assert not cut
    assert event["a"] != event["a"]
    assert event["b"] == float("-inf")
    assert event["name"] == "\ufffd\x01"


def test_a_list_of_events_without_its_closing_bracket_is_cut(tmp_path: Path) -> None:
    assert read(write(tmp_path, json.dumps(EVENTS)[:-1])) == (EVENTS, {}, True)


def test_a_trace_cut_before_its_events_is_a_cut_trace(tmp_path: Path) -> None:
    path = write(tmp_path, '{"schemaVersion": 1, "deviceProperties": [{"id')
    assert read(path) == ([], {"schemaVersion": 1}, True)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (gzip.compress(b""), "an empty file"),
        (b"step,time\n1,2\n", "step,time"),
        (b"\x80\x03}q\x00", "x80"),
        (b"[section]\nkey = value\n", "no JSON after it"),
        (b"[1, 2, 3]", "a JSON list of something else"),
        (b'[{"a": 1}]', "a JSON list of something else"),
        (b'{"name": "x", "value": 3}', "without 'traceEvents' (its keys: 'name', 'value')"),
        (b'{"traceEvents": null}', "without 'traceEvents'"),
        (b"{", "broken JSON without the key 'traceEvents'"),
        (b"{body { color: red }}", "broken JSON"),
        (b"{" + b"[" * 200_000, "broken JSON"),
    ],
)
def test_what_is_no_trace_is_refused_by_what_it_is(
    tmp_path: Path, content: bytes, found: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(NotATraceError) as refusal:
        list(read_events(path).events())
    assert isinstance(refusal.value, UserError)
    assert str(path) in str(refusal.value)
    assert found in str(refusal.value)
    assert "expected Chrome-trace JSON" in str(refusal.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="No such file"):
        read_events(tmp_path / "absent.json")
    with pytest.raises(NotATraceError, match="Is a directory"):
        read_events(tmp_path)
    with pytest.raises(NotATraceError, match="cannot read"):
        read_events(write(tmp_path, b"\x1f\x8bnot really gzip"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5_000),
        (0, 0),
        (-3, -3_000),
        (1736408883688177, 1736408883688177_000),
        (145.57, 145_570),
        (0.001, 1),
        (4821735283.421, 4821735283_421),
        (4458676522690.655, 4458676522690_655),
        (8796093022206.999, 8796093022206_999),
        (1623143089861000.0, 1623143089861000_000),
        ("1736408883688177.930", 1736408883688177_930),
        ("\t1736408883688177.93 \t\n", 1736408883688177_930),
        ("12", 12_000),
        ("1.5e3", 1_500_000),
        (Decimal("1736408883688177.931"), 1736408883688177_931),
        (None, None),
        (True, None),
        ("", None),
        ("N/A", None),
        ("NaN", None),
        (float("nan"), None),
        (float("inf"), None),
        (float("-inf"), None),
        ("Infinity", None),
        ("1e999999999", None),
        (1e300, None),
        (10**300, None),
        ([1], None),
    ],
)
def test_nanoseconds_are_exact(value: object, expected: int | None) -> None:
    assert nanoseconds(value) == expected


@given(st.integers(0, 10**19))
def test_nanoseconds_of_text_and_of_a_fraction_in_a_file(
    tmp_path_factory: pytest.TempPathFactory, exact: int
) -> None:
    text = f"{exact // 1000}.{exact % 1000:03d}"
    path = write(tmp_path_factory.mktemp("ns"), f'[{{"ph": "X", "ts": {text}, "dur": "{text}"}}]')
    (event,) = read_events(path).events()
    assert nanoseconds(event["ts"]) == nanoseconds(event["dur"]) == exact


@pytest.mark.skipif(not REAL.is_dir(), reason="the real profiles are not here")
@pytest.mark.parametrize(
    "name",
    [
        "kineto/nccl_data.json.gz",
        "ascend_level1/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    ],
)
def test_real_traces_read_as_the_json_module_reads_them(name: str) -> None:
    path = REAL / name
    data = path.read_bytes()
    whole = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    events, other, cut = read(path)
    assert not cut
    assert events == (whole if isinstance(whole, list) else whole.pop("traceEvents"))
    assert other == ({} if isinstance(whole, list) else whole)

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from autotune.measure.logs.lines import CUT, LineSplitter, plain_text

LOG = (
    "step: 1  loss: 7.8\n"
    "\x1b[31mstep: 2  \x1b[32mloss: 7.7\x1b[0m\r\n"
    " 50%|\N{FULL BLOCK}\N{FULL BLOCK}   | 1/2\r100%|\N{FULL BLOCK}| 2/2\r\n"
    "\x1b]0;a title\x07训练: 完成\n"
    "\n"
    "last\n"
).encode()
LINES = [
    "step: 1  loss: 7.8",
    "step: 2  loss: 7.7",
    " 50%|\N{FULL BLOCK}\N{FULL BLOCK}   | 1/2",
    "100%|\N{FULL BLOCK}| 2/2",
    "训练: 完成",
    "",
    "last",
]


def split(*pieces: bytes) -> list[str]:
    splitter = LineSplitter()
    return [line for piece in pieces for line in splitter.feed(piece)] + splitter.finish()


def test_bars_colours_and_titles() -> None:
    assert split(LOG) == LINES


def test_pieces_of_any_size_give_the_same_lines() -> None:
    assert split(*(LOG[i : i + 1] for i in range(len(LOG)))) == LINES
    draw = random.Random(3)
    for _ in range(200):
        cuts = sorted(draw.choices(range(len(LOG) + 1), k=4))
        edges = [0, *cuts, len(LOG)]
        assert split(*(LOG[a:b] for a, b in pairwise(edges))) == LINES


def test_a_line_that_has_not_ended_is_held_back() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"took 12") == []
    assert splitter.feed(b"3 ms\nnext") == ["took 123 ms"]
    assert splitter.finish() == [f"next{CUT}"]
    assert splitter.finish() == []


def test_a_long_line_is_bounded_and_marked() -> None:
    splitter = LineSplitter(max_line_bytes=8)
    for _ in range(1000):
        assert splitter.feed(b"0123456789") == []
    assert splitter.feed(b"\nshort\n12345678\n") == [f"01234567{CUT}", "short", "12345678"]


def test_bytes_that_are_no_text() -> None:
    assert split(b"a\xffb\n\xe8\xae\n") == ["a\ufffdb", "\ufffd"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("tps: 8,\x1b[1;34m629\x1b[0m  x", "tps: 8,629  x"),
        ("\x1b[2K\x1b[1A\x1b[?25lx", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1bMx", "x"),
        ("loss: 7.8\x1b[3", f"loss: 7.8{CUT}"),
        ("loss: 7.8\x1b", f"loss: 7.8{CUT}"),
        ("7.8\x1b]0;7", f"7.8{CUT}"),
    ],
)
def test_escapes(text: str, plain: str) -> None:
    assert plain_text(text) == plain

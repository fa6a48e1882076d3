"""Options are those that argparse finds, and stay in order when one is changed."""

from __future__ import annotations

import argparse
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.trainers.shell import Options

values = st.sampled_from(["1", "-3", "-0.5", "a b", "-x y", "", "out/dir", "1e-5", "é", "a=b"])
options = st.one_of(
    st.tuples(st.sampled_from(["--lr", "--name"]), values).map(list),
    st.tuples(st.sampled_from(["--lr", "--name"]), values).map(lambda pair: ["=".join(pair)]),
    st.just(["--flag"]),
    st.lists(values, min_size=1, max_size=3).map(lambda several: ["--spec", *several]),
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(allow_abbrev=False)
    made.add_argument("--lr")
    made.add_argument("--name")
    made.add_argument("--flag", action="store_true")
    made.add_argument("--spec", nargs="+")
    return made


@given(st.lists(options, max_size=8))
def test_the_last_one_wins_as_with_argparse(parts: list[list[str]]) -> None:
    words = [word for part in parts for word in part]
    expected = parser().parse_args(words)
    found = Options.parse(words)
    assert found.words == tuple(words)
    assert found.value("--lr") == expected.lr
    assert found.value("--name") == expected.name
    assert ("--flag" in found) == expected.flag
    spec = found.get("--spec")
    assert (None if spec is None else list(spec)) == expected.spec


@given(st.lists(options, max_size=6), st.sampled_from(["--lr", "--name"]), values)
def test_what_is_set_is_what_argparse_reads(parts: list[list[str]], name: str, value: str) -> None:
    words = [word for part in parts for word in part]
    changed = Options.parse(words).set(name, value)
    before, after = vars(parser().parse_args(words)), vars(parser().parse_args(changed.words))
    assert after == {**before, name.removeprefix("--"): value}
    removed = vars(parser().parse_args(changed.remove(name).words))
    assert removed == {**before, name.removeprefix("--"): None}


def test_order_and_ways_of_writing_stay() -> None:
    words = shlex.split("cfg.yaml --a 1 --b=2 --c --a 3 --spec x y -- --a rest")
    parsed = Options.parse(words)
    assert shlex.join(parsed.set("--b", "9").words) == (
        "cfg.yaml --a 1 --b=9 --c --a 3 --spec x y -- --a rest"
    )
    assert shlex.join(parsed.set("--a", "9").words) == (
        "cfg.yaml --b=2 --c --a 9 --spec x y -- --a rest"
    )
    assert shlex.join(parsed.set("--new", "1", "2").set("--flag").words).endswith(
        "--spec x y --new 1 2 --flag -- --a rest"
    )
    assert shlex.join(parsed.remove("--spec").words) == "cfg.yaml --a 1 --b=2 --c --a 3 -- --a rest"
    assert parsed.positional == ("cfg.yaml", "--a", "rest")
    assert parsed.get("--c") == ()
    assert parsed.get("--none") is None
    assert Options.parse(["--bf16", "x"], flags=["--bf16"]).positional == ("x",)
    assert Options.parse(["--b=1", "x"]).positional == ("x",)


def test_a_name_that_is_none_is_refused() -> None:
    for name in ("lr", "--", "--lr=1", "-1"):
        with pytest.raises(ValueError, match="is no name of an option"):
            Options().set(name, "1")

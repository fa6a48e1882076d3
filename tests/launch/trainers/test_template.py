"""Commands and values with `{...}` in the place of parameters."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.errors import UserError
from launch.trainers.template import Blank, Template, render_words, split_words


def words(command: str, **values: Any) -> tuple[str, ...]:
    """The words of a command, where a name without a value is that of an inactive parameter."""
    templates = [Template.parse(word, "trainer.command") for word in split_words(command)]
    names = {name for template in templates for name in template.names}
    scope = {"model": {"heads": 8}, "cluster": {"world_size": 4}, **dict.fromkeys(names), **values}
    return render_words(templates, scope)


@pytest.mark.parametrize(
    ("command", "values", "expected"),
    [
        ("train.py --lr {lr}", {"lr": 0.1}, "train.py|--lr|0.1"),
        ("--fast={flag} {name}", {"flag": True, "name": "ring"}, "--fast=true|ring"),
        ("--ranks {cluster.world_size // sp}", {"sp": 2}, "--ranks|2"),
        ("--json {split}", {"split": [2, 6]}, "--json|[2,6]"),
        ("{a}-{b}.pt", {"a": 1, "b": "x"}, "1-x.pt"),
        ("'{{literal}}' {{{a}}}", {"a": 3}, "{literal}|{3}"),
        ("'a file.py' --name \"two words\"", {}, "a file.py|--name|two words"),
        ("--n {1 if a == 'x' else 2}", {"a": "x"}, "--n|1"),
        ("{a == 'x':--is-x} z", {"a": "x"}, "--is-x|z"),
        ('"{a}"', {"a": "no split"}, "no split"),
        ("--empty ''", {}, "--empty|"),
    ],
)
def test_words_with_values(command: str, values: dict[str, Any], expected: str) -> None:
    assert "|".join(words(command, **values)) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("p --degree {gone} --lr 1", "p|--lr|1"),
        ("p --degree={gone} end", "p|end"),
        ("p --degree {gone // 2} end", "p|end"),
        ("p --file a{gone}b end", "p|end"),
        ("p {gone} end", "p|end"),
        ("p --a 1 {gone} end", "p|--a|1|end"),
        ("p --lr={one} {gone}", "p|--lr=1"),
        ("p --lr {one} {gone}", "p|--lr|1"),
        # A flag in front of an option that is left out stays.
        ("p --verbose {gone == 1:--recompute} end", "p|--verbose|end"),
        ("p --verbose --degree={gone} end", "p|--verbose|end"),
        ("p --attention {gone == 1:flash} end", "p|end"),
    ],
)
def test_a_word_without_a_value_takes_its_option_with_it(command: str, expected: str) -> None:
    assert "|".join(words(command, one=1)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{steps}", "<steps>"),
        ("{steps + 5}", "<steps + 5>"),
        ("--until={ steps }", "--until=<steps>"),
        ("{steps > 100:--long}", "<--long if steps > 100>"),
    ],
)
def test_what_a_person_fills_in_stays_visible(text: str, expected: str) -> None:
    assert Template.parse(text, "here").value({"steps": Blank()}) == expected


def test_a_value_alone_keeps_its_type() -> None:
    scope = {"flag": False, "sizes": [1, 2], "n": 3}
    assert Template.parse("{flag}", "here").value(scope) is False
    assert Template.parse("{sizes}", "here").value(scope) == [1, 2]
    assert Template.parse("{n}x", "here").value(scope) == "3x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "single '{'; write {{ for one"),
        ("a}", "single '}'; write }} for one"),
        ("{}", "cannot read"),
        ("{import os}", "cannot read"),
        ("{a.b}", "'a.b' is not allowed"),
        ("{open('x')}", "not allowed"),
    ],
)
def test_mistakes_name_the_key(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        Template.parse(text, "trainer.env.X")
    assert str(error.value).startswith("trainer.env.X: ")
    assert message in str(error.value)

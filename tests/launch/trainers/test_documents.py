"""Files that are changed by key: that key changes, and nothing else does."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from autotune.errors import UserError
from launch.trainers.documents import JsonDocument, YamlDocument, key_path, parse_document

YAML = """\
# The head.
training:
    lr: 1e-5          # PyYAML takes this for text
    micro_batch_size: 1   # samples
    plugin: [a.b, "c"]
    on: yes
plans: &plan
  modules:
  - model.layers.{*}
  - 'lm_head'
copied: *plan
merged:
  <<: *plan
  dispatcher: "alltoall"
save: !!str 010
date: 2001-01-01
empty:
"""


def changed(before: Any, path: str, value: Any) -> Any:
    """What the program reads, with one value replaced; a separate copy at every place."""
    data = json.loads(json.dumps(before, default=str))
    node = data
    *parents, last = path.split(".")
    for part in parents:
        node = node[int(part) if isinstance(node, list) else part]
    node[int(last) if isinstance(node, list) else last] = value
    return data


def plain(data: Any) -> Any:
    return json.loads(json.dumps(data, default=str))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("training.micro_batch_size", 4),
        ("training.micro_batch_size", None),
        ("training.lr", 3e-06),
        ("training.lr", 1e22),
        ("training.lr", 2.0),
        ("training.plugin", ["x", "yes", 1.5, None, True]),
        ("training.plugin.0", "1e5"),
        ("training.plugin", []),
        ("save", "off"),
        ("save", "2001-01-01"),
        ("save", "a: b # c"),
        ("save", "调优"),
        ("date", {"no": "no", "deep": {"x": 1e-7}}),
        ("empty", False),
        ("merged.dispatcher", "mc2"),
        # What an alias or a merge shows is written out before it differs.
        ("copied.modules", ["x"]),
        ("copied.modules.0", "x"),
        ("merged.modules.1", "x"),
        ("merged.modules", None),
    ],
)
def test_pyyaml_reads_the_new_value_and_the_old_rest(path: str, value: Any) -> None:
    document = YamlDocument("c.yaml", YAML)
    before = yaml.safe_load(YAML)
    document.set(key_path(path), value)
    assert plain(yaml.safe_load(document.text())) == changed(before, path, value)
    assert document.get(key_path(path)) == value
    assert type(document.get(key_path(path))) is type(value)


def test_comments_quotes_and_order_stay() -> None:
    document = YamlDocument("c.yaml", YAML)
    document.set(key_path("training.micro_batch_size"), 2)
    text = document.text()
    for kept in (
        "# The head.",
        "# PyYAML takes",
        "# samples",
        '"c"',
        "'lm_head'",
        "*plan",
        "&plan",
    ):
        assert kept in text
    assert [line.split(":")[0] for line in text.splitlines() if line[:1].isalpha()] == [
        line.split(":")[0] for line in YAML.splitlines() if line[:1].isalpha()
    ]


def test_nothing_set_nothing_changed() -> None:
    assert plain(YamlDocument("c.yaml", YAML).data) == plain(yaml.safe_load(YAML))


def test_new_keys_come_with_their_parents() -> None:
    document = YamlDocument("c.yaml", YAML)
    document.put(key_path("tools.profile.enable"), False)
    document.put(key_path("empty.now"), 1)
    document.put(key_path("copied.more"), 2)
    read = yaml.safe_load(document.text())
    assert read["tools"] == {"profile": {"enable": False}}
    assert read["empty"] == {"now": 1}
    assert "more" in read["copied"]
    assert "more" not in read["plans"]
    with pytest.raises(UserError, match=r"training\.lr is no mapping"):
        document.put(key_path("training.lr.x"), 1)


def test_keys_are_removed_where_they_are_named_alone() -> None:
    document = YamlDocument("c.yaml", YAML)
    document.remove(key_path("copied.modules"))
    document.remove(key_path("merged.modules"))
    document.remove(key_path("training.lr"))
    document.remove(key_path("training.nope.nope"))
    read = yaml.safe_load(document.text())
    assert read["copied"] == {}
    assert read["merged"] == {"dispatcher": "alltoall"}
    assert list(read["training"]) == ["micro_batch_size", "plugin", True]
    assert read["plans"] == {"modules": ["model.layers.{*}", "lm_head"]}


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("training.micro_batch_sise", "did you mean 'micro_batch_size'"),
        ("trainning.lr", "did you mean 'training'"),
        ("training.plugin.7", "training.plugin.7; there are none to choose from. To add a key"),
        ("training.lr.x", "has no key"),
    ],
)
def test_a_misspelt_key_is_named_with_what_was_meant(path: str, hint: str) -> None:
    for name, text in (("c.yaml", YAML), ("c.json", json.dumps(plain(yaml.safe_load(YAML))))):
        with pytest.raises(UserError) as error:
            parse_document(name, text).set(key_path(path), 1)
        assert hint in str(error.value)
        assert f"write +{path[: path.index('.')]}" in str(error.value)


def test_json_keeps_order_and_types() -> None:
    text = '{"b": {"x": [1, 2.0, null]}, "a": "调"}'
    document = JsonDocument("m.json", text)
    document.set(key_path("b.x.1"), 1e-5)
    document.put(key_path("c.new"), True)
    read = json.loads(document.text())
    assert list(read) == ["b", "a", "c"]
    assert read == {"b": {"x": [1, 1e-5, None]}, "a": "调", "c": {"new": True}}
    kept = document.data
    kept["a"] = 1
    assert document.get(["a"]) == "调"


SHELL = """\
#!/bin/bash
MBS=1  # samples
export  TP=2
    NAME="two words" # kept
PATTERN='a # b'
ANCHOR=a#b
LINE:  3
GBS=$((MBS * 8))
NONE=
BARE:   # nothing
  # MBS=5
TWICE=1
TWICE=2
"""


@pytest.mark.parametrize(
    ("key", "before", "value", "line"),
    [
        ("MBS", "1", 4, "MBS=4  # samples"),
        ("TP", "2", 8, "export  TP=8"),
        ("NAME", "two words", "new words", '    NAME="new words" # kept'),
        ("PATTERN", "a # b", "x", "PATTERN='x'"),
        ("ANCHOR", "a#b", "c", "ANCHOR=c"),
        ("LINE", "3", True, "LINE:  true"),
        ("GBS", "$((MBS * 8))", 16, "GBS=16"),
        ("NONE", "", r"\1 x", r"NONE=\1 x"),
        ("BARE", "", 5, "BARE:   5 # nothing"),
    ],
)
def test_one_line_of_a_script_changes(key: str, before: str, value: Any, line: str) -> None:
    document = parse_document("train.sh", SHELL)
    assert document.get([key]) == before
    document.set([key], value)
    old, new = SHELL.splitlines(), document.text().splitlines()
    assert [one for one, other in zip(new, old, strict=True) if one != other] == [line]


@pytest.mark.parametrize(("key", "count"), [("TWICE", 2), ("NOPE", 0), ("MB", 0)])
def test_a_line_that_is_not_the_only_one_is_refused(key: str, count: int) -> None:
    with pytest.raises(UserError, match=f"train.sh has {count} lines"):
        parse_document("train.sh", SHELL).set([key], 1)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.yaml", "a: [1", "c.yaml is no YAML"),
        ("c.yml", "a: &x 1\nb: *y", "c.yml is no YAML"),
        ("c.yaml", "- 1", "holds no mapping; is it the right file"),
        ("c.yaml", "", "holds no mapping"),
        ("c.json", "{'a': 1}", "c.json is no JSON"),
        ("c.JSON", "[1]", "holds no mapping"),
    ],
)
def test_files_that_are_not_what_they_seem(name: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_document(name, text)


def test_what_is_read_is_no_part_of_the_document() -> None:
    document = YamlDocument("c.yaml", YAML)
    before = copy.deepcopy(document.data)
    document.data["training"].clear()
    assert document.data == before


KEYS = "layers:\n  5: {lr: 1}\n  6.5: 2  # half\n  true: 3\n  null: 4\n  '7': 5\n"


@pytest.mark.parametrize("key", ["layers.5.lr", "layers.true", "layers.null", "layers.7"])
def test_keys_that_are_no_texts_are_named_as_they_are_written(key: str) -> None:
    document = YamlDocument("c.yaml", KEYS)
    before = document.get(key_path(key))
    document.set(key_path(key), 90)
    assert document.get(key_path(key)) == 90
    assert document.text() == KEYS.replace(f": {before}", ": 90")
    document.put(key_path(key), before)
    assert document.text() == KEYS
    document.remove(key_path(key))
    assert not document.has(key_path(key))


def test_a_hint_ends_before_the_advice() -> None:
    def said(text: str, key: str) -> str:
        with pytest.raises(UserError) as error:
            YamlDocument("c.yaml", text).set(key_path(key), 1)
        return str(error.value)

    assert "did you mean 'lr'? To add a key" in said("lr: 1", "lrr")
    assert "allowed: lr. To add a key" in said("lr: 1", "size")
    assert "there are none to choose from. To add a key" in said("lr: {}", "lr.size")

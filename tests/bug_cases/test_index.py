"""Every case has tests, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .index import CASES

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "facts" / "bug_cases.md"


@cache
def names_in(file: str) -> frozenset[str]:
    """The test functions of a file, without importing it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = (node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in names if name.startswith("test_"))


@pytest.mark.parametrize("number", CASES)
def test_the_names_in_a_case_exist(number: int) -> None:
    for node in CASES[number].tests:
        file, _, name = node.partition("::")
        assert (ROOT / file).is_file(), node
        assert name in names_in(file), node


def test_no_test_is_named_twice_in_a_case() -> None:
    assert all(len(case.tests) == len(set(case.tests)) for case in CASES.values())


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared facts are not here")
def test_every_case_is_here() -> None:
    rows = re.findall(r"^\| *(\d+) *\|", SHARED.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(number) for number in rows} == set(CASES)

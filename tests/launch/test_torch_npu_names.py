"""Every name and keyword of torch_npu that the code uses is in torch_npu 2.13's own wheel.

The wheel is read, not installed: importing it needs CANN, and an installed one breaks a plain
`import torch`. It comes from the package index (44 MB), or lies in TORCH_NPU_WHEEL already.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.profile_plan import AIC_METRICS, EXPORT_TYPES, PROFILER_LEVELS

VERSION = "2.13.0"
ROOT = Path(__file__).resolve().parents[2]
PROFILER = "torch_npu/profiler"
# Operators are C++; their Python signatures are those of their meta registrations.
META = "torch_npu/op_plugin/meta/_meta_registrations.py"
OPERATORS = {
    "npu_fusion_attention": "npu_fusion_attention_forward",
    "npu_fusion_attention_grad": "npu_fusion_attention_backward",
}


class Wheel:
    """Sources of a wheel, as syntax trees."""

    def __init__(self, path: Path) -> None:
        self._files = zipfile.ZipFile(path)

    def tree(self, name: str) -> ast.Module:
        return ast.parse(self._files.read(name).decode("utf-8"))

    def exported(self, package: str) -> set[str]:
        """What a package's `__init__` imports, defines or lists in `__all__`."""
        names: set[str] = set()
        for node in ast.walk(self.tree(f"{package}/__init__.py")):
            if isinstance(node, (ast.ImportFrom, ast.Import)):
                names |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
        return names

    def definition(self, package: str, name: str) -> ast.FunctionDef | ast.ClassDef:
        """Of a function or class, wherever in the package it is."""
        for file in self._files.namelist():
            if file.startswith(f"{package}/") and file.endswith(".py"):
                for node in self.tree(file).body:
                    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                        return node
        raise AssertionError(f"{package} defines no {name}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    given = os.environ.get("TORCH_NPU_WHEEL")
    if given:
        return Wheel(Path(given))
    folder = tmp_path_factory.mktemp("wheel")
    python = [
        "--only-binary=:all:",
        "--python-version",
        "3.11",
        "--platform",
        "manylinux_2_28_x86_64",
    ]
    words = ["-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), *python]
    try:
        subprocess.run(
            [sys.executable, *words, f"torch_npu=={VERSION}"],
            check=True,
            capture_output=True,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the wheel of torch_npu {VERSION} cannot be fetched ({error}); lay it down "
                    "and name it in TORCH_NPU_WHEEL")  # fmt: skip
    return Wheel(next(folder.glob("torch_npu-*.whl")))


def parameters(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """What a call may name."""
    if isinstance(node, ast.ClassDef):
        made = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        node = next(one for one in made if one.name == "__init__")
    arguments = node.args
    return {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def uses(file: str, root: str) -> Iterator[tuple[str, ast.Call | None]]:
    """Names that a file of ours takes from `root`, and the call where they are called."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == root:
            yield node.attr, calls.get(id(node))


def keywords(call: ast.Call | None) -> set[str]:
    return set() if call is None else {one.arg for one in call.keywords if one.arg is not None}


@pytest.mark.parametrize("root", ["self._profiler", "profiler"])
def test_the_profiler(wheel: Wheel, root: str) -> None:
    exported = wheel.exported(PROFILER)
    found = list(uses("launch/rank/ascend_profile.py", root))
    assert found, f"ascend_profile.py uses nothing of {root}; is it called otherwise?"
    for name, call in found:
        assert name in exported, f"torch_npu.profiler has no {name}"
        if keywords(call):
            allowed = parameters(wheel.definition(PROFILER, name))
            assert keywords(call) <= allowed, f"{name} takes {sorted(allowed)}"


def test_every_option_of_a_profile_is_one_of_theirs(wheel: Wheel) -> None:
    for name, ours in (
        ("ProfilerLevel", PROFILER_LEVELS),
        ("AiCMetrics", AIC_METRICS),
        ("ExportType", EXPORT_TYPES),
    ):
        node = wheel.definition(PROFILER, name)
        theirs = {
            target.id
            for line in node.body
            if isinstance(line, ast.Assign)
            for target in line.targets
            if isinstance(target, ast.Name)
        }
        assert set(ours) <= theirs, f"torch_npu.profiler.{name} has {sorted(theirs)}"


def test_what_is_done_with_a_profile(wheel: Wheel) -> None:
    node = wheel.definition(PROFILER, "profile")
    assert isinstance(node, ast.ClassDef)
    methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    assert {"start", "stop", "step"} <= methods


@pytest.mark.parametrize(
    ("file", "root"),
    [("launch/rank/hooks/memory.py", "backend"), ("launch/reference/device.py", "module")],
)
def test_the_device_module(wheel: Wheel, file: str, root: str) -> None:
    exported = wheel.exported("torch_npu/npu") | {
        element.value
        for node in ast.walk(wheel.tree("torch_npu/npu/__init__.py"))
        if isinstance(node, ast.List)
        for element in node.elts
        if isinstance(element, ast.Constant)
    }
    found = {name for name, _ in uses(file, root)}
    assert found
    assert found <= exported


def test_the_attention_operators(wheel: Wheel) -> None:
    found = list(uses("launch/reference/attention/blocks.py", "torch_npu"))
    assert {name for name, _ in found} == set(OPERATORS)
    meta = {
        node.name: node for node in ast.walk(wheel.tree(META)) if isinstance(node, ast.FunctionDef)
    }
    for name, call in found:
        assert call is not None
        allowed = parameters(meta[OPERATORS[name]])
        assert keywords(call) <= allowed, f"{name} takes {sorted(allowed)}"
        assert len(call.args) <= len(meta[OPERATORS[name]].args.args)

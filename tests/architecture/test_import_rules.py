"""The rooms of docs/design.md: who may import what."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that the file imports, and whether at the top level of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        top = node in tree.body
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, top


def importers(package: str, paths: list[Path]) -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for path in paths
        if any(name == package or name.startswith(f"{package}.") for name, _ in imports(path))
    ]


@pytest.mark.parametrize("forbidden", ["ray", "torch", "torch_npu", "subprocess"])
def test_decisions_start_nothing(forbidden: str) -> None:
    assert importers(forbidden, modules("autotune")) == []


def test_one_module_wires_decisions_to_actions() -> None:
    assert importers("launch", modules("autotune")) == ["autotune/cli/wiring.py"]


def test_only_modules_named_after_it_import_ray() -> None:
    assert importers("ray", modules("autotune", "launch", "search_spaces")) == [
        "launch/ray_connection.py",
        "launch/ray_launcher.py",
        "launch/ray_quarantine.py",
    ]


def test_one_module_knows_optunas_storage() -> None:
    assert importers("optuna.storages", modules("autotune", "launch")) == [
        "autotune/study/storage.py"
    ]


def test_only_the_search_and_its_storage_know_optuna() -> None:
    rooms = {Path(name).parts[:2] for name in importers("optuna", modules("autotune", "launch"))}
    assert rooms == {("autotune", "search"), ("autotune", "study")}


def test_ranks_need_nothing_of_ours() -> None:
    """launch/rank runs in the trainer's Python, which may hold none of our packages."""
    allowed = set(sys.stdlib_module_names) | {"launch"}
    for path in modules("launch/rank"):
        for name, top in imports(path):
            root = name.partition(".")[0]
            if root in ("torch", "torch_npu"):
                assert not top, f"{path}: {name} may only be used when the trainer has loaded it"
            elif root == "launch":
                assert name.startswith("launch.rank"), f"{path} imports {name}"
            else:
                assert root in allowed, f"{path} imports {name}"


def test_the_reference_trainer_knows_nothing_of_the_search() -> None:
    for package in ("autotune", "ray", "hydra", "omegaconf", "optuna"):
        assert importers(package, modules("launch/reference")) == []


def test_trainer_adapters_start_no_process() -> None:
    for package in ("subprocess", "ray", "torch"):
        assert importers(package, modules("launch/trainers")) == []


def test_no_shell_and_no_swallowed_errors() -> None:
    for path in modules("autotune", "launch"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                pytest.fail(f"{path}:{node.value.lineno} passes shell=")
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                pytest.fail(f"{path}:{node.lineno} catches everything")


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules("autotune", "launch", "search_spaces")
    }
    assert {name: lines for name, lines in long.items() if lines > 400} == {}

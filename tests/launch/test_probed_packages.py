"""Packages that a trainer asks about: whether they are there, their versions, their commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from launch.environment import probe_environment
from launch.errors import PackageMissingError

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main")
OLDEST = Path("/root/.pyenv/versions/3.8.18/bin/python3.8")


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run([*GIT, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    """A package in a git work tree, which must not be imported."""
    root = tmp_path / "tree"
    (root / "mine").mkdir(parents=True)
    (root / "mine" / "__init__.py").write_text("raise SystemExit('imported')")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    return root


def probed(root: Path, *versions: str, needs: tuple[str, ...] = ()) -> dict[str, str]:
    return probe_environment(sys.executable, "cpu", needs, versions, {"PYTHONPATH": str(root)})


def test_a_package_in_a_work_tree_has_its_commit(work_tree: Path) -> None:
    commit = git(work_tree, "rev-parse", "HEAD")
    assert probed(work_tree, "mine")["mine_commit"] == commit
    git(work_tree, "pack-refs", "--all")
    assert probed(work_tree, "mine")["mine_commit"] == commit
    git(work_tree, "checkout", "-q", "--detach")
    assert probed(work_tree, "mine")["mine_commit"] == commit


def test_a_linked_work_tree_inside_another_has_its_own_commit(work_tree: Path) -> None:
    git(work_tree, "commit", "-q", "--allow-empty", "-m", "two")
    inner = work_tree / "inner"
    git(work_tree, "worktree", "add", "-q", str(inner), "HEAD~1")
    assert probed(inner, "mine")["mine_commit"] == git(work_tree, "rev-parse", "HEAD~1")
    git(inner, "checkout", "-q", "-b", "other")
    assert probed(inner, "mine")["mine_commit"] == git(work_tree, "rev-parse", "HEAD~1")


def test_an_installed_package_in_somebodys_work_tree_has_a_version_and_no_commit(
    work_tree: Path,
) -> None:
    site = work_tree / "venv" / "site-packages"
    (site / "theirs").mkdir(parents=True)
    (site / "theirs" / "__init__.py").touch()
    info = site / "theirs-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: theirs\nVersion: 1.2\n")
    found = probed(site, "theirs")
    assert found["theirs"] == "1.2"
    assert "theirs_commit" not in found


def test_what_is_not_there_is_left_out_or_asked_for(work_tree: Path) -> None:
    found = probed(work_tree, "nowhere", "no.such.module")
    assert not [name for name in found if "no" in name and name not in ("numpy",)]
    with pytest.raises(PackageMissingError, match="without nowhere"):
        probed(work_tree, needs=("nowhere",))


@pytest.mark.skipif(not OLDEST.exists(), reason="needs Python 3.8")
def test_the_oldest_python_can_be_asked(work_tree: Path) -> None:
    added = {"PYTHONPATH": str(work_tree)}
    found = probe_environment(str(OLDEST), "cpu", (), ("mine",), added)
    assert found["python"].startswith("3.8.")
    assert found["mine_commit"] == git(work_tree, "rev-parse", "HEAD")

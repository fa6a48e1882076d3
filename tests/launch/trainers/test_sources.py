"""The user's files, read once and kept with the study; the commit that is checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from autotune.errors import UserError
from launch.trainers.passes import plan_passes
from launch.trainers.sources import Sources, checked_out

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run([*GIT, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits, the second on a branch with a slash in its name."""
    root = tmp_path / "50% a=b,c#1 调优"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    git(root, "checkout", "-q", "-b", "a/b")
    git(root, "commit", "-q", "--allow-empty", "-m", "two")
    return root


def test_files_are_read_by_name_and_kept(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c.yaml").write_text("x: 调\n", encoding="utf-8")
    sources = Sources(str(tmp_path))
    assert sources.read("a/c.yaml", "key") == "x: 调\n"
    assert sources.read(str(tmp_path / "a" / "c.yaml"), "key") == "x: 调\n"
    assert sources.find("a/none.yaml") is None
    assert sources.find("a/c.yaml/below") is None
    assert set(sources.used) == {"a/c.yaml", str(tmp_path / "a" / "c.yaml")}


def test_what_is_kept_is_not_read_again() -> None:
    kept = {"c.yaml": "old", "commit": "abc"}
    sources = Sources("/no/such/folder", kept)
    assert sources.read("c.yaml", "key") == "old"
    assert sources.find("new.yaml") is None
    assert sources.commit() == "abc"
    assert sources.has("program.py")
    assert sources.root == Path("/no/such/folder")
    assert sources.used == kept


def test_a_value_stays_as_it_was_when_the_study_began(tmp_path: Path) -> None:
    first = Sources(str(tmp_path))
    assert first.keep("cwd", "/one") == "/one"
    assert Sources(str(tmp_path), first.used).keep("cwd", "/other") == "/one"


def test_a_missing_file_is_named_with_its_key_and_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    with pytest.raises(UserError) as error:
        Sources(str(tmp_path)).read("confg.yaml", "model.base.config")
    assert "model.base.config=confg.yaml" in str(error.value)
    assert "did you mean 'config.yaml'" in str(error.value)
    with pytest.raises(UserError, match="there is no folder"):
        Sources(str(tmp_path)).read("nope/confg.yaml", "model.base.config")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe\x00", "no text in UTF-8"), (b"x" * (5 << 20), "is larger than")],
)
def test_files_that_are_no_configuration(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "weights.bin").write_bytes(content)
    with pytest.raises(UserError, match=message):
        Sources(str(tmp_path)).read("weights.bin", "key")
    with pytest.raises(UserError, match="cannot be read"):
        Sources(str(tmp_path)).read(".", "key")


@pytest.mark.parametrize("root", [None, "/no/such/folder"])
def test_a_root_that_is_not_there(root: str | None) -> None:
    with pytest.raises(UserError, match=r"trainer\.root"):
        Sources(root).read("a.yaml", "key")


def test_the_commit_of_a_branch_of_a_detached_head_and_of_packed_refs(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert Sources(str(repository)).commit() == commit
    git(repository, "pack-refs", "--all")
    assert checked_out(repository) == commit
    first = git(repository, "rev-parse", "main")
    git(repository, "checkout", "-q", "--detach", "main")
    assert checked_out(repository) == first != commit


def test_the_commit_of_a_linked_work_tree_and_of_a_submodule(
    repository: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", str(linked), "main")
    assert checked_out(linked) == git(linked, "rev-parse", "HEAD")
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "in")
    git(outer, *add)
    assert checked_out(outer / "in") == git(outer / "in", "rev-parse", "HEAD")


def test_no_commit_where_there_is_no_work_tree(tmp_path: Path) -> None:
    assert checked_out(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert checked_out(tmp_path) is None


@pytest.mark.parametrize(
    ("window", "asked", "least", "planned"),
    [
        (1, (3, 8, 16), 0, (3, 16)),
        (4, (3, 8, 16), 0, (4, 16)),
        (4, (0, 8, 19), 0, (0, 16)),
        (4, (0, 8, 19), 1, (4, 16)),
        (5, (6, 3, 7), 1, (10, 5)),
    ],
)
def test_steps_are_whole_passes(
    window: int, asked: tuple[int, int, int], least: int, planned: tuple[int, int]
) -> None:
    plan = plan_passes(window, *asked, least_warmup=least)
    assert (plan.warmup_steps, plan.measured_steps, plan.window_steps) == (*planned, window)


def test_a_window_that_does_not_fit() -> None:
    with pytest.raises(UserError, match=r"give measure\.max_steps=20 or more"):
        plan_passes(10, 0, 11, 19)

"""Which commits of MindSpeed-MM are asked for, and what is said of another one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from autotune.errors import UserError
from launch.trainers.mindspeed.checkout import KNOWN, require_checkout
from launch.trainers.sources import Sources

TRAINERS = Path(__file__).parents[4] / "search_spaces" / "trainer"
THERE = KNOWN + "a" * 32
OTHER = "028de58c" + "b" * 32


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(f"{THERE}\n")
    return tmp_path


def require(root: Path, commit: str | None, at: str = THERE) -> None:
    (root / ".git" / "HEAD").write_text(at)
    require_checkout(Sources(str(root)), "train.py", commit)


def test_the_known_commit_is_the_one_that_is_shipped() -> None:
    files = sorted(TRAINERS.glob("mindspeed_*.yaml"))
    assert files
    assert {yaml.safe_load(file.read_text())["commit"] for file in files} == {KNOWN}


@pytest.mark.parametrize("commit", [KNOWN, KNOWN.upper(), THERE[:7], THERE, "any", None])
def test_what_names_the_commit_that_is_there(root: Path, commit: str | None) -> None:
    require(root, commit)


@pytest.mark.parametrize("commit", ["", "zz", "0", "57069c", "57069cd5g", "Any", "a" * 41, " any"])
def test_what_names_no_commit(root: Path, commit: str) -> None:
    with pytest.raises(UserError) as error:
        require(root, commit)
    message = str(error.value)
    assert message.startswith(f"trainer.commit={commit!r} is no commit: give 7 to 40 hexadecimal")
    assert f"trainer.commit={KNOWN}" in message
    assert "trainer.commit=any" in message


def test_what_was_asked_for_is_not_called_what_the_rules_are_for(root: Path) -> None:
    with pytest.raises(UserError) as error:
        require(root, KNOWN, OTHER)
    assert f"is at commit {OTHER[:12]}, the rules are for {KNOWN}; type git" in str(error.value)
    with pytest.raises(UserError) as error:
        require(root, OTHER[:8])
    assert f", trainer.commit=028de58c (the rules are for {KNOWN}); type git" in str(error.value)
    (root / ".git" / "HEAD").unlink()
    with pytest.raises(UserError, match=r"not known; the rules are for 57069cd5\. If"):
        require_checkout(Sources(str(root)), "train.py", KNOWN)


def test_a_study_that_has_begun_is_not_asked_again(root: Path) -> None:
    kept = {"train.py": "", "commit": THERE}
    require_checkout(Sources(str(root), kept), "train.py", "5")

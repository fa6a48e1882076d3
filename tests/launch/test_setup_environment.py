"""The environment that setup scripts make, as if they had been sourced at a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.errors import EnvironmentProbeError
from launch.setup_environment import setup_environment


def script(folder: Path, text: str, name: str = "set env.sh") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_no_scripts_run_nothing() -> None:
    assert setup_environment([]) == {}


def test_what_scripts_export_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/old")
    monkeypatch.setenv("KEPT", "as it was")
    monkeypatch.setenv("COLUMNS", "7")
    first = script(
        tmp_path,
        "echo to stdout; export HOME_OF=/opt/ascend\n"
        'export LD_LIBRARY_PATH="$HOME_OF/lib:$LD_LIBRARY_PATH"; LOCAL=1\n'
        "export KEPT='as it was' WORDS=$'two\\nlines =;$HOME'\n",
    )
    second = script(tmp_path, "export LATER=${HOME_OF}/second", "b.sh")
    assert setup_environment([first, second]) == {
        "HOME_OF": "/opt/ascend",
        "LD_LIBRARY_PATH": "/opt/ascend/lib:/old",
        "WORDS": "two\nlines =;$HOME",
        "LATER": "/opt/ascend/second",
    }


def test_a_script_sees_its_own_place_and_no_arguments(tmp_path: Path) -> None:
    """CANN's finds its folder by BASH_SOURCE; others read options from their arguments."""
    text = 'export WHERE="$(dirname "${BASH_SOURCE[0]}")" GIVEN="$#:$*" LAST=$1\n'
    found = setup_environment([script(tmp_path, text), script(tmp_path, "source=1", "b.sh")])
    assert (found["WHERE"], found["GIVEN"]) == (str(tmp_path), "0:")


def test_a_path_relative_to_here_and_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script(tmp_path, "cd /; export A=1", "a.sh")
    script(tmp_path, "export B=2", "b.sh")
    assert setup_environment(["a.sh", "./b.sh"]) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo no CANN here >&2; return 3", "fails: no CANN here"),
        ("false", "fails: without a word"),
        ("exit 1", "fails: without a word"),
        ("exit 0", "ends the shell that reads it"),
        ("if then", "line 1: `if then'"),
    ],
)
def test_a_script_that_fails(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EnvironmentProbeError, match=r"trainer\.setup=") as error:
        setup_environment([script(tmp_path, text)])
    assert message in str(error.value)


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(EnvironmentProbeError, match=r"trainer\.setup names /no/such\.sh") as error:
        setup_environment(["/no/such.sh"])
    assert "set_env.sh of your CANN" in str(error.value)

"""The environment that setup scripts make, as if they had been sourced at a prompt."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
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
        ("echo no CANN here >&2; return 3", "set env.sh: it ends with status 3: no CANN here"),
        ("false", "set env.sh: it ends with status 1 without a word"),
        ("exit 4", "set env.sh: it ends with status 4 without a word"),
        ("kill -9 $$", "set env.sh: it is ended by signal 9 without a word"),
        ("exit 0", "ends the shell that reads it"),
        ("if then", "line 1: `if then'"),
    ],
)
def test_a_script_that_fails(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EnvironmentProbeError, match=r"trainer\.setup=") as error:
        setup_environment([script(tmp_path, text)])
    assert message in str(error.value)


def test_what_to_type_shows_what_the_script_does(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProbeError) as error:
        setup_environment([script(tmp_path, "wrong() { return 5; }\nwrong\n", "set 'env'.sh")])
    typed = str(error.value).partition("See why: ")[2].partition("; mend it")[0]
    ran = subprocess.run(["/bin/sh", "-c", typed], capture_output=True, text=True, timeout=20)
    assert ran.returncode == 5
    assert "+ wrong" in ran.stderr.replace("++", "+")


def test_a_script_that_never_ends_is_named_and_ended(tmp_path: Path) -> None:
    first = script(tmp_path, "A=1", "first.sh")
    second = script(tmp_path, f"echo $$ >'{tmp_path}/pid'; sleep 300", "second.sh")
    with pytest.raises(EnvironmentProbeError) as error:
        setup_environment([first, second], limit_s=1.5)
    message = str(error.value)
    assert f"{second} has not come to its end within 1.5 s" in message
    assert "leave it out of trainer.setup" in message
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_child_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    before = time.monotonic()
    text = f"nohup sleep 300 & echo $! >'{tmp_path}/pid'; export A=1"
    assert setup_environment([script(tmp_path, text)]) == {"A": "1"}
    assert time.monotonic() - before < 20.0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_script_that_loses_the_path(tmp_path: Path) -> None:
    assert setup_environment([script(tmp_path, "export PATH=/nope")]) == {"PATH": "/nope"}


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(EnvironmentProbeError, match=r"trainer\.setup names /no/such\.sh") as error:
        setup_environment(["/no/such.sh"])
    assert "set_env.sh of your CANN" in str(error.value)

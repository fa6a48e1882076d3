"""A short program and all that it starts: none of it is left, and none of it is waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from launch.bounded_run import run_bounded

# In the background: one that wants to go on, in its group, in a session of its own, and with an
# environment of its own. Each writes its pid and then what was started is known.
BACKGROUND = """
trap '' TERM
sleep 300 & echo $! >"$1/plain"
setsid sh -c 'echo $$ >"$0/session"; exec sleep 300' "$1" &
env -i sh -c 'echo $$ >"$0/bare"; exec sleep 300' "$1" &
while ! [ -s "$1/session" ] || ! [ -s "$1/bare" ]; do sleep 0.01; done
"""
NAMES = ("plain", "session", "bare")


def shell(text: str, folder: Path) -> list[str]:
    return ["/bin/sh", "-c", text, "sh", str(folder)]


def living(folder: Path, limit_s: float = 5.0) -> list[str]:
    """Those in the background that still run, after a while in which they may come to an end."""
    pids = {name: int((folder / name).read_text()) for name in NAMES}
    until = time.monotonic() + limit_s
    while left := [name for name, pid in pids.items() if runs(pid)]:
        if time.monotonic() > until:
            return left
        time.sleep(0.05)
    return []


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_output_status_and_environment(tmp_path: Path) -> None:
    text = "cat; echo out; echo first >&2; echo last >&2; echo $GIVEN; exit 7"
    ended = run_bounded(shell(text, tmp_path), {"GIVEN": "x"}, 30.0)
    assert (ended.status, ended.stdout) == (7, b"out\nx\n")
    assert ended.how == "it ends with status 7: last"
    silent = run_bounded(shell("kill -9 $$", tmp_path), os.environ, 30.0)
    assert silent.how == "it is ended by signal 9 without a word"


def test_only_the_last_of_much_output_is_kept(tmp_path: Path) -> None:
    text = "yes abcdefghij | head -c 3300000 >&2; echo end >&2"
    ended = run_bounded(shell(text, tmp_path), os.environ, 30.0)
    assert (ended.status, ended.last_line) == (0, "end")
    assert len(ended.stderr) <= 1 << 16


@pytest.mark.parametrize(
    ("last", "status"), [("sleep 300", None), ("exit 3", 3)], ids=["limit", "failure"]
)
def test_all_is_ended_at_the_limit_and_at_a_failure(
    tmp_path: Path, last: str, status: int | None
) -> None:
    before = time.monotonic()
    ended = run_bounded(shell(BACKGROUND + last, tmp_path), os.environ, 4.0)
    assert time.monotonic() - before < 20.0
    assert ended.status == status
    assert living(tmp_path) == []


CODE = """
import os, sys
from launch.bounded_run import run_bounded
ended = run_bounded(["/bin/sh", "-c", *sys.argv[1:]], os.environ, 60.0)
print("goes on", ended.status, flush=True)
sys.stdin.read()
"""


def program(text: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, text, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # What a shell starts in the background ignores Ctrl-C; a person's program does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_what_goes_on_in_the_background_is_not_waited_for_and_ends_with_us(tmp_path: Path) -> None:
    """As at a prompt; ranks may need it, such as an agent that holds keys."""
    ours = program(BACKGROUND, tmp_path)
    assert ours.stdout is not None
    assert ours.stdout.readline() == "goes on 0\n"
    assert living(tmp_path, 0.0) == list(NAMES)
    ours.communicate(timeout=20)
    assert living(tmp_path) == []


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_all_is_ended_where_we_are_stopped(tmp_path: Path, again: bool) -> None:
    ours = program(f"{BACKGROUND} sleep 300", tmp_path)
    until = time.monotonic() + 20
    while not all((tmp_path / name).exists() for name in NAMES):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.1)
    ours.send_signal(signal.SIGINT)
    if again:
        time.sleep(0.5)
        ours.send_signal(signal.SIGINT)
    ours.communicate(timeout=20)
    assert living(tmp_path) == []


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_bounded([str(tmp_path / "nope")], os.environ, 5.0)

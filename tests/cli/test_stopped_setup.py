"""A sweep that is stopped while it asks for what it needs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from launch.process_tree import is_alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_during_setup_says_so_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    script, pid = tmp_path / "hang.sh", tmp_path / "pid"
    script.write_text(f"echo $$ >'{pid}'; sleep 300\n")
    words = ("model=tiny_dit", f"+trainer.setup=[{script}]", f"study.dir={tmp_path / 'study'}")
    running = subprocess.Popen(
        [sys.executable, "-m", "autotune", *words],
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C; a person's program does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 30
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < until
        time.sleep(0.05)
    shell = psutil.Process(int(pid.read_text()))
    processes = [shell, *shell.children()]
    running.send_signal(number)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == "autotune: stopped by the user\n"
    assert not any(is_alive(process) for process in processes)
    assert not (tmp_path / "study").exists()

"""A real night in an environment that is hardly one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.study.yaml_text import to_yaml

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, time
for step in range(int(sys.argv[2])):
    time.sleep(0.02 * float(sys.argv[1]))
    print(f"step {step} {20 * float(sys.argv[1])} ms", flush=True)
"""
MODEL = {
    "defaults": [{"override /trainer": "command"}],
    "model": {"name": "toy"},
    "trainer": {
        "command": "{python} program.py {batch} {steps}",
        "printed": r"step (?P<step>\d+) (?P<time_ms>[\d.]+) ms",
        "memory": "none",
    },
    "space": {"parameters": {"batch": {"choices": [1, 2]}}},
    "cluster": {"devices_per_trial": 1},
    "memory": {"limit": "1GiB"},
    "measure": {"warmup_steps": 1, "min_steps": 4, "max_steps": 4, "control_every": 0},
    "certify": {"enabled": False},
}


def new_name() -> list[str]:
    """What gives the program's host a name that does not resolve, where that is allowed."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-u", "true"], capture_output=True).returncode:
        return []
    return [unshare, "-u", "sh", "-c", 'hostname no-such-host-7f9c && exec "$@"', "sh"]


@pytest.fixture
def place() -> Iterator[Path]:
    """Short, so that Ray's sockets are put there too."""
    with tempfile.TemporaryDirectory(prefix="t p ", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.ray
@pytest.mark.ranks
def test_no_home_no_locale_no_name_and_a_temporary_folder_with_a_blank(
    tmp_path: Path, place: Path
) -> None:
    folder = tmp_path / "run 50% a=b,c#1/调优"
    (folder / "my" / "model").mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    text = f"# @package _global_\n{to_yaml(MODEL)}"
    (folder / "my" / "model" / "toy.yaml").write_text(text, encoding="utf-8")
    words = ["-m", "autotune", "--config-dir", "my", "model=toy", "search.max_trials=2"]
    ran = subprocess.run(
        [*new_name(), sys.executable, *words],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(place),
            "LC_ALL": "C",
        },
        umask=0o077,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    lines = (folder / "studies" / "toy" / "trials.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] in (["ok", "ok"], ["ok", "stopped"])
    assert list(place.iterdir()) == []

"""Whatever is killed, nothing of the sweep is left ten seconds later, and the sweep goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from launch.guard import sweep_processes
from launch.markers import ROLE, TRIAL
from launch.process_tree import environment_of, is_alive

pytestmark = [pytest.mark.ray, pytest.mark.ranks]
DRIVER = Path(__file__).parent / "sweep_driver.py"
ROOT = Path(__file__).resolve().parents[2]


def until(what: Callable[[], Any], within_s: float) -> Any:
    end = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < end, f"not within {within_s} s"
        time.sleep(0.05)
    return found


class Driver:
    """The sweep's process and what it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        )
        first = self.answer()
        self.sweep, self.temporary = first["sweep"], Path(first["folder"])
        self.guards = [
            child
            for child in psutil.Process(self.process.pid).children()
            if self.sweep in child.cmdline()
        ]

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        assert line, "the sweep has died"
        return json.loads(line)

    def tell(self, words: str) -> None:
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def processes(self) -> list[psutil.Process]:
        return sweep_processes(self.sweep, self.temporary)

    def start_sleeper(self, trial: int) -> None:
        self.tell(f"start {trial} run")
        until(lambda: len(self.ranks()) == 2, within_s=20)

    def ranks(self) -> list[psutil.Process]:
        return [one for one in self.processes() if _is_rank(environment_of(one))]

    def named(self, words: str) -> psutil.Process:
        return next(one for one in self.processes() if words in " ".join(one.cmdline()))

    def supervisor(self) -> psutil.Process:
        return next(one for one in self.processes() if ROLE in environment_of(one))


def _is_rank(env: dict[str, str]) -> bool:
    return TRIAL in env and ROLE not in env


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(tmp_path)
    yield driver
    driver.process.kill()
    driver.process.wait()


@pytest.mark.parametrize("trial", [0, 1], ids=["cold", "forked"])
def test_kill_9_of_the_sweep(driver: Driver, trial: int) -> None:
    driver.start_sleeper(trial)
    everyone = driver.processes()
    assert {"gcs_server", "raylet"} <= {one.name() for one in everyone}
    assert driver.temporary.is_dir()
    driver.process.kill()
    _, alive = psutil.wait_procs([*everyone, *driver.guards], timeout=10)
    assert [one for one in alive if is_alive(one)] == []
    assert driver.processes() == []
    assert not driver.temporary.exists()


def test_the_sweep_outlives_the_death_of_any_of_its_processes(driver: Driver) -> None:
    """One after the other, since Ray takes seconds to start."""
    kinds: list[tuple[str, Callable[[], psutil.Process], str]] = [
        ("rank", lambda: driver.ranks()[1], "rank_failed"),
        ("supervisor", driver.supervisor, "lost"),
        ("worker", lambda: driver.named("NodeWork"), "lost"),
        ("raylet", lambda: driver.named("raylet/raylet"), "lost"),
        ("gcs", lambda: driver.named("gcs/gcs_server"), "lost"),
    ]
    # Each of the first three with cold ranks and with forked ones.
    victims = [one for one in kinds[:3] for _ in range(2)] + kinds[3:]
    for trial, (name, find, kind) in enumerate(victims):
        driver.start_sleeper(trial)
        ranks = driver.ranks()
        killed_at = time.monotonic()
        find().kill()
        end = driver.answer()
        assert (end["trial"], end["kind"]) == (trial, kind), (name, end)
        assert time.monotonic() - killed_at < 10, name
        assert not any(map(is_alive, ranks)), name
    driver.tell("start 99 finish")
    assert driver.answer()["kind"] == "finished"
    everyone = driver.processes()
    driver.tell("close")
    assert driver.process.wait(15) == 0
    assert not any(map(is_alive, [*everyone, *driver.guards]))
    assert driver.processes() == []
    assert not driver.temporary.exists()

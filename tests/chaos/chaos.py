"""Kills processes of a sweep at random moments, starts it again, and looks at what is left.

The long form, as issue E asks for it, about a quarter of an hour on two cores:

    python -m tests.chaos.chaos --kills 100
    python -m tests.chaos.chaos --kills 10 --model tiny_dit
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from launch.markers import ROLE, SUPERVISOR_ROLE, TRIAL
from launch.process_tree import environment_of, is_alive
from tests.integration.conftest import Program, make_program

VICTIMS = ("sweep", "rank", "worker", "raylet", "gcs_server", "supervisor", "guard")
CLEAN_WITHIN_S = 10.0
_FORMATIONS = 24
_LONGEST_RUN_S = 300.0
# Of a process that joins a raylet which dies meanwhile.
_RAYS_LAST_WORDS = ("Failed to register worker to Raylet", "Worker will terminate")
_SHARED_MEMORY = Path("/dev/shm")
_MODEL = """# @package _global_
defaults: [override /trainer: command]
model: {{name: stand_in}}
trainer:
  command: "{{python}} -S {program} {{a}} {{b}} {{steps}}"
cluster: {{devices_per_trial: 2}}
measure: {{warmup_steps: 1, min_steps: 6, max_steps: 6, race: false}}
space:
  parameters:
    a: {{choices: [1, 2, 3, 4, 5, 6], ordered: true}}
    b: {{choices: [1, 2, 3, 4], ordered: true}}
"""
STAND_IN_WORDS = (
    *("search.sampler=exhaustive", f"search.max_trials={_FORMATIONS}"),
    *("certify.enabled=false", "measure.control_every=0", "search.max_attempts=1000"),
)


@dataclass
class Chaos:
    """One study, and what has been done to its sweeps. words: of every start."""

    program: Program
    study: Path
    words: tuple[str, ...]
    seed: int
    killed: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    history: list[str] = field(default_factory=list)
    _born: float = field(default_factory=time.monotonic)
    _kept: bytes = b""

    @classmethod
    def of_stand_in(cls, folder: Path, seed: int) -> Chaos:
        """A study of a program that only says its steps."""
        program = make_program(folder / "50% a=b,c#1 调优")
        models = program.folder / "model"
        models.mkdir()
        stand_in = program.folder / "stand_in.py"
        stand_in.write_text(Path(__file__).with_name("stand_in.py").read_text(encoding="utf-8"))
        text = _MODEL.format(program=json.dumps(str(stand_in))[1:-1].replace(" ", "\\\\ "))
        (models / "stand_in.yaml").write_text(text, encoding="utf-8")
        words = ("--config-dir", str(program.folder), "model=stand_in", *STAND_IN_WORDS)
        return cls(program, program.folder / "studies" / "stand_in", words, seed)

    @classmethod
    def of_reference(cls, folder: Path, model: str, seed: int, trials: int) -> Chaos:
        """A study of the reference trainer."""
        program = make_program(folder / "chaos")
        words = (f"model={model}", f"search.max_trials={trials}", "certify.enabled=false")
        words += ("measure.control_every=0", "search.max_attempts=1000")
        return cls(program, program.folder / "studies" / model, words, seed)

    def run(self, kills: int, pause_s: Callable[[random.Random], float]) -> None:
        """Sweeps until the study is finished, with so many kills at most on the way."""
        luck = random.Random(self.seed)
        machine = _Machine.before(self.program)
        while True:
            sweep = self.program.start(*self.words)
            self.starts += 1
            started = time.monotonic()
            while sweep.poll() is None:
                assert time.monotonic() < started + _LONGEST_RUN_S, "the sweep does not end"
                if sum(self.killed.values()) >= kills:
                    sweep.wait(_LONGEST_RUN_S)
                    break
                time.sleep(pause_s(luck))
                if sweep.poll() is None:
                    self._kill_one(sweep, luck)
            self._require_no_process()
            machine.require_clean(CLEAN_WITHIN_S)
            self._require_journal()
            if sweep.returncode == 0:
                return
            assert self._may_end_so(sweep.returncode), self.program.output[-3000:]

    def _may_end_so(self, code: int) -> bool:
        """Killed, done, or without Ray; Ray ends this very process in the moment of its joining."""
        if code == 1:
            return any(words in self.program.output[-1000:] for words in _RAYS_LAST_WORDS)
        return code in (-signal.SIGKILL, 0, 4)

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The journal."""
        return [
            json.loads(line) for line in (self.study / "trials.jsonl").read_bytes().splitlines()
        ]

    def require_whole(self) -> None:
        """The journal has each measured point once, and as many as were asked for."""
        measured = [t for t in self.trials if t["status"] != "infrastructure"]
        points = [json.dumps(trial["parameters"], sort_keys=True) for trial in measured]
        assert len(set(points)) == len(points), "a point was measured twice"
        wanted = next(word for word in self.words if word.startswith("search.max_trials="))
        assert len(measured) == int(wanted.partition("=")[2])

    def _require_no_process(self) -> None:
        try:
            self.program.wait_until_nothing_is_left(CLEAN_WITHIN_S)
        except AssertionError as error:
            raise AssertionError(f"after {self.history}: {str(error)[:500]}") from None

    def _kill_one(self, sweep: subprocess.Popen[str], luck: random.Random) -> None:
        kind = luck.choice(VICTIMS)
        found = list(self.processes(kind, sweep))
        if found:
            victim = luck.choice(found)
            if sweep.poll() is not None:
                return  # with the sweep dead, nobody would clean up after a guard that dies too
            try:
                victim.send_signal(signal.SIGKILL)
            except psutil.Error:
                return
            self.killed[kind] += 1
            self.history.append(f"{time.monotonic() - self._born:.1f} s: {kind} {victim.pid}")

    def processes(self, kind: str, sweep: subprocess.Popen[str]) -> Iterator[psutil.Process]:
        """Those of `VICTIMS` that live now."""
        if kind == "sweep":
            yield psutil.Process(sweep.pid)
            return
        for process in psutil.process_iter():
            env = environment_of(process)
            if env.get("TEST_MARK") == self.program.mark and is_alive(process):
                if _kind_of(process, env) == kind:
                    yield process
                if kind == "worker" and _name(process) == "raylet":
                    yield from (one for one in process.children() if _is_worker(one))

    def _require_journal(self) -> None:
        """Every result that was there is there, byte by byte, and no trial twice."""
        path = self.study / "trials.jsonl"
        content = path.read_bytes() if path.exists() else b""
        assert content.startswith(self._kept), "an earlier result was changed"
        self._kept = content[: content.rfind(b"\n") + 1]
        numbers = [json.loads(line)["trial"] for line in self._kept.splitlines()]
        assert len(set(numbers)) == len(numbers)


@dataclass(frozen=True)
class _Machine:
    """What there was before the first sweep. A port ends with its process."""

    temporary: Path
    segments: frozenset[str]

    @classmethod
    def before(cls, program: Program) -> _Machine:
        return cls(program.temporary, _segments())

    def require_clean(self, limit_s: float) -> None:
        """Fails where a segment of shared memory or a temporary file is left after a time."""
        until = time.monotonic() + limit_s
        while True:
            left = [*(_segments() - self.segments), *map(str, self.temporary.iterdir())]
            if not left:
                return
            assert time.monotonic() < until, f"segments and files are left: {left}"
            time.sleep(0.2)


def _segments() -> frozenset[str]:
    names = (path.name for path in _SHARED_MEMORY.iterdir())
    # The server that CI runs meanwhile has some of its own.
    return frozenset(name for name in names if not name.startswith("PostgreSQL."))


def _kind_of(process: psutil.Process, env: dict[str, str]) -> str:
    if env.get(ROLE) == SUPERVISOR_ROLE:
        return "supervisor"
    if TRIAL in env:
        return "rank"
    name = _name(process)
    if name in ("raylet", "gcs_server"):
        return name
    return "guard" if "launch.guard" in _title(process) else ""


def _is_worker(process: psutil.Process) -> bool:
    return "NodeWork" in _title(process)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, OSError):
        return ""


def short_pause(luck: random.Random) -> float:
    """Seconds between two kills; Ray alone takes about 5 to start."""
    return luck.uniform(0.2, 8.0)


def main() -> None:
    """Prints what was killed and what the study came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="of the reference trainer, in place of the stand-in")
    parser.add_argument("--trials", type=int, default=8, help="of the reference trainer")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    killed: Counter[str] = Counter()
    studies = 0
    while sum(killed.values()) < given.kills:
        with tempfile.TemporaryDirectory(prefix="chaos") as folder:
            seed, started = given.seed + studies, time.monotonic()
            if given.model is None:
                chaos = Chaos.of_stand_in(Path(folder), seed)
            else:
                chaos = Chaos.of_reference(Path(folder), given.model, seed, given.trials)
            chaos.run(given.kills - sum(killed.values()), short_pause)
            chaos.require_whole()
            chaos.program.temporary.rmdir()
            status = Counter(trial["status"] for trial in chaos.trials)
            killed += chaos.killed
            studies += 1
            sys.stdout.write(
                f"study {studies}: {chaos.starts} starts, {time.monotonic() - started:.0f} s, "
                f"trials {dict(status)}; killed so far {dict(killed)}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()

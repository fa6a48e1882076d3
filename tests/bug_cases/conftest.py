"""The program as a person types it, on simulated devices: the whole `sweep` verb in a second."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

from autotune.cli import sweep as sweep_verb
from autotune.cli.main import main
from autotune.config.schema import Config
from autotune.ports import EndKind, RankExit, TrialRequest
from launch.simulated import SimulatedLauncher, SimulatedTrial

FOLDER = "run 50% a=b,c#1/调优"
RANKS = 2
LIMIT = 1000
MODEL: dict[str, Any] = {
    "defaults": [{"override /trainer": "command"}],
    "model": {"name": "toy"},
    "trainer": {"command": "train --batch {batch} --chunk {chunk} --steps {steps}"},
    "space": {
        "parameters": {
            "batch": {"choices": [1, 2, 4], "ordered": True},
            "chunk": {"choices": [0, 64, 256, 1024]},
        }
    },
    "cluster": {"devices_per_trial": RANKS},
    "memory": {"limit": f"{LIMIT}B"},
    "measure": {"warmup_steps": 1, "min_steps": 4, "max_steps": 4, "control_every": 0},
    "certify": {"enabled": False},
}
"""Twelve legal points of a program that its command describes."""

Values = Mapping[str, str]
Behave = Callable[[Values, TrialRequest], SimulatedTrial]


def ran(time_s: float = 1.0, peak: int | None = 900, **step: Any) -> SimulatedTrial:
    """A trial whose steps all take that long."""
    record = {"event": "step", "time_s": time_s, "peak_reserved_bytes": peak, **step}
    steps = [{**record, "step": number} for number in range(5)]
    return SimulatedTrial(5 * 1.0, [[{"event": "start"}, *steps, {"event": "end"}]] * RANKS)


def out_of_memory() -> SimulatedTrial:
    """A trial that says nothing but that, and no number."""
    error = {"event": "error", "kind": "oom", "message": "no memory"}
    return broken([error])


def broken(records: list[dict[str, Any]], log: str = "") -> SimulatedTrial:
    """A trial whose first rank exits with 1."""
    exits = (RankExit(0, 1), RankExit(1, -15, by_us=True))
    reason = "rank 0 exited with code 1"
    return SimulatedTrial(1.0, [records, []], EndKind.RANK_FAILED, reason, exits, {0: log})


def usual(values: Values, request: TrialRequest) -> SimulatedTrial:
    """Larger batches are faster."""
    return ran(1.0 / float(values["batch"]))


def values_of(request: TrialRequest) -> Values:
    """What stands behind each option of the command."""
    words = request.program.argv
    return {
        word.removeprefix("--"): words[place + 1]
        for place, word in enumerate(words[:-1])
        if word.startswith("--")
    }


@dataclass
class Program:
    """`python -m autotune` in a folder, with simulated devices in the place of Ray.

    model: the user's model file, as data. launchers: one a start that came so far.
    """

    folder: Path
    model: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(MODEL)))
    behave: Behave = usual
    slots: int | None = None
    launchers: list[SimulatedLauncher] = field(default_factory=list)

    def run(self, *words: str) -> int:
        """One command line, with the model unless the words name another verb's study."""
        self.write_model()
        return main(["--config-dir", str(self.folder / "my"), "model=toy", *words])

    def write_model(self) -> None:
        """Writes the model file."""
        path = self.folder / "my" / "model" / "toy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(self.model, sort_keys=False, allow_unicode=True)
        path.write_text(f"# @package _global_\n{text}", encoding="utf-8")

    def make_launcher(self, config: Config) -> SimulatedLauncher:
        """In the place of `autotune.cli.wiring.make_launcher`."""
        slots = self.slots or config.cluster.max_concurrent_trials
        made = SimulatedLauncher(lambda one: self.behave(values_of(one), one), slots)
        self.launchers.append(made)
        return made

    @property
    def study(self) -> Path:
        """The study's folder."""
        return self.folder / "studies" / "toy"

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The lines of `trials.jsonl`."""
        text = (self.study / "trials.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @property
    def best(self) -> dict[str, Any]:
        """`best.yaml`."""
        document: dict[str, Any] = yaml.safe_load((self.study / "best.yaml").read_text("utf-8"))
        return document

    @property
    def states(self) -> list[str]:
        """How Optuna's database has the trials."""
        url = f"sqlite:///{self.study / 'study.db'}"
        return [trial.state.name for trial in optuna.load_study(study_name="toy", storage=url).trials]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    made = Program(folder)
    monkeypatch.setattr(sweep_verb, "make_launcher", made.make_launcher)
    return made

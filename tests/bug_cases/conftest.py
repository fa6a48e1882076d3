"""The program as a person types it, on simulated devices: the whole `sweep` verb in a second."""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
import traceback
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
from autotune.study.yaml_text import to_yaml
from launch.simulated import SimulatedLauncher, SimulatedTrial

FOLDER = "run 50% a=b,c#1/调优"
RANKS = 2
LIMIT = 1000
RAISED = 99
"""What a child exits with that ends in a traceback."""

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
    "search": {"sampler": "random"},
}
"""Twelve legal points of a program that its command describes."""

Values = Mapping[str, str]
Behave = Callable[[Values, TrialRequest], SimulatedTrial]


def ran(
    time_s: float = 1.0,
    peak: Any = 900,
    logs: Mapping[int, str] | None = None,
    **more: Any,
) -> SimulatedTrial:
    """A trial whose steps all take that long. peak: bytes that each step records; more: besides."""
    step = {"event": "step", "time_s": time_s, "peak_reserved_bytes": peak, **more}
    steps = [{**step, "step": number} for number in range(5)]
    records = [[{"event": "start"}, *steps, {"event": "end"}]] * RANKS
    return SimulatedTrial(5.0, records, logs=logs or {})


def usual(values: Values, request: TrialRequest) -> SimulatedTrial:
    """Larger batches are faster."""
    return ran(1.0 / float(values["batch"]))


def out_of_memory() -> SimulatedTrial:
    """A trial that says nothing but that, and no number."""
    return broken([{"event": "error", "kind": "oom", "message": "no memory"}])


def broken(records: list[dict[str, Any]], log: str = "") -> SimulatedTrial:
    """A trial whose first rank exits with 1."""
    exits = (RankExit(0, 1), RankExit(1, -15, by_us=True))
    reason = "rank 0 exited with code 1"
    return SimulatedTrial(1.0, [records, []], EndKind.RANK_FAILED, reason, exits, {0: log})


def once(trial: int, action: Callable[[], Any]) -> Behave:
    """Trials as usual; the action happens when that one starts, and no more."""
    left = [action]

    def behave(values: Values, request: TrialRequest) -> SimulatedTrial:
        if request.trial == trial and left:
            left.pop()()
        return usual(values, request)

    return behave


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

    model: the user's model file, as data. launchers: one a start that came so far. requests:
    what was launched.
    """

    folder: Path
    model: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(MODEL))
    behave: Behave = usual
    launchers: list[SimulatedLauncher] = field(default_factory=list)
    requests: list[TrialRequest] = field(default_factory=list)

    def run(self, *words: str, verb: str = "sweep") -> int:
        """One command line; returns the exit code."""
        self.write_model()
        return main([verb, "--config-dir", str(self.folder / "my"), "model=toy", *words])

    def start(self, name: str, *words: str, before: Callable[[], Any] = lambda: None) -> int:
        """The same in a process of its own; returns its number. before: called there first.

        What it prints is in the file `name` of the folder.
        """
        self.write_model()
        pid = os.fork()
        if pid:
            return pid
        code = RAISED
        try:
            with (self.folder / name).open("w", encoding="utf-8", buffering=1) as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                sys.stdout = sys.stderr = output
                before()
                code = self.run(*words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else RAISED
        except BaseException:
            (self.folder / f"{name}.traceback").write_text(traceback.format_exc())
            raise
        finally:
            os._exit(code)

    def printed(self, name: str) -> str:
        """What a process has printed."""
        return (self.folder / name).read_text(encoding="utf-8")

    def write_model(self) -> None:
        """Writes the model file, unless it is there."""
        path = self.folder / "my" / "model" / "toy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"# @package _global_\n{to_yaml(self.model)}"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def make_launcher(self, config: Config) -> SimulatedLauncher:
        """In the place of `autotune.cli.wiring.make_launcher`."""

        def behave(request: TrialRequest) -> SimulatedTrial:
            self.requests.append(request)
            return self.behave(values_of(request), request)

        made = SimulatedLauncher(behave, config.cluster.max_concurrent_trials)
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
    def report(self) -> str:
        """`report/report.md`."""
        return (self.study / "report" / "report.md").read_text(encoding="utf-8")

    @property
    def states(self) -> list[str]:
        """How Optuna's database has the trials."""
        url = f"sqlite:///{self.study / 'study.db'}"
        study = optuna.load_study(study_name="toy", storage=url)
        return [trial.state.name for trial in study.trials]


def ended(pid: int) -> int:
    """Waits for a process; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture(autouse=True)
def signals_as_at_a_terminal() -> Iterator[None]:
    """What a shell starts in the background ignores some; a person's program does not."""
    wanted = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    # The program of MODEL: it must be there to be started, though simulated devices start none.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "train").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made = Program(folder)
    monkeypatch.setattr(sweep_verb, "make_launcher", made.make_launcher)
    return made

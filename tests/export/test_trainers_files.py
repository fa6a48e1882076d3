"""Native files beside `best.yaml`, and studies that need their checkout no more."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.cli.main import main
from autotune.cli.results import write_best
from autotune.cli.studies import KeptStudy
from autotune.cli.wiring import Problem, compose_problem
from autotune.measure.outcome import Outcome, Status
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.paths import StudyPaths
from autotune.study.trial_record import TrialRecord
from autotune.study.yaml_text import to_yaml
from tests.launch.trainers.mindspeed.fsdp2_checkout import BASE, YAML, edited, make_checkout

MODEL = f"""\
# @package _global_
defaults: [override /trainer: mindspeed_fsdp2, override /cluster: npu]
model: {{name: mine, base: {{config: {BASE}}}}}
space:
  parameters:
    micro_batch_size: {{choices: [2, 1], ordered: true}}
    loss_chunk_size: {{choices: [1024, 256]}}
cluster: {{devices_per_trial: 8, device_memory: 64GiB}}
"""


@dataclass
class Finished:
    """A study on the native FSDP2 trainer whose trials have just ended."""

    root: Path
    folder: Path
    problem: Problem
    records: list[TrialRecord] = field(default_factory=list)

    @property
    def paths(self) -> StudyPaths:
        return StudyPaths(self.folder)

    def add(self, point: dict[str, Any], seconds: float) -> None:
        """One more measured trial, and what a sweep writes after it."""
        outcome = Outcome(
            Status.OK, "measured", seconds, (seconds * 0.99, seconds * 1.01), 8,
            peak_memory_bytes=1 << 30, peak_rank=0,
        )  # fmt: skip
        number = len(self.records)
        record = TrialRecord(number, Point(point), outcome, 9.0, 0.0, 9.0, 1, "f")
        self.records.append(record)
        with self.paths.journal.open("a") as journal:
            journal.write(record.to_line() + "\n")
        identity = Identity.of(self.problem.config, {"torch": "2"})
        write_best(KeptStudy(self.paths, self.problem, identity, tuple(self.records), ()))

    @property
    def best(self) -> dict[str, Any]:
        document: dict[str, Any] = yaml.safe_load(self.paths.best.read_text())
        return document


@pytest.fixture
def study(tmp_path: Path) -> Finished:
    root = make_checkout(tmp_path / "Mind Speed 50% a=b,c#1 调优")
    (tmp_path / "mine" / "model").mkdir(parents=True)
    (tmp_path / "mine" / "model" / "mine.yaml").write_text(MODEL)
    folder = tmp_path / "study 50% a=b,c#1 调优"
    folder.mkdir()
    overrides = ("model=mine", f"trainer.root={root}", f"study.dir={folder}")
    problem = compose_problem(overrides, tmp_path / "mine")
    identity = Identity.of(problem.config, {"torch": "2"})
    kept = {"identity": identity.to_data(), "configuration": problem.data}
    (folder / "config.yaml").write_text(to_yaml(kept), encoding="utf-8")
    return Finished(root, folder, problem)


SLOW = {"micro_batch_size": 2, "loss_chunk_size": 1024}
FAST = {"micro_batch_size": 1, "loss_chunk_size": 256}


def test_the_yaml_to_train_with_lies_beside_and_the_command_names_it(study: Finished) -> None:
    study.add(SLOW, 2.0)
    study.add(FAST, 1.0)
    words = study.best["trainer"]["command"]
    file = Path(words[-1])
    assert file == study.folder / "best" / "0001" / "tiny_config.yaml"
    trained = yaml.safe_load(file.read_text())
    assert trained == study.best["trainer"]["config"]
    assert trained["training"]["micro_batch_size"] == 1
    assert trained["training"]["gradient_accumulation_steps"] == 2
    assert trained["training"]["save"] == "./out"
    assert "# checkpoints" in file.read_text()
    assert words[:3] == ["env", "-C", str(study.root)]
    assert study.best["trainer"]["env"] == {"NON_MEGATRON": "true"}


def test_files_of_an_earlier_best_go(study: Finished) -> None:
    study.add(SLOW, 2.0)
    assert [path.name for path in (study.folder / "best").iterdir()] == ["0000"]
    assert (study.folder / "best" / "0000" / "tiny_config.yaml").read_text() == YAML
    study.add(FAST, 1.0)
    assert [path.name for path in (study.folder / "best").iterdir()] == ["0001"]
    study.add({**FAST, "loss_chunk_size": 1024}, 1.5)
    assert [path.name for path in (study.folder / "best").iterdir()] == ["0001"]


def test_an_export_elsewhere_writes_what_its_command_names(
    study: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    study.add(SLOW, 2.0)
    shutil.rmtree(study.folder / "best")
    out = study.folder.parent / "out.yaml"
    assert main(["export", f"study.dir={study.folder}", "--out", str(out)]) == 0
    assert yaml.safe_load(out.read_text()) == study.best
    assert Path(study.best["trainer"]["command"][-1]).read_text() == YAML


@pytest.mark.parametrize("change", ["gone", "edited"])
def test_a_study_is_read_by_what_it_began_with(
    study: Finished,
    change: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also from another folder, whatever has become of the checkout."""
    study.add(SLOW, 2.0)
    study.add(FAST, 1.0)
    before = study.paths.best.read_text()
    monkeypatch.chdir("/")
    if change == "gone":
        shutil.rmtree(study.root)
    else:
        (study.root / BASE).write_text(edited(training__micro_batch_size=4))
        (study.root / ".git" / "HEAD").write_text("f" * 40)
    assert main(["export", f"study.dir={study.folder}"]) == 0
    assert capsys.readouterr().out == before
    for verb in ("report", "status"):
        assert main([verb, f"study.dir={study.folder}"]) == 0
    assert (study.folder / "report" / "report.md").exists()


def test_another_file_makes_another_study(study: Finished) -> None:
    overrides = ("model=mine", f"trainer.root={study.root}", f"study.dir={study.folder}")
    mine = study.folder.parent / "mine"

    def identity() -> Identity:
        return Identity.of(compose_problem(overrides, mine).config, {})

    same = identity()
    assert same.parts == Identity.of(study.problem.config, {}).parts
    (study.root / BASE).write_text(edited(training__lr=2e-5))
    assert identity().parts != same.parts


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"parallel__ulyses_parallel_size": 4}, "did you mean 'ulysses_parallel_size'"),
        ({"features__recompute": "x"}, "features.recompute='x'"),
    ],
)
def test_a_wrong_yaml_is_exit_code_2_with_what_was_meant(
    study: Finished, capsys: pytest.CaptureFixture[str], keys: dict[str, Any], said: str
) -> None:
    (study.root / BASE).write_text(edited(**keys))
    mine = str(study.folder.parent / "mine")
    words = ["check", "--config-dir", mine, "model=mine", f"trainer.root={study.root}"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in " ".join(error.split())
    assert "Traceback" not in error


def test_a_command_study_is_read_from_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "model").mkdir(parents=True)
    (work / "base.yaml").write_text("batch: 1 # mine\n")
    (work / "model" / "mine.yaml").write_text(
        "# @package _global_\n"
        "defaults: [override /trainer: command]\n"
        "model: {name: mine}\n"
        "trainer:\n"
        '  command: "python train.py {config} --steps {steps + 1}"\n'
        "  patch: {config: {file: base.yaml, set: {batch: '{mbs}'}}}\n"
        "  memory: none\n"
        "space: {parameters: {mbs: {choices: [1, 2]}}}\n"
        "memory: {limit: 1GiB}\n"
    )
    monkeypatch.chdir(work)
    folder = tmp_path / "study"
    folder.mkdir()
    problem = compose_problem(("model=mine", f"study.dir={folder}"), work)
    identity = Identity.of(problem.config, {"torch": "2"})
    kept = {"identity": identity.to_data(), "configuration": problem.data}
    (folder / "config.yaml").write_text(to_yaml(kept), encoding="utf-8")
    study = Finished(work, folder, problem)
    study.add({"mbs": 2}, 1.0)
    before = study.paths.best.read_text()
    (work / "base.yaml").unlink()
    monkeypatch.chdir("/")
    assert main(["export", f"study.dir={folder}"]) == 0
    assert capsys.readouterr().out == before
    words = study.best["trainer"]["command"]
    copy = folder / "best" / "0000" / "base.yaml"
    assert words == [
        *("env", "-C", str(work), "python", "train.py"),
        *(str(copy), "--steps", "<steps + 1>"),
    ]
    assert copy.read_text() == "batch: 2 # mine\n"

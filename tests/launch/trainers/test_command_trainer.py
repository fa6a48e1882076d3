"""Any program by its command: what a trial runs, what is exported, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.config.schema import Config
from autotune.config.typed import build
from autotune.errors import UserError
from autotune.ports import ExportPaths
from launch.trainers.command import CommandTrainer
from launch.trainers.registry import make_trainer
from launch.trainers.sources import Sources

Make = Callable[..., CommandTrainer]

COMMAND = "{python} train.py --config {config} --sp {sp} --ring {ring} {fast:--fast} --n {steps}"
CONFIG = "train:\n  batch: 1  # samples\n  chunk: 64\n  lr: 1.0e-4\n"


def config_of(trainer: Mapping[str, Any], **rest: Any) -> Config:
    return build(
        Config,
        {
            "study": {"name": "s", "dir": "s"},
            "model": {"name": "m", "dims": {"heads": 8}},
            "space": {},
            "trainer": {"name": "command", **trainer},
            **rest,
        },
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "50% a=b,c#1 调优"
    made.mkdir()
    (made / "base.yaml").write_text(CONFIG)
    (made / "model.json").write_text('{"layers": 2, "heads": [4]}')
    return made


@pytest.fixture
def make(folder: Path) -> Make:
    """A trainer with a patched YAML, unless keys say otherwise."""

    def of(sources: Sources | None = None, **keys: Any) -> CommandTrainer:
        trainer = {
            "command": COMMAND,
            "cwd": str(folder),
            "patch": {"config": {"file": "base.yaml", "set": {"train.batch": "{mbs}"}}},
            **keys,
        }
        return CommandTrainer.load(config_of(trainer), sources or Sources(None))

    return of


POINT = {"sp": 2, "ring": 1, "fast": True, "mbs": 4}


def test_a_trial_runs_the_command_with_a_copy_of_the_file(make: Make, folder: Path) -> None:
    trainer = make(env={"CHUNKS": "{mbs * 2}", "OUT": "{folder}/out", "PLAIN": 1})
    program = trainer.trial_program(POINT, trainer.plan(2, 3, 5), Path("/trial"))
    copy = "/trial/patched/base.yaml"
    words = "train.py|--config|" + copy + "|--sp|2|--ring|1|--fast|--n|7"
    assert program.argv == (sys.executable, *words.split("|"))
    assert program.cwd == folder
    assert program.env == {"CHUNKS": "8", "OUT": "/trial/out", "PLAIN": "1"}
    assert program.files == {"patched/base.yaml": CONFIG.replace("batch: 1", "batch: 4")}
    assert (program.processes, program.printed, program.watches_memory) == ("rank", None, False)
    assert (folder / "base.yaml").read_text() == CONFIG


def test_parameters_that_are_not_active_change_nothing(make: Make) -> None:
    program = make().trial_program({"sp": 1}, make().plan(0, 2, 2), Path("/t"))
    assert program.argv[2:] == ("--config", "/t/patched/base.yaml", "--sp", "1", "--n", "2")
    assert program.files["patched/base.yaml"] == CONFIG


def test_who_starts_prints_and_measures(make: Make) -> None:
    trainer = make(processes="node", printed="megatron", memory="processes", window_steps=4)
    program = trainer.trial_program(POINT, trainer.plan(1, 2, 9), Path("/t"))
    assert (program.processes, program.printed, program.watches_memory) == (
        "node",
        "megatron",
        True,
    )
    assert program.argv[-1] == "12"  # a pass that warms up, two that are scored
    assert not trainer.every_rank_records
    assert trainer.tells_peak_memory
    assert not make(memory="none").tells_peak_memory
    assert make().every_rank_records
    assert make(python="/opt/py").trial_program(POINT, trainer.plan(0, 2, 4), Path("/t")).argv[
        0
    ] == ("/opt/py")


def test_what_is_exported_leads_to_the_exported_files(make: Make, folder: Path) -> None:
    trainer = make(env={"CONFIG": "{config}", "LEVEL": "{sp}", "HALF": "{steps // 2}"})
    exported = ExportPaths("/s/best.yaml", "/s/best/0001")
    words = trainer.training_command(POINT, exported, 4)
    assert words[:4] == ("env", "-C", str(folder), "CONFIG=/s/best/0001/base.yaml")
    assert words[4:9] == (sys.executable, "train.py", "--config", "/s/best/0001/base.yaml", "--sp")
    assert words[-2:] == ("--n", "<steps>")
    assert trainer.environment(POINT) == {"LEVEL": "2", "HALF": "<steps // 2>"}
    assert trainer.files(POINT) == {"base.yaml": CONFIG.replace("batch: 1", "batch: 4")}


def test_the_exported_command_runs_from_anywhere(make: Make, folder: Path, tmp_path: Path) -> None:
    (folder / "train.py").write_text(
        "import json, os, sys; print(json.dumps([os.environ['X'], open(sys.argv[1]).read()]))"
    )
    trainer = make(command="{python} train.py {config} {steps}", env={"X": "{config}"})
    files = tmp_path / "best 调"
    files.mkdir()
    for name, text in trainer.files(POINT).items():
        (files / name).write_text(text)
    words = trainer.training_command(POINT, ExportPaths("best.yaml", str(files)), 1)
    ran = subprocess.run(words, capture_output=True, text=True, cwd="/", check=True)
    path, text = json.loads(ran.stdout)
    assert path == str(files / "base.yaml")
    assert yaml.safe_load(text)["train"]["batch"] == 4


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("{mbs}", 4),
        ("{mbs == 4}", True),
        ("x{mbs}", "x4"),
        (7, 7),
        (-0.5, -0.5),
        (False, False),
        (None, None),
        ([1, 2], [1, 2]),
        ("{none}", None),
        ("{gone}", 64),
        ("{gone * 2}", 64),
        ("{mbs == 5:text}", 64),
    ],
)
def test_values_of_keys(make: Make, value: object, written: object) -> None:
    """A value that is null is set; without a value the file keeps its own."""
    command = "p {config} {mbs} {none} {gone} {steps}"
    patch = {"config": {"file": "base.yaml", "set": {"train.chunk": value}}}
    made = make(command=command, patch=patch).files({"mbs": 4, "none": None})["base.yaml"]
    assert yaml.safe_load(made)["train"]["chunk"] == written


def test_two_files_of_two_kinds(make: Make, folder: Path) -> None:
    (folder / "run.sh").write_text('export TP="1" # ranks\n')
    patch = {
        "net": {"file": "model.json", "set": {"heads.0": "{sp}", "+new.key": "{sp}"}},
        "script": {"file": "run.sh", "set": {"TP": "{sp}"}},
    }
    trainer = make(command="bash {script} {net} {steps}", patch=patch)
    files = trainer.files({"sp": 8})
    assert json.loads(files["model.json"]) == {"layers": 2, "heads": [8], "new": {"key": 8}}
    assert files["run.sh"] == 'export TP="8" # ranks\n'


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"command": None}, r"trainer\.command=None is no command"),
        ({"command": []}, "is no command"),
        ({"command": "python 'train.py"}, "cannot be split"),
        ({"command": "python train.py {config}"}, r"write \{steps\} where"),
        ({"processes": "host"}, r"trainer\.processes='host'; allowed: node, rank"),
        ({"memory": "record"}, r"trainer\.memory='record'; did you mean 'records'"),
        ({"window_steps": 0}, r"trainer\.window_steps=0 must be at least 1"),
        ({"printed": "megatronn"}, "did you mean 'megatron'"),
        ({"printed": "(?P<step>"}, r"trainer\.printed"),
        ({"patch": {"config": "base.yaml"}}, r"trainer\.patch\.config='base\.yaml' is no patch"),
        ({"patch": {"config": {"file": "base.yaml", "sets": {}}}}, "is no patch"),
        ({"patch": {"config": {"file": "base.yaml", "set": {}}}}, "names no key"),
        ({"patch": {"config": {"file": "bse.yaml", "set": {"a": 1}}}}, "did you mean 'base.yaml'"),
        ({"patch": {"config": {"file": "base.yaml", "set": {"train.x": 1}}}}, "no key train.x"),
        ({"patch": {"config": {"file": "base.yaml", "set": {5: 1}}}}, "no key 5; allowed: train"),
        ({"patch": {5: {"file": "base.yaml", "set": {"a": 1}}}}, "'5' cannot be a patch's name"),
        ({"patch": {"steps": {"file": "base.yaml", "set": {"a": 1}}}}, "cannot be a patch's name"),
        ({"command": "p {steps}", "patch": {"model": {"file": "base.yaml", "set": {"a": 1}}}},
         "'model' cannot be a patch's name"),
        ({"patch": {n: {"file": "base.yaml", "set": {"train.lr": 1}} for n in ("config", "b")}},
         "two of the files are called base.yaml"),
    ],
)  # fmt: skip
def test_mistakes_in_the_configuration(make: Make, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(**keys)


def test_memory_of_processes_is_not_that_of_an_accelerator() -> None:
    keys = {"command": "p {steps}", "memory": "processes"}
    npu = {"device": "npu", "device_memory": "64GiB"}
    with pytest.raises(UserError, match=r"trainer\.memory=records"):
        CommandTrainer.load(config_of(keys, cluster=npu), Sources(None))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "names the unknown parameter"),
        ({"other": [1]}, r"space\.parameters\.other changes nothing: write \{other\}"),
        ({"steps": [1, 2]}, r"space\.parameters\.steps: .* another name"),
        ({"config": ["a", "b"]}, r"space\.parameters\.config: .* another name"),
    ],
)
def test_parameters_that_do_not_fit_the_command(
    make: Make, choices: dict[str, Any], message: str
) -> None:
    every = {"sp": [1], "ring": [1], "fast": [True], "mbs": [1]}
    make().check(every)
    with pytest.raises(UserError, match=message):
        make().check({**every, **choices} if choices else {"sp": [1]})


def test_a_copy_that_nobody_reads(make: Make) -> None:
    trainer = make(command="p {mbs} {steps}")
    with pytest.raises(UserError, match=r"trainer\.patch\.config is read by nobody"):
        trainer.check({"mbs": [1]})


def test_a_field_that_fails_is_told_before_a_trial(make: Make) -> None:
    trainer = make(command="p {config} {8 // sp} {steps}")
    assert trainer.refusal({"sp": 2, "mbs": 1}, 1) is None
    with pytest.raises(UserError, match="cannot evaluate '8 // sp'"):
        trainer.refusal({"sp": 0, "mbs": 1}, 1)


def test_a_thousand_points_are_asked_quickly(make: Make, folder: Path) -> None:
    long = "".join(f"key{number}:\n  value: {number}\n" for number in range(300))
    (folder / "base.yaml").write_text(CONFIG + long)
    trainer = make()
    before = time.monotonic()
    for number in range(1000):
        assert trainer.refusal({**POINT, "mbs": number}, 8) is None
    assert time.monotonic() - before < 2


def test_the_native_form_tells_runs_apart(make: Make) -> None:
    trainer = make()
    native = trainer.native(POINT)
    assert native == trainer.native(dict(reversed(POINT.items())))
    assert native != trainer.native({**POINT, "mbs": 8})
    assert native != trainer.native({**POINT, "fast": False})
    # One that is not active is a run too; one that stands nowhere belongs to another command.
    assert trainer.native({"sp": 1}) is not None
    assert trainer.native({**POINT, "other": 1}) is None
    assert make(command="p {config} {8 // sp} {steps}").native({"sp": "x", "mbs": 1}) is None


def test_a_study_goes_on_from_what_it_has_kept(
    make: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from another folder, and when the user's file is gone."""
    monkeypatch.chdir(folder)
    first = Sources(None)
    before = make(first, cwd=None)
    (folder / "base.yaml").unlink()
    monkeypatch.chdir("/")
    again = make(Sources(None, first.used), cwd=None)
    assert again.cwd == before.cwd == folder
    assert again.files(POINT) == before.files(POINT)


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        ({"name": "comand"}, "did you mean 'command'"),
        ({"name": "reference", "command": "p"}, r"trainer\.command: the reference trainer has no"),
        ({"name": "command", "root": "/x"}, r"it takes trainer\.python, .*trainer\.command"),
        ({"name": "mindspeed_fsdp2", "printed": "x"}, r"trainer\.printed: .*trainer\.root"),
    ],
)
def test_a_key_of_another_trainer(trainer: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_trainer(config_of(trainer), Sources(None))


@pytest.mark.parametrize(
    ("printed", "dims", "samples", "tokens"),
    [
        ("torchtitan", {"global_batch_size": 4, "seq_length": 512}, 4, 2048),
        ("torchtitan", {"global_batch_tokens": 3000}, None, 3000),
        ("deepspeed", {"global_batch_size": 4}, 4, None),
        (r"step (?P<step>\d+) (?P<samples_per_s>\S+)", {"global_batch_size": 4}, 4, None),
        (r"step (?P<step>\d+) (?P<steps_per_s>\S+)", {}, None, None),
        ("megatron", {}, None, None),
        ("json", {}, None, None),
    ],
)
def test_rates_are_read_with_what_a_batch_holds(
    folder: Path, printed: str, dims: Mapping[str, Any], samples: int | None, tokens: int | None
) -> None:
    trainer = {"command": "{python} train.py {sp} {steps}", "cwd": str(folder), "printed": printed}
    config = config_of(trainer, model={"name": "m", "dims": dims})
    made = CommandTrainer.load(config, Sources(None))
    program = made.trial_program({"sp": 1}, made.plan(1, 2, 9), folder)
    assert (program.samples_per_step, program.tokens_per_step) == (samples, tokens)


@pytest.mark.parametrize(
    ("printed", "dims", "wanted"),
    [
        ("torchtitan", {"global_batch_size": 4}, r"model\.dims\.seq_length"),
        ("deepspeed", {}, r"model\.dims\.global_batch_size"),
        (r"step (?P<step>\d+) (?P<tokens_per_s>\S+)", {}, r"model\.dims\.global_batch_tokens"),
        ("json", {"global_batch_size": 0}, r"global_batch_size=0 must be a whole number"),
    ],
)
def test_rates_of_an_unknown_batch_are_refused(
    folder: Path, printed: str, dims: Mapping[str, Any], wanted: str
) -> None:
    trainer = {"command": "{python} train.py {sp} {steps}", "cwd": str(folder), "printed": printed}
    with pytest.raises(UserError, match=wanted):
        CommandTrainer.load(config_of(trainer, model={"name": "m", "dims": dims}), Sources(None))

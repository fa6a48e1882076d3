"""MindSpeed-MM's native FSDP2 trainer: one YAML, a whole new one for each trial.

Its command line takes no overrides, and keys that it does not know have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autotune.config.schema import Config
from autotune.errors import UserError
from autotune.ports import ExportPaths, MeasurementPlan, RankProgram
from autotune.space.definition import Rule
from autotune.space.point import canonical, plain
from launch.trainers.documents import YamlDocument, key_path
from launch.trainers.hooked import hooked_argv, hooked_plan
from launch.trainers.mindspeed.checkout import require_checkout
from launch.trainers.mindspeed.choices import check_choices
from launch.trainers.mindspeed.fsdp2_rules import rules_for
from launch.trainers.mindspeed.fsdp2_settings import (
    ACCUMULATION,
    VALUES,
    accumulation,
    native_settings,
    value_at,
    values_of,
    wrong_types,
)
from launch.trainers.mindspeed.fsdp2_trial import measuring
from launch.trainers.mindspeed.hf_config import dims_of
from launch.trainers.mindspeed.known_keys import read_keys, unknown_keys
from launch.trainers.mindspeed.models import support_of
from launch.trainers.passes import plan_passes
from launch.trainers.sources import Sources

PROGRAM = "mindspeed_mm/fsdp/train/trainer.py"
_CONFIG_FILE = "config.yaml"
_HOOK = "mindspeed_fsdp2"
_UNLISTED = ("model", "data")  # what they hold depends on the model


@dataclass(frozen=True)
class MindspeedFsdp2:
    """`Trainer` for `mindspeed_mm/fsdp/train/trainer.py`.

    root: the checkout. name_of_base, base: the user's YAML. world_size: of every trial.
    global_batch_size: samples of a step, held fixed. env: added to the ranks' environment.
    """

    root: Path
    name_of_base: str
    base: str
    world_size: int
    nodes: int
    device: str
    global_batch_size: int
    env: Mapping[str, str]
    dims: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None
    name: str = "mindspeed_fsdp2"
    every_rank_records: bool = True
    tells_peak_memory: bool = True
    needs: tuple[str, ...] = ("torch",)
    versions: tuple[str, ...] = ("torch_npu", "mindspeed", "mindspeed_mm", "transformers")

    @classmethod
    def load(cls, config: Config, sources: Sources) -> MindspeedFsdp2:
        """From the configuration and the user's checkout. Raises UserError."""
        require_checkout(sources, PROGRAM, config.trainer.commit)
        name = config.model.base.get("config")
        if not isinstance(name, str):
            raise UserError(
                "model.base.config is not given; name the YAML that you train with, in the "
                "checkout, such as model.base.config=examples/qwen3_5/qwen3_5_4B_config.yaml"
            )
        text = sources.read(name, "model.base.config")
        document = YamlDocument(name, text)
        known = read_keys("fsdp2_keys.yaml")
        if wrong := list(unknown_keys(document.data, known, _UNLISTED)):
            raise UserError(
                f"{name} has keys that MindSpeed-MM ignores; correct them: {'; '.join(wrong)}"
            )
        if wrong := list(wrong_types(document.data)):
            raise UserError(f"{name} has values of another type than these keys take: {wrong}")
        world_size = config.cluster.placement.world_size
        batch = config.model.dims.get("global_batch_size") or _global_batch(document, world_size)
        return cls(
            root=sources.root,
            name_of_base=name,
            base=text,
            world_size=world_size,
            nodes=config.cluster.placement.nodes,
            device=config.cluster.device,
            global_batch_size=batch,
            env={key: str(value) for key, value in config.trainer.env.items()},
            dims={
                **config.model.dims,
                **_weights_dims(document, sources),
                "global_batch_size": batch,
            },
            python=config.trainer.python,
        )

    @property
    def heeds_finish(self) -> bool:
        """Through the hook, on one host."""
        return self.nodes == 1

    @property
    def fixed(self) -> Mapping[str, Any]:
        """What the user's YAML says."""
        values = self._values
        modules = value_at(self._data, "parallel.ep_plan.apply_modules") or ()
        # A base that is cut into parts of its own size is of no use, and yet the present one.
        is_whole = values["chunk_mbs"] >= values["micro_batch_size"]
        return {
            **values,
            "expert_modules": len(modules),
            "base_cuts_nothing": values["chunk_micro_batches"] and is_whole,
        }

    @property
    def rules(self) -> Sequence[Rule]:
        """What MindSpeed-MM checks, and what it does not and should."""
        model = support_of(value_at(self._data, "model.model_id"))
        return rules_for(model, self.dims, self.device)

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Raises UserError for a parameter that the backend lacks, or a choice it cannot take."""
        check_choices(choices, VALUES, f"{self.name} has no such parameter")

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        """Nothing beyond the rules."""
        return None

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        """Steps one by one: the trainer's data do not repeat within a trial."""
        return plan_passes(1, warmup_steps, min_steps, max_steps)

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The YAML to train with."""
        return self._patched(point).data

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the values mean, defaults filled in; None for one that it does not take."""
        if not all(name in VALUES and VALUES[name].hold(value) for name, value in values.items()):
            return None
        return self._settings(values)

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        """The real trainer behind our hooks, for so many steps, with nothing loaded or saved."""
        document = self._patched(point)
        measuring(document, plan)
        return RankProgram(
            argv=hooked_argv(self.python, _HOOK, [PROGRAM, str(folder / _CONFIG_FILE)]),
            cwd=self.root,
            env={
                **self.environment(point),
                **hooked_plan(plan, self.nodes),
                "PYTHONPATH": self._python_path(),
            },
            files={_CONFIG_FILE: document.text()},
            printed="megatron",  # the fallback, and a cross-check of what the hook records
        )

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """The user's YAML with the point's values, comments kept."""
        return {Path(self.name_of_base).name: self._patched(point).text()}

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """Without NON_MEGATRON the package imports Megatron (mindspeed_mm/__init__.py)."""
        return {"NON_MEGATRON": "true", **self.env}

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        """Torchrun in the checkout, where the paths in the YAML lead."""
        file = Path(exported.files) / Path(self.name_of_base).name
        launch = ("-m", "torch.distributed.run", "--nproc-per-node", str(world_size))
        change = ("env", "-C", str(self.root))
        return (*change, self.python or "python", *launch, PROGRAM, str(file.absolute()))

    @cached_property
    def _data(self) -> dict[str, Any]:
        return YamlDocument(self.name_of_base, self.base).data

    @cached_property
    def _values(self) -> dict[str, Any]:
        return values_of(self._data)

    def _settings(self, point: Mapping[str, Any]) -> dict[str, Any]:
        values = {**self._values, **point}
        steps = accumulation(values, self.global_batch_size, self.world_size)
        return {**native_settings(values), ACCUMULATION: steps}

    def _patched(self, point: Mapping[str, Any]) -> YamlDocument:
        """Only keys that the point changes are touched."""
        document = YamlDocument(self.name_of_base, self.base)
        for key, value in self._settings(point).items():
            if canonical(value_at(self._data, key)) != canonical(value):
                document.put(key_path(key), value)
        return document

    def _python_path(self) -> str:
        theirs = self.env.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
        return os.pathsep.join(filter(None, [str(self.root), theirs]))


def _global_batch(document: YamlDocument, world_size: int) -> int:
    """Samples of a step of the base on so many ranks. Raises UserError."""
    values = values_of(document.data)
    steps = value_at(document.data, ACCUMULATION)
    sizes = (values["micro_batch_size"], steps, values["sp_degree"])
    if not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise UserError(
            f"{document.name}: micro_batch_size, gradient_accumulation_steps and the SP degree "
            f"must be at least 1, got {', '.join(plain(size) for size in sizes)}"
        )
    if world_size % values["sp_degree"]:
        raise UserError(
            f"{document.name} has an SP degree of {values['sp_degree']}, which does not divide "
            f"the {world_size} ranks of cluster.devices_per_trial; give another number of devices"
        )
    return int(values["micro_batch_size"] * steps * world_size // values["sp_degree"])


def _weights_dims(document: YamlDocument, sources: Sources) -> dict[str, Any]:
    """Figures from the weights' config.json, where the base leads to one."""
    folder = document.get(key_path("model.model_name_or_path"))
    if not isinstance(folder, str):
        return {}
    name = str(Path(folder) / "config.json")
    text = sources.find(name)
    return {} if text is None else dims_of(text, name)

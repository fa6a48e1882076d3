"""MindSpeed-MM's Megatron backends: the user's launch script, its arguments and JSON files.

The script is read, never run: it may do more than train, such as changing the access to all files
below a folder. Each trial starts the training program itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.config.schema import Config
from autotune.errors import UserError
from autotune.ports import ExportPaths, MeasurementPlan, RankProgram
from autotune.space.definition import Rule
from launch.trainers.hooked import hooked_argv, hooked_plan
from launch.trainers.mindspeed.checkout import require_checkout
from launch.trainers.mindspeed.choices import check_choices
from launch.trainers.mindspeed.megatron_export import exported_files, exported_script_name
from launch.trainers.mindspeed.megatron_facts import base_dims, base_facts
from launch.trainers.mindspeed.megatron_files import CONFIG, OpenFiles
from launch.trainers.mindspeed.megatron_inactive import with_base_values
from launch.trainers.mindspeed.megatron_knobs import CONDITIONAL, Knob, knobs_of
from launch.trainers.mindspeed.megatron_launch import MegatronLaunch, exported_by, read_launch
from launch.trainers.mindspeed.megatron_models import DIFFUSION, PROGRAMS, support_of
from launch.trainers.mindspeed.megatron_rules import rules_for
from launch.trainers.mindspeed.megatron_settings import apply, global_batch_of, values_of
from launch.trainers.mindspeed.megatron_splits import require_splits
from launch.trainers.mindspeed.megatron_trial import measuring
from launch.trainers.passes import plan_passes
from launch.trainers.sources import Sources

MEGATRON, FSDP2 = "mindspeed_megatron", "mindspeed_megatron_fsdp2"
_HOOK = "mindspeed_megatron"
_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


@dataclass(frozen=True)
class MindspeedMegatron:
    """`Trainer` for pretrain_vlm.py, pretrain_sora.py and pretrain_transformers.py.

    name: of the backend. root: the checkout. base: what the user's script launches.
    world_size: of every trial. env: added to what the script exports. dims: `num_layers` and
    `global_batch_size` among them.
    """

    name: str
    root: Path
    base: MegatronLaunch
    world_size: int
    nodes: int
    env: Mapping[str, str]
    dims: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    python: str | None = None
    every_rank_records: bool = True
    tells_peak_memory: bool = True
    needs: tuple[str, ...] = ("torch",)
    versions: tuple[str, ...] = ("torch_npu", "mindspeed", "mindspeed_mm", "transformers")

    @classmethod
    def load(cls, config: Config, sources: Sources) -> MindspeedMegatron:
        """From the configuration and the user's checkout. Raises UserError."""
        name = config.trainer.name
        require_checkout(sources, next(iter(PROGRAMS)), config.trainer.commit)
        base = read_launch(config, sources)
        files = base.files.open()
        _require_backend(name, base, files)
        dims = base_dims(files, base.kind, sources)
        world_size = config.cluster.placement.world_size
        values = values_of(files, base.kind, knobs_of(name == FSDP2, base.kind), None)
        batch = config.model.dims.get("global_batch_size") or global_batch_of(
            files, values, world_size
        )
        if batch is None:
            raise UserError(
                f"{base.name} gives no --global-batch-size, and its parallelism does not fit the "
                f"{world_size} ranks of cluster.devices_per_trial; give "
                "model.dims.global_batch_size=NUMBER"
            )
        return cls(
            name=name,
            root=sources.root,
            base=base,
            world_size=world_size,
            nodes=config.cluster.placement.nodes,
            env={key: str(value) for key, value in config.trainer.env.items()},
            dims={**dims, "global_batch_size": batch},
            facts=base_facts(files, base.kind, sources),
            python=config.trainer.python,
        )

    @property
    def heeds_finish(self) -> bool:
        """Through the hook, on one host."""
        return self.nodes == 1

    @property
    def fixed(self) -> Mapping[str, Any]:
        """What the user's script and files say of parameters, and of what rules read besides."""
        read = {name for rule in self.rules for name in rule.expression.names}
        return {
            name: value
            for name, value in self._present.items()
            if name in read or name in self._names
        }

    @property
    def rules(self) -> Sequence[Rule]:
        """What MindSpeed-MM checks, and what it does not and should."""
        support = support_of(self.base.kind, self.facts["model_id"])
        rules = rules_for(
            self.base.kind,
            self._is_fsdp2,
            support,
            self.dims,
            "expert_parallel_size" in self._knobs,
        )
        return with_base_values(rules, self._present, CONDITIONAL)

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Raises UserError for a parameter that the backend lacks, or a choice it cannot take."""
        check_choices(
            choices,
            {name: self._knobs[name].values for name in self._names},
            f"{self.name} has no such parameter for {self.base.program}",
        )
        if "pipeline_split" in choices:
            rounds = max(choices.get("virtual_pipeline_size", (1,)))
            require_splits(choices["pipeline_split"], rounds, self.dims, self.facts)

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        """Nothing beyond the rules."""
        return None

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        """Whole passes over what repeats in the time of steps.

        A diffusion model with `encoder_offload_interval: k` encodes the samples of k micro-batches
        at once, so that at most k steps make such a pass.
        """
        return plan_passes(int(self.facts["encoding_interval"]), warmup_steps, min_steps, max_steps)

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The program's arguments, and what its files hold."""
        return {"program": self.base.program, **self._opened(point).data}

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Arguments, files and environment; None for a parameter that the backend lacks."""
        if not set(values) <= set(self._names):
            return None
        return {**self.config(values), "environment": dict(self.environment(values))}

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        """The real program behind our hooks, for so many steps, with nothing loaded or saved."""
        files = self._opened(point)
        measuring(files, plan)
        names = {role: _copy(role, files) for role in files.changed}
        for role, name in names.items():
            files.refer(role, str(folder / name))
        config = str(folder / names[CONFIG]) if CONFIG in names else None
        texts = files.texts
        return RankProgram(
            argv=hooked_argv(self.python, _HOOK, [self.base.program, *files.words(config)]),
            cwd=self.root / self.base.launch.folder,
            env={
                **self.environment(point),
                **hooked_plan(plan, self.nodes),
                "PYTHONPATH": self._python_path(),
            },
            files={name: texts[role] for role, name in names.items()},
        )

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """A script that trains with the point, and the JSON and YAML files that it names."""
        return exported_files(self.base, self._opened(point), self.environment(point), self.root)

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """What the script exports, and the number of connections that the point needs."""
        exported = {**exported_by(self.base.launch), **self.env}
        given = exported.get(_CONNECTIONS)
        if self._is_fsdp2:
            return exported if given != "1" else {**exported, _CONNECTIONS: "2"}
        return {**exported, _CONNECTIONS: "1"}

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        """The exported script."""
        return ("bash", str(Path(exported.files) / exported_script_name(self.base)))

    @property
    def _is_fsdp2(self) -> bool:
        return self.name == FSDP2

    @property
    def _knobs(self) -> dict[str, Knob]:
        return knobs_of(self._is_fsdp2, self.base.kind)

    @property
    def _names(self) -> list[str]:
        return [name for name in self._knobs if not self._lacks_module(name)]

    def _lacks_module(self, parameter: str) -> bool:
        modules = self.facts["encoders"]
        of_module = [name for name in ("image_encoder", "audio_encoder") if name in parameter]
        return any(name not in modules for name in of_module)

    @property
    def _present(self) -> dict[str, Any]:
        return {**self.facts, **self._values(self.base.files.open())}

    def _values(self, files: OpenFiles) -> dict[str, Any]:
        return values_of(files, self.base.kind, self._knobs, self.dims.get("num_layers"))

    def _opened(self, point: Mapping[str, Any]) -> OpenFiles:
        files = self.base.files.open()
        values = {**self._values(files), **point}
        apply(files, self.base.kind, self._knobs, values, self.dims)
        return files

    def _python_path(self) -> str:
        given = self.environment({}).get("PYTHONPATH", os.environ.get("PYTHONPATH"))
        return os.pathsep.join(filter(None, [str(self.root), given]))


def _require_backend(name: str, base: MegatronLaunch, files: OpenFiles) -> None:
    """Raises UserError where the script is for the other backend, or for none."""
    other = MEGATRON if name == FSDP2 else FSDP2
    uses = files.arguments.has("--use-torch-fsdp2")
    if uses != (name == FSDP2):
        said = "has --use-torch-fsdp2" if uses else "has no --use-torch-fsdp2"
        raise UserError(f"{base.name} {said}, so it is for trainer={other}, not trainer={name}")
    if uses and files.arguments.has("--hetero-parallel"):
        raise UserError(f"{base.name}: --hetero-parallel does not go with --use-torch-fsdp2")
    if not knobs_of(name == FSDP2, base.kind):
        raise UserError(f"{base.name} starts {base.program}, which {name} does not tune")
    if base.kind == DIFFUSION and files.get("model:use_dynamic_dpcp"):
        raise UserError(
            f"{base.name}: use_dynamic_dpcp in the model file chooses the parallelism batch by "
            "batch, so there is nothing to search; set it to false"
        )


def _copy(role: str, files: OpenFiles) -> str:
    return f"{role}{files.suffix(role)}"

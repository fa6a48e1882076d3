"""The reference trainer (`launch.reference`) as a trainer of the search.

A point's parameters are keys of its native configuration. The model's `base` holds the
rest of that configuration, complete but for the tuned parameters.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from autotune.errors import UserError, did_you_mean
from autotune.ports import ExportPaths, MeasurementPlan, RankProgram
from autotune.space.definition import Rule
from autotune.space.point import plain
from launch.profile_request import profile_options
from launch.reference.import_settings import with_defaults
from launch.trainers.passes import plan_passes

_CONFIG_FILE = "config.yaml"
_PRELOAD = "launch.reference.rank_main"

# parameter -> its place in the native configuration and the type of its values.
_PARAMETERS: Mapping[str, tuple[tuple[str, str], type]] = {
    "sp_degree": (("parallel", "sp_degree"), int),
    "sp_algorithm": (("parallel", "sp_algorithm"), str),
    "ulysses_degree": (("parallel", "ulysses_degree"), int),
    "encoder_sp_degree": (("parallel", "encoder_sp_degree"), int),
    "encoder_micro_batch_scale": (("parallel", "encoder_micro_batch_scale"), int),
    "micro_batch_size": (("training", "micro_batch_size"), int),
    "offload_blocks": (("features", "offload_blocks"), int),
    "loss_chunk_size": (("features", "loss_chunk_size"), int),
    "bucket_order": (("features", "bucket_order"), str),
}


@dataclass(frozen=True)
class ReferenceTrainer:
    """`Trainer` for `launch.reference`.

    base: native configuration without the tuned parameters. device: `cpu`, `cuda` or `npu`.
    device_memory_bytes: cap that each rank puts on its device, None for none. python: the
    interpreter of the ranks, None for this one.
    """

    base: Mapping[str, Any]
    device: str
    device_memory_bytes: int | None = None
    python: str | None = None
    name: str = "reference"
    heeds_finish: bool = True
    every_rank_records: bool = True
    tells_peak_memory: bool = True
    needs: tuple[str, ...] = ("torch",)
    versions: tuple[str, ...] = ()
    dims: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Raises UserError for a parameter that the trainer lacks or a choice of another type."""
        for parameter, values in choices.items():
            if parameter not in _PARAMETERS:
                raise UserError(
                    f"space.parameters.{parameter}: the reference trainer has no such parameter; "
                    f"{did_you_mean(parameter, _PARAMETERS)}"
                )
            wanted = _PARAMETERS[parameter][1]
            for value in values:
                if type(value) is not wanted:
                    kind = {int: "an integer", str: "text"}[wanted]
                    raise UserError(
                        f"space.parameters.{parameter}.choices: {plain(value)!r} is of the wrong "
                        f"type; the reference trainer takes {kind} here"
                    )

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        """What the trainer itself would say, from its own checks."""
        # Here, since numpy comes with it and `autotune --help` must not wait for that.
        from launch.reference.config import parse_config
        from launch.reference.layout import Layout
        from launch.reference.schema import ConfigError

        try:
            Layout.of(parse_config(self.config(point)), world_size)
        except ConfigError as error:
            return str(error)
        return None

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        """Whole passes over the data window, after one that warms up and measures memory.

        As many of them as `max_steps` holds; at least `min_steps` must fit.
        """
        return plan_passes(self._window_steps(), warmup_steps, min_steps, max_steps, 1)

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The native configuration of the point, ready to train with."""
        config = copy.deepcopy(dict(self.base))
        for parameter, value in point.items():
            group, key = _PARAMETERS[parameter][0]
            config.setdefault(group, {})[key] = value
        config["device"] = {"type": self.device}
        return config

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The configuration as the trainer reads it."""
        from launch.reference.config import parse_config
        from launch.reference.schema import ConfigError

        if not set(values) <= set(_PARAMETERS):
            return None
        try:
            return dataclasses.asdict(parse_config(self.config(values)))
        except ConfigError:
            return None

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        """The trainer with the point's configuration, for as many steps as the plan says.

        The last of them are profiled, where the plan has a profile.
        """
        config = self.config(point)
        config["training"] = {**config["training"], "steps": plan.total_steps}
        config["device"] = {"type": self.device, "memory_bytes": self.device_memory_bytes}
        config["measurement"] = {"memory_steps": plan.warmup_steps}
        if plan.profile is not None:
            config["measurement"]["profile"] = profile_options(plan.profile)
        return RankProgram(
            argv=(
                self.python or sys.executable,
                "-m",
                "launch.reference",
                str(folder / _CONFIG_FILE),
            ),
            cwd=folder,
            files={_CONFIG_FILE: yaml.safe_dump(config, sort_keys=False, allow_unicode=True)},
            # In the environment, since torch may be there before the program runs.
            env={"PYTHONPATH": _python_path(), **with_defaults(os.environ)},
            # Accelerators' libraries do not outlive a fork.
            preload=_PRELOAD if self.device == "cpu" else None,
        )

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """None: the trainer reads `best.yaml`."""
        return {}

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """Nothing."""
        return {}

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        """torchrun, by its module, with as many ranks as the trials had."""
        return (
            self.python or sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(world_size),
            "-m",
            "launch.reference",
            exported.document,
        )

    def _window_steps(self) -> int:
        try:
            samples = int(self.base["data"]["num_samples"])
            batch = int(self.base["training"]["global_batch_size"])
        except (KeyError, TypeError, ValueError):
            raise UserError(
                "model.base lacks data.num_samples or training.global_batch_size as integers; "
                "search_spaces/model/tiny_vlm.yaml shows a whole one"
            ) from None
        if batch < 1 or samples % batch:
            raise UserError(
                f"model.base.data.num_samples={samples} is no multiple of "
                f"model.base.training.global_batch_size={batch}; the window holds whole batches"
            )
        return samples // batch


def _python_path() -> str:
    """The folder that holds `launch`, in front: the ranks' Python may not have it installed."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))

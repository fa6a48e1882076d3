"""Any training program as a trainer: its command with `{parameter}` in the place of values."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.config.places import expanded
from autotune.config.schema import Config
from autotune.errors import UserError, did_you_mean
from autotune.measure.logs.formats import format_of
from autotune.measure.logs.rates import Counted
from autotune.ports import ExportPaths, MeasurementPlan, RankProgram
from autotune.space.definition import Facts, Rule
from launch.trainers.passes import plan_passes
from launch.trainers.patch import Patch, read_patches
from launch.trainers.sources import Sources
from launch.trainers.template import Blank, Template, render_words, split_words

_PROCESSES = ("rank", "node")
_MEMORY = ("records", "processes", "none")
_OWN_NAMES = ("python", "steps", "folder")
_TAKEN = (*_OWN_NAMES, "model", "cluster")
_COPIES = "patched"
_CWD = "cwd"
_STEPS = Blank()
"""In the place of the number of steps in a command that a person trains with."""


@dataclass(frozen=True)
class CommandTrainer:
    """`Trainer` for a program that knows nothing of autotune.

    words, env: templates. patches: by the name that stands in templates for the copy's path.
    facts: `model` and `cluster`, for expressions. printed: a format's name or patterns, None
    where the ranks write records. samples_per_step, tokens_per_step: of a global batch, None where
    unknown. memory: who tells the peak, see `TrainerConfig`.
    """

    words: tuple[Template, ...]
    env: Mapping[str, Template]
    patches: Mapping[str, Patch]
    cwd: Path
    facts: Facts
    processes: Literal["rank", "node"] = "rank"
    printed: str | Mapping[str, str] | None = None
    samples_per_step: int | None = None
    tokens_per_step: int | None = None
    window_steps: int = 1
    memory: str = "records"
    python: str | None = None
    name: str = "command"
    heeds_finish: bool = False
    needs: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    dims: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @classmethod
    def load(cls, config: Config, sources: Sources) -> CommandTrainer:
        """From the configuration and the user's files. Raises UserError."""
        trainer = config.trainer
        _one_of("trainer.processes", trainer.processes, _PROCESSES)
        _one_of("trainer.memory", trainer.memory, _MEMORY)
        if trainer.memory == "processes" and config.cluster.device != "cpu":
            raise UserError(
                f"trainer.memory=processes counts what processes hold on the host, which is not "
                f"the memory of a {config.cluster.device} device; give trainer.memory=records "
                "where the program records or prints it, or trainer.memory=none"
            )
        if trainer.window_steps < 1:
            raise UserError(f"trainer.window_steps={trainer.window_steps} must be at least 1")
        samples, tokens = _global_batch(config.model.dims)
        if trainer.printed is not None:
            counted = format_of(trainer.printed, "trainer.printed").rates_alone
            _require_batch(counted, samples, tokens)
        cwd = Path(sources.keep(_CWD, str(expanded(trainer.cwd or ".", "trainer.cwd").absolute())))
        made = cls(
            words=_words(trainer.command),
            env={
                name: Template.parse(str(text), f"trainer.env.{name}")
                for name, text in trainer.env.items()
            },
            patches=read_patches(trainer.patch, cwd, sources, _TAKEN),
            cwd=cwd,
            facts=config.facts,
            processes="node" if trainer.processes == "node" else "rank",
            printed=trainer.printed,
            samples_per_step=samples,
            tokens_per_step=tokens,
            window_steps=trainer.window_steps,
            memory=trainer.memory,
            python=trainer.python,
        )
        made.require_steps()
        return made

    @property
    def every_rank_records(self) -> bool:
        """Where the launcher starts the ranks, and nothing speaks for all of them."""
        return self.printed is None and self.processes == "rank"

    @property
    def tells_peak_memory(self) -> bool:
        """Unless the user has said that nothing does."""
        return self.memory != "none"

    @property
    def program(self) -> str | None:
        """The first word of the command, None where it depends on the trial."""
        first = self.words[0]
        if not first.names <= {"python"}:
            return None
        rendered = render_words((first,), self._scope({}, {}, Path()))
        return rendered[0] if rendered else None

    def require_steps(self) -> None:
        """Raises UserError for a command that would not know when to end."""
        if not any("steps" in template.names for _, template in self._templates()):
            raise UserError(
                "trainer.command must say how many steps a trial makes: write {steps} where the "
                "program takes their number, such as --steps {steps}"
            )

    def check(self, choices: Mapping[str, Sequence[Any]]) -> None:
        """Raises UserError for a parameter that is used nowhere, and for an unknown name."""
        used: set[str] = set()
        known = {*choices, *_OWN_NAMES, *self.patches}
        for name in choices:
            if name in _OWN_NAMES or name in self.patches:
                raise UserError(
                    f"space.parameters.{name}: in a command {{{name}}} is something else; give "
                    "the parameter another name"
                )
        for where, template in self._templates():
            for item in template.fields:
                item.expression.check_names(dict.fromkeys(known), self.facts, where)
            used |= template.names
        for name in choices:
            if name not in used:
                raise UserError(
                    f"space.parameters.{name} changes nothing: write {{{name}}} into "
                    "trainer.command, trainer.env or trainer.patch"
                )
        for name in self.patches:
            if name not in used:
                raise UserError(
                    f"trainer.patch.{name} is read by nobody: write {{{name}}}, the path of the "
                    "changed copy, into trainer.command or trainer.env"
                )

    def refusal(self, point: Mapping[str, Any], world_size: int) -> str | None:
        """Nothing that is known beforehand; but every field must have a value. Raises UserError."""
        scope = self._scope(point, {"steps": 1, "folder": "."}, Path())
        for _, template in self._templates():
            template.value(scope)
        return None

    def plan(self, warmup_steps: int, min_steps: int, max_steps: int) -> MeasurementPlan:
        """Whole passes over the data window. Raises UserError where they do not fit."""
        return plan_passes(self.window_steps, warmup_steps, min_steps, max_steps)

    def config(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Command, environment and working directory of a training run."""
        scope = self._scope(point, {"steps": _STEPS, "folder": "."}, Path())
        return {
            "command": list(render_words(self.words, scope)),
            "env": _texts(self.env, scope),
            "cwd": str(self.cwd),
        }

    def native(self, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The command and what its files hold; None for a name that stands nowhere in them."""
        used = {name for _, template in self._templates() for name in template.names}
        if not set(values) <= used - {*_OWN_NAMES, *self.patches}:
            return None
        try:
            return {"config": self.config(values), "files": dict(self.files(values))}
        except UserError:
            return None

    def trial_program(
        self, point: Mapping[str, Any], plan: MeasurementPlan, folder: Path
    ) -> RankProgram:
        """The command for as many steps as the plan has; nothing is profiled."""
        own = {"steps": plan.warmup_steps + plan.measured_steps, "folder": str(folder)}
        copies = self._copies(point, own)
        scope = self._scope(point, own, folder / _COPIES)
        return RankProgram(
            argv=render_words(self.words, scope),
            cwd=self.cwd,
            env=_texts(self.env, scope),
            files={f"{_COPIES}/{name}": text for name, text in copies.items()},
            processes=self.processes,
            printed=self.printed,
            samples_per_step=self.samples_per_step,
            tokens_per_step=self.tokens_per_step,
            watches_memory=self.memory == "processes",
        )

    def files(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """The changed copies of the user's files."""
        return self._copies(point, {"steps": _STEPS, "folder": "."})

    def environment(self, point: Mapping[str, Any]) -> Mapping[str, str]:
        """The templates' values, but for those that lead to exported files."""
        placeless = {name: one for name, one in self.env.items() if not self._needs_place(one)}
        return _texts(placeless, self._scope(point, {"steps": _STEPS, "folder": "."}, Path()))

    def training_command(
        self, point: Mapping[str, Any], exported: ExportPaths, world_size: int
    ) -> tuple[str, ...]:
        """The command in its directory, with the copies that were exported."""
        scope = self._scope(
            point, {"steps": _STEPS, "folder": exported.files}, Path(exported.files)
        )
        placed = {name: one for name, one in self.env.items() if self._needs_place(one)}
        assigned = (f"{name}={value}" for name, value in _texts(placed, scope).items())
        return ("env", "-C", str(self.cwd), *assigned, *render_words(self.words, scope))

    def _needs_place(self, template: Template) -> bool:
        """Whether it names the folder of the trial or of an export."""
        return not template.names.isdisjoint({"folder", *self.patches})

    def _copies(self, point: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
        scope = self._scope(point, own, Path())
        active = {*point, *own, "python", *self.patches}
        return {patch.copy: patch.render(scope, active) for patch in self.patches.values()}

    def _scope(
        self, point: Mapping[str, Any], own: Mapping[str, Any], folder: Path
    ) -> dict[str, Any]:
        """What fields read. folder: where the copies of files lie."""
        absent = {name: None for _, template in self._templates() for name in template.names}
        copies = {name: str(folder / patch.copy) for name, patch in self.patches.items()}
        return {
            **self.facts,
            **absent,
            **point,
            **copies,
            "python": self.python or sys.executable,
            **own,
        }

    def _templates(self) -> Iterator[tuple[str, Template]]:
        """Every template with the key that it belongs to."""
        for word in self.words:
            yield "trainer.command", word
        for name, template in self.env.items():
            yield f"trainer.env.{name}", template
        for name, patch in self.patches.items():
            for key, template in patch.settings.items():
                yield f"trainer.patch.{name}.set.{key}", template


def _words(command: object) -> tuple[Template, ...]:
    if isinstance(command, str):
        try:
            words = split_words(command)
        except ValueError as error:
            raise UserError(f"trainer.command={command!r} cannot be split: {error}") from None
    elif isinstance(command, list):
        words = [str(word) for word in command]
    else:
        words = []
    if not words:
        raise UserError(
            f"trainer.command={command!r} is no command; give it as a text or a list of words, "
            'such as trainer.command="{python} train.py --batch {micro_batch_size} --steps {steps}"'
        )
    return tuple(Template.parse(word, "trainer.command") for word in words)


def _texts(templates: Mapping[str, Template], scope: Mapping[str, Any]) -> dict[str, str]:
    words = {name: render_words((template,), scope) for name, template in templates.items()}
    return {name: word[0] for name, word in words.items() if word}


def _one_of(key: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UserError(f"{key}={value!r}; {did_you_mean(value, allowed)}")


def _global_batch(dims: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Samples and tokens of one step, as far as `model.dims` tells. Raises UserError."""
    names = ("global_batch_size", "seq_length", "global_batch_tokens")
    for name in names:
        value = dims.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise UserError(f"model.dims.{name}={value!r} must be a whole number of at least 1")
    samples, length, tokens = (dims.get(name) for name in names)
    if tokens is None and samples is not None and length is not None:
        tokens = samples * length
    return samples, tokens


def _require_batch(counted: Collection[Counted], samples: int | None, tokens: int | None) -> None:
    """Raises UserError where the program tells rates, and what they count is not known."""
    if Counted.SAMPLES in counted and samples is None:
        raise UserError(
            "trainer.printed reads samples a second; give model.dims.global_batch_size, the "
            "samples of a step, so that the time of a step follows"
        )
    if Counted.TOKENS in counted and tokens is None:
        raise UserError(
            "trainer.printed reads tokens a second; give model.dims.global_batch_tokens, the "
            "tokens of a step, or model.dims.global_batch_size and model.dims.seq_length"
        )

"""The keys of `replay`: overrides in, one validated `ReplayConfig` out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from autotune.config.compose import parse_override
from autotune.config.places import expanded
from autotune.config.quantities import parse_bytes
from autotune.config.typed import build
from autotune.errors import UserError, did_you_mean
from autotune.replay.noise import RunNoise

_GROUP = "replay"
# Paths are taken as typed, without Hydra's grammar, in which spaces, commas and = need quotes.
_TEXT_KEYS = ("table", "out")
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class ReplayConfig:
    """What is replayed, how often, and where the results go.

    table: a file. samplers: a list of names, of mappings with `_target_` or of {name: sampler};
    or one mapping of names to samplers. seeds: how many; seed: the first. budget: launches of
    one run, as a number or as a share of the rows. out: a folder, null for
    `replays/<name of the table>`. noise: relative standard deviation of one run's time.
    outliers: the share of runs that take `outlier_factor` times as long, or both as
    {share: 0.1, factor: 1.7}. baseline: see `autotune.replay.baseline`. memory_limit: an amount
    that peaks are held against, null for what the rows say. jobs: processes, null for one a core.
    """

    table: str
    samplers: Any = ("guided", "tpe", "random")
    seeds: int = 50
    seed: int = 0
    budget: Any = 0.1
    out: str | None = None
    noise: float = 0.0
    outliers: Any = 0.0
    outlier_factor: float = 1.7
    baseline: Any = None
    memory_limit: Any = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        if not self.table:
            raise UserError("replay.table is empty; give a file, such as replay.table=T.csv")
        for name, least in (("seeds", 1), ("seed", 0), ("jobs", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"replay.{name}={value} must be at least {least}")
        if self.seed + self.seeds - 1 > _LARGEST_SEED:
            raise UserError(f"replay.seed={self.seed}: seeds go up to {_LARGEST_SEED}")
        _check_budget(self.budget)
        # Each of these raises UserError where its keys are wrong.
        _ = self.run_noise, self.named_samplers, self.limit_bytes

    @property
    def table_path(self) -> Path:
        """The file."""
        return expanded(str(self.table), "replay.table")

    @property
    def out_path(self) -> Path:
        """The folder that the results are written to."""
        if self.out:
            return expanded(str(self.out), "replay.out")
        return Path("replays") / self.table_path.name.partition(".")[0]

    @property
    def seed_numbers(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def processes(self) -> int:
        """How many processes may run at once."""
        return self.jobs or len(os.sched_getaffinity(0))

    @property
    def limit_bytes(self) -> int | None:
        """The limit on peak memory where one is given. Raises UserError."""
        if self.memory_limit is None:
            return None
        return parse_bytes(self.memory_limit, "replay.memory_limit")

    @property
    def run_noise(self) -> RunNoise:
        """The planted noise. Raises UserError."""
        return RunNoise.parse(self.noise, self.outliers, self.outlier_factor)

    @property
    def named_samplers(self) -> dict[str, Any]:
        """The samplers by the names of their rows. Raises UserError."""
        return _named(self.samplers)

    def evaluations(self, rows: int) -> int:
        """How many launches one run has on a table of so many rows."""
        wanted = self.budget if isinstance(self.budget, int) else round(self.budget * rows)
        return min(max(wanted, 1), rows)


def replay_config(overrides: Sequence[str]) -> ReplayConfig:
    """From overrides in Hydra's grammar, `replay.seeds=200`. Raises UserError."""
    data: dict[str, Any] = {}
    for override in overrides:
        path, value = _parse(override)
        node = data
        for part in path[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise UserError(f"{override!r}: {_GROUP}.{part} has a value and no keys below it")
        if override.startswith("~"):
            node.pop(path[-1], None)
        else:
            node[path[-1]] = value
    if "table" not in data:
        raise UserError("replay what? give a recorded table: replay.table=T.csv")
    return build(ReplayConfig, data, _GROUP)


def _parse(override: str) -> tuple[list[str], Any]:
    """The path below `replay` and the value. Raises UserError."""
    key, equals, text = override.partition("=")
    path = key.lstrip("+~").split(".")
    names = [item.name for item in fields(ReplayConfig)]
    if path[0] != _GROUP or len(path) < 2:
        raise UserError(
            f"{key.lstrip('+~')} is no key of replay, which starts no trial; "
            f"{_nearest(path[-1], names)}"
        )
    if path[1] not in names:
        close = did_you_mean(path[1], names)
        raise UserError(f"unknown key {'.'.join(path)}; {close}")
    if equals and path[1] in _TEXT_KEYS and text[:1] not in ("'", '"') and text != "null":
        return path[1:], text
    return path[1:], parse_override(override).value()


def _nearest(word: str, names: Sequence[str]) -> str:
    """The keys that may have been meant; `replay.`, which all have, makes none of them alike."""
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(repr(f'{_GROUP}.{name}') for name in close)}?"
    return f"its keys are {', '.join(f'{_GROUP}.{name}' for name in names)}"


def _check_budget(budget: Any) -> None:
    is_number = isinstance(budget, (int, float)) and not isinstance(budget, bool)
    if not is_number or not (budget >= 1 if isinstance(budget, int) else 0 < budget <= 1):
        raise UserError(
            f"replay.budget={budget!r} must be a share of the rows, such as 0.1, or a number of "
            "launches, such as 100"
        )


def _named(samplers: Any) -> dict[str, Any]:
    if isinstance(samplers, Mapping) and "_target_" not in samplers:
        pairs = [(str(name), sampler) for name, sampler in samplers.items()]
    else:
        items = samplers if isinstance(samplers, (list, tuple)) else [samplers]
        pairs = [pair for item in items for pair in _pairs(item)]
    if not pairs:
        raise UserError("replay.samplers is empty; give some, such as [guided,tpe,random]")
    named: dict[str, Any] = {}
    for name, sampler in pairs:
        if name in named:
            raise UserError(f"replay.samplers names {name!r} twice; give names: {{a: tpe, b: tpe}}")
        if not isinstance(sampler, (str, Mapping)):
            raise UserError(
                f"replay.samplers: {sampler!r} is no sampler; give a name such as tpe, or a "
                "mapping with _target_"
            )
        named[name] = sampler
    return named


def _pairs(item: Any) -> list[tuple[str, Any]]:
    if not isinstance(item, Mapping):
        return [(str(item), item)]
    if "_target_" in item:
        return [(str(item["_target_"]).rpartition(".")[2], item)]
    return [(str(name), sampler) for name, sampler in item.items()]

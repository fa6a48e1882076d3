"""Hydra's part: files and overrides in, one validated `Config` out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from autotune.config.schema import Config
from autotune.config.typed import build
from autotune.errors import UserError, did_you_mean

_FILES = "search_spaces"  # an importable package of YAML files
_GROUPS = ("model", "space", "trainer", "cluster", "search")
_GROUP_LIST = re.compile(rf"\+*({'|'.join(_GROUPS)})=(\[|[^'\"]*,)")
# Keys whose value is free text, mostly a path: taken as typed, without Hydra's grammar, in
# which spaces, commas, = and # would need quotes.
_TEXT_KEYS = (
    "study.name",
    "study.dir",
    "study.storage",
    "study.take_over",
    "trainer.python",
    "trainer.root",
    "trainer.commit",
    "trainer.cwd",
    "trainer.command",
    "trainer.printed",
    "model.base.config",
    "cluster.address",
)
# Of these also lists and mappings may be given, which look unlike the text.
_LIST_KEYS, _MAPPING_KEYS = ("trainer.command",), ("trainer.printed",)
# Below these each key is the user's own. What the environment holds is text, and set or added.
_ENVIRONMENT = "trainer.env."
_OPEN_MAPPINGS = ("model.dims.", "model.base.", "trainer.patch.", "trainer.sources.", "space.")


@dataclass(frozen=True)
class Composed:
    """A configuration as typed values and as the plain data it came from."""

    config: Config
    data: dict[str, Any]


def compose_config(overrides: Sequence[str], config_dir: Path | None = None) -> Composed:
    """Composes `search_spaces/config.yaml` with the overrides.

    config_dir: a folder of the user's own with the same groups. Raises UserError for
    whatever a person can get wrong.
    """
    arguments = [quote_text(override) for override in overrides]
    for argument in arguments:
        if match := _GROUP_LIST.match(argument):
            raise UserError(f"{argument!r} chooses several; give one, such as {match[1]}=NAME")
        parse_override(argument)
    if config_dir is not None:
        if not config_dir.is_dir():
            raise UserError(
                f"--config-dir {config_dir} is not a folder; give one with model/, space/, ..."
            )
        arguments.append(f"hydra.searchpath=[{_quoted(f'file://{config_dir.absolute()}')}]")
    data = _compose(arguments)
    return Composed(build(Config, data), data)


def parse_override(override: str) -> Override:
    """The override as Hydra reads it. Raises UserError with what to type in its place."""
    key, equals, value = override.partition("=")
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException:
        if not key or not equals:
            raise UserError(f"cannot read {override!r}: write key=value") from None
        raise UserError(
            f"cannot read {override!r}; text is quoted for Hydra and for the shell: "
            f"{_pasted(key, value)}"
        ) from None
    if parsed.is_sweep_override():
        raise UserError(
            f"{override!r} gives several values; a list is '{key}=[{value}]', "
            f"text is quoted for Hydra and for the shell: {_pasted(key, value)}"
        )
    return parsed


def quote_text(override: str) -> str:
    """The override with its value quoted for Hydra where the key holds free text."""
    key, equals, value = override.partition("=")
    name, first = key.lstrip("+"), value[:1]
    if name.startswith(_ENVIRONMENT) and equals:
        key = f"++{name}"
        override = f"{key}={value}"
    elif name not in _TEXT_KEYS:
        return override
    if not equals or value in ("null", "???") or first in ("'", '"'):
        return override
    if (first == "[" and name in _LIST_KEYS) or (first == "{" and name in _MAPPING_KEYS):
        return override
    return f"{key}={_quoted(value)}"


def _quoted(text: str) -> str:
    # In Hydra's grammar a backslash is itself, except in front of a quote and at the end.
    escaped = re.sub(r"(\\*)'", lambda match: match[1] * 2 + r"\'", text)
    escaped = re.sub(r"\\+$", lambda match: match[0] * 2, escaped)
    return f"'{escaped}'"


def _pasted(key: str, text: str) -> str:
    """The override as it is typed in a shell."""
    word = f"{key}={_quoted(text)}"
    return shlex.quote(word) if re.search(r'["$`!\\]', word) else f'"{word}"'


def _compose(overrides: list[str]) -> dict[str, Any]:
    # Hydra keeps one global instance; a second composition in one process needs it cleared.
    GlobalHydra.instance().clear()
    try:
        with initialize_config_module(_FILES, version_base="1.3"):
            composed = compose("config", overrides=overrides)
            _require_space(composed, overrides)
            data = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_explain(error, overrides)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(
            f"a configuration file cannot be read: {' '.join(str(error).split())}"
        ) from None
    except ValueError as error:  # Hydra's own for a group without a choice, such as model=null
        raise UserError(f"cannot compose {' '.join(overrides)}: {error}") from None
    assert isinstance(data, dict)
    return {str(key): value for key, value in data.items()}


def _require_space(composed: DictConfig, overrides: list[str]) -> None:
    if "space" in composed:
        return
    chosen = dict(o.split("=", 1) for o in overrides if o.partition("=")[0] in ("model", "space"))
    name = chosen.get("space") or chosen.get("model", "")
    options = GlobalHydra.instance().config_loader().get_group_options("space")
    raise UserError(
        f"unknown space={name} (a model takes the space of its name unless space=NAME is given or "
        f"it brings a space: of its own); {did_you_mean(name, options)}"
    )


def _explain(error: Exception, overrides: list[str]) -> str:
    """Hydra's message in our words where it leaves out what to type."""
    text = str(error).strip()
    if match := re.search(r"You must specify '(\w+)'", text):
        options = _options(text)
        for key in (override.partition("=")[0] for override in overrides):
            if key not in _GROUPS and "." not in key:
                return f"unknown key {key}; {did_you_mean(key, _known_keys([]))}"
        return f"no {match[1]} is chosen; type {match[1]}=NAME with one of: {', '.join(options)}"
    if match := re.search(r"Could not find '(\w+)/([^']*)'", text):
        group, name = match[1], match[2]
        return f"unknown {group}={name}; {did_you_mean(name, _options(text))}"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        close = did_you_mean(key, _known_keys(overrides))
        if key.startswith(_OPEN_MAPPINGS):
            return f"unknown key {key}; {close} (to add it, type +{key}=...)"
        return f"unknown key {key}; {close}"
    lines = [line for line in text.splitlines() if line and not line.startswith("See https")]
    return "; ".join(line.strip() for line in lines if "object_type" not in line)


def _options(text: str) -> list[str]:
    return re.findall(r"^\t(?!provider)(\S+)$", text, re.MULTILINE)


def _known_keys(overrides: list[str]) -> list[str]:
    """The dotted keys of the configuration with the same choice of groups."""
    chosen = [o for o in overrides if o.partition("=")[0] in _GROUPS]
    with initialize_config_module(_FILES, version_base="1.3"):
        try:
            plain = OmegaConf.to_container(compose("config", overrides=chosen), resolve=False)
        except (HydraException, OmegaConfBaseException):
            return list(_GROUPS)
    return [*_GROUPS, *_flatten(plain, "")]


def _flatten(node: object, prefix: str) -> list[str]:
    if not isinstance(node, dict):
        return [prefix.rstrip(".")]
    own = [prefix.rstrip(".")] if prefix else []
    return own + [key for name in node for key in _flatten(node[name], f"{prefix}{name}.")]

"""YAML that every reader reads alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


def to_yaml(document: Mapping[str, Any]) -> str:
    """YAML text that OmegaConf and PyYAML read back with the same values and types."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """PyYAML reads `1e-05` as text and OmegaConf as a number: floats always get a point."""

    def ignore_aliases(self, data: Any) -> bool:
        """A person who edits one place must not change another: no anchors."""
        return True


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    node = yaml.SafeDumper.represent_float(dumper, value)
    if "e" in node.value and "." not in node.value:
        node.value = node.value.replace("e", ".0e", 1)
    return node


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # `1e3` without a point is text for PyYAML and a number for OmegaConf: always quoted.
    style = "'" if value[:1] in "0123456789+-." else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(float, _represent_float)
_Dumper.add_representer(str, _represent_text)

"""The formats that are built in, one file a program."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from autotune.errors import UserError, did_you_mean
from autotune.measure.logs.format import LogFormat
from autotune.measure.logs.formats.custom import EXAMPLE, custom_format
from autotune.measure.logs.formats.deepspeed import DEEPSPEED
from autotune.measure.logs.formats.json_lines import JSON
from autotune.measure.logs.formats.megatron import MEGATRON
from autotune.measure.logs.formats.torchtitan import TORCHTITAN

BUILT_IN: Mapping[str, LogFormat] = MappingProxyType(
    {format_.name: format_ for format_ in (MEGATRON, DEEPSPEED, TORCHTITAN, JSON)}
)


def format_of(given: object, key: str) -> LogFormat:
    """The built-in format of a name, or the one that regular expressions make.

    given: a name, a pattern, or several patterns as a list or by a name of the user's own. key:
    where it was given, for errors. Raises UserError.
    """
    if not isinstance(given, str) or "(" in given:
        return custom_format(given, key)
    if given not in BUILT_IN:
        raise UserError(
            f"{key}={given!r} is no log format; {did_you_mean(given, BUILT_IN)}, or a regular "
            f"expression with named groups, such as {EXAMPLE}"
        )
    return BUILT_IN[given]

"""A launch as a bash script of its own: what prepares the environment, and the command."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from launch.trainers.shell.arguments import Option, Options
from launch.trainers.shell.reading import (
    Exported,
    LaunchCommand,
    Prepared,
    Sourced,
    Step,
    Unset,
    plain_name,
)

_LAYOUT = {
    "nproc_per_node": "NPUS_PER_NODE",
    "nnodes": "NNODES",
    "node_rank": "NODE_RANK",
    "master_addr": "MASTER_ADDR",
    "master_port": "MASTER_PORT",
}
"""Variables that say where the ranks run, by the launcher's option."""


def render_script(
    launch: LaunchCommand, *, header: Sequence[str] = (), exports: Mapping[str, str] | None = None
) -> str:
    """A script that ends with the launch and does nothing besides.

    header: lines of comment. exports: variables to export after those of the launch. Where the
    ranks run can be given from outside in NPUS_PER_NODE, NNODES, NODE_RANK, MASTER_ADDR and
    MASTER_PORT; the launch's own values count otherwise. Other options are changed beforehand:
    `replace(launch, arguments=...)`.
    """
    layout = _layout_values(launch)
    given = {**_exports_besides(launch), **(exports or {})}
    lines = ["#!/usr/bin/env bash", *(f"# {line}".rstrip() for line in header), "set -euo pipefail"]
    if launch.folder != ".":
        lines += ["", f"cd {_quoted(launch.folder, launch.live)}"]
    lines += _prepared(launch, [*layout, *given])
    exported = {name for name in launch.environment if name in layout}
    lines += ["", *(_export(launch, name, value) for name, value in given.items())]
    for name, value in layout.items():
        kind = "export " if name in exported else ""
        lines.append(f"{kind}{name}={_with_default(name, value, launch)}")
    lines += ["", " \\\n    ".join(_command(launch, layout)), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _prepared(launch: LaunchCommand, later: Sequence[str]) -> Iterator[str]:
    """The steps of the launch, in order. later: names that are exported afterwards."""
    for at, step in enumerate(launch.steps):
        match step:
            case Sourced():
                yield from _sourced(step, launch.live)
            case Exported(name, value) if name not in later and not _is_repeated(launch.steps, at):
                yield _export(launch, name, value)
            case Unset(name):
                yield f"unset {name}"
            case Prepared(words):
                yield from _tolerantly(" ".join(_quoted(word, launch.live) for word in words))


def _sourced(step: Sourced, live: frozenset[str]) -> Iterator[str]:
    path = step.path
    if posixpath.isabs(step.folder) and not path.startswith(("/", "$")):
        path = posixpath.normpath(posixpath.join(step.folder, path))
    words = " ".join(_quoted(word, live) for word in (path, *step.arguments))
    yield from _tolerantly(f"source {words}")


def _tolerantly(command: str) -> Iterator[str]:
    """What sets up a toolkit reads variables that may be unset, and ends with any status."""
    yield from ("", "set +eu", command, "set -eu", "")


def _is_repeated(steps: Sequence[Step], at: int) -> bool:
    """Whether the same variable is exported again before anything else could see it."""
    step = steps[at]
    for later in steps[at + 1 :]:
        if isinstance(later, Sourced | Prepared):
            return False
        if isinstance(later, Exported) and isinstance(step, Exported) and later.name == step.name:
            return True
    return False


def _exports_besides(launch: LaunchCommand) -> dict[str, str]:
    """What only the command itself was given: `NAME=value torchrun`."""
    after: dict[str, str | None] = {}
    for step in launch.steps:
        if isinstance(step, Exported):
            after[step.name] = step.value
        elif isinstance(step, Unset):
            after[step.name] = None
    return {name: v for name, v in launch.environment.items() if after.get(name) != v}


def _layout_values(launch: LaunchCommand) -> dict[str, str]:
    """The values of the options that say where the ranks run, by variable."""
    values: dict[str, str] = {}
    for option in Options.parse(launch.launcher_arguments):
        variable = _LAYOUT.get(plain_name(option.name or ""))
        if variable is None or len(option.values) != 1:
            continue
        exported = launch.environment.get(variable)
        if exported is None or exported == option.values[0]:
            values[variable] = option.values[0]
    return values


def _export(launch: LaunchCommand, name: str, value: str) -> str:
    if _is_doubtful(launch, name):
        return f"export {name}={_must(name)}"
    return f"export {name}={_quoted(value, launch.live)}"


def _is_doubtful(launch: LaunchCommand, name: str) -> bool:
    """Whether only the machine knows a variable that says where the ranks run."""
    return any(
        doubt.is_layout
        and (doubt.export == name or _LAYOUT.get(plain_name(doubt.place), "") == name)
        for doubt in launch.doubts
    )


def _must(name: str) -> str:
    return f'"${{{name}:?say which, such as {name}=...}}"'


def _with_default(name: str, value: str, launch: LaunchCommand) -> str:
    """A variable from outside, the launch's value otherwise; a must where that is not known."""
    if _is_doubtful(launch, name):
        return _must(name)
    pieces = _pieces(value, launch.live)
    text = "".join(p if is_live else re.sub(r'([\\"$`}])', r"\\\1", p) for p, is_live in pieces)
    return f'"${{{name}:-{text}}}"'


def _command(launch: LaunchCommand, layout: Mapping[str, str]) -> Iterator[str]:
    """The command, one option a line."""
    live = launch.live
    yield " ".join(_quoted(word, live) for word in (*launch.wrapper, *launch.launcher_command))
    for option in Options.parse(launch.launcher_arguments):
        variable = _LAYOUT.get(plain_name(option.name or ""), "")
        if variable in layout and option.values == (layout[variable],):
            separator = "=" if option.is_joined else " "
            yield f'{option.name}{separator}"${variable}"'
        else:
            yield _option(option, live)
    program = ("-m", launch.program) if launch.is_module else (launch.program,)
    yield " ".join(_quoted(word, live) for word in program)
    for option in Options.parse(launch.arguments):
        yield _option(option, live)


def _option(option: Option, live: frozenset[str]) -> str:
    return " ".join(_quoted(word, live) for word in option.words)


def _quoted(text: str, live: frozenset[str]) -> str:
    """A word that bash reads as `text`, live pieces as what they yield."""
    pieces = _pieces(text, live)
    return "".join(f'"{piece}"' if is_live else shlex.quote(piece) for piece, is_live in pieces)


def _pieces(text: str, live: frozenset[str]) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is live."""
    if not live:
        return [(text, False)]
    form = "|".join(re.escape(source) for source in sorted(live, key=len, reverse=True))
    pieces = [(piece, at % 2 == 1) for at, piece in enumerate(re.split(f"({form})", text))]
    return [piece for piece in pieces if piece[0]] or [("", False)]

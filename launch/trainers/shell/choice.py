"""The one launch of a script that is to be tuned, or what keeps it from being known."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from autotune.errors import UserError
from launch.trainers.shell.reading import TORCH_LAUNCHERS, Doubt, LaunchCommand, ScriptReading

_SHOWN = 3
_LONGEST = 80


def the_launch(reading: ScriptReading) -> LaunchCommand:
    """The start of a training program by PyTorch's launcher that the script comes to.

    What only says where the ranks run (addresses, ranks, numbers of nodes) may be unknown.
    Raises UserError for none, for several that differ, and where a word of it is not known.
    """
    launches = [launch for launch in reading.launches if launch.launcher in TORCH_LAUNCHERS]
    if not launches:
        raise UserError(_why_none(reading))
    _require_one(reading, launches)
    stray = next((item for item in reading.skipped if item.text.startswith("-")), None)
    if stray is not None:
        raise UserError(
            f"{reading.name} line {stray.line}: {_short(stray.text)!r} is a command of its own for "
            "bash, since a comment or a blank after \\ ends the command before it; take that away "
            "so that the options count"
        )
    launch = launches[0]
    doubts = [doubt for doubt in launch.doubts if not doubt.is_layout]
    if doubts:
        raise UserError(_unknown(reading, launch, doubts))
    return launch


def _why_none(reading: ScriptReading) -> str:
    what = f"{reading.name} starts no torchrun"
    advice = "give the script that starts the training by torchrun"
    if reading.launches:
        other = reading.launches[0]
        return (
            f"{what}: line {other.line} starts {other.launcher}, not PyTorch's launcher; {advice}"
        )
    for item in reading.skipped:
        if item.other_script:
            return (
                f"{what} itself: line {item.line} starts another script, {item.other_script}, "
                f"which is not followed; give that one, with the arguments and variables that "
                f"{reading.name} gives it"
            )
    if reading.ended is not None:
        said = f" It says: {_short(reading.ended.said)!r}." if reading.ended.said else ""
        return (
            f"{what}: it ends on line {reading.ended.line}, since {reading.ended.why}.{said} "
            "Give it the arguments and, in trainer.env, the variables that it asks for"
        )
    for item in reading.skipped:
        if "torchrun" in item.text or "torch.distributed" in item.text:
            return (
                f"{what} that can be read: it is inside another command on line {item.line}, "
                f"{_short(item.text)!r}; {advice} itself"
            )
    for item in reading.skipped:
        if item.text.startswith("python"):
            return f"{what}: line {item.line} starts {_short(item.text)!r}; {advice}"
    return f"{what}, nor anything like it; {advice}"


def _require_one(reading: ScriptReading, launches: Sequence[LaunchCommand]) -> None:
    first = launches[0]
    others = [launch for launch in launches if _differs(launch, first)]
    if not others:
        return
    shown = [first, *others[: _SHOWN - 1]]
    lines = "; ".join(
        f"line {launch.line}: {_short(shlex.join((launch.program, *launch.arguments)))}"
        for launch in shown
    )
    tests = sorted({test for launch in launches for test in launch.condition})
    why = f" Which of them runs depends on {' and '.join(tests[:2])}." if tests else ""
    raise UserError(
        f"{reading.name} starts {1 + len(others)} different trainings ({lines}).{why} "
        "Give a script that starts the one to tune"
    )


def _differs(launch: LaunchCommand, other: LaunchCommand) -> bool:
    return (launch.words, launch.environment, launch.folder) != (
        other.words,
        other.environment,
        other.folder,
    )


def _unknown(reading: ScriptReading, launch: LaunchCommand, doubts: Sequence[Doubt]) -> str:
    by_cause: dict[tuple[str | None, int, str, str], list[str]] = {}
    for doubt in doubts:
        cause = (doubt.variable, doubt.line, doubt.source, doubt.why)
        by_cause.setdefault(cause, []).append(doubt.place)
    parts: list[str] = []
    for (variable, line, source, why), places in list(by_cause.items())[:_SHOWN]:
        where = ", ".join(dict.fromkeys(places))
        what = f"{variable}, on line {line} {_short(source)}" if variable else _short(source)
        place = "" if variable else f" on line {line}"
        parts.append(f"{where} takes {what}{place}, which is not known since {why}")
    names = [name for name, *_ in by_cause if name]
    advice = (
        f"give {' and '.join(dict.fromkeys(names))} in trainer.env"
        if names
        else "write the value itself into the script"
    )
    return f"{reading.name} line {launch.line}: {'; '.join(parts)}; {advice}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."

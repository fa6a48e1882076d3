"""`autotune [VERB] [key=value ...]` or `autotune analyze PATH` -> an `Invocation`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune import __version__
from autotune.errors import UserError, did_you_mean

VERBS = {
    "sweep": "search for the fastest configuration, or go on with a search (the default)",
    "check": "say which points are legal and whether the devices can hold a trial; start nothing",
    "status": "show the state of a study, also of one that is running",
    "export": "print the best configuration, or write it with --out",
    "report": "write the report again",
    "profile": "profile a trial that runs, or run a point of a study again under the profiler",
    "analyze": "read profiles: where time, traffic and memory go, and what to do about it",
    "replay": "run samplers against each other on a recorded table; no devices",
}
# The verbs that take paths, not Hydra overrides: a path may hold any character, also `=`.
_PATH_VERBS = ("analyze",)
_EXAMPLES = {"replay": "replay.table=T.csv or replay.seeds=200"}
_OPTIONS_OF = {"out": ("export", "analyze"), "compare": ("analyze",)}


@dataclass(frozen=True)
class Invocation:
    """What was typed. overrides: Hydra overrides, as typed. paths: of `analyze`, else empty.

    out: a file for `export`, a folder for `analyze`. compare: what `analyze` compares with.
    """

    verb: str
    overrides: tuple[str, ...]
    config_dir: Path | None = None
    out: Path | None = None
    paths: tuple[Path, ...] = ()
    compare: Path | None = None


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Reads the command line. Raises UserError; `--help` and `--version` end the program."""
    arguments = _parser().parse_intermixed_args(argv)
    words: list[str] = arguments.words
    verb = words.pop(0) if words and "=" not in words[0] else "sweep"
    if verb not in VERBS:
        raise UserError(f"unknown verb {verb!r}; {did_you_mean(verb, VERBS)}")
    for option, verbs in _OPTIONS_OF.items():
        if getattr(arguments, option) is not None and verb not in verbs:
            raise UserError(f"--{option} goes with {' and '.join(verbs)}, not with {verb}")
    if verb == "replay" and arguments.config_dir is not None:
        raise UserError("--config-dir goes with configurations; replay reads a table")
    if verb in _PATH_VERBS:
        return _with_paths(verb, words, arguments)
    _refuse_stray(verb, words)
    return Invocation(verb, tuple(words), arguments.config_dir, arguments.out)


def _refuse_stray(verb: str, words: list[str]) -> None:
    stray = [word for word in words if "=" not in word and not word.startswith("~")]
    if stray and stray[0] in VERBS:
        raise UserError(f"the verb comes first: autotune {stray[0]} {' '.join(words[:-1])}")
    if stray:
        examples = _EXAMPLES.get(verb, "model=tiny_vlm or search.max_trials=50")
        raise UserError(f"cannot read {stray[0]!r}; write key=value, such as {examples}")


def _with_paths(verb: str, words: list[str], arguments: argparse.Namespace) -> Invocation:
    if not all(words) or not words:
        raise UserError(
            f"{verb} what? give a profile, or a folder of them: python -m autotune {verb} PATH"
        )
    if arguments.config_dir is not None:
        raise UserError(f"--config-dir goes with configurations; {verb} reads none")
    return Invocation(
        verb,
        (),
        out=arguments.out,
        paths=tuple(Path(word) for word in words),
        compare=arguments.compare,
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # argparse exits here
        raise UserError(f"{message}; see python -m autotune --help")


def _parser() -> argparse.ArgumentParser:
    verbs = "\n".join(f"  {verb:<8} {meaning}" for verb, meaning in VERBS.items())
    parser = _Parser(
        prog="autotune",
        description="Finds the fastest legal configuration of a training step by running it.",
        epilog=(
            f"verbs:\n{verbs}\n\n"
            "examples:\n"
            "  python -m autotune model=tiny_vlm\n"
            "  python -m autotune check model=tiny_vlm\n"
            "  python -m autotune status study.name=tiny_vlm\n"
            "  python -m autotune analyze profiles/rank0_ascend_pt --out tables\n"
            "  python -m autotune replay replay.table=T.csv replay.samplers=[tpe,random]\n"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[VERB] key=value",
        help="a verb, then Hydra overrides (analyze: paths)",
    )
    parser.add_argument(
        "--config-dir", type=Path, metavar="DIR", help="your own model/, space/, ... files"
    )
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="where export writes, or analyze its tables"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="PATH", help="the profile that analyze compares with"
    )
    parser.add_argument("--version", action="version", version=f"autotune {__version__}")
    return parser

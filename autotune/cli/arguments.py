"""`autotune [VERB] [key=value ...]` -> an `Invocation`."""

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
}


@dataclass(frozen=True)
class Invocation:
    """What was typed. overrides: Hydra overrides, as typed."""

    verb: str
    overrides: tuple[str, ...]
    config_dir: Path | None = None
    out: Path | None = None


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Reads the command line. Raises UserError; `--help` and `--version` end the program."""
    arguments = _parser().parse_intermixed_args(argv)
    words: list[str] = arguments.words
    verb = words.pop(0) if words and "=" not in words[0] else "sweep"
    if verb not in VERBS:
        raise UserError(f"unknown verb {verb!r}; {did_you_mean(verb, VERBS)}")
    stray = [word for word in words if "=" not in word and not word.startswith("~")]
    if stray and stray[0] in VERBS:
        raise UserError(f"the verb comes first: autotune {stray[0]} {' '.join(words[:-1])}")
    if stray:
        raise UserError(
            f"cannot read {stray[0]!r}; write key=value, such as model=tiny_vlm or "
            "search.max_trials=50"
        )
    if arguments.out is not None and verb != "export":
        raise UserError(f"--out goes with export, not with {verb}")
    return Invocation(verb, tuple(words), arguments.config_dir, arguments.out)


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
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "words", nargs="*", metavar="[VERB] key=value", help="a verb, then Hydra overrides"
    )
    parser.add_argument(
        "--config-dir", type=Path, metavar="DIR", help="your own model/, space/, ... files"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where export writes")
    parser.add_argument("--version", action="version", version=f"autotune {__version__}")
    return parser

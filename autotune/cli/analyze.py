"""`autotune analyze PATH`: what profiles say, as text and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from autotune.analyze.compare import Comparison, compare
from autotune.analyze.find import open_profiles
from autotune.analyze.summary import ProfileSet, profile_sets
from autotune.analyze.text.comparison import comparison
from autotune.analyze.text.document import document
from autotune.analyze.text.words import WIDTH, path_text
from autotune.cli.arguments import Invocation
from autotune.errors import ExitCode, UserError


def analyze(invocation: Invocation) -> int:
    """Prints the analyses, the comparison if one is asked for, and writes the tables.

    Raises UserError, before anything is printed where the input is wrong.
    """
    console = _console()
    sets = _read(invocation.paths)
    found = None
    if invocation.compare is not None:
        base = _only(_read((invocation.compare,)), invocation.compare)
        found = compare(base, _only(sets, *invocation.paths))
    for number, profiles in enumerate(sets):
        if number:
            console.print(Text("\n" + "─" * min(console.width, WIDTH), "dim"))
        console.print(document(profiles))
    if found is not None:
        console.print(comparison(found))
    if invocation.out is not None:
        _write(sets, found, invocation.out, console)
    return ExitCode.DONE


def _console() -> Console:
    """A file is as wide as a terminal; wider lines than this nobody reads."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def _read(paths: Sequence[Path]) -> tuple[ProfileSet, ...]:
    """The profiles below the paths; a large trace takes a while, which a terminal is told."""
    stderr = Console(stderr=True, highlight=False)
    read = []
    for path in paths:
        if not stderr.is_terminal:
            read += open_profiles(path)
            continue
        with stderr.status(Text(f"reading {path_text(path)}")):
            read += open_profiles(path)
    return profile_sets(read)


def _only(sets: Sequence[ProfileSet], *paths: Path) -> ProfileSet:
    """Two captures are compared, not two collections of them. Raises UserError."""
    if len(sets) == 1:
        return sets[0]
    names = "\n".join(f"  {path_text(each.profiles[0].source)}" for each in sets)
    where = " ".join(path_text(path) for path in paths)
    raise UserError(
        f"--compare compares one capture with one other; {where} holds {len(sets)}:\n{names}\n"
        "give the path of one"
    )


def _write(
    sets: Sequence[ProfileSet], found: Comparison | None, folder: Path, console: Console
) -> None:
    """Writes the tables and says which. Raises UserError."""
    # pandas takes half a second to import, and the text needs none.
    from autotune.analyze.csv_files import write_tables
    from autotune.analyze.tables import WHY_EMPTY, WHY_NO_DIFFERENCE, comparison_tables, tables

    made, why = tables(sets), dict(WHY_EMPTY)
    if found is not None:
        made |= comparison_tables(found)
        why |= WHY_NO_DIFFERENCE
    written = write_tables(folder, made, why)
    names = ", ".join(written.written) or "nothing"
    console.print(Text(f"\nwrote to {path_text(folder)}: {names}"))
    for name, reason in written.left_out.items():
        console.print(Text(f"left out {name}: {reason}", "dim"))

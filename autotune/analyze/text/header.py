"""What was read, and what could not be."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from autotune.analyze.names import clean
from autotune.analyze.profile import Missing, Profile
from autotune.analyze.summary import ProfileSet
from autotune.analyze.text.words import count_of, heading, path_text

_NAMED = 8


def header(profiles: ProfileSet) -> Iterator[RenderableType]:
    """Profiler, version, ranks, steps; files that were cut off or not finished."""
    yield Text(clean(profiles.name), style="bold underline")
    yield Text(path_text(profiles.source), "dim")
    yield Text(f"{_profiler(profiles)}; {_ranks(profiles)}; {_steps(profiles)}")
    for profile, label in zip(profiles.profiles, profiles.labels, strict=True):
        yield from _incomplete(profile, clean(label))


def _profiler(profiles: ProfileSet) -> str:
    versions = sorted({p.version for p in profiles.profiles if p.version})
    kind = profiles.profiles[0].kind.value
    # Some versions name their profiler themselves.
    named = any(kind in version.casefold() for version in versions)
    words = [*([] if named else [kind]), *map(clean, versions), f"on {profiles.device}"]
    return " ".join(words)


def _ranks(profiles: ProfileSet) -> str:
    ranks = [p.rank for p in profiles.profiles if p.rank is not None]
    if not ranks:
        return "rank not recorded"
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    more = f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else ""
    return f"ranks {', '.join(map(str, ranks[:_NAMED]))}{more}"


def _steps(profiles: ProfileSet) -> str:
    counts = sorted({len(p.steps) for p in profiles.profiles})
    if counts[-1] == 0:
        return "no step is marked"
    numbers = [s.step for s in profiles.profiles[0].steps if s.step is not None]
    which = "" if not numbers else f" ({numbers[0]})"
    if len(numbers) > 1:
        which = f" ({numbers[0]} to {numbers[-1]})"
    if len(counts) == 1:
        return f"{count_of(counts[0], 'step')}{which}"
    return f"{counts[0]} to {counts[-1]} steps"


def _incomplete(profile: Profile, label: str) -> Iterator[Text]:
    if profile.cut:
        files = ", ".join(map(clean, profile.cut))
        yield Text(f"{label}: cut off: {files}; what came before the cut was read", "yellow")
    elif not profile.complete:
        yield Text(f"{label}: the profiler did not finish; figures may be incomplete", "yellow")


def missing(profiles: ProfileSet) -> Iterator[RenderableType]:
    """What is not in the files, and how to have it next time; once, though many ranks lack it."""
    lacking = missing_by_rank(profiles)
    if not lacking:
        return
    yield heading("Not in these files")
    for entry, labels in lacking.items():
        everywhere = len(labels) == len(profiles.profiles)
        where = "" if everywhere else f" ({', '.join(map(clean, labels[:_NAMED]))})"
        yield Text(f"- {clean(entry.what)}{where}: {clean(entry.why)}")


def missing_by_rank(profiles: ProfileSet) -> dict[Missing, list[str]]:
    """Each thing that is missing, with the ranks that lack it."""
    lacking: dict[Missing, list[str]] = {}
    for profile, label in zip(profiles.profiles, profiles.labels, strict=True):
        for entry in profile.missing:
            lacking.setdefault(entry, []).append(label)
    return lacking

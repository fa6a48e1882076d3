"""The whole text about one set of profiles."""

from __future__ import annotations

from rich.console import Group, RenderableType

from autotune.analyze.findings.advise import advise
from autotune.analyze.ranks import judge_ranks
from autotune.analyze.summary import ProfileSet
from autotune.analyze.text.advice import advice
from autotune.analyze.text.communication import communication, ranks_and_links
from autotune.analyze.text.gaps import gaps
from autotune.analyze.text.header import header, missing
from autotune.analyze.text.memory import memory
from autotune.analyze.text.operators import operators
from autotune.analyze.text.steps import breakdown


def document(profiles: ProfileSet) -> RenderableType:
    """What was read, the analyses, what to do, what is missing."""
    verdict = judge_ranks(profiles)
    return Group(
        *header(profiles),
        *breakdown(profiles, verdict),
        *operators(profiles),
        *communication(profiles),
        *ranks_and_links(profiles, verdict),
        *memory(profiles),
        *gaps(profiles),
        *advice(advise(profiles, verdict)),
        *missing(profiles),
    )

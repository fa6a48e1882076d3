"""Points whose only run was slower than what is like them, and may have hidden the best."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from autotune.certify.results import Results
from autotune.search.guided.belief import Knowledge
from autotune.search.guided.geometry import Geometry
from autotune.search.guided.surprise import surprise
from autotune.space.legal import LegalSpace
from autotune.space.point import Point

# A run is repeated at once where it is this likely to have hidden a point that would lead.
_WORTH_A_RUN = 0.02
_LEADS_WITHIN = 1.05
# The fastest are enough: the rest is far from leading.
_MOST_LOOKED_AT = 150


def next_doubt(
    space: LegalSpace,
    results: Results,
    knowledge: Knowledge,
    running: Collection[Point] = (),
) -> Point | None:
    """The point that should run again before the search goes on, None for none.

    A search that believes a disturbed run looks elsewhere, and rechecks after the search
    cannot make up for that. running: points that run again now.
    """
    best = results.best
    if best is None or not results.settings.enabled or not results.may_recheck_while_searching:
        return None
    usable = [s for s in results.standings if s.record.status.is_usable][:_MOST_LOOKED_AT]
    codes = [space.encode(standing.point) for standing in usable]
    hides_best = surprise(
        Geometry.of(space.parameters),
        np.array([row for row in codes if row is not None]),
        np.array([standing.time_s for standing in usable]),
        _LEADS_WITHIN * best.time_s,
        knowledge,
    ).hides_best
    known = results.rechecked.union(running)
    once = [len(s.runs) == 1 and s.point not in known for s in usable]
    chances = np.where(once, hides_best, 0.0)
    most = int(np.argmax(chances))
    return usable[most].point if chances[most] >= _WORTH_A_RUN else None


def steady_seconds(space: LegalSpace, results: Results) -> dict[bytes, float]:
    """Seconds of the points that ran more than once, by the bytes of their codes."""
    again = [standing for standing in results.standings if len(standing.runs) > 1]
    codes = [space.encode(standing.point) for standing in again]
    return {
        row.tobytes(): standing.time_s
        for row, standing in zip(codes, again, strict=True)
        if row is not None
    }

"""`python -m tests.study.postgres_holder URL FOLDER`: a sweep of another process, in the middle."""

from __future__ import annotations

import sys
from pathlib import Path

from autotune.measure.outcome import Outcome, Status
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import FixedPointSampler
from autotune.space.definition import SpaceDefinition
from autotune.space.legal import LegalSpace
from autotune.study.storage import OptunaStore
from autotune.study.trial_record import TrialRecord

from ..conftest import FACTS, SPACE


def main(url: str, folder: str) -> None:
    """Writes two results of the study `bench`, begins a third trial and waits to be killed."""
    space = LegalSpace.build(SpaceDefinition.parse(SPACE, FACTS))
    store = OptunaStore.open("bench", url, Path(folder) / "study.db", Encoding(space), 1000, [])
    for point in space.points[:2]:
        number, _ = store.ask(FixedPointSampler(store.encoding, point))
        outcome = Outcome(Status.OK, "m", 7.0 + number, None, 8, peak_memory_bytes=900)
        store.tell(TrialRecord(number, point, outcome, 9, 0, 9, 1, "f"), 8.0)
    store.ask(FixedPointSampler(store.encoding, space.points[2]))
    sys.stdout.write("holds it\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

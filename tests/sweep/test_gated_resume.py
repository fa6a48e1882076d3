"""A sweep behind the memory gate that is killed goes on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autotune.study.study import Study

from .conftest import Bench
from .gated_case import behave, gated


def signature(bench: Bench) -> list[tuple[Any, ...]]:
    """What happened, without trial numbers: those of interrupted trials are not used again."""
    return [(r.parameters, r.status, r.gate) for r in bench.records]


class KilledError(Exception):
    """Stands for a kill: nothing of the sweep runs after it."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, method: str, call: int) -> Iterator[None]:
    """A sweep dies when it calls a method of `Study` for this time."""
    original: Callable[..., Any] = getattr(Study, method)
    calls = 0

    def dying(self: Study, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KilledError
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Study, method, dying)
        with pytest.raises(KilledError):
            yield


@pytest.mark.parametrize("sampler", ["guided", "random"])
def test_a_resumed_study_goes_on_as_the_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    def run(bench: Bench) -> None:
        bench.run(behave, sampler=sampler, max_trials=10)

    def made(name: str) -> Bench:
        bench = gated(tmp_path / name)
        bench.storage = None  # a kill must not lose the database
        return bench

    unbroken = made("unbroken")
    run(unbroken)
    second = [n for n, r in enumerate(unbroken.records, start=1) if not r.was_launched][1]
    # Before a skipped trial is kept, and after that; before a launch, and while a trial runs.
    moments = [("finish", second), ("finish", second + 1)]
    if sampler == "guided":  # passes points over before a launch
        moments += [("new_trial_folder", 8), ("ask_for", 3)]
    for method, call in moments:
        broken = made(f"{method} {call}")
        with killed_at(monkeypatch, method, call):
            run(broken)
        run(broken)
        assert signature(broken) == signature(unbroken), (method, call)

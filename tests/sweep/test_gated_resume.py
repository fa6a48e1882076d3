"""A sweep behind the memory gate that is killed goes on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.study.study import Study

from .conftest import Bench
from .gated_case import behave, gated


def signature(bench: Bench) -> list[tuple[Any, ...]]:
    """What happened, without trial numbers: those of interrupted trials are not used again.

    Nor is it known of their points, when they run again, whether they stand in for others.
    """
    return [
        (r.parameters, r.status, None if r.gate is None else replace(r.gate, passed_over=None))
        for r in bench.records
    ]


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
        bench.run(behave, sampler=sampler, max_trials=launches)

    def made(name: str) -> Bench:
        bench = gated(tmp_path / name)
        bench.storage = None  # a kill must not lose the database
        return bench

    launches = 16 if sampler == "guided" else 10
    unbroken = made("unbroken")
    run(unbroken)
    # Before a launch, and while a trial runs.
    moments = [("new_trial_folder", 8), ("finish", 9)]
    if sampler == "random":  # before a skipped trial is kept, and after that
        second = [n for n, r in enumerate(unbroken.records, start=1) if not r.was_launched][1]
        moments = [("finish", second), ("finish", second + 1)]
    else:
        assert any(r.was_checked for r in unbroken.records[9:])
    for method, call in moments:
        broken = made(f"{method} {call}")
        with killed_at(monkeypatch, method, call):
            run(broken)
        run(broken)
        assert signature(broken) == signature(unbroken), (method, call)

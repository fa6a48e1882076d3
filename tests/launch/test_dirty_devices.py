"""A device that does not give its memory back, or fails, is left out; its trial runs elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What trials came to on two nodes of two NPUs; the driver is a process of its own."""
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parent / "dirty_driver.py"),
            str(tmp_path_factory.mktemp("dirty")),
        ],
        capture_output=True,
        timeout=240,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_dirty_device_costs_its_trial_no_result(found: dict[str, Any]) -> None:
    assert [kind for _, kind, _ in found["clean"]] == ["finished", "finished"]
    assert [kind for _, kind, _ in found["dirty"]] == ["finished"]


def test_the_next_trial_does_not_begin_there(found: dict[str, Any]) -> None:
    ends = {kind: reason for _, kind, reason in found["next two"]}
    assert set(ends) == {"lost", "finished"}
    assert f"device {found['dirty device']} still holds 8.8 GiB" in ends["lost"]


def test_the_device_is_left_out_and_the_trial_repeated_elsewhere(found: dict[str, Any]) -> None:
    assert found["slots"] == [2, 1, 0]
    assert [kind for _, kind, _ in found["again"]] == ["finished"]
    assert found["dirty device"] not in found["devices"]
    left_out = [notice for notice in found["notices"] if "left out" in notice]
    assert f"device {found['dirty device']} of" in left_out[0]
    assert len(left_out) == 2


def test_a_device_that_fails_twice_is_left_out_too(found: dict[str, Any]) -> None:
    assert [kind for _, kind, _ in found["still"]] == ["finished"]
    assert "needs 2 device(s)" in found["none left"]
    assert "[1, 1] NPU" in found["none left"]

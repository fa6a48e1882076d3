"""A trial's breakdown from its profile, where the ranks recorded none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autotune.analyze.phases import profiled_phases
from autotune.errors import UserError
from autotune.measure.records import PHASES

ASCEND = Path(__file__).parents[3] / "shared/data/profiles/ascend_level1/rank0_ascend_pt"


def event(name: str, start: float, length: float, kind: str = "user_annotation") -> dict:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length}


def test_phases_are_shares_of_the_scored_time(tmp_path: Path) -> None:
    """The profiled step took 200 us; the scored ones half a second."""
    ranges = [
        event("ProfilerStep#3", 0, 200),
        event("data_loading", 0, 20),
        event("forward_backward", 20, 100),
        event("communication", 60, 20),
        event("optimizer", 120, 60),
        event("post_processing", 180, 20),
    ]
    operators = [event("aten::mm", start, 20, "cpu_op") for start in range(0, 200, 20)]
    folder = tmp_path / "profile"
    folder.mkdir()
    trace = {"traceEvents": [*ranges, *operators], "distributedInfo": {"rank": 0}}
    (folder / "a.pt.trace.json").write_text(json.dumps(trace))
    phases = profiled_phases(tmp_path, 0.5)
    assert phases is not None
    assert sum(phases.values()) == pytest.approx(0.5)
    assert phases["data_loading"] == pytest.approx(0.05)
    assert phases["forward_backward"] == pytest.approx(0.2)
    assert phases["optimizer"] == pytest.approx(0.15)


def test_no_profile_tells_nothing(tmp_path: Path) -> None:
    assert profiled_phases(tmp_path, 1.0) is None
    (tmp_path / "profile").mkdir()
    assert profiled_phases(tmp_path, 1.0) is None


def test_a_broken_profile_is_an_error_that_the_sweep_survives(tmp_path: Path) -> None:
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "a.pt.trace.json").write_text("no trace")
    with pytest.raises(UserError):
        profiled_phases(tmp_path, 1.0)


@pytest.mark.skipif(not ASCEND.is_dir(), reason="the shared data are not here")
def test_a_real_npu_profile_gives_all_six_phases(tmp_path: Path) -> None:
    shutil.copytree(ASCEND, tmp_path / "profile" / "host_1_2_ascend_pt")
    phases = profiled_phases(tmp_path, 2.0)
    assert phases is not None
    assert set(phases) == set(PHASES)
    assert sum(phases.values()) == pytest.approx(2.0, rel=0.03)
    # Its own step_trace_time.csv: 101.96 ms of communication that is not overlapped, of 156.0.
    assert phases["communication"] == pytest.approx(2.0 * 101.963 / 155.986, rel=0.01)

"""The logs that lie in shared/data/logs, whose index says what each is."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.failures.diagnosis import Diagnosis
from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.outcome import Status
from autotune.ports import EndKind
from tests.measure.failures.made import end, of

LOGS = Path(__file__).resolve().parents[4] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="shared/data is not here")


def diagnosis(name: str, kind: EndKind = EndKind.RANK_FAILED, steps: int = 0) -> Diagnosis:
    text = next(LOGS.glob(f"{name}_*")).read_text(encoding="utf-8")
    return of(RankEvidence(0, log=text, steps=steps), end=end(kind))


def test_npu_oom_mid_training() -> None:
    found = diagnosis("C20", steps=7)
    assert (found.kind, found.status) == (FailureKind.DEVICE_OOM, Status.OOM)
    assert found.summary == "rank 0 ran out of memory after holding 57.5 GiB"
    assert found.device == "NPU 3"


def test_hccl_timeout_that_ends_in_mid_sentence() -> None:
    found = diagnosis("C23")
    assert (found.kind, found.policy) == (FailureKind.COLLECTIVE_TIMEOUT, Policy.RETRY)
    assert found.quote.startswith("EI0002: The wait execution of the Notify register times out")


def test_nccl_watchdog_of_two_ranks_is_one_event_and_names_the_first() -> None:
    found = diagnosis("C26")
    assert (found.kind, found.rank) == (FailureKind.COLLECTIVE_TIMEOUT, 0)
    assert "[Rank 0] Watchdog caught collective operation timeout" in found.quote


def test_port_in_use_of_torchrun() -> None:
    found = diagnosis("C30")
    assert (found.kind, found.policy) == (FailureKind.PORT_IN_USE, Policy.RETRY)
    assert "47531" in found.quote


def test_time_limit_is_not_the_configurations_fault() -> None:
    found = diagnosis("C04", steps=4)
    assert (found.kind, found.status) == (FailureKind.KILLED, Status.INFRASTRUCTURE)
    assert "DUE TO TIME LIMIT" in found.quote


def test_extension_lock_that_nobody_frees() -> None:
    text = next(LOGS.glob("C14_*")).read_text(encoding="utf-8").split("```")[0]
    found = of(RankEvidence(0, log=text), end=end(EndKind.HUNG))
    assert (found.kind, found.status) == (FailureKind.HUNG, Status.HUNG)
    assert "delete the file `lock`" in found.explanation


@pytest.mark.parametrize("name", ["C01", "C06", "C11", "C15", "C18", "C19", "C27", "C28"])
def test_logs_of_good_runs_name_nothing(name: str) -> None:
    """Skipped steps, allocation retries and warnings are no failures."""
    found = diagnosis(name, steps=9)
    assert (found.kind, found.where) == (FailureKind.CRASHED, "launcher")


def test_log_of_mindspeed_mm_names_nothing() -> None:
    text = (LOGS / "mindspeed_mm_native_fsdp2_cpu.log").read_text(encoding="utf-8")
    assert of(RankEvidence(0, log=text, steps=4)).where == "launcher"

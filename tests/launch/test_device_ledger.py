"""Whether devices come back clean, and which are left out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from autotune.ports import DeviceType
from launch.device_check import DeviceCheck
from launch.device_ledger import TOLERANCE_BYTES, DeviceLedger, DeviceState, describe_unclean
from launch.device_memory import MemoryInUse

GIB = 1 << 30
IDLE = 3 * GIB


def state(name: str, held: int = 0) -> DeviceState:
    return DeviceState(name, IDLE, IDLE + held)


class Devices:
    """What is in use of two devices, look by look; the last look lasts."""

    def __init__(self, *looks: tuple[int, int]) -> None:
        self.looks = [*looks]
        self.slept_s = 0.0

    def read(self, device: DeviceType, env: Mapping[str, str]) -> dict[str, MemoryInUse]:
        used = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {str(n): MemoryInUse(one, 64 * GIB) for n, one in enumerate(used)}

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds

    def check(self, floors: Mapping[str, int], visible: str = "1,0") -> DeviceCheck:
        env = {"ASCEND_RT_VISIBLE_DEVICES": visible}
        return DeviceCheck("npu", env, floors, 20.0, self.read, self.sleep)


def test_memory_that_comes_back_in_time_is_clean() -> None:
    devices = Devices((IDLE, IDLE + 20 * GIB), (IDLE, IDLE + GIB), (IDLE, IDLE + TOLERANCE_BYTES))
    states = devices.check({"0": IDLE, "1": IDLE}).await_clean()
    assert [one.name for one in states] == ["1", "0"]  # in the ranks' order
    assert all(one.is_clean for one in states)
    assert 0 < devices.slept_s < 5


def test_memory_that_does_not_come_back_is_told() -> None:
    devices = Devices((IDLE, IDLE + 12 * GIB))
    states = devices.check({"0": IDLE, "1": IDLE}).await_clean()
    assert [one.is_clean for one in states] == [False, True]
    assert "device 1 still holds 12.0 GiB" in describe_unclean(states)
    assert 19 < devices.slept_s < 22


def test_the_first_look_is_the_floor_and_a_lower_one_the_next() -> None:
    devices = Devices((IDLE, IDLE), (IDLE, IDLE + 9 * GIB), (IDLE, IDLE))
    check = devices.check({})
    assert [one.floor_bytes for one in check.await_clean()] == [IDLE, IDLE]
    assert all(one.is_clean for one in check.await_clean())
    others = Devices((IDLE, 40 * GIB), (IDLE, 2 * GIB)).check({})
    others.await_clean()
    assert [one.floor_bytes for one in others.await_clean()] == [2 * GIB, IDLE]


def test_where_nothing_tells_all_is_well() -> None:
    check = DeviceCheck("npu", {"ASCEND_RT_VISIBLE_DEVICES": "0"}, {}, 20.0, lambda _, __: None)
    (only,) = check.await_clean()
    assert only.is_clean
    assert only.used_bytes is None
    assert DeviceCheck("cpu", {}, {}, 20.0).await_clean() == ()


def test_a_device_is_left_out_the_second_time() -> None:
    ledger = DeviceLedger()
    assert ledger.note("a", [state("0", 9 * GIB), state("1")]) == []
    assert ledger.note("b", [state("0", 9 * GIB)]) == []  # another host's
    assert ledger.left_out("a") == 0
    assert ledger.note("a", [state("0", 9 * GIB), state("1")]) == [("a", "0")]
    assert ledger.note("a", [state("0", 9 * GIB)]) == []  # it is out already
    assert (ledger.left_out("a"), ledger.left_out("b")) == (1, 0)
    assert ledger.floors() == {"a": {"0": IDLE, "1": IDLE}, "b": {"0": IDLE}}


@pytest.mark.parametrize("first", ["strike", "unclean"])
def test_errors_of_the_device_count_like_held_memory(first: str) -> None:
    ledger = DeviceLedger()
    out = ledger.strike(("a", "3")) if first == "strike" else ledger.note("a", [state("3", GIB)])
    assert out == []
    assert ledger.strike(("a", "3")) == [("a", "3")]

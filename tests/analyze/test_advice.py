"""The bottleneck in words, with the technique that addresses it and the number behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune.analyze.advice import Advice, bottleneck
from autotune.analyze.findings.advise import advise, breakdown_s
from autotune.analyze.profile import (
    CollectiveTime,
    Gap,
    LinkTime,
    MemoryHolder,
    MemoryPoint,
    MemoryUse,
    OperatorTime,
)
from autotune.analyze.ranks import judge_ranks
from autotune.analyze.summary import ProfileSet
from autotune.analyze.techniques import TECHNIQUES
from tests.analyze.made import job, phases, profile, step

GIB = 1 << 30
COMPUTE = {"forward_backward": 0.090, "optimizer": 0.005, "communication": 0.005}


def by_topic(found: list[Advice]) -> dict[str, Advice]:
    return {advice.topic: advice for advice in found}


def words(advice: Advice) -> str:
    return "\n".join(advice.techniques)


@pytest.mark.parametrize(
    ("phase", "knob"),
    [
        ("data_loading", "num_workers"),
        ("communication", "sp_degree"),
        ("scheduling", "micro_batch_size"),
        ("optimizer", "AdamW"),
        ("post_processing", ".item()"),
        ("bubble", "micro_batch_size"),
    ],
)
def test_the_phase_that_takes_the_time_comes_first_with_its_number(phase: str, knob: str) -> None:
    found = bottleneck({"forward_backward": 0.060, phase: 0.040}, None, None)
    assert found[0].topic == phase
    assert "40.0 ms of 100.0 ms a step (40%)" in found[0].evidence
    assert found[0].share == pytest.approx(0.4)
    assert knob in words(found[0])


def test_compute_that_takes_most_is_said_between_large_and_small_waste() -> None:
    times = {"forward_backward": 0.55, "communication": 0.30, "scheduling": 0.15}
    assert [advice.topic for advice in bottleneck(times, None, None)] == [
        "communication",
        "forward_backward",
        "scheduling",
    ]


def test_when_nothing_stands_out_it_says_so() -> None:
    (advice,) = bottleneck(COMPUTE, None, None)
    assert advice.what.startswith("Nothing stands out")
    assert "(90%)" in advice.evidence
    assert "micro_batch_size larger" in words(advice)


def test_only_what_can_still_move_is_named_with_where_it_stands() -> None:
    point = {"sp_degree": 4, "sp_algorithm": "ulysses", "micro_batch_size": 2, "offload_blocks": 0}
    ways = words(bottleneck({"communication": 1.0}, None, None, point)[0])
    assert "sp_degree smaller (now 4)" in ways
    assert "sp_algorithm another (now ulysses)" in ways
    assert "ulysses_degree" not in ways  # without usp it has no value
    assert "bucket_order" not in ways  # this space has none
    alone = words(bottleneck({"communication": 1.0}, None, None, {"sp_degree": 1})[0])
    assert "sp_degree" not in alone


def test_without_parameters_conditions_are_said() -> None:
    ways = words(bottleneck({"communication": 1.0}, None, None)[0])
    assert "sp_degree smaller, if sp_degree is above 1" in ways


def test_settings_of_mindspeed_mm_are_for_npus() -> None:
    on_npu = words(bottleneck({"scheduling": 1.0}, None, None, device="npu")[0])
    on_cuda = words(bottleneck({"scheduling": 1.0}, None, None, device="cuda")[0])
    assert "TASK_QUEUE_ENABLE=2" in on_npu
    assert "TASK_QUEUE_ENABLE" not in on_cuda
    assert "CUDA graphs" in on_cuda
    assert "CUDA graphs" not in on_npu


def test_memory_that_is_full_rules_out_what_costs_memory() -> None:
    found = by_topic(bottleneck({"scheduling": 1.0}, 0.95 * 64 * GIB, 64 * GIB))
    assert "micro_batch_size larger" not in words(found["scheduling"])
    assert "(95%)" in found["memory"].evidence
    assert "loss_chunk_size" in words(found["memory"])
    assert "offload_blocks more" in words(found["memory"])


def test_memory_over_the_limit_and_memory_to_spare_are_said() -> None:
    over = by_topic(bottleneck(COMPUTE, 70 * GIB, 64 * GIB))["memory"]
    assert "over the limit" in over.what
    assert "70.0 GiB of 64.0 GiB" in over.evidence
    spare = by_topic(bottleneck(COMPUTE, 20 * GIB, 64 * GIB, {"offload_blocks": 5}))["memory"]
    assert "offload_blocks fewer (now 5)" in words(spare)
    assert "memory" not in by_topic(bottleneck(COMPUTE, 50 * GIB, 64 * GIB))


@pytest.mark.parametrize(
    "times",
    [
        {},
        {"forward_backward": 0.0},
        {"forward_backward": math.nan},
        {"forward_backward": -1.0, "communication": math.inf},
    ],
)
def test_no_usable_times_make_no_advice(times: Mapping[str, float]) -> None:
    assert bottleneck(times, None, None) == []
    assert [advice.topic for advice in bottleneck(times, 20 * GIB, 64 * GIB)] == ["memory"]


def test_whatever_a_shipped_space_varies_is_a_technique() -> None:
    knobs = {technique.knob for ways in TECHNIQUES.values() for technique in ways}
    spaces = Path(__file__).parents[2] / "search_spaces" / "space"
    for path in spaces.glob("*.yaml"):
        assert set(yaml.safe_load(path.read_text())["parameters"]) <= knobs, path.name


def advice_on(*profiles: Any) -> dict[str, Advice]:
    of_set = ProfileSet(profiles)
    return by_topic(advise(of_set, judge_ranks(of_set)))


def test_a_wait_for_another_stage_is_no_traffic() -> None:
    waiting = step(exposed=30e3, bubble_us=25e3, phases_us=phases(communication=30e3))
    assert breakdown_s(waiting) == {
        **dict.fromkeys(phases(), 0.0),
        "communication": pytest.approx(0.005),
        "bubble": pytest.approx(0.025),
    }


def test_without_phases_the_device_is_what_is_judged() -> None:
    found = advice_on(profile(0, [step(computing=20e3, exposed=60e3, free=15e3, preparing=5e3)]))
    assert "communication: 60.0 ms of 100.0 ms a step (60%)" in found["communication"].evidence
    assert found["scheduling"].share == pytest.approx(0.2)


def collective(elapsed: float, **rest: Any) -> CollectiveTime:
    return CollectiveTime("allReduce", "dp", 4, elapsed, **rest)


def test_collectives_that_hardly_move_data_are_waiting_not_traffic() -> None:
    """The figures of the real profile of `shared/data`: 3.7 of 106 ms move data."""
    slow = [step(50, computing=8.9e3, exposed=102e3, hidden=4e3, free=25.7e3, preparing=17.9e3)]
    idle = collective(106e3, transit_us=3.7e3, wait_us=5.9e3, idle_us=96.4e3)
    found = advice_on(profile(0, slow, collectives=(idle,)))
    assert "communication" not in found
    evidence = found["waiting"].evidence
    assert "4% of all communication is hidden" in evidence
    assert "of 106.0 ms a step in collectives 3.7 ms move data, 5.9 ms wait" in evidence
    assert found["waiting"].techniques[0].startswith("profile all ranks")
    busy = collective(106e3, transit_us=100e3, wait_us=3e3, idle_us=3e3)
    assert "sp_degree" in words(advice_on(profile(0, slow, collectives=(busy,)))["communication"])


def test_many_small_messages_are_named() -> None:
    small = CollectiveTime("allGather", "fsdp", 400, 12e3, size_bytes=400 * 50e3)
    found = advice_on(profile(0, [step(1), step(2)], collectives=(small,)))
    assert "200 calls a step of 48.8 KiB" in found["small_messages"].evidence
    large = CollectiveTime("allGather", "fsdp", 400, 12e3, size_bytes=400 * 50e6)
    assert "small_messages" not in advice_on(profile(0, [step(1)], collectives=(large,)))


def test_a_slow_rank_and_a_slow_link_become_advice() -> None:
    ranks = job([[60e3]] * 7 + [[80e3]])
    found = by_topic(advise(ranks, judge_ranks(ranks)))
    assert found["ranks"].what == "Rank 7 is slow, and the others wait for it"
    assert "20.0 ms shorter (19%)" in found["ranks"].evidence
    links = tuple(
        LinkTime(0, rank, "HCCS", 60e6, 60e6 / 1e3 / (5 if rank == 4 else 17))
        for rank in range(1, 12)
    )
    found = advice_on(profile(0, [step()], links=links))
    assert found["links"].what == "Link 0-4 (HCCS) is slow"
    assert "5.0 GB/s, where 10 alike have 17.0 GB/s" in found["links"].evidence


def test_conversions_ai_cpu_and_a_dominant_operator_are_named_where_they_matter() -> None:
    operators = (
        OperatorTime("MatMulV2", "AI_CORE", 10, 60e3),
        OperatorTime("TransData", "AI_VECTOR_CORE", 50, 20e3),
        OperatorTime("Index", "AI_CPU", 2, 5e3),
        OperatorTime("aten::mm", "host", 10, 900e3),
    )
    found = advice_on(profile(0, [step()], operators=operators))
    assert "MatMulV2: 71% of the device's time in 10 calls" in found["operators"].evidence
    assert "24%" in found["layout"].evidence
    assert "6%" in found["ai_cpu"].evidence
    # The same operators where the device computes for 1 % of the step: not worth a word.
    idle = step(computing=1e3, free=94e3)
    assert "layout" not in advice_on(profile(0, [idle], operators=operators))


def test_kernels_of_the_communication_library_are_no_operators() -> None:
    nccl = OperatorTime("ncclKernel_AllReduce_RING_LL_Sum_float(x)", "cuda", 10, 60e3)
    other = tuple(OperatorTime(f"kernel{at}", "cuda", 10, 5e3) for at in range(8))
    assert "operators" not in advice_on(
        profile(0, [step()], device="cuda", operators=(nccl, *other))
    )


def test_a_step_that_is_much_longer_is_named() -> None:
    found = advice_on(
        profile(0, [step(at, computing=200e3 if at == 4 else 60e3) for at in range(5)])
    )
    assert found["steps"].what == "Step 4 took 2.4 times as long as the others"


def test_memory_outside_the_allocator_and_what_holds_the_peak() -> None:
    points = (
        MemoryPoint(0.0, "PTA", 30.0 * GIB, 31.0 * GIB),
        MemoryPoint(0.0, "APP", 0.0, 50.0 * GIB),
    )
    holders = (
        MemoryHolder("aten::log_softmax", 9.0 * GIB, 1.0),
        MemoryHolder("aten::log_softmax", 9.0 * GIB, 2.0),
        MemoryHolder("allocated before profiling began", 20.0 * GIB),
    )
    use = MemoryUse(points, {"PTA": 31.0 * GIB, "APP": 50.0 * GIB}, 0.0, holders)
    of_set = ProfileSet((profile(0, [step()], memory=use),))
    memory = [a for a in advise(of_set, judge_ranks(of_set)) if a.topic == "memory"]
    assert "19.0 GiB of 50.0 GiB" in memory[0].evidence
    assert "HCCL_BUFFSIZE" in words(memory[0])
    assert memory[1].what == "What aten::log_softmax allocated holds much of the peak"
    assert "18.0 GiB of 50.0 GiB in 2 allocations" in memory[1].evidence


def test_holes_in_the_allocator_are_named() -> None:
    use = MemoryUse((MemoryPoint(0.0, "PTA", 20.0 * GIB, 40.0 * GIB),), {"PTA": 40.0 * GIB})
    found = advice_on(profile(0, [step()], memory=use))
    assert "20.0 GiB of 40.0 GiB reserved" in found["memory"].evidence
    assert "expandable_segments" in words(found["memory"])


def test_the_longest_idle_gap_is_told_with_what_came_after_it() -> None:
    loading = phases(data_loading=12e3, scheduling=30e3, forward_backward=50e3)
    late = step(free=42e3, computing=50e3, phases_us=loading)
    gaps = (Gap(0.0, 40e3, "host", after="Copy", step=1), Gap(0.0, 9e3, "host", after="X", step=1))
    found = advice_on(profile(0, [late], gaps=gaps))
    # The first gap is longer than the step's scheduling, so data were loaded in it.
    assert "the longest idle gap is 9.0 ms, before X" in found["scheduling"].evidence


def test_profiles_without_anything_make_no_advice() -> None:
    assert advice_on(profile(0)) == {}
    assert advice_on(profile(0, [step(1, 0, 0, 0, 0, 0)])) == {}

"""Two profiles against each other, a step of a rank at a time."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from autotune.analyze.compare import Comparison, Difference, compare
from autotune.analyze.profile import CollectiveTime, MemoryUse, OperatorTime, Profile
from autotune.analyze.summary import ProfileSet
from autotune.analyze.text.comparison import comparison
from tests.analyze.made import phases, profile, step


def compared(base: Profile | ProfileSet, other: Profile | ProfileSet) -> Comparison:
    sets = [s if isinstance(s, ProfileSet) else ProfileSet((s,)) for s in (base, other)]
    return compare(*sets)


def named(differences: tuple[Difference, ...]) -> dict[str, Difference]:
    return {difference.name: difference for difference in differences}


def text(found: Comparison) -> str:
    out = io.StringIO()
    Console(file=out, width=300).print(comparison(found))
    return out.getvalue()


def test_a_profile_is_no_different_from_itself() -> None:
    one = profile(
        0,
        [step(1, phases_us=phases(forward_backward=80e3, communication=20e3))],
        operators=(OperatorTime("MatMul", "AI_CORE", 5, 50e3),),
        collectives=(CollectiveTime("allReduce", "dp", 2, 30e3),),
        memory=MemoryUse((), {"PTA": 5e9}),
    )
    found = compared(one, one)
    # Step, rank, phases, the device's view, operator, collective, peak.
    assert len(found.all) == 1 + 1 + 6 + 6 + 1 + 1 + 1
    assert {difference.absolute for difference in found.all} == {0.0}
    assert "is as fast" in text(found)


def test_captures_of_different_length_compare_by_the_step() -> None:
    def capture(steps: int, computing: float, matmul: float) -> Profile:
        return profile(
            0,
            [step(at, computing=computing) for at in range(steps)],
            operators=(OperatorTime("MatMul", "AI_CORE", 10 * steps, matmul * steps),),
            collectives=(CollectiveTime("allReduce", "dp", 2 * steps, 30e3 * steps),),
        )

    found = compared(capture(2, 60e3, 40e3), capture(5, 75e3, 55e3))
    assert found.step is not None
    assert (found.step.base, found.step.other) == (100e3, 115e3)
    assert found.step.relative == pytest.approx(0.15)
    (matmul,) = found.operators
    assert (matmul.base, matmul.other) == (pytest.approx(40e3), pytest.approx(55e3))
    assert (matmul.base_count, matmul.other_count) == (10, 10)
    assert found.communication[0].absolute == pytest.approx(0.0)
    assert "15% slower: 115.0 ms a step, 100.0 ms" in text(found)
    assert "in computing (+15.0 ms)" in text(found)


def test_operators_that_are_new_or_gone_are_said_and_the_largest_change_comes_first() -> None:
    def with_operators(**times: float) -> Profile:
        operators = tuple(OperatorTime(name, "AI_CORE", 1, us) for name, us in times.items())
        return profile(0, [step()], operators=operators)

    found = compared(
        with_operators(Softmax=9e3, Cast=1e3, MatMul=50e3),
        with_operators(FlashAttention=4e3, Cast=1e3, MatMul=49e3),
    )
    assert [d.name for d in found.operators] == ["Softmax", "FlashAttention", "MatMul", "Cast"]
    gone, new = found.operators[:2]
    assert (gone.other, gone.absolute) == (None, -9e3)
    assert (new.base, new.absolute, new.relative) == (None, 4e3, None)
    assert "1 new, 1 gone" in text(found)


def test_ranks_are_matched_by_number_and_others_left_out() -> None:
    base = ProfileSet(tuple(profile(rank, [step(1, 60e3 + rank)]) for rank in (0, 1, 2)))
    other = ProfileSet(tuple(profile(rank, [step(1, 60e3 + rank)]) for rank in (2, 3)))
    found = compared(base, other)
    assert found.ranks == (2,)
    assert [difference.name for difference in found.by_rank] == ["rank 2"]
    assert named(found.device)["computing"].absolute == 0.0


def test_without_a_common_rank_all_stand_for_each_other_and_that_is_said() -> None:
    base = ProfileSet((profile(0, [step(1, 60e3)]), profile(1, [step(1, 80e3)])))
    found = compared(base, profile(7, [step(1, 71e3)]))
    assert found.ranks is None
    assert named(found.device)["computing"].absolute == pytest.approx(1e3)
    assert "No rank is known to be in both" in text(found)
    assert "No rank is known to be in both" in text(
        compared(profile(None, [step()]), profile(None, [step()]))
    )


def test_groups_that_are_called_otherwise_are_still_the_same_communication() -> None:
    base = profile(0, [step()], collectives=(CollectiveTime("allReduce", "1752", 2, 30e3),))
    other = profile(0, [step()], collectives=(CollectiveTime("allReduce", "9911", 2, 45e3),))
    (difference,) = compared(base, other).communication
    assert difference.relative == pytest.approx(0.5)


def test_the_peak_is_the_largest_of_the_ranks() -> None:
    def job_of(*peaks: float) -> ProfileSet:
        return ProfileSet(
            tuple(
                profile(rank, [step()], memory=MemoryUse((), {"PTA": peak}))
                for rank, peak in enumerate(peaks)
            )
        )

    (difference,) = compared(job_of(5e9, 6e9), job_of(8e9, 4e9)).memory
    assert (difference.base, difference.other, difference.unit) == (6e9, 8e9, "bytes")


def test_what_one_of_them_lacks_is_left_out_not_made_up() -> None:
    found = compared(profile(0, [step(phases_us=phases(forward_backward=1e5))]), profile(0, []))
    assert (found.step, found.phases, found.device) == (None, (), ())
    assert "No step is marked in both" in text(found)
    assert compared(profile(0, [step(phases_us=phases())]), profile(0, [step()])).phases == ()


def test_captures_of_the_same_name_are_told_apart() -> None:
    one = profile(0, [step()], source=Path("/before/rank0_ascend_pt"))
    two = profile(0, [step()], source=Path("/after/rank0_ascend_pt"))
    names = "base: /before/rank0_ascend_pt\nnow:  /after/rank0_ascend_pt\n"
    assert names in text(compared(one, two))

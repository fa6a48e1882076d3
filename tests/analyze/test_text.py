"""What a person reads: it fits, it names what it says, and nothing from a file breaks it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from autotune.analyze.names import kernel, shorten
from autotune.analyze.profile import (
    CollectiveTime,
    Gap,
    LinkTime,
    MemoryHolder,
    MemoryPoint,
    MemoryUse,
    Missing,
    OperatorTime,
    Profile,
)
from autotune.analyze.summary import ProfileSet, profile_sets
from autotune.analyze.text.document import document
from autotune.analyze.text.words import milliseconds, share
from tests.analyze.made import job, phases, profile, step


def shown(profiles: ProfileSet, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(document(profiles))
    return out.getvalue()


def text_of(*profiles: Profile) -> str:
    return shown(ProfileSet(profiles))


def line(text: str, start: str) -> str:
    """The line that begins so, from there on, its cells a space apart."""
    (found,) = (each for each in text.splitlines() if each.startswith(start))
    return " ".join(found.removeprefix(start).split())


SPLIT = phases(data_loading=5e3, forward_backward=60e3, communication=20e3, scheduling=15e3)


def test_phases_and_the_device_are_shown_per_rank_and_step_in_ms_and_shares() -> None:
    ranks = [profile(rank, [step(7, phases_us=SPLIT, host_us=1e5)]) for rank in (0, 1)]
    text = text_of(*ranks)
    split, device = text.split("What the device does")
    assert line(split, "rank 1: 7") == ("100.0 5.00 (5.0%) 60.0 (60%) 0 0 20.0 (20%) 15.0 (15%)")
    assert line(device, "rank 1: 7") == ("60.0 (60%) 20.0 (20%) 15.0 (15%) 5.00 (5.0%) 10.0")


def test_operators_have_shares_that_add_up() -> None:
    operators = tuple(OperatorTime(f"Op{at}", "AI_CORE", 2, 10e3) for at in range(20))
    text = text_of(profile(0, [step()], operators=operators))
    assert line(text, "Op0 ") == "AI_CORE 2 10.0 5.0% 5.0% 5,000.0"
    assert line(text, "Op9 ") == "AI_CORE 2 10.0 5.0% 50% 5,000.0"
    assert "and 10 others" in text
    assert "Op10 " not in text


def test_the_host_is_shown_where_nothing_ran_on_a_device() -> None:
    operators = (
        OperatorTime("aten::linear", "host", 4, 40e3, 1e3),
        OperatorTime("aten::addmm", "host", 4, 39e3, 39e3),
    )
    text = text_of(profile(0, [step()], device="cpu", operators=operators))
    # Without what it called: the linear itself is 1 of 40 ms.
    assert line(text, "aten::addmm").startswith("host 4 39.0 98%")


def test_communication_says_what_moves_waits_and_is_hidden() -> None:
    call = CollectiveTime("allReduce", "dp", 4, 100e3, 1, 30e3, 50e3, 1e3, 20e3, 6e9, 10e3)
    text = text_of(profile(0, [step()], collectives=(call,)))
    assert line(text, "allReduce") == "dp 4 100.0 30% 50% 20% 10% 5.6 GiB 200.0"
    only_length = CollectiveTime("nccl:all_reduce", "0", 4, 100e3)
    text = text_of(profile(0, [step()], collectives=(only_length,)))
    assert line(text, "nccl:all_reduce") == "0 4 100.0"
    assert "waiting" not in text.split("Communication")[1].split("What to do")[0]


def test_half_a_sum_is_not_shown() -> None:
    """A call of unknown size among the others: their sizes alone would be a wrong bandwidth."""
    known = CollectiveTime("allGather", "dp", 1, 10e3, size_bytes=4e9)
    unknown = CollectiveTime("allGather", "dp", 1, 10e3)
    text = text_of(profile(0, [step()], collectives=(known, unknown)))
    assert line(text, "allGather") == "dp 2 20.0"


def test_it_is_said_that_no_rank_and_no_link_stands_out() -> None:
    links = tuple(LinkTime(0, rank, "HCCS", 6e7, 4e3) for rank in range(1, 8))
    ranks = [profile(rank, [step()], links=links) for rank in (0, 1)]
    text = text_of(*ranks)
    assert "No rank stands out among 2: own work without communication takes 80.0 to 80.0" in text
    assert "No link stands out among 7." in text
    assert "At least 6 more ranks were not profiled." in text


def test_the_slow_rank_is_named() -> None:
    assert "rank 5: its own work takes 100.0 ms a step" in shown(job([[60e3]] * 5 + [[80e3]]))


def test_of_many_ranks_the_longest_the_median_and_the_shortest_are_shown() -> None:
    text = shown(job([[60e3 + 50 * rank] * 3 for rank in range(64)]))
    assert "longest work, rank 63" in text
    assert "least work, rank 0" in text
    assert "rank 17," not in text
    assert len(text.splitlines()) < 60


def test_many_steps_are_shown_as_means() -> None:
    text = text_of(*(profile(rank, [step(at) for at in range(10)]) for rank in (0, 1)))
    assert "rank 1, mean of 10" in text


def test_memory_names_the_peaks_when_they_were_and_what_held_them() -> None:
    gib = float(1 << 30)
    use = MemoryUse(
        (
            MemoryPoint(1e3, "PTA", 1 * gib, 4 * gib),
            MemoryPoint(5e3, "PTA", 3 * gib, 4 * gib),
            MemoryPoint(5e3, "APP", 0.0, 6 * gib),
        ),
        {"PTA": 4 * gib, "APP": 6 * gib},
        5e3,
        (
            MemoryHolder("aten::mm", 1.5 * gib, 1.0),
            MemoryHolder("aten::mm", 0.5 * gib, 1.0),
            MemoryHolder("aten::add", 1.0 * gib, 1.0),
        ),
    )
    text = text_of(profile(0, [step()], memory=use))
    assert line(text, "PTA ") == "3.0 GiB 4.0 GiB"
    assert line(text, "APP ") == "- 6.0 GiB"
    assert "2.0 GiB of the process (APP) lie outside torch's allocator (PTA)" in text
    assert "4.00 ms after the first record" in text
    assert line(text, "aten::mm") == "2 2.0 GiB 67%"


def test_gaps_are_summed_by_cause_and_the_longest_shown() -> None:
    gaps = [Gap(at, 1e3 * (at + 1), "receive", "before", "after", 3) for at in range(8)]
    text = text_of(profile(0, [step()], gaps=(*gaps, Gap(0, 9e3, "host"))))
    assert "waiting for pipeline stage: 36.0 ms in the 8 longest gaps" in text
    assert line(text, "host ") == "(start) (end) 9.00"
    assert text.count("pipeline stage  step 3  before") == 4


def test_what_is_missing_and_what_was_cut_is_named_with_the_remedy() -> None:
    lost = Missing("memory", "profile with profile_memory=True")
    text = text_of(
        profile(0, [step()], missing=(lost,), cut=("trace_view.json",)),
        profile(1, [step()], missing=(lost, Missing("links", "level 1"))),
        profile(2, [step()], missing=(lost,), complete=False),
    )
    assert "rank 0: cut off: trace_view.json" in text
    assert "rank 2: the profiler did not finish" in text
    assert "- memory: profile with profile_memory=True" in text
    assert "- links (rank 1): level 1" in text


def test_an_empty_profile_says_that_there_is_no_step() -> None:
    text = text_of(profile(None, [], version="2.6.0"))
    assert "rank not recorded; no step is marked" in text
    assert "No step was found" in text
    assert "What to do" not in text


NASTY = [
    "void at::native::" + "x" * 5000,
    "a\x1b[31mred\x07\r\nb",
    "[bold]markup[/] [/nope]",
    "\udcff\ud800",
    "算子" * 60,
    "",
]


@pytest.mark.parametrize("name", NASTY)
def test_no_name_from_a_file_breaks_the_text(name: str) -> None:
    hostile: dict[str, Any] = {
        "operators": (OperatorTime(name, name, 10**9, 1e15, None, 1e12),),
        "collectives": (
            CollectiveTime(name, name, 10**9, 1e15, 1, 1e14, 1e14, 1e14, 1e14, 1e18, 1e9),
        ),
        "memory": MemoryUse(
            (MemoryPoint(0, name, 1e12, 2e12),), {name: 2e12}, 0, (MemoryHolder(name, 1e12, 0),)
        ),
        "gaps": (Gap(0, 1e12, name, name, name, 10**12),),
        "missing": (Missing(name, name),),
        "cut": (name,),
        "version": name,
        "source": Path("/capture") / (name.replace("\x00", "")[:200] or "x"),
    }
    ranks = [profile(rank, [step(phases_us=SPLIT)], **hostile) for rank in (0, 1)]
    text = shown(ProfileSet(tuple(ranks)))
    text.encode("utf-8")
    assert "\x1b" not in text
    assert "\x07" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_narrow_terminal_is_survived() -> None:
    assert max(map(len, shown(job([[60e3]] * 3), width=40).splitlines())) <= 40


def test_kernel_names_keep_what_tells_them_apart() -> None:
    add = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
        "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>, "
        "at::detail::Array<char*, 3>)"
    )
    assert kernel(add, 100) == "vectorized_elementwise_kernel<4, AddFunctor<float>>"
    assert kernel("Memcpy DtoH (Device -> Pinned)", 100) == "Memcpy DtoH (Device -> Pinned)"
    assert kernel("aten::mm", 100) == "aten::mm"
    assert shorten("abcdefghij", 7) == "abc…hij"


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0.0"), (456.7, "0.457"), (1234.5, "1.23"), (65432.1, "65.4"), (1234567.8, "1,234.6")],
)
def test_times_keep_three_figures(us: float, text: str) -> None:
    assert milliseconds(us) == text


def test_shares_of_nothing_are_unknown() -> None:
    assert share(1.0, 0.0) == "-"
    assert share(None, 1.0) == "-"
    assert share(0.032, 1.0) == "3.2%"


def test_ranks_of_one_capture_are_a_set_and_later_captures_others() -> None:
    def at(folder: str, rank: int | None, name: str = "") -> Profile:
        return profile(rank, source=Path(folder) / (name or f"rank{rank}"))

    nodes = [at("/job/node0", 0), at("/job/node0", 1), at("/job/node1", 2), at("/job/node1", 3)]
    (whole,) = profile_sets(nodes)
    assert [p.rank for p in whole.profiles] == [0, 1, 2, 3]
    later = [at("/job/x", rank, f"{time}_{rank}") for time in (1, 2) for rank in (0, 1)]
    _, second = profile_sets(later)
    assert [p.source.name for p in second.profiles] == ["2_0", "2_1"]
    assert len(profile_sets([at("/k", None, "a"), at("/k", None, "b")])) == 2


def test_folders_with_other_steps_are_other_captures_but_one_folder_is_one() -> None:
    here = [profile(0, [step(1), step(2)]), profile(1, [step(1)])]
    elsewhere = profile(2, [step(7)], source=Path("/other/rank2_ascend_pt"))
    first, second = profile_sets([*here, elsewhere])
    assert [len(first.profiles), len(second.profiles)] == [2, 1]
    assert (first.name, second.name) == ("capture", "rank2_ascend_pt")

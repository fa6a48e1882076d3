"""A running trial that is profiled on request, asked to finish, and profiled as planned."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from rank_processes import run_ranks
from reference_cases import content

from autotune.profile_plan import ProfilePlan
from launch.profile_request import ProfileAnswer, profile_answer, request_profile
from launch.trial_files import ask_to_finish

pytestmark = pytest.mark.ranks

RANKS = 2
PHASES = ("data_loading", "forward_backward", "optimizer", "post_processing", "communication")


@dataclass(frozen=True)
class Trial:
    """What is left of the trial: its folder, how its ranks ended, and the answers."""

    folder: Path
    ends: list[tuple[int, str]]
    answers: list[ProfileAnswer]

    def records(self, rank: int) -> list[dict[str, Any]]:
        lines = (self.folder / f"rank{rank}.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def steps(self, rank: int) -> list[dict[str, Any]]:
        return [record for record in self.records(rank) if record["event"] == "step"]

    def profiles(self, rank: int) -> list[dict[str, Any]]:
        return [record for record in self.records(rank) if record["event"] == "profile"]

    def trace(self, path: str) -> dict[str, Any]:
        trace: dict[str, Any] = json.loads(gzip.decompress((self.folder / path).read_bytes()))
        return trace


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Two ranks, 2 memory steps; a request for 1 + 2 steps; the end after some scored steps."""
    folder = tmp_path_factory.mktemp("trial")
    values = content("small_vlm", {"steps": 100_000, "memory_steps": 2, "memory_bytes": 2 << 20})
    values["measurement"]["profile"] = {"steps": 1}
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    arguments = ["-m", "launch.reference", str(folder / "config.yaml")]
    ended: list[Any] = []
    ranks = threading.Thread(
        target=lambda: ended.extend(run_ranks(arguments, RANKS, folder, folder / "cache"))
    )
    ranks.start()
    wait_for(lambda: steps_so_far(folder) >= 8, ranks)
    request = request_profile(folder, ProfilePlan(steps=2, warmup_steps=1, ranks=(-1,)))
    wait_for(lambda: len(profile_answer(folder, request)) == RANKS, ranks)
    reached = steps_so_far(folder)
    wait_for(lambda: steps_so_far(folder) >= reached + 6, ranks)
    ask_to_finish(folder)
    ranks.join(60)
    ends = [(one.returncode, one.stderr) for one in ended]
    return Trial(folder, ends, profile_answer(folder, request))


def wait_for(condition: Callable[[], bool], ranks: threading.Thread) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert ranks.is_alive(), "the trial ended by itself"
        assert time.monotonic() < until
        time.sleep(0.01)


def steps_so_far(folder: Path) -> int:
    path = folder / "rank0.jsonl"
    return path.read_text().count('"event": "step"') if path.exists() else 0


def test_the_trial_ends_cleanly_when_it_is_asked_to(trial: Trial) -> None:
    assert [code for code, _ in trial.ends] == [0] * RANKS, trial.ends
    for rank in range(RANKS):
        assert trial.records(rank)[-1] == {"event": "end"}
        assert not [record for record in trial.records(rank) if record["event"] == "error"]
        assert len(trial.steps(rank)) < 1000


def test_all_ranks_act_at_the_same_step(trial: Trial) -> None:
    first, second = (
        [(step["step"], step["profiled"], step["loss"]) for step in trial.steps(rank)]
        for rank in range(RANKS)
    )
    assert first == second
    assert [step for step, _, _ in first] == list(range(len(first)))


def test_steps_under_a_profiler_are_marked_and_the_others_are_scored(trial: Trial) -> None:
    """Memory steps, scored, warm-up and two requested, scored again, one planned."""
    for rank in range(RANKS):
        marks = "".join("p" if step["profiled"] else "." for step in trial.steps(rank))
        assert [len(run) for run in marks.split(".") if run] == [2, 3, 1]
        assert marks.endswith(".p")
        assert min(len(run) for run in marks.strip("p").split("p") if run) >= 5


def test_both_ranks_answer_the_request(trial: Trial) -> None:
    marks = [step["step"] for step in trial.steps(0) if step["profiled"]]
    assert [answer.rank for answer in trial.answers] == [0, 1]
    for answer in trial.answers:
        assert answer.error is None
        assert list(answer.steps) == marks[3:5]  # not the warm-up
        assert answer.path is not None
        assert answer.size_bytes == (trial.folder / answer.path).stat().st_size
        steps = [name for name, _, _ in ranges(trial.trace(answer.path)) if "Step" in name]
        assert steps == [f"ProfilerStep#{step}" for step in answer.steps]


def test_only_the_chosen_rank_writes_the_planned_profile(trial: Trial) -> None:
    (_, planned) = trial.profiles(0)
    assert planned["id"] is None
    assert planned["steps"] == [trial.steps(0)[-1]["step"]]
    assert len(trial.profiles(1)) == 1
    files = sorted(path.name for path in (trial.folder / "profile").glob("*.gz"))
    assert Counter(name.split(".")[1] for name in files) == {"rank0": 2, "rank1": 1}


def test_a_trace_says_which_rank_it_is_of(trial: Trial) -> None:
    for rank in range(RANKS):
        trace = trial.trace(trial.profiles(rank)[0]["path"])
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["distributedInfo"]["world_size"] == RANKS
        assert trace["distributedInfo"]["backend"] == "gloo"


def test_a_trace_can_be_broken_down_as_the_trainer_does(trial: Trial) -> None:
    """Two clocks and two ways: the profiler's ranges, the trainer's own marks."""
    (_, planned) = trial.profiles(0)
    phases = trial.steps(0)[-1]["phases_s"]
    found = exclusive_seconds(ranges(trial.trace(planned["path"])))
    for phase in PHASES:
        assert found[phase] == pytest.approx(phases[phase], rel=0.1, abs=2e-3)


def test_the_phases_lie_within_the_step(trial: Trial) -> None:
    found = ranges(trial.trace(trial.profiles(0)[1]["path"]))
    ((start, end),) = [(start, end) for name, start, end in found if "ProfilerStep" in name]
    phases = [(s, e) for name, s, e in found if name in PHASES]
    assert len(phases) > len(PHASES)
    assert all(start <= s <= e <= end for s, e in phases)
    seconds = trial.steps(0)[-1]["time_s"]
    assert (end - start) / 1e6 == pytest.approx(seconds, rel=0.1, abs=5e-3)


def test_operators_are_recorded(trial: Trial) -> None:
    events = trial.trace(trial.profiles(0)[1]["path"])["traceEvents"]
    names = Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
    assert names["aten::mm"] + names["aten::addmm"] > 10


def test_nothing_but_whole_traces_is_left(trial: Trial) -> None:
    left = {path.name for path in (trial.folder / "profile").iterdir()}
    traces = {name for name in left if name.endswith(".pt.trace.json.gz")}
    assert left - traces == {"request.json", "dynamic"}


def ranges(trace: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Name, start and end in microseconds of what the trainer annotated."""
    found = [
        (event["name"], event["ts"], event["ts"] + event["dur"])
        for event in trace["traceEvents"]
        if event.get("cat") == "user_annotation"
    ]
    return sorted(found, key=lambda one: one[1])


def exclusive_seconds(found: list[tuple[str, float, float]]) -> dict[str, float]:
    """Time in each phase but not in a phase inside it; only communication lies inside."""
    total = dict.fromkeys(PHASES, 0.0)
    phases = [one for one in found if one[0] in PHASES]
    for name, start, end in phases:
        total[name] += (end - start) / 1e6
        if name != "communication":
            total[name] -= sum(
                (e - s) / 1e6
                for inner, s, e in phases
                if inner == "communication" and start <= s and e <= end
            )
    return total

"""The command line: records of a measuring run, exported configurations, failures."""

from __future__ import annotations

import json

import pytest
import yaml
from rank_processes import run_ranks
from reference_cases import USP4, content

pytestmark = pytest.mark.ranks

PHASES = {
    "data_loading",
    "forward_backward",
    "optimizer",
    "post_processing",
    "communication",
    "scheduling",
}


def start(values, count, folder, cache):
    """Runs the trainer with a configuration; its processes and its records, by rank."""
    folder.mkdir(exist_ok=True)
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(values))
    ended = run_ranks(["-m", "launch.reference", str(file)], count, folder, cache)
    records = [
        [json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()]
        for rank in range(count)
    ]
    return ended, records


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, cache):
    """A measuring run with everything switched on, from an exported best.yaml."""
    values = content(
        "small_vlm",
        {
            **USP4,
            "encoder_sp_degree": 2,
            "encoder_micro_batch_scale": 2,
            "micro_batch_size": 2,
            "offload_blocks": 2,
            "loss_chunk_size": 16,
            "bucket_order": "reordering",
            "memory_steps": 1,
            "steps": 3,
            "memory_bytes": 1 << 30,
        },
    )
    exported = {"study": "s", "trainer": {"name": "reference", "config": values}}
    return start(exported, 4, tmp_path_factory.mktemp("measured"), cache)


def steps_of(records):
    return [record for record in records if record["event"] == "step"]


def test_every_rank_records_start_steps_and_end(measured):
    ended, records = measured
    assert [rank.returncode for rank in ended] == [0] * 4, ended[0].stderr
    for rank, lines in enumerate(records):
        assert [line["event"] for line in lines] == ["start", "step", "step", "step", "end"]
        assert (lines[0]["rank"], lines[0]["world_size"], lines[0]["device"]) == (rank, 4, "cpu")
        assert [step["step"] for step in steps_of(lines)] == [0, 1, 2]
        assert [step["profiled"] for step in steps_of(lines)] == [True, False, False]


def test_phases_add_up_to_the_step(measured):
    for lines in measured[1]:
        for step in steps_of(lines):
            assert set(step["phases_s"]) == PHASES
            assert all(seconds >= 0 for seconds in step["phases_s"].values())
            assert sum(step["phases_s"].values()) == pytest.approx(step["time_s"], rel=0.03)
            assert step["phases_s"]["communication"] > 0


def test_all_ranks_tell_the_same_of_the_global_batch(measured):
    by_rank = [
        [(step["samples"], step["tokens"], step["loss"]) for step in steps_of(lines)]
        for lines in measured[1]
    ]
    assert all(facts == by_rank[0] for facts in by_rank)
    assert [facts[0] for facts in by_rank[0]] == [8, 8, 8]


def test_the_peak_of_the_memory_steps_stays_in_later_records(measured):
    for lines in measured[1]:
        peaks = {step["peak_allocated_bytes"] for step in steps_of(lines)}
        assert len(peaks) == 1
        assert peaks.pop() > 0


def test_rank_0_prints_a_line_a_step(measured):
    printed = [rank.stdout.splitlines() for rank in measured[0]]
    assert [line.split()[:2] for line in printed[0]] == [["step", str(n)] for n in range(3)]
    assert printed[1:] == [[], [], []]


def test_training_goes_down_and_repeats_without_measurement(tmp_path, cache):
    values = content("small_dit", {"steps": 20, "micro_batch_size": 8})
    losses = []
    for name in ("first", "second"):
        _, records = start(values, 1, tmp_path / name, cache)
        steps = steps_of(records[0])
        losses.append([step["loss"] for step in steps])
        assert steps[0]["peak_allocated_bytes"] is None
    assert losses[0] == losses[1]
    assert sum(losses[0][-2:]) < 0.9 * sum(losses[0][:2])


def test_a_memory_cap_ends_the_rank_in_the_middle_of_a_step(tmp_path, cache):
    values = content(
        "memory_vlm", {"micro_batch_size": 8, "memory_steps": 1, "memory_bytes": 16 << 20}
    )
    values["model"]["vocab_size"] = 8192
    ended, records = start(values, 1, tmp_path, cache)
    assert ended[0].returncode == 1
    assert records[0][-1]["event"] == "error"
    assert records[0][-1]["kind"] == "oom"
    assert "can't allocate memory" in records[0][-1]["message"]
    assert records[0][-1]["peak_allocated_bytes"] > 16 << 20
    assert steps_of(records[0]) == []


def test_a_run_that_keeps_to_the_cap_is_not_disturbed(tmp_path, cache):
    values = content("memory_vlm", {"micro_batch_size": 8, "steps": 3})
    _, records = start(values, 1, tmp_path / "free", cache)
    peak = steps_of(records[0])[-1]["peak_allocated_bytes"]
    values["device"]["memory_bytes"] = peak
    ended, capped = start(values, 1, tmp_path / "capped", cache)
    assert ended[0].returncode == 0, ended[0].stderr
    assert steps_of(capped[0])[-1]["peak_allocated_bytes"] == peak


def test_a_wrong_configuration_is_one_message_and_exit_code_2(tmp_path, cache):
    values = content("small_vlm", {"sp_degree": 3, "sp_algorithm": "ring"})
    ended, records = start(values, 1, tmp_path, cache)
    assert ended[0].returncode == 2
    assert len(ended[0].stderr.splitlines()) == 1
    assert "parallel.sp_degree (3) must divide the number of ranks (1)" in ended[0].stderr
    assert [(record["event"], record["kind"]) for record in records[0]] == [("error", "config")]


def test_another_failure_is_an_exception_with_its_last_line(tmp_path, cache):
    values = content("small_vlm", {})
    folder = tmp_path / "data"
    values["data"]["dir"] = str(folder)
    start(values, 1, tmp_path / "makes data", cache)
    (folder / "000003.png").write_bytes(b"broken")
    ended, records = start(values, 1, tmp_path / "reads data", cache)
    assert ended[0].returncode == 1
    assert records[0][-1]["kind"] == "exception"
    assert records[0][-1]["message"] == ended[0].stderr.splitlines()[-1]

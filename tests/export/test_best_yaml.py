"""`best.yaml` says what was measured, and reads back with the same values and types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from autotune.certify.results import Results
from autotune.certify.settings import CertifySettings
from autotune.certify.verdict import verdict_of
from autotune.export import ExportContext, best_document
from autotune.measure.outcome import Outcome, Status
from autotune.ports import ExportPaths, Placement
from autotune.space.point import Point
from autotune.study.identity import Identity
from autotune.study.trial_record import TrialRecord
from autotune.study.yaml_text import to_yaml
from launch.trainers.reference import ReferenceTrainer

BASELINE = Point({"sp_degree": 1, "micro_batch_size": 1})
FASTER = Point({"sp_degree": 2, "sp_algorithm": "ring", "micro_batch_size": 2})
TRAINER = ReferenceTrainer(
    {"model": {"kind": "vlm"}, "training": {"learning_rate": 1e-5}}, "cpu", 2**27
)
CONTEXT = ExportContext(
    "a study",
    "tiny",
    Identity({}, {"torch": "2.13"}),
    TRAINER,
    Placement(1, 4, "cpu"),
    1000,
    ExportPaths("best.yaml", "best/0001"),
)


def record(
    trial: int,
    point: Point,
    time_s: float | None,
    status: Status = Status.OK,
    noise: float = 0.01,
) -> TrialRecord:
    interval = None if time_s is None else (time_s * (1 - noise), time_s * (1 + noise))
    outcome = Outcome(
        status,
        "measured",
        batch_time_s=time_s,
        batch_time_ci95_s=interval,
        steps=8,
        peak_memory_bytes=900,
        peak_rank=1,
        breakdown_s={"optimizer": time_s or 0.0},
    )
    return TrialRecord(trial, point, outcome, 9.0, 0.0, 9.0, 1, "f")


def document(*records: TrialRecord) -> dict[str, Any]:
    found = results(*records)
    verdict = verdict_of(found)
    assert verdict is not None
    return best_document(verdict, found, CONTEXT)


def results(*records: TrialRecord) -> Results:
    return Results(records, (), BASELINE, CertifySettings())


def test_the_contract_of_the_file() -> None:
    made = document(record(0, BASELINE, 2.0), record(1, FASTER, 1.0))
    assert list(made) == [
        "study",
        "trial",
        "model",
        "parameters",
        "batch_time",
        "peak_memory",
        "breakdown_s",
        "baseline",
        "gain",
        "certified",
        "certification",
        "trainer",
        "environment",
    ]
    assert made["parameters"] == dict(FASTER)
    assert made["batch_time"] == {"mean_s": 1.0, "ci95_s": [0.99, 1.01], "runs": 1, "steps": 8}
    assert made["peak_memory"] == {
        "bytes": 900,
        "rank": 1,
        "device_bytes": None,
        "limit_bytes": 1000,
    }
    assert made["baseline"]["batch_time"]["mean_s"] == 2.0
    assert made["gain"]["speedup"] == 2.0
    assert made["gain"]["keep_baseline"] is False
    assert made["certified"] is False
    assert made["trainer"]["config"]["parallel"] == {"sp_degree": 2, "sp_algorithm": "ring"}
    assert made["trainer"]["config"]["training"] == {"learning_rate": 1e-5, "micro_batch_size": 2}
    assert made["trainer"]["command"][-2:] == ["launch.reference", "best.yaml"]


def test_nothing_feasible_gives_no_file() -> None:
    tried = [
        record(0, BASELINE, None, Status.OOM),
        record(1, FASTER, 1.0, Status.OVER_LIMIT),
        record(2, FASTER, 1.0, Status.FAILED),
    ]
    assert verdict_of(results(*tried)) is None


def test_a_faster_point_over_the_limit_does_not_win() -> None:
    over = record(1, FASTER, 1.0, Status.OVER_LIMIT)
    assert document(record(0, BASELINE, 2.0), over)["trial"] == 0


def test_a_baseline_that_is_the_best_is_kept() -> None:
    gain = document(record(0, BASELINE, 1.0), record(1, FASTER, 2.0))["gain"]
    assert gain == {"trial": 0, "speedup": 1.0, "ci95": [1.0, 1.0], "keep_baseline": True}


def test_inside_the_noise_the_baseline_is_kept() -> None:
    gain = document(record(0, BASELINE, 1.02, noise=0.03), record(1, FASTER, 1.0, noise=0.03))[
        "gain"
    ]
    assert (gain["trial"], gain["keep_baseline"]) == (1, True)
    assert gain["ci95"][0] < 1 < gain["ci95"][1]


def test_a_baseline_without_a_time_gives_no_speedup() -> None:
    gain = document(record(0, BASELINE, None, Status.OOM), record(1, FASTER, 1.0))["gain"]
    assert gain == {"trial": 1, "speedup": None, "ci95": None, "keep_baseline": False}


TRICKY = {
    "switches": ["on", "off", "yes", "no", "y", "n", "true", "null", "~", "none", ""],
    "numbers": [1e-5, 1e-05, 5e-324, 1e22, -2.5e-7, 3.0, 10, 0.1],
    "texts": ["1e-5", "1e5", "010", "1:30", "0x1F", "1_000", "3.0", ".5", "-1", "+2", "=", "<<"],
    "paths": ["/p/epoch=9-step=1.ckpt", "a,b:c", "50% #1", "调优", " lead", "two\nlines", "a: b"],
    "splits": [[2, 6], [4, 4]],
    "flags": [True, False, None],
    "dates": ["2026-11-29"],
}


def read_both(path: Path) -> tuple[Any, Any]:
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    return plain, OmegaConf.to_container(OmegaConf.load(path))


def test_values_keep_their_types_for_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "best.yaml"
    path.write_text(to_yaml(TRICKY), encoding="utf-8")
    for read in read_both(path):
        assert read == TRICKY
        assert [type(v) for v in read["numbers"]] == [type(v) for v in TRICKY["numbers"]]


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="0123456789eE+-._:xo", max_size=8),
)
def test_any_number_and_any_text_like_a_number(number: float, text: str) -> None:
    written = to_yaml({"number": number, "text": text})
    for read in (yaml.safe_load(written), OmegaConf.to_container(OmegaConf.create(written))):
        assert isinstance(read, dict)
        assert read == {"number": number, "text": text}
        assert type(read["number"]) is float


@pytest.mark.parametrize("text", ["${oc.env:HOME}", "${a}"])
def test_interpolations_stay_as_they_are(text: str) -> None:
    assert yaml.safe_load(to_yaml({"a": text})) == {"a": text}

"""A step whose gradient is not finite makes no update, and says so."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from reference_cases import content
from test_command_line import start, steps_of
from torch import nn

from launch.reference.config import TrainingConfig, parse_config
from launch.reference.data.generate import ensure_dataset
from launch.reference.data.loader import open_loader
from launch.reference.layout import Layout
from launch.reference.memory import ProfiledMeter
from launch.reference.optimizer import AdamW, FlatParameters
from launch.reference.parallel import GroupFactory, make_groups
from launch.reference.run import Run


def test_skipping_leaves_the_parameters_and_forgets_the_gradients() -> None:
    parameters = FlatParameters(nn.Linear(3, 2))
    optimizer = AdamW(parameters, TrainingConfig(1, 1, 1))
    before = parameters.values.clone()
    parameters.gradients.fill_(float("inf"))
    norm = parameters.clip_gradients(1.0)
    assert norm == float("inf")
    optimizer.skip()
    assert torch.equal(parameters.values, before)
    assert torch.count_nonzero(parameters.gradients) == 0
    parameters.gradients.fill_(1.0)
    optimizer.step()  # nothing that was not finite lingers in the moments
    assert torch.isfinite(parameters.values).all()
    assert not torch.equal(parameters.values, before)


def test_the_norm_is_that_before_clipping() -> None:
    parameters = FlatParameters(nn.Linear(2, 1, bias=False))
    parameters.gradients.copy_(torch.tensor([3.0, 4.0]))
    assert parameters.clip_gradients(1.0) == pytest.approx(5.0)
    assert parameters.gradients.norm().item() == pytest.approx(1.0, rel=1e-5)


def test_a_run_makes_no_update_from_a_gradient_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = content("small_dit", {"micro_batch_size": 4})
    values["data"]["dir"] = str(tmp_path / "data")
    config = parse_config(values)
    folder = ensure_dataset(config)
    layout = Layout.of(config, 1)
    groups = make_groups(layout, GroupFactory(0, 1), 0)
    device: Any = SimpleNamespace(
        type="cpu",
        torch_device=torch.device("cpu"),
        mark=time.perf_counter,
        seconds=lambda start, end: end - start,
        synchronize=lambda: None,
    )
    loader = open_loader(config, layout, 0, folder)
    run = Run(config, groups, device, loader, ProfiledMeter())
    before = run.model.parameters.values.clone()
    healthy = run.gradients

    def poisoned() -> Any:
        found = healthy()
        run.model.parameters.gradients[7] = float("nan")
        return found

    monkeypatch.setattr(run, "gradients", poisoned)
    record, _ = run.step()
    assert record["skipped"] is True
    assert torch.equal(run.model.parameters.values, before)
    monkeypatch.setattr(run, "gradients", healthy)
    record, _ = run.step()
    assert "skipped" not in record
    assert torch.isfinite(run.model.parameters.values).all()
    assert not torch.equal(run.model.parameters.values, before)


@pytest.mark.ranks
def test_all_ranks_skip_the_same_steps_and_go_on(tmp_path: Path) -> None:
    values = content("small_dit", {"steps": 4, "micro_batch_size": 4})
    values["training"]["learning_rate"] = 1e30  # the first update ruins the model
    ended, records = start(values, 2, tmp_path / "trial", tmp_path / "cache")
    assert [one.returncode for one in ended] == [0, 0], ended[0].stderr
    for lines in records:
        steps = steps_of(lines)
        assert "skipped" not in steps[0]
        assert steps[0]["grad_norm"] > 0
        assert [step["skipped"] for step in steps[1:]] == [True] * 3
        assert [step["grad_norm"] for step in steps[1:]] == [None] * 3

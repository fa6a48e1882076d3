"""What is wrong with `search.sampler` and `search.seed` is said when the sampler is made."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import Any

import optuna
import pytest

from autotune.errors import UserError
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.setting import NAMES, check_setting
from autotune.space.legal import LegalSpace


class NeedsWhatIsNotThere(optuna.samplers.RandomSampler):
    """As CmaEsSampler does without `cmaes`: it imports when there is a run to learn from."""

    asked = 0

    def infer_relative_search_space(self, study: optuna.Study, trial: Any) -> dict[str, Any]:
        type(self).asked += 1
        if study.get_trials():
            importlib.import_module("a_library_that_nobody_has")
        return {}


class Works(NeedsWhatIsNotThere):
    def infer_relative_search_space(self, study: optuna.Study, trial: Any) -> dict[str, Any]:
        type(self).asked += 1
        return {}


OPTUNAS = "optuna.samplers."


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"_target_": f"{__name__}.NeedsWhatIsNotThere"}, "No module named 'a_library_that"),
        ({"_target_": f"{OPTUNAS}BruteForceSampler"}, "ValueError: param_name mismatch"),
        (
            {"_target_": f"{OPTUNAS}GridSampler", "search_space": {"batch": [0, 1]}},
            "ValueError: All parameters must be specified",
        ),
        ({"_target_": f"{OPTUNAS}TPESampler", "n_startup_trials": "abc"}, "TypeError: '<' not"),
        # Found out only when there are runs enough to learn from.
        ({"_target_": f"{OPTUNAS}TPESampler", "n_ei_candidates": 0}, "IndexError"),
    ],
)
def test_what_fails_at_a_proposal_is_told_at_once(
    space: LegalSpace, setting: dict[str, Any], message: str
) -> None:
    name = setting["_target_"]
    with pytest.raises(UserError, match=f"search.sampler: {name} cannot propose .*{message}"):
        make_sampler(setting, Encoding(space), 0)


def test_it_is_tried_once_where_it_is_made_many_times(space: LegalSpace) -> None:
    setting = {"_target_": f"{__name__}.Works"}
    before = Works.asked
    make_sampler(setting, Encoding(space), 0)
    assert Works.asked > before
    before = Works.asked
    make_sampler(setting, Encoding(space), 0, rehearsed=False)
    assert Works.asked == before


@pytest.mark.parametrize("choices", [1, 2])
def test_the_smallest_spaces_are_enough(make_space: Callable[..., LegalSpace], choices) -> None:
    space = make_space({"p": {"choices": list(range(choices))}})
    make_sampler({"_target_": f"{__name__}.Works"}, Encoding(space), 0)


def test_nobody_hears_of_it(space: LegalSpace, caplog: pytest.LogCaptureFixture) -> None:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    with caplog.at_level(logging.INFO):
        make_sampler({"_target_": f"{__name__}.Works"}, Encoding(space), 0)
    assert caplog.records == []
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


@pytest.mark.parametrize("name", NAMES)
def test_a_negative_seed_is_refused(space: LegalSpace, name: str) -> None:
    make_sampler(name, Encoding(space), 2**70)
    with pytest.raises(UserError, match=r"search\.seed=-1 must be at least 0"):
        make_sampler(name, Encoding(space), -1)


def test_what_gp_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else 1)
    with pytest.raises(UserError, match=r"search\.sampler=gp needs torch; type pip install"):
        check_setting("gp", 0)

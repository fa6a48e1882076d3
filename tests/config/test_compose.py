"""Composition: every configuration that ships composes, every mistake has one clear answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.config.compose import compose_config
from autotune.errors import UserError

MODELS = sorted(
    path.stem for path in (Path(__file__).parents[2] / "search_spaces" / "model").glob("*.yaml")
)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_composes_with_a_space_of_its_own(model: str) -> None:
    config = compose_config([f"model={model}"]).config
    assert config.model.name == model
    assert config.study.dir == f"studies/{model}"
    assert config.space["parameters"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "no model is chosen; type model=NAME"),
        (["model=tiny_vml"], "unknown model=tiny_vml; did you mean 'tiny_vlm'"),
        (["model=tiny_vlm", "space=nope"], "unknown space=nope"),
        (["model=tiny_vlm", "modle=3"], "did you mean 'model'"),
        (["model=tiny_vlm", "search.max_trails=3"], "did you mean 'search.max_trials'"),
        (["model=tiny_vlm", "+foo=1"], "unknown key foo"),
        (["model=[tiny_vlm,tiny_dit]"], "chooses several"),
        (["model=tiny_vlm,tiny_dit"], "chooses several"),
        (["model=tiny_vlm", "search.max_trials=abc"], "must be an integer"),
        (["model=tiny_vlm", "search.max_trials=0"], "must be at least 1"),
        (["model=tiny_vlm", "search.max_hours=-1"], "must be more than 0"),
        (["model=tiny_vlm", "memory.limit=60 GiBB"], "not an amount of memory"),
        (["model=tiny_vlm", "memory.gate=maybe"], "memory.gate='maybe' must be true or false"),
        (["model=tiny_vlm", "cluster.device=gpu"], "did you mean"),
        (["model=tiny_vlm", "deadlines.step_s=0"], "step_s must be more than 0"),
        (["model=tiny_vlm", "study.name=${nope}"], "nope"),
        (["model=tiny_vlm", "cluster.nodes_per_trial=3"], "cannot be dealt evenly"),
    ],
)
def test_mistakes_are_named(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compose_config(overrides)


@pytest.mark.parametrize(
    "name", ["a,b", "50% a=b,c#1 调优", "it's", 'say "hi"', "back\\", "x\\'y", "a:b", "(a)[b]{c}"]
)
def test_names_are_taken_as_typed(name: str) -> None:
    config = compose_config(["model=tiny_vlm", f"study.name={name}"]).config
    assert config.study.name == name
    assert config.study.dir == f"studies/{name}"


def test_a_folder_of_the_users_own(tmp_path: Path) -> None:
    folder = tmp_path / "my 50% a=b,c#1 调优"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "mine.yaml").write_text("name: mine\ndims: {num_heads: 8}\n")
    config = compose_config(["model=mine", "space=tiny_vlm"], folder).config
    assert config.model.dims == {"num_heads": 8}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        compose_config(["model=tiny_vlm"], tmp_path / "nope")

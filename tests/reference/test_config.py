"""Configurations: what is refused, and with which words."""

from __future__ import annotations

import pytest
from reference_cases import content

from launch.reference.config import load_config, parse_config
from launch.reference.layout import Layout
from launch.reference.schema import ConfigError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sp_degree": 2}, "sp_algorithm must be ulysses, ring or usp"),
        ({"sp_algorithm": "ring"}, "must be null when sp_degree is 1"),
        ({"sp_degree": 2, "sp_algorithm": "star"}, "must be one of ulysses, ring, usp, got 'star'"),
        ({"sp_degree": 4, "sp_algorithm": "usp"}, "ulysses_degree must divide sp_degree 4"),
        (
            {"sp_degree": 4, "sp_algorithm": "ring", "ulysses_degree": 2},
            "belongs to sp_algorithm usp only",
        ),
        ({"sp_degree": 8, "sp_algorithm": "ulysses"}, "must divide model.num_heads"),
        ({"micro_batch_size": 3}, "must divide training.global_batch_size"),
        ({"micro_batch_size": 0}, "micro_batch_size must be at least 1, got 0"),
        ({"offload_blocks": 4}, "at most model.num_layers 3, got 4"),
        ({"offload_blocks": True}, "must be a whole number, got True"),
        ({"encoder_micro_batch_scale": 4}, "encoder_micro_batch_scale"),
        ({"encoder_sp_degree": 3}, "must divide the number of ranks (8)"),
        ({"global_batch_size": 6}, "num_samples must be a multiple"),
        ({"memory_bytes": 0}, "memory_bytes must be at least 1"),
    ],
)
def test_an_illegal_combination_is_refused(changes, words):
    with pytest.raises(ConfigError) as caught:
        Layout.of(parse_config(content("small_vlm", changes)), 8)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "changes", [{"loss_chunk_size": 8}, {"encoder_sp_degree": 2}, {"encoder_micro_batch_scale": 2}]
)
def test_a_dit_refuses_what_it_has_not(changes):
    with pytest.raises(ConfigError, match=r"dit (has|takes)|a dit"):
        parse_config(content("small_dit", changes))


def test_an_unknown_key_is_answered_with_the_nearest_one():
    values = content("small_vlm", {})
    values["training"]["micro_batch"] = 2
    with pytest.raises(ConfigError, match=r"training\.micro_batch; did you mean micro_batch_size"):
        parse_config(values)


def test_a_missing_key_is_named():
    values = content("small_vlm", {})
    del values["model"]["vocab_size"]
    with pytest.raises(ConfigError, match=r"model\.vocab_size is missing"):
        parse_config(values)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")


def test_gradient_accumulation_makes_up_for_data_parallelism():
    for changes, accumulation in (
        ({}, 1),
        ({"sp_degree": 4, "sp_algorithm": "ring"}, 4),
        ({"sp_degree": 4, "sp_algorithm": "ring", "micro_batch_size": 4}, 1),
    ):
        layout = Layout.of(parse_config(content("small_vlm", changes)), 8)
        assert layout.accumulation == accumulation

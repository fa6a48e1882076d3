"""Peak memory by cause, against the figures of the papers."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.predict.layout import Layout
from autotune.predict.memory_terms import MEMORY_TERMS, activation_bytes, memory_terms
from autotune.predict.settings import ALL
from autotune.predict.workload import Workload

VLM = {
    "hidden_size": 512,
    "num_layers": 8,
    "num_heads": 8,
    "ffn_size": 2048,
    "vocab_size": 32000,
    "seq_length": 1024,
    "global_batch_size": 64,
    "bytes_per_element": 2,
    "encoder_hidden_size": 256,
    "encoder_num_layers": 4,
    "encoder_num_heads": 8,
    "encoder_seq_length": 256,
}


def workload(**dims: Any) -> Workload:
    found = Workload.from_facts({"model": {**VLM, **dims}, "cluster": {"world_size": 8}})
    assert found is not None
    return found


def terms(model: Workload | None = None, world_size: int = 8, **settings: Any) -> dict[str, float]:
    model = model or workload()
    return memory_terms(model, Layout.of(settings, model, world_size))


def total(model: Workload | None = None, **settings: Any) -> float:
    return sum(terms(model, **settings).values())


def test_activations_of_a_gpt3_layer_are_those_of_korthikanti() -> None:
    """Table 1 and equation 1: s b h (34 + 5 a s / h) bytes, for 175B s=2048, h=12288, a=96."""
    gpt3 = workload(
        hidden_size=12288,
        num_heads=96,
        ffn_size=4 * 12288,
        seq_length=2048,
        dropout=True,
        flash_attention=False,
    ).decoder
    a_position = 12288 * (34 + 5 * 96 * 2048 / 12288)
    assert activation_bytes(gpt3, 2, 1, 2048) == pytest.approx(a_position)
    # Equation 2, tensor parallelism of 8: 10 + 24 / t + 5 a s / (h t).
    shared = 12288 * (10 + 24 / 8 + 5 * 96 * 2048 / (12288 * 8))
    assert activation_bytes(gpt3, 2, 8, 2048) == pytest.approx(shared)


def test_flash_attention_without_dropout_keeps_32_bytes_an_element() -> None:
    """Korthikanti's 34 without the masks of two dropouts, and nothing that grows with s squared."""
    stack = workload().decoder
    assert activation_bytes(stack, 2) == 32 * 512
    assert activation_bytes(stack, 2, 1, 1e6) == 32 * 512


def test_grouped_query_attention_keeps_less() -> None:
    """Of the 34 bytes keys and values are 4; with a quarter of the heads 1."""
    grouped = workload(num_kv_heads=2).decoder
    assert activation_bytes(grouped, 2) == (32 - 3) * 512


def test_states_are_those_of_zero() -> None:
    """ZeRO, figure 1: 7.5B parameters take 120 GB, and 1.9 GB a rank on 64 ranks in stage 3."""
    model = workload(parameters=7.5e9)
    assert terms(model, 64)["states"] == pytest.approx(120e9)
    assert terms(model, 64, shards=64)["states"] == pytest.approx(1.9e9, rel=0.02)
    assert terms(model, 64, shards=ALL)["states"] == terms(model, 64, shards=64)["states"]


def test_logits_by_hand() -> None:
    """32000 words, 1024 positions, three float32 copies; chunks of 128 make gradients at once."""
    assert terms()["loss"] == 3 * 4 * 32000 * 1024
    gradients = 2 * 512 * (32000 + 1024)
    assert terms(loss_chunk_size=128)["loss"] == 3 * 4 * 32000 * 128 + gradients
    # A single chunk has no other beside it.
    assert terms(loss_chunk_size=1024)["loss"] == 2 * 4 * 32000 * 1024 + gradients
    assert terms(workload(vocab_size=None), loss_chunk_size=128)["loss"] == 0


def test_all_activations_of_the_decoder_by_hand() -> None:
    """8 layers of 1024 positions, of which offload leaves what is not offloaded."""
    assert terms()["activations"] == 8 * 1024 * 32 * 512
    assert terms(offload_blocks=3)["activations"] == 5 * 1024 * 32 * 512
    ring = terms(sp_degree=4, sp_algorithm="ring", micro_batch_size=2)
    assert ring["activations"] == 8 * 2 * 256 * 32 * 512
    # Ulysses keeps attention's output twice, before and after it changes places.
    ulysses = terms(sp_degree=4, micro_batch_size=2)
    assert ulysses["activations"] == 8 * 2 * 256 * 34 * 512
    assert terms(recompute=True)["activations"] == 8 * 1024 * 2 * 512


def test_gradients_of_a_block_by_hand() -> None:
    """Of the MLP's inside, its input and its output, as its activations are freed meanwhile."""
    assert terms(workload(vocab_size=None))["workspace"] == 1024 * 2 * (2048 + 2 * 512)
    # The loss is made earlier and needs more, which is then free.
    assert terms()["workspace"] == 0
    # What offload brings back stays until the block is done.
    offloaded = terms(workload(vocab_size=None), offload_blocks=8)["workspace"]
    assert offloaded == 2 * 1024 * 32 * 512 + 1024 * 2 * (2 * 2048 + 2 * 512)


def test_buffers_of_a_ring_by_hand() -> None:
    """15 h: gradients of output, queries, keys, values; 8 of messages; 3 of a block's gradients.

    Less the MLP's activations, which are freed by then: two of h and two of its inside, h here.
    """
    narrow = workload(vocab_size=None, ffn_size=512)
    found = terms(narrow, sp_degree=4, sp_algorithm="ring")["workspace"]
    assert found == 256 * 2 * 512 * (15 - 4)


def test_buffers_of_ulysses_by_hand() -> None:
    """10 h: gradients of output, queries, keys, values; 3 h sent and 3 h received; less 4 h."""
    narrow = workload(vocab_size=None, ffn_size=512)
    assert terms(narrow, sp_degree=4)["workspace"] == 256 * 2 * 512 * (10 - 4)


def test_recomputation_makes_one_block_again() -> None:
    model = workload(vocab_size=None)
    again = terms(model, recompute=True)["workspace"] - terms(model)["workspace"]
    assert again == 1024 * 32 * 512


def test_an_image_is_spread_over_the_encoders_ranks() -> None:
    """With one sample for 8 ranks, each encoder group holds an image or none."""
    whole, half = (terms(sp_degree=8, encoder_sp_degree=n)["encoder"] for n in (1, 2))
    assert half == whole / 2


def test_two_offloaded_blocks_are_on_the_device_at_once() -> None:
    """With all blocks offloaded and hardly a loss, backward still needs a block and its next."""
    model = workload(vocab_size=None)
    everything = terms(model, offload_blocks=8)
    assert everything["activations"] == 0
    assert everything["workspace"] >= 2 * 1024 * 32 * 512
    assert everything["workspace"] < total(model) - terms(model)["states"]


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"micro_batch_size": 1}, {"micro_batch_size": 2}),
        ({"sp_degree": 4}, {"sp_degree": 2}),
        ({"sp_degree": 4, "sp_algorithm": "ring"}, {"sp_degree": 2, "sp_algorithm": "ring"}),
        ({"offload_blocks": 4}, {"offload_blocks": 2}),
        ({"offload_blocks": ALL}, {"offload_blocks": 7}),
        ({"loss_chunk_size": 128}, {"loss_chunk_size": 256}),
        ({"loss_chunk_size": 256}, {}),
        ({"recompute": True}, {}),
        ({"tensor_parallel": 2}, {}),
        ({"pipeline_parallel": 2}, {}),
        ({"shards": 8}, {"shards": 2}),
        ({"encoder_micro_batch_scale": 1}, {"encoder_micro_batch_scale": 4}),
    ],
)
def test_what_saves_memory(less: dict[str, Any], more: dict[str, Any]) -> None:
    assert total(**less) < total(**more)


def test_no_term_is_negative_and_all_are_named() -> None:
    for settings in ({}, {"offload_blocks": 8, "loss_chunk_size": 64}, {"recompute": True}):
        found = terms(**settings)
        assert tuple(found) == MEMORY_TERMS
        assert min(found.values()) >= 0


def test_the_longest_sample_decides() -> None:
    """Peak memory is that of the longest micro-batch, however long they are on average."""
    longest = workload(seq_length=256, seq_length_max=1024)
    assert terms(longest)["activations"] == terms()["activations"]
    spread = workload(seq_length=256, seq_length_cv=0.5)
    assert terms(spread)["activations"] > 2 * terms(workload(seq_length=256))["activations"]

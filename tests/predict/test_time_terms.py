"""Time by cause, against operations and volumes counted by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from autotune.predict.layout import Layout
from autotune.predict.machine import Machine
from autotune.predict.settings import ALL
from autotune.predict.time_terms import TIME_TERMS, time_terms
from autotune.predict.workload import Workload

MODEL = {
    "hidden_size": 512,
    "num_layers": 8,
    "num_heads": 8,
    "ffn_size": 2048,
    "seq_length": 1024,
    "global_batch_size": 64,
    "bytes_per_element": 2,
}
# A position in a layer: 4 h^2 weights in attention and 8 h^2 in the MLP.
WEIGHTS = 12 * 512**2
# One operation, one byte a second, no latency: seconds are counts.
COUNTING = Machine(
    world_size=8,
    devices_per_node=8,
    device_tflops=1e-12,
    memory_gb_s=1e-9,
    link_gb_s=1e-9,
    node_link_gb_s=1e-9,
    host_link_gb_s=1e-9,
    latency_s=0.0,
    kernel_s=0.0,
)
# Compute takes no time, so it hides nothing.
SENDING = dataclasses.replace(COUNTING, device_tflops=1e30)


def workload(**dims: Any) -> Workload:
    found = Workload.from_facts({"model": {**MODEL, **dims}, "cluster": {"world_size": 8}})
    assert found is not None
    return found


def terms(
    model: Workload | None = None, machine: Machine = COUNTING, **settings: Any
) -> dict[str, float]:
    model = model or workload()
    return time_terms(model, machine, Layout.of(settings, model, machine.world_size))


def test_terms_are_named() -> None:
    assert tuple(terms()) == TIME_TERMS


def test_operations_are_six_a_weight_and_position() -> None:
    """PaLM, appendix B: 6 N a position; 64 samples of 1024 positions over 8 ranks."""
    assert terms()["compute"] == pytest.approx(6 * 8 * WEIGHTS * 64 * 1024 / 8)
    head = 6 * 32000 * 512 * 64 * 1024 / 8
    assert terms(workload(vocab_size=32000))["compute"] == pytest.approx(terms()["compute"] + head)


def test_attention_is_twelve_layers_h_a_pair_of_positions() -> None:
    """PaLM, appendix B: 12 L h T a position; causal attention sees half of the pairs."""
    full = 12 * 8 * 512 * 1024**2 * 64 / 8
    assert terms(workload(kind="vlm"))["attention"] == pytest.approx(full / 2)
    assert terms(workload(kind="dit"))["attention"] == pytest.approx(full)


def test_a_condition_is_projected_once_a_sample() -> None:
    """adaLN's six h^2 weights are no operations of every position."""
    assert terms(workload(kind="dit"))["compute"] == terms()["compute"]


@pytest.mark.parametrize("settings", [{"sp_degree": 4}, {"micro_batch_size": 4}, {}])
def test_equal_samples_are_the_same_work_in_every_layout(settings: dict[str, Any]) -> None:
    found = terms(**settings)
    assert found["compute"] == pytest.approx(terms()["compute"])
    assert found["attention"] == pytest.approx(terms()["attention"])
    assert found["padding"] == pytest.approx(0, abs=1e-6 * found["compute"])
    assert found["imbalance"] == pytest.approx(0, abs=1e-6 * found["compute"])


def test_recomputation_is_a_third_more_compute() -> None:
    assert terms(recompute=True)["compute"] == pytest.approx(terms()["compute"] * 4 / 3)


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_ulysses_sends_four_all_to_alls_forward_and_four_backward(degree: int) -> None:
    """DeepSpeed-Ulysses: messages of N h / P elements each, all but a rank's own part sent."""
    messages = 8 * (1024 / degree) * 512 * 2 * (degree - 1) / degree
    micro_batches = 64 / (8 / degree)
    found = terms(machine=SENDING, sp_degree=degree)["ulysses"]
    assert found == pytest.approx(micro_batches * 8 * messages)


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_a_ring_sends_keys_and_values_round(degree: int) -> None:
    """n-1 steps forward, n-1 backward, and n steps of their gradients: 3n-2 messages of 2 N h/n."""
    messages = (3 * degree - 2) * 2 * (1024 / degree) * 512 * 2
    micro_batches = 64 / (8 / degree)
    found = terms(machine=SENDING, sp_degree=degree, sp_algorithm="ring")
    assert found["ring"] == pytest.approx(micro_batches * 8 * messages)
    assert found["ulysses"] == 0


def test_usp_sends_both_with_smaller_shares() -> None:
    """USP, 2 x 2 of 4: all-to-alls in pairs of N/4 positions, a ring of two of N/4 positions."""
    found = terms(machine=SENDING, sp_degree=4, sp_algorithm="usp", ulysses_degree=2)
    runs = 64 / 2 * 8
    assert found["ulysses"] == pytest.approx(runs * 8 * (1024 / 4) * 512 * 2 / 2)
    assert found["ring"] == pytest.approx(runs * 4 * 2 * (1024 / 4) * 512 * 2)


def test_attention_hides_the_ring() -> None:
    """Where compute is slow only the last trip of the gradients is seen."""
    slow = dataclasses.replace(SENDING, device_tflops=1e-15)
    found = terms(machine=slow, sp_degree=4, sp_algorithm="ring")
    last_trip = 64 / 2 * 8 * 2 * (1024 / 4) * 512 * 2
    assert found["ring"] == pytest.approx(last_trip)
    assert found["hidden"] == pytest.approx(last_trip * (3 * 4 - 3))


def test_attention_hides_as_much_as_it_takes() -> None:
    """A third of attention is forward; each of n steps hides behind 1/n of its pass."""
    degree, runs = 4, 64 / 2 * 8
    step = 2 * (1024 / degree) * 512 * 2
    pairs = 12 * 512 * 1024**2 / 2 / degree  # operations of a layer's attention on a rank
    machine = dataclasses.replace(SENDING, device_tflops=pairs / degree / (1.5 * step) * 1e-12)
    # A step's attention takes 1.5 messages: half of one in forward, one in backward.
    found = terms(machine=machine, sp_degree=degree, sp_algorithm="ring")
    exposed = (degree - 1) * (step / 2 + (2 * step - step)) + step
    assert found["ring"] == pytest.approx(runs * exposed)


def test_messages_take_time_however_small() -> None:
    """Eight all-to-alls a layer; on a cpu the 3n-2 messages of a ring, which nothing hides."""
    waiting = dataclasses.replace(COUNTING, latency_s=1.0, link_gb_s=1e30)
    assert terms(machine=waiting, sp_degree=4)["ulysses"] == pytest.approx(64 / 2 * 8 * 8)
    busy = dataclasses.replace(waiting, overlaps=False)
    found = terms(machine=busy, sp_degree=4, sp_algorithm="ring")
    assert found["ring"] == pytest.approx(64 / 2 * 8 * 10)
    assert found["hidden"] == 0


def test_offload_moves_activations_out_and_back() -> None:
    """16 elements of 2 bytes each way (8 h + 2 f); slow compute hides all of it."""
    each_way = 3 * 64 / 8 * 1024 * 32 * 512
    assert terms(machine=SENDING, offload_blocks=3)["offload"] == pytest.approx(2 * each_way)
    slow = dataclasses.replace(SENDING, device_tflops=1e-15)
    hidden = terms(machine=slow, offload_blocks=3)
    assert hidden["offload"] == 0
    assert hidden["hidden"] == pytest.approx(2 * each_way)
    assert terms()["offload"] == 0
    on_cpu = terms(machine=dataclasses.replace(slow, overlaps=False), offload_blocks=3)
    assert on_cpu["offload"] == pytest.approx(2 * each_way)
    # Compute of the three blocks takes 1.5 times one way: half of it is out, one is back.
    busy = (6 * WEIGHTS * 1024 + 6 * 512 * 1024**2) * 3 * 64 / 8
    machine = dataclasses.replace(SENDING, device_tflops=busy / (1.5 * each_way) * 1e-12)
    found = terms(machine=machine, offload_blocks=3)
    assert found["offload"] == pytest.approx(each_way / 2)
    assert found["hidden"] == pytest.approx(1.5 * each_way)


def test_gradients_are_reduced_once_or_sharded_every_micro_batch() -> None:
    """All-reduce of 2 (n-1)/n a global batch; ZeRO-3 sends 3 (n-1)/n a micro-batch."""
    machine = dataclasses.replace(SENDING, memory_gb_s=1e30)
    weights = 8 * WEIGHTS * 2
    assert terms(machine=machine)["update"] == pytest.approx(2 * 7 / 8 * weights)
    sharded = terms(machine=machine, shards=ALL)["update"]
    assert sharded == pytest.approx(8 * 3 * 7 / 8 * weights)


def test_tensor_parallelism_reduces_four_times_a_layer() -> None:
    """Megatron-LM: two all-reduces of s b h forward, two backward, each 2 (t-1)/t of it."""
    found = terms(machine=SENDING, tensor_parallel=2)["tensor_parallel"]
    assert found == pytest.approx(64 / 4 * 8 * 4 * 1024 * 512 * 2)


def test_a_pipeline_idles_by_its_bubble() -> None:
    """Megatron-LM 2104.04473, section 2.2: (p - 1) / m of the ideal time."""
    found = terms(pipeline_parallel=2)
    busy = found["compute"] + found["attention"]
    assert found["bubble"] == pytest.approx(busy * 1 / (64 / 4))


def test_kernels_are_started_for_every_micro_batch() -> None:
    machine = dataclasses.replace(COUNTING, kernel_s=1.0)
    one, four = (terms(machine=machine, micro_batch_size=b)["launch"] for b in (1, 4))
    assert one == pytest.approx(4 * four)


def test_padding_of_mixed_lengths() -> None:
    """The larger of two log-normals with cv 1 is Phi(s / sqrt 2) * 2 times the mean (s^2=ln 2)."""
    mixed = workload(seq_length_cv=1.0)
    sigma = math.sqrt(math.log(2))
    longer = 2 * 0.5 * (1 + math.erf(sigma / 2))
    found = terms(mixed, micro_batch_size=2)
    assert found["padding"] / found["compute"] == pytest.approx(longer - 1, rel=0.02)
    assert terms(mixed)["padding"] == pytest.approx(0, abs=0.01 * found["compute"])


def test_bucketing_takes_padding_and_reordering_takes_waiting_too() -> None:
    mixed = workload(seq_length_cv=0.6)
    none, bucketing, reordering = (
        terms(mixed, micro_batch_size=4, bucket_order=order)
        for order in ("none", "bucketing", "reordering")
    )
    assert bucketing["padding"] < 0.1 * none["padding"]
    assert reordering["padding"] == bucketing["padding"]
    assert min(bucketing["imbalance"], none["imbalance"]) > reordering["imbalance"] == 0


def test_ranks_that_meet_often_wait_more() -> None:
    """Sums of 8 independent micro-batches spread by sqrt(8), 8 meetings cost 8 spreads."""
    sizes = {"encoder_hidden_size": 256, "encoder_num_layers": 4, "encoder_seq_length": 256}
    mixed = workload(seq_length_cv=0.6, **sizes)
    often = terms(mixed)["imbalance"]
    once = terms(mixed, encoder_micro_batch_scale=8)["imbalance"]
    assert often == pytest.approx(math.sqrt(8) * once)
    assert terms(workload(seq_length_cv=0.6))["imbalance"] == pytest.approx(once)
    assert terms(workload(seq_length_cv=0.6), shards=ALL)["imbalance"] == pytest.approx(often)


def test_the_encoder_is_shared_by_all_ranks() -> None:
    """64 images over 8 ranks, in rounds of one or more a rank, whatever the decoder's layout."""
    sizes = {"encoder_hidden_size": 256, "encoder_num_layers": 4, "encoder_seq_length": 256}
    model = workload(**sizes, encoder_num_heads=4, encoder_ffn_size=1024)
    dense = 6 * 4 * 12 * 256**2 * 256
    attention = 12 * 4 * 256 * 256**2
    expected = 64 / 8 * (dense + attention)
    assert terms(model)["encoder"] == pytest.approx(expected)
    spread = terms(model, sp_degree=4, micro_batch_size=4)
    assert spread["encoder"] == pytest.approx(expected)
    # With one sample a micro-batch and 4 ranks a sequence 3 of 4 ranks have no image.
    assert terms(model, sp_degree=4)["encoder"] == pytest.approx(4 * expected)
    assert terms()["encoder"] == terms()["encoder_exchange"] == 0


def test_fewer_encoder_rounds_exchange_less_often() -> None:
    sizes = {"encoder_hidden_size": 256, "encoder_num_layers": 4, "encoder_seq_length": 256}
    waiting = dataclasses.replace(COUNTING, latency_s=1.0, link_gb_s=1e30)
    once, twice = (
        terms(workload(**sizes), waiting, encoder_micro_batch_scale=scale)["encoder_exchange"]
        for scale in (4, 2)
    )
    assert twice == pytest.approx(2 * once)


def test_the_encoders_own_exchange() -> None:
    """On top of features there and back: eight all-to-alls in each of 4 layers of 8 rounds."""
    sizes = {"encoder_hidden_size": 256, "encoder_num_layers": 4, "encoder_seq_length": 256}
    waiting = dataclasses.replace(COUNTING, latency_s=1.0, link_gb_s=1e30)
    alone, split = (
        terms(workload(**sizes), waiting, encoder_sp_degree=degree)["encoder_exchange"]
        for degree in (1, 2)
    )
    assert alone == pytest.approx(8 * 2)
    assert split - alone == pytest.approx(8 * 4 * 8)


def test_small_chunks_of_the_loss_cost_time() -> None:
    model = workload(vocab_size=32000)
    large, small = (terms(model, loss_chunk_size=size)["loss_chunks"] for size in (512, 64))
    assert 0 < large < small
    assert terms(model)["loss_chunks"] == 0

"""Texts that look like a failure and are none."""

from __future__ import annotations

import pytest

from autotune.measure.failures.diagnose import diagnose
from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import FailureKind
from autotune.ports import EndKind
from tests.measure.failures.made import end, of, of_log

HARMLESS = [
    "tip: if you run out of memory, lower the micro batch size",
    "If CUDA out of memory occurs, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "# NPU out of memory: see the guide",
    "  --distributed-timeout-minutes N   minutes before a collective timeout; raise it on errors",
    "usage: pretrain.py [--timeout TIMEOUT] [--no-oom-retry] [--error-on-nan]",
    # github.com/Ascend/pytorch/issues/108
    "torch_npu.memory: [ERROR] [269128] Get a block from the existing pool failed. Try to free "
    "cached blocks and reallocate. This error log can be ignored.",
    # github.com/vllm-project/vllm-ascend/issues/1127
    "[rank7]:[W609 06:57:47.8 compiler_depend.ts:877] Warning: The HCCL execution timeout was set "
    "to never timeout, so it is bigger than watchdog timeout 1800000ms which is set by "
    "init_process_group! The plog may not be recorded.",
    # github.com/InternLM/lmdeploy/issues/3286
    "host:1:1 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open "
    "shared object file: No such file or directory : when loading libnccl-net.so",
    # github.com/meta-pytorch/torchcomms/pull/2358
    "[W426 16:56:01.8 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host "
    "100.64.0.1:59782 - retrying (try=6, timeout=1800000ms, delay=5241ms): Connection reset by "
    "peer",
    "[W socket.cpp:663] [c10d] The client socket has failed to connect to [::ffff:10.0.0.1]:29500 "
    "(errno: 111 - Connection refused).",
    "[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - "
    "Address family not supported by protocol).",
    "UserWarning: No module named 'flash_attn'; falling back to sdpa",
    "6 CUDA memory allocation retries.",
    " iteration  3/10 | loss scale: 1.0 | grad norm: nan | number of nan iterations:   0 |",
    '        Solution: search for the keyword \\"EI0002\\" on https://www.hiascend.com',
]


@pytest.mark.parametrize("text", HARMLESS)
def test_it_names_nothing(text: str) -> None:
    found = of_log(f"{text}\n", device="cuda", steps=5)
    assert (found.kind, found.where) == (FailureKind.CRASHED, "launcher")


def test_the_real_cause_stands_out() -> None:
    text = "\n".join([*HARMLESS, "ZeroDivisionError: division by zero", *HARMLESS])
    assert of_log(text).quote == "ZeroDivisionError: division by zero"


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 298.00 MiB. GPU 0 has a total "
    "capacity of 44.39 GiB of which 12.06 MiB is free.\n"
)
STEPS = "".join(
    f" iteration {n:8d}/     100 | elapsed time per iteration (ms): 622.6\n" for n in (4, 5, 6)
)
CRASH = "Traceback (most recent call last):\n  File \"/x/a.py\", line 3, in f\nKeyError: 'b'\n"


def test_what_the_program_got_over_is_not_the_cause() -> None:
    found = of_log(OOM + STEPS + CRASH, device="cuda", steps=6)
    assert (found.kind, found.quote) == (FailureKind.CRASHED, "KeyError: 'b'")


def test_steps_before_do_not_make_it_harmless() -> None:
    found = of_log(STEPS + OOM, device="cuda", steps=6)
    assert found.kind is FailureKind.DEVICE_OOM


def test_the_step_in_hand_that_another_rank_prints_does_not_either() -> None:
    one = STEPS.splitlines(keepends=True)[0]
    assert of_log(OOM + one + one, device="cuda", steps=6).kind is FailureKind.DEVICE_OOM


def test_a_caught_import_error_is_not_what_ended_the_run() -> None:
    caught = (
        "Traceback (most recent call last):\n"
        '  File "/x/fused.py", line 1, in <module>\n'
        "ModuleNotFoundError: No module named 'apex'\n"
        "apex is not there, using plain layers\n"
    )
    found = of_log(caught + CRASH)
    assert (found.kind, found.quote) == (FailureKind.CRASHED, "KeyError: 'b'")


def test_an_ignored_exception_is_none() -> None:
    text = f"Exception ignored in: <function A.__del__>\n{CRASH}"
    assert of_log(text).where == "launcher"


def test_a_good_end_has_no_diagnosis_whatever_its_log_says() -> None:
    rank = RankEvidence(0, log=OOM + CRASH, steps=9)
    assert diagnose([rank], end(EndKind.FINISHED), device="cuda") is None


def test_what_a_rank_says_while_it_is_stopped_is_no_cause() -> None:
    rank = RankEvidence(0, log=OOM + CRASH, steps=9)
    found = of(rank, device="cuda", end=end(EndKind.STOPPED, reason="stopped by the user"))
    assert (found.kind, found.quote) == (FailureKind.KILLED, "stopped by the user")


def test_colours_bars_and_launchers_labels_do_not_hide_the_cause() -> None:
    text = (
        "Loading:  42%|████      | 3/7\r 75%|███████   | 5/7 [00:01<00:00]Traceback (most recent "
        "call last):\n"
        '(Worker pid=45464) \x1b[36m  File "/x/a.py", line 3, in f\x1b[0m\n'
        "\x1b[1;31m(Worker pid=45464) MemoryError: no more\x1b[0m\r\n"
    )
    found = of_log(text)
    assert (found.kind, found.quote) == (FailureKind.HOST_OOM, "MemoryError: no more")


def test_a_log_of_many_megabytes_is_read_at_its_ends() -> None:
    refused = "train.py: error: unrecognized arguments: --sp 3\n"
    filler = "x" * 99 + "\n"
    assert of_log(refused + filler * 50_000).kind is FailureKind.CONFIGURATION_REFUSED
    assert of_log(filler * 50_000 + OOM, device="cuda").kind is FailureKind.DEVICE_OOM

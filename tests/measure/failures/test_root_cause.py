"""Several ranks, several texts: the cause is quoted, not what came of it."""

from __future__ import annotations

import pytest

from autotune.measure.failures.evidence import RankEvidence
from autotune.measure.failures.kinds import FailureKind, Policy
from autotune.measure.outcome import Status
from autotune.ports import EndKind, RankExit
from tests.measure.failures.made import end, error, of

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total "
    "capacity of 79.10 GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process "
    "has 78.50 GiB memory in use.\n"
)
CLOSED = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by "
    "peer [127.0.0.1]:19368. This is typically caused by a remote worker crashing.\n"
)
TIMEOUT = (
    "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000)\n"
    "[rank0]:[E321 02:07:08.5 ProcessGroupNCCL.cpp:621] [Rank 0] Some NCCL operations have failed "
    "or timed out.\n"
)
TORCHRUN = (
    "E1130 09:54:53.844000 28769 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
    "(exitcode: 1) local_rank: 0 (pid: 28777) of binary: /srv/venv/bin/python3\n"
    "Traceback (most recent call last):\n"
    '  File "/srv/venv/bin/torchrun", line 6, in <module>\n    sys.exit(main())\n'
    '  File "/env/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent\n'
    "    raise ChildFailedError(\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
)
BOOM = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 180, in main\n    step(batch)\n'
    '  File "/env/site-packages/torch/nn/modules/module.py", line 1751, in _call_impl\n'
    "ZeroDivisionError: division by zero\n"
)


@pytest.mark.parametrize("noise", [CLOSED, TIMEOUT, "", TORCHRUN])
@pytest.mark.parametrize(
    ("cause", "kind"), [(OOM, FailureKind.DEVICE_OOM), (BOOM, FailureKind.CRASHED)]
)
def test_one_ranks_cause_over_what_the_others_say(
    noise: str, cause: str, kind: FailureKind
) -> None:
    found = of(RankEvidence(0, log=noise), RankEvidence(1, log=cause), device="cuda")
    assert (found.kind, found.rank, found.where) == (kind, 1, "rank1.log")


def test_a_crash_names_the_place_in_the_users_code() -> None:
    found = of(RankEvidence(0, log=BOOM))
    assert found.quote == "ZeroDivisionError: division by zero"
    assert found.frame == "me/train.py:180 in main"
    assert found.reason.endswith("division by zero (me/train.py:180 in main)")


def test_the_summary_of_torchrun_is_not_the_cause() -> None:
    found = of(RankEvidence(0, log=BOOM + TORCHRUN))
    assert found.quote == "ZeroDivisionError: division by zero"


def test_ranks_that_share_a_log_without_labels() -> None:
    closed = "Traceback (most recent call last):\n" + CLOSED
    found = of(RankEvidence(0, log=BOOM + closed + TORCHRUN))
    assert found.quote == "ZeroDivisionError: division by zero"


def test_interleaved_ranks_are_told_apart_by_their_labels() -> None:
    lines = {
        3: [
            "Traceback (most recent call last):",
            '  File "/a/x.py", line 5, in f',
            "KeyError: 'a'",
        ],
        0: ["Traceback (most recent call last):", '  File "/a/y.py", line 7, in g', CLOSED.strip()],
    }
    mixed = [f"[rank{rank}]: {lines[rank][n]}" for n in range(3) for rank in (0, 3)]
    found = of(RankEvidence(0, log="\n".join(mixed)))
    assert (found.rank, found.quote, found.frame) == (3, "KeyError: 'a'", "a/x.py:5 in f")


def test_another_ranks_line_amid_a_message_does_not_explain_it() -> None:
    text = (
        "[rank0]: RuntimeError: the boxes do not match\n"
        "[rank1]: EI0006: [PID: 12] Getting socket times out.\n"
        "[rank0]: boxes: 3, scores: 4\n"
    )
    found = of(RankEvidence(0, log=text))
    assert (found.rank, found.quote) == (0, "RuntimeError: the boxes do not match")


def test_of_two_texts_in_one_line_the_more_certain_counts() -> None:
    text = "what():  unhandled cuda error; Watchdog caught collective operation timeout: WorkNCCL\n"
    assert of(RankEvidence(0, log=text)).kind is FailureKind.COLLECTIVE_TIMEOUT


def test_the_first_of_a_chain_is_the_cause() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/a/load.py", line 5, in load\nIndexError: 7 is no layer\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/a/train.py", line 9, in <module>\nRuntimeError: the model was not built\n'
    )
    assert of(RankEvidence(0, log=text)).quote == "IndexError: 7 is no layer"


def test_what_destructors_say_at_exit_comes_later() -> None:
    text = (
        OOM + "terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  CUDA error: an illegal memory access was encountered\n"
        "Exception ignored in: <function Pool.__del__ at 0x7f>\n"
        "Traceback (most recent call last):\n"
        '  File "/a/pool.py", line 5, in __del__\nAttributeError: gone\n'
    )
    found = of(RankEvidence(0, log=text), device="cuda")
    assert found.kind is FailureKind.DEVICE_OOM


def test_a_size_that_no_tensor_has_follows_on_a_timeout() -> None:
    """github.com/NVIDIA/nccl/issues/1284: "The timeout is the one to focus on"."""
    garbage = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n"
    )
    both = of(RankEvidence(0, log=TIMEOUT), RankEvidence(1, log=garbage), device="cuda")
    assert both.kind is FailureKind.COLLECTIVE_TIMEOUT
    alone = of(RankEvidence(1, log=garbage), device="cuda")
    assert (alone.kind, alone.status) == (FailureKind.KERNEL_ERROR, Status.FAILED)


def test_what_killed_a_data_loader_is_behind_its_exit() -> None:
    text = (
        "RuntimeError: DataLoader worker (pid 28570) is killed by signal: Killed. \n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/a/train.py", line 9, in <module>\n'
        "RuntimeError: DataLoader worker (pid(s) 28570) exited unexpectedly\n"
    )
    found = of(RankEvidence(0, log=text))
    assert (found.kind, found.policy) == (FailureKind.HOST_OOM, Policy.NEVER_AGAIN)


def test_a_specific_record_is_not_overruled_by_an_older_line_of_the_log() -> None:
    log = "OSError: [Errno 98] Address already in use\nsome more output\n"
    ranks = RankEvidence(0, (error(0, "KeyError: 'learning_rate'"),), log)
    assert of(ranks).quote == "KeyError: 'learning_rate'"


def test_a_vague_record_is_explained_by_the_log() -> None:
    log = "NCCL WARN Cuda failure 2 'out of memory'\n"
    message = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp, unhandled cuda error"
    found = of(RankEvidence(0, (error(0, message),), log), device="cuda")
    assert (found.kind, found.where) == (FailureKind.DEVICE_OOM, "rank0.log")


def test_a_recorded_kind_counts_where_its_text_does_not() -> None:
    assert of(RankEvidence(0, (error(0, "no memory", "oom"),))).kind is FailureKind.DEVICE_OOM
    refused = of(RankEvidence(0, (error(0, "sp_degree=3", "config"),)))
    assert (refused.kind, refused.quote) == (FailureKind.CONFIGURATION_REFUSED, "sp_degree=3")


def test_the_rank_that_ended_by_itself_comes_first() -> None:
    exits = (RankExit(0, -15, by_us=True), RankExit(1, 1))
    ranks = [RankEvidence(n, log=BOOM.replace("180", str(n))) for n in range(2)]
    assert of(*ranks, end=end(EndKind.RANK_FAILED, *exits)).rank == 1


def test_the_earlier_of_two_equal_texts_even_over_midnight() -> None:
    def watchdog(rank: int, time: str) -> RankEvidence:
        text = f"[rank{rank}]:[E321 {time} x.cpp:6] [Rank {rank}] Watchdog caught collective "
        return RankEvidence(rank, log=f"{text}operation timeout: WorkNCCL\n")

    late = watchdog(0, "00:05:00.5")
    assert of(late, watchdog(1, "23:59:58.0")).rank == 1
    assert of(late, watchdog(1, "00:04:59.9")).rank == 1
    assert of(late, watchdog(1, "00:05:01.0")).rank == 0

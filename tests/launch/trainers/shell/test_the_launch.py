"""Which launch of a script is the one to tune, and what is said where there is none."""

from __future__ import annotations

import time

import pytest

from autotune.errors import UserError
from launch.trainers.shell import Exported, read_script, the_launch


def refusal(script: str, *arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        the_launch(read_script(script, "train.sh", arguments))
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("echo hello\n", ["train.sh starts no torchrun", "give the script"]),
        ("x=1\nbash common.sh --a\n", ["line 2 starts another script, common.sh", "give that one"]),
        ("./run/common.sh\n", ["another script, ./run/common.sh"]),
        ("nohup bash common.sh &\n", ["another script, common.sh"]),
        ("export A=1\nmsrun --worker_num 8 train.py\n", ["line 2 starts msrun", "PyTorch"]),
        ("accelerate launch --config_file c.yaml train.py\n", ["accelerate"]),
        ("python train.py --x\n", ["line 1 starts 'python train.py --x'"]),
        ("ssh host torchrun train.py\n", ["inside another command on line 1"]),
        (
            'if [ -z "$1" ]; then\n  echo "usage: model"\n  exit 1\nfi\ntorchrun train.py\n',
            ["it ends on line 3, since 'exit 1' stands there. It says: 'usage: model'"],
        ),
        ("set -u\ntorchrun train.py $MODEL\n", ["MODEL is not set, which `set -u` forbids"]),
        ("torchrun train.py ${DATA:?give DATA}\n", ["DATA: give DATA", "trainer.env"]),
        ("set -e\nfalse\ntorchrun train.py\n", ["line 2, since 'false' fails"]),
        (
            "torchrun a.py --x 1\ntorchrun b.py\n",
            ["2 different", "line 1: a.py --x 1; line 2: b.py"],
        ),
        ("A=1 torchrun a.py\nA=2 torchrun a.py\n", ["2 different"]),
        (
            "if ./big; then\n torchrun a.py --big\nelse\n torchrun a.py\nfi\n",
            ["2 different", "depends on `./big` on line 1"],
        ),
    ],
)
def test_what_is_wrong_is_named(script: str, wanted: list[str]) -> None:
    message = refusal(script)
    for words in wanted:
        assert words in message


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("export A=<address>\ntorchrun train.py\n", ["line 1, 'export A=<address>'", "filled in"]),
        ("A=1\ntorchrun train.py 'x\n", ["line 2", "never closed"]),
        ("if true; then\ntorchrun train.py\n", ["'fi' is missing", "line 1"]),
        ("torchrun train.py)\n", ["')' is not expected", "line 1"]),
        ("for x in a; do\ntorchrun $x\nfi\n", ["'done' is missing"]),
        ("#!/bin/bash\r\ntorchrun train.py\r\n", ["Windows line ends", "sed -i"]),
        ("A=$(echo 'x)\ntorchrun train.py\n", ["line 1", "never closed"]),
        ("A=${B\ntorchrun train.py\n", ["line 1"]),
    ],
)
def test_what_bash_refuses_is_refused_with_its_line(script: str, wanted: list[str]) -> None:
    message = refusal(script)
    for words in wanted:
        assert words in message


@pytest.mark.parametrize(
    "script",
    [
        "torchrun train.py \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3\n",
        "torchrun train.py --a 1 \\ \n  --b 2\n",
    ],
)
def test_options_that_bash_takes_for_a_command_are_pointed_out(script: str) -> None:
    message = refusal(script)
    assert "is a command of its own for bash" in message
    assert "a comment or a blank after" in message


def test_the_same_launch_twice_is_one() -> None:
    reading = read_script(
        "for i in 1 2; do torchrun train.py --a 1; done\ntorchrun train.py --a 1 > log\n",
        "train.sh",
    )
    assert the_launch(reading).arguments == ("--a", "1")


def test_what_is_told_of_a_launch() -> None:
    reading = read_script(
        "source /usr/local/Ascend/cann/set_env.sh\nexport A=1\nsource ./mine.sh --x\n"
        "conda activate mm\nulimit -n 65536\nunset B\nM=6000 TP=2\n"
        "numactl -C 0-31 torchrun --nproc-per-node=8 --nnodes 2 --node_rank 1 \\\n"
        "  --rdzv_endpoint=host:$M -m pkg.train --tp $TP 2>&1 | tee -a logs/x.log\n",
        "train.sh",
        folder="/srv",
    )
    launch = the_launch(reading)
    assert launch.line == 8
    assert (launch.launcher, launch.launcher_command) == ("torchrun", ("torchrun",))
    assert launch.wrapper == ("numactl", "-C", "0-31")
    assert (launch.program, launch.is_module, launch.arguments) == (
        "pkg.train",
        True,
        ("--tp", "2"),
    )
    assert (launch.nproc_per_node, launch.nnodes, launch.node_rank) == (8, 2, 1)
    assert (launch.master_addr, launch.master_port) == ("host", 6000)
    assert launch.environment == {"A": "1"}
    assert launch.folder == "/srv"
    assert launch.logs == ("/srv/logs/x.log",)
    assert reading.sourced == ("/usr/local/Ascend/cann/set_env.sh", "./mine.sh")
    assert reading.variables["TP"] == "2"
    assert reading.exported == {"A": "1"}
    kinds = [type(step).__name__ for step in launch.steps]
    assert kinds == ["Sourced", "Exported", "Sourced", "Prepared", "Prepared", "Unset"]


def test_where_msrun_runs() -> None:
    """https://www.mindspore.cn/tutorials/en/master/parallel/msrun_launcher.html."""
    launch = read_script(
        "msrun --worker_num=16 --local_worker_num=8 --node_rank 1 --master_port 8118 "
        "--bind_core True train.py --x\n",
        "train.sh",
    ).launches[0]
    assert (launch.nproc_per_node, launch.nnodes, launch.node_rank) == (8, 2, 1)
    assert (launch.program, launch.arguments) == ("train.py", ("--x",))


def test_a_variable_of_one_command_is_gone_after_it() -> None:
    launch = the_launch(
        read_script("export A=1\nA=2 B=3 ./prepare\ntorchrun train.py $A $B\n", "train.sh")
    )
    assert launch.arguments == ("1",)
    assert launch.environment == {"A": "1"}
    assert launch.steps == (Exported("A", "1", 1),)


def test_a_script_that_cannot_be_gone_through() -> None:
    assert "too deeply" in refusal("echo " + "$(echo " * 2000 + ")" * 2000 + "\n")


def test_a_long_script_is_read_at_once() -> None:
    text = "cat > big.txt <<EOF\n" + "some text $X\n" * 20_000 + "EOF\n" + "A=1\n" * 20_000
    begin = time.perf_counter()
    reading = read_script(text + "torchrun train.py\n", "train.sh")
    assert time.perf_counter() - begin < 20
    assert len(reading.written["big.txt"]) == 20_000 * len("some text \n")

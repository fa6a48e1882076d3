"""A launch's words are divided as PyTorch's own parser divides them."""

from __future__ import annotations

import pytest

from launch.trainers.shell import read_script

run = pytest.importorskip("torch.distributed.run")

COMMANDS = [
    "--nproc_per_node 8 --nnodes 1 train.py --nnodes 3 x",
    "--nproc-per-node=8 --standalone train.py",
    "--standalone --nnodes=1 -m pkg.train --a",
    "--module pkg.train -m x",
    "--no-python --nproc_per_node 2 ./prog --x",
    "--run_path train.py",
    "-r 3 -t 0:1 --log-dir logs train.py --log-dir other",
    "--rdzv-backend c10d --rdzv_endpoint host:1 --rdzv-id 7 --max-restarts 0 train.py",
    "--role w --monitor-interval 1 --start-method fork --local-addr a train.py",
    "--virtual-local-rank train.py",
    "--local_ranks_filter 0 --redirects 1 --tee 2 train.py -m y",
    "train.py",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_program_and_arguments(words: str) -> None:
    parsed = run.get_args_parser().parse_args(words.split())
    (launch,) = read_script(f"torchrun {words}\n", "train.sh").launches
    assert launch.program == parsed.training_script
    assert list(launch.arguments) == parsed.training_script_args
    assert launch.is_module == parsed.module
    assert str(launch.nproc_per_node or 1) == parsed.nproc_per_node
    assert str(launch.nnodes or 1) in parsed.nnodes
    assert launch.words == ("torchrun", *words.replace("--module", "-m").split())


def test_every_option_without_a_value_is_known() -> None:
    """With the program right behind each of the parser's options."""
    for action in run.get_args_parser()._actions:
        for option in action.option_strings:
            value = "" if action.nargs == 0 else " 1"
            (launch,) = read_script(f"torchrun {option}{value} train.py\n", "t.sh").launches
            assert launch.program == "train.py", option

"""The script that is written launches, under bash, what the script that was read launches."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from launch.trainers.shell import Options, read_script, render_script, the_launch

from .oracle import Bash
from .scripts import SCRIPTS, Script
from .test_agrees_with_bash import reading_of

ONE_LAUNCH = [
    name
    for name, script in SCRIPTS.items()
    if len(reading_of(script, Path("/")).launches) == 1 and "ends" not in name
]


@pytest.mark.parametrize("name", ONE_LAUNCH)
def test_the_same_launch(name: str, bash: Bash) -> None:
    script = SCRIPTS[name]
    was = bash.run(script.text, script.arguments, script.environment, script.name).launches[0]
    text = render_script(the_launch(reading_of(script, bash.folder)))
    run = bash.run(text, name="other/written.sh")
    assert run.launches, run.stderr
    now = run.launches[0]
    assert (now.argv, now.folder) == (was.argv, was.folder)
    given = script.environment.items()
    assert dict(now.environment.items() - given) == dict(was.environment)
    assert run.called == ()
    assert run.stderr == ""


AWKWARD = r"""
export A="it's \"quoted\" \$HOME" B='a
b' PYTHONPATH=/x:$PYTHONPATH
export D=$(date +%F)/$HOME
export MASTER_ADDR=$(hostname -I | awk '{print $1}')
torchrun --nproc_per_node=8 --master_port 6000 --master_addr $MASTER_ADDR train.py \
  --text "$A" --empty '' --date "out/$D x" \
  --save 'plain $(date)' --glob '*.py' --neg -1 --é ü
"""


def test_awkward_words(bash: Bash) -> None:
    was = bash.run(AWKWARD).launches[0]
    reading = read_script(AWKWARD, "train.sh", folder=str(bash.folder))
    run = bash.run(render_script(the_launch(reading)), name="written.sh")
    assert run.launches == (was,), run.stderr


def test_one_option_a_line_and_the_layout_from_outside(bash: Bash) -> None:
    script = (
        "export MASTER_PORT=6001\nNNODES=2\n"
        "torchrun --nproc_per_node 8 --nnodes=$NNODES --node_rank $(./rank) "
        "--master_addr localhost --master_port $MASTER_PORT train.py --lr 1 --spec a b --bf16\n"
    )
    text = render_script(the_launch(read_script(script, "train.sh")), header=["Made by hand"])
    lines = text.splitlines()
    assert lines[:3] == ["#!/usr/bin/env bash", "# Made by hand", "set -euo pipefail"]
    assert lines[-16:-4] == [
        'NPUS_PER_NODE="${NPUS_PER_NODE:-8}"',
        'NNODES="${NNODES:-2}"',
        'NODE_RANK="${NODE_RANK:?say which, such as NODE_RANK=...}"',
        'MASTER_ADDR="${MASTER_ADDR:-localhost}"',
        'export MASTER_PORT="${MASTER_PORT:-6001}"',
        "",
        "torchrun \\",
        '    --nproc_per_node "$NPUS_PER_NODE" \\',
        '    --nnodes="$NNODES" \\',
        '    --node_rank "$NODE_RANK" \\',
        '    --master_addr "$MASTER_ADDR" \\',
        '    --master_port "$MASTER_PORT" \\',
    ]
    assert text.endswith("    train.py \\\n    --lr 1 \\\n    --spec a b \\\n    --bf16\n")
    missing = bash.run(text, name="written.sh")
    assert missing.launches == ()
    assert "NODE_RANK: say which" in missing.stderr
    given = {"NODE_RANK": "1", "NNODES": "4", "MASTER_PORT": "7000"}
    (launched,) = bash.run(text, environment=given, name="written.sh").launches
    assert launched.argv[1:9] == (
        *("--nproc_per_node", "8", "--nnodes=4", "--node_rank", "1"),
        *("--master_addr", "localhost", "--master_port"),
    )
    assert launched.argv[9:] == ("7000", "train.py", "--lr", "1", "--spec", "a", "b", "--bf16")


def test_what_only_the_machine_knows_of_the_layout_must_be_given(bash: Bash) -> None:
    script = "export MASTER_ADDR=$(./find)\nexport B=2\ntorchrun train.py\n"
    text = render_script(the_launch(read_script(script, "train.sh")))
    assert "MASTER_ADDR: say which" in bash.run(text, name="w.sh").stderr
    (now,) = bash.run(text, environment={"MASTER_ADDR": "a"}, name="w.sh").launches
    assert now.environment == {"B": "2"}


def test_sourced_scripts_may_be_careless(bash: Bash) -> None:
    """As CANN's set_env.sh, which reads variables that may be unset."""
    (bash.folder / "set_env.sh").write_text(
        "export SEEN=$NOT_SET_ANYWHERE$A$1\nfalse\nexport LATE=yes\n"
    )
    script = "export A=1\nsource ./set_env.sh arg\nexport A=2\ntorchrun train.py\n"
    was = bash.run(script).launches[0]
    reading = read_script(script, "train.sh", folder=str(bash.folder))
    run = bash.run(render_script(the_launch(reading)), name="elsewhere/written.sh")
    assert run.launches == (was,), run.stderr
    assert was.environment == {"SEEN": "1arg", "LATE": "yes", "A": "2"}


def test_changed_options_and_more_exports(bash: Bash) -> None:
    script = (
        "export A=1 C=3\nB=2 torchrun --nproc_per_node 2 train.py --lr 1 --save out --save in\n"
    )
    launch = the_launch(read_script(script, "train.sh"))
    options = Options.parse(launch.arguments).set("--lr", "2e-5").remove("--save")
    changed = replace(launch, arguments=options.words)
    (now,) = bash.run(render_script(changed, exports={"A": "x y"}), name="w.sh").launches
    assert now.argv[-3:] == ("train.py", "--lr", "2e-5")
    assert now.environment == {"A": "x y", "B": "2", "C": "3"}


def test_no_side_effects_are_left(bash: Bash) -> None:
    script = SCRIPTS["options in variables, split where they are used"]
    text = render_script(the_launch(reading_of(script, bash.folder)))
    for word in ("find", "chmod", "tee", "grep", "awk"):
        assert word not in text
    done = subprocess.run(["/bin/bash", "-n"], input=text, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_wrapper_that_matters_stays() -> None:
    script = Script("ulimit -n 65536\nnohup numactl -C 0-7 torchrun train.py > x 2>&1 &\n")
    text = render_script(the_launch(reading_of(script, Path("/w"))))
    assert "\nulimit -n 65536\n" in text
    assert text.endswith("numactl -C 0-7 torchrun \\\n    train.py\n")
    assert "nohup" not in text

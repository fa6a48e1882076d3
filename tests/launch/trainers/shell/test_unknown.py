"""What only running a script would tell: where it is let through, and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from autotune.errors import UserError
from launch.trainers.shell import LaunchCommand, read_script, the_launch

from .oracle import Bash

HOSTS = """HOSTFILE=hosts.txt
MASTER_ADDR=$(head -n1 $HOSTFILE | awk '{print $1;}')
NODE_ADDR=`hostname -I | awk '{for(i=1;i<=NF;i++)print $i}' | grep ${MASTER_ADDR%.*}.`
NODE_RANK=$(awk '{ranks[$1]=(FNR-1);}END{print ranks["'$NODE_ADDR'"];}' $HOSTFILE)
NNODES=$(cat $HOSTFILE | wc -l)
WORLD=$((8 * $NNODES))
GBS=$((4 * $WORLD))
torchrun --nproc_per_node 8 --nnodes $NNODES --node_rank $NODE_RANK \\
    --master_addr $MASTER_ADDR train.py --global-batch-size $GBS
"""


def launch_of(script: str, environment: Mapping[str, str] | None = None) -> LaunchCommand:
    return the_launch(read_script(script, "train.sh", environment=environment))


def test_the_error_names_variable_line_command_and_what_to_give() -> None:
    with pytest.raises(UserError) as caught:
        launch_of(HOSTS)
    message = str(caught.value)
    assert "--global-batch-size takes NNODES, on line 5 $(cat hosts.txt | wc -l)" in message
    assert message.endswith("give NNODES in trainer.env")
    assert "train.sh line 8" in message


def test_the_environment_answers_what_the_script_would_find_out() -> None:
    launch = launch_of(HOSTS, {"NNODES": "2"})
    assert launch.arguments == ("--global-batch-size", "64")
    assert launch.nnodes == 2
    assert launch.node_rank is None


def test_the_environment_does_not_overrule_what_the_script_says() -> None:
    assert launch_of("N=3\ntorchrun train.py $N\n", {"N": "4"}).arguments == ("3",)


def test_files_that_may_be_read_answer(bash: Bash) -> None:
    """As bash finds with the file there."""
    script = HOSTS.replace("grep", "head -n 1 #")
    (bash.folder / "hosts.txt").write_text("10.0.0.7 a\n10.0.0.8 b\n10.0.0.9 c\n")
    run = bash.run(script)
    reading = read_script(
        script,
        "train.sh",
        folder=str(bash.folder),
        read=lambda path: (bash.folder / "hosts.txt").read_text() if "hosts" in path else None,
    )
    launch = the_launch(reading)
    assert (launch.program, *launch.arguments) == run.launches[0].argv[-3:]
    assert launch.launcher_option("master_addr") == "10.0.0.7"


@pytest.mark.parametrize(
    "script",
    [
        "D=$(date +%Y%m%d)\ntorchrun train.py --save out/$D/x --log `date`.log",
        "A=$(hostname -I | awk '{print $1}')\nexport MASTER_ADDR=\"$A\"\ntorchrun train.py",
        "export PYTHONPATH=/x:$PYTHONPATH\ntorchrun train.py",
        'export LD_LIBRARY_PATH="/x${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\ntorchrun train.py',
        "torchrun --nproc_per_node $(nproc) train.py",
    ],
)
def test_what_may_be_asked_later_is_let_through(script: str, bash: Bash) -> None:
    """Dates, names of hosts, search paths: bash finds the same when it expands them later."""
    launch = launch_of(script)
    live = sorted(launch.live)
    assert live
    spoken = bash.run("torchrun echo " + " ".join(f'"{source}"' for source in live))
    values = dict(zip(live, spoken.launches[0].argv[2:], strict=True))
    words = [_spoken(word, values) for word in launch.words]
    run = bash.run(script).launches[0]
    assert tuple(words) == run.argv
    environment = {name: _spoken(text, values) for name, text in launch.environment.items()}
    assert environment == run.environment


def _spoken(text: str, values: Mapping[str, str]) -> str:
    for source, value in values.items():
        text = text.replace(source, value)
    return text


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("N=$(python -c 'print(8)')\ntorchrun train.py --n $N", ["--n", "N, on line 1", "N in"]),
        ("torchrun train.py --n $(./count.py)", ["--n", "$(./count.py) on line 1", "write the"]),
        ("source env.sh\ntorchrun train.py $ARGS", ["the program", "env.sh on line 1 may set it"]),
        ("export $(grep -v x .env)\ntorchrun train.py $N", ["may set it", "give N in"]),
        ("torchrun train.py --data *.json", ["--data", "*.json", "put it in quotes"]),
        ("A=$((1/0))\ntorchrun train.py --a $A", ["--a takes A", "division by 0"]),
        ("read -p 'model? ' M\ntorchrun train.py $M", ["M, on line 1", "typed in"]),
        ("export B=$(./x)\ntorchrun train.py", ["the exported B takes B, on line 1 $(./x)"]),
        ("cd $(./x)\ntorchrun train.py", ["the working directory takes $(./x)"]),
        ("source $(./x)/env.sh\ntorchrun train.py", ["source $(./x)/env.sh takes"]),
        ("if ./ready; then L=1; else L=2; fi\ntorchrun train.py $L", ["L, on line 1", "./ready"]),
        ("declare -i N=5+3\ntorchrun train.py $N", ["N, on line 1", "declare -i is not read"]),
        ("$RUN x\nL=$(./x) torchrun train.py", ["the exported L"]),
        ("O=$(./o)\ntorchrun $O train.py", ["takes O, on line 1"]),
    ],
)
def test_what_is_not_known_is_asked_for(script: str, wanted: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        launch_of(script)
    for words in wanted:
        assert words in str(caught.value)


def test_only_where_the_ranks_run_may_be_unknown() -> None:
    launch = launch_of(
        "export MASTER_ADDR=$(./find-master) MASTER_PORT=$((6000 + RANDOM % 100))\n"
        "torchrun --master_addr=$MASTER_ADDR --node_rank $(./rank) --nproc_per_node 8 train.py\n"
    )
    assert launch.nproc_per_node == 8
    assert launch.node_rank is None
    assert {doubt.is_layout for doubt in launch.doubts} == {True}


def test_a_way_that_ends_the_script_is_not_taken_where_nobody_knows() -> None:
    launch = launch_of(
        "command -v torchrun > /dev/null || { echo 'no torchrun'; exit 1; }\n"
        "if ! npu-smi info; then exit 2; fi\n"
        "check() { if grep -q x y; then return 1; fi; READY=yes; }\ncheck\n"
        "torchrun train.py $READY\n"
    )
    assert launch.arguments == ("yes",)


def test_both_ways_that_agree_are_one() -> None:
    launch = launch_of(
        "if ./ready; then A=1; B=2; else A=1; fi\ngrep -q x y && A=1\ntorchrun train.py $A\n"
    )
    assert launch.arguments == ("1",)
    assert launch.condition == ()


def test_a_text_that_holds_something_is_not_empty() -> None:
    script = (
        'D=out/$(date)\nif [ -z "$D" ]; then exit 1; fi\n[[ $D == "" ]] || A=1\ntorchrun t.py $A'
    )
    assert launch_of(script).arguments == ("1",)


def test_a_toolkits_script_is_taken_to_set_nothing_else() -> None:
    launch = launch_of(
        "source /usr/local/Ascend/ascend-toolkit/set_env.sh\nN=${N:-8}\n"
        "export LD_LIBRARY_PATH=$ASCEND_HOME_PATH/lib:$LD_LIBRARY_PATH\n"
        "torchrun --nproc_per_node $N train.py $EXTRA --end\n"
    )
    assert launch.nproc_per_node == 8
    assert launch.arguments == ("--end",)
    assert launch.environment == {"LD_LIBRARY_PATH": "${ASCEND_HOME_PATH-}/lib:${LD_LIBRARY_PATH-}"}


def test_sourced_scripts_that_may_be_read_count() -> None:
    files = {"/w/env.sh": 'N=4\nexport L="$1"\nHERE=$(dirname "$BASH_SOURCE")\nreturn\nN=5\n'}
    reading = read_script(
        "set -- outer\n. ./env.sh inner\ntorchrun train.py $N $HERE $1\n",
        "train.sh",
        folder="/w",
        read=files.get,
    )
    launch = the_launch(reading)
    assert launch.arguments == ("4", ".", "outer")
    assert launch.environment == {"L": "inner"}
    assert reading.sourced == ()

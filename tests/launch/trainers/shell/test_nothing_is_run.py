"""Reading a script runs nothing, opens nothing and changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.trainers.shell import read_script, the_launch

from .oracle import RECORDED, Bash

_WATCHED = ("open", "os.", "subprocess.", "shutil.", "socket.", "pty.")
_events: list[str] = []
_is_watching = False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _is_watching and event.startswith(_WATCHED):
        _events.append(f"{event} {arguments}")


sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[str]]:
    """What the process asks of the system meanwhile, as Python's audit events tell."""
    global _is_watching
    _events.clear()
    _is_watching = True
    try:
        yield _events
    finally:
        _is_watching = False


DANGEROUS = r"""
SAVE_PATH=
rm -rf $SAVE_PATH/*
find $SAVE_PATH -type f -exec chmod 640 {} \;
X=$(touch made; echo 8)
Y=`mkdir folder && echo 2`
echo text > written.txt
cat <<EOF > config.json
{}
EOF
cp a b && mv b c; git checkout .; pip install x
python -c "open('x', 'w')"
torchrun --nproc_per_node $X train.py --y $Y
chmod 440 *
trap 'rm -rf /' EXIT
"""


def test_no_process_and_no_file() -> None:
    with watched() as events:
        reading = read_script(DANGEROUS, "train.sh", exists=lambda path: False)
    assert events == []
    launch = the_launch(reading)
    assert launch.nproc_per_node == 8
    assert launch.arguments == ("--y", "2")


def test_what_bash_would_call_is_told_with_its_line(bash: Bash) -> None:
    """The commands that bash calls besides the launch are all among the skipped."""
    run = bash.run(DANGEROUS.replace("trap", "#"))
    reading = read_script(DANGEROUS, "train.sh")
    skipped = {item.text.split()[0]: item.line for item in reading.skipped}
    assert set(run.called) == {"rm", "find", "touch", "mkdir", "cp", "mv", "git", "pip", "chmod"}
    assert set(run.called) <= set(skipped)
    assert set(run.called) <= set(RECORDED)
    assert (skipped["rm"], skipped["find"], skipped["pip"]) == (3, 4, 11)


def test_files_that_it_would_write_are_told(tmp_path: Path, bash: Bash) -> None:
    script = (
        'N=3\ncat > "cfg/a.json" <<EOF\n{"n": $N, "d": "$(( N * 2 ))"}\nEOF\n'
        "echo one > b.txt; echo two >> b.txt\n"
        "printf '%s\\n' x | tee c.txt > /dev/null\n"
        "echo $(date) > unknown.txt\n"
        "torchrun train.py > train.log 2>&1\n"
    )
    (bash.folder / "cfg").mkdir()
    bash.run(script)
    reading = read_script(script, "train.sh", folder=str(bash.folder))
    names = {Path(path).relative_to(bash.folder).as_posix() for path in reading.written}
    assert names == {"cfg/a.json", "b.txt", "c.txt"}
    for path, text in reading.written.items():
        assert text == Path(path).read_text()
    assert the_launch(reading).logs == (str(bash.folder / "train.log"),)


def test_an_endless_script_is_left() -> None:
    reading = read_script("while true; do sleep 1; done\ntorchrun train.py\n", "train.sh")
    assert reading.launches == ()
    assert reading.ended is not None
    assert reading.ended.line == 1
    forever = read_script("f() { f; }\nf\ntorchrun train.py\n", "train.sh")
    assert forever.ended is not None
    assert "calls itself" in forever.ended.why
    nested = "".join(f"for a{i} in {{1..99}}; do " for i in range(9)) + ":" + "; done" * 9
    assert read_script(nested, "train.sh").ended is not None

"""Stand-ins for the programs that the cluster scripts call, in a folder for the PATH.

Each writes down what it was called with. `ray start` takes the place of a node that came up, `srun`
runs its command on this host as often as it has tasks, with $APPENDED behind it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLUSTERS = Path(__file__).resolve().parents[2] / "launch" / "clusters"

_RECORD = """
import json, os, sys
call = {"argv": sys.argv[1:], "env": dict(os.environ), "pid": os.getppid()}
with open(os.environ["RECORDS"], "a") as file:
    file.write(json.dumps(call) + "\\n")
"""
# The shells below must not find a stand-in where they mean Python itself.
_BASH = f'#!/usr/bin/env bash\n"{sys.executable}" -S -c \'{_RECORD}\' "$(basename "$0")" "$@"\n'

SRUN = """
tasks=1
while [[ $1 == --* ]]; do
    [[ $1 != --ntasks=* ]] || tasks=${1#--ntasks=}
    shift
done
pids=()
trap 'kill -TERM "${pids[@]}"' TERM
for ((task = 0; task < tasks; task++)); do "$@" ${APPENDED:-} & pids+=($!); done
code=0
for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null; do wait "$pid" && code=0 || code=$?; done
done
exit "$code"
"""
SCONTROL = """
case "$1 $2" in
"show hostnames") printf '%s\\n' node-a node-b ;;
"show job") echo "   StartTime=2026-01-01T00:00:00 EndTime=${END_TIME:-Unknown} Deadline=N/A" ;;
esac
"""
RAY = """
if [[ $1 == get-auth-token ]]; then
    mkdir -p ~/.ray && echo token >~/.ray/auth_token
    exit
fi
[[ -z ${RAY_FAILS:-} ]] || exit 1
for word in "$@"; do
    [[ $word != --temp-dir=* ]] || echo 10.0.0.1:6379 >"${word#--temp-dir=}/ray_current_cluster"
done
exec -a "ray $*" sleep 60
"""
PYTHON = """
[[ $1 != -c ]] || { echo "${NODES_HERE:-2}"; exit; }
trap 'sleep 0.5; touch closed; exit 130' TERM
[[ -z ${SWEEP_LASTS:-} ]] || { touch running; for _ in {1..600}; do sleep 0.1; done; }
exit "${SWEEP_ENDS_WITH:-0}"
"""


@dataclass(frozen=True)
class Desk:
    """A user's place: home, working folder, stand-ins and what they wrote down."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *programs: str) -> Desk:
        """A desk with these stand-ins."""
        desk = cls(folder)
        for name in ("bin", "home", "work"):
            (folder / name).mkdir()
        bodies = {"srun": SRUN, "scontrol": SCONTROL, "ray": RAY, "python": PYTHON}
        for name in programs:
            path = folder / "bin" / name
            path.write_text(_BASH + bodies[name])
            path.chmod(0o755)
        return desk

    @property
    def work(self) -> Path:
        """Where commands run."""
        return self.folder / "work"

    def env(self, **more: str) -> dict[str, str]:
        """The environment of a user who has nothing set but this."""
        path = f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin"
        records = str(self.folder / "records.jsonl")
        return {"PATH": path, "HOME": str(self.folder / "home"), "RECORDS": records, **more}

    def start(self, script: str, *words: str, **more: str) -> subprocess.Popen[str]:
        """Calls a cluster script and does not wait for it."""
        return subprocess.Popen(
            ["/bin/bash", str(CLUSTERS / script), *words],
            cwd=self.work,
            env=self.env(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *words: str, limit_s: float = 30.0, **more: str) -> tuple[int, str]:
        """Exit code, and all that it printed."""
        process = self.start(script, *words, **more)
        try:
            printed, errors = process.communicate(timeout=limit_s)
        finally:
            process.kill()
        return process.returncode, printed + errors

    def calls(self, program: str) -> list[tuple[list[str], Mapping[str, str]]]:
        """Arguments and environment of each call of a stand-in, in their order."""
        return [
            (call["argv"][1:], call["env"])
            for call in self._records()
            if call["argv"][0] == program
        ]

    def pids(self, program: str) -> list[int]:
        """The processes of all calls of a stand-in."""
        return [call["pid"] for call in self._records() if call["argv"][0] == program]

    def _records(self) -> Iterator[dict[str, Any]]:
        path = Path(self.env()["RECORDS"])
        for line in path.read_text().splitlines() if path.exists() else ():
            yield json.loads(line)


def is_running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def short_folder(base: Path) -> Path:
    """A name for a folder of Ray's that is short enough for its sockets; not made yet."""
    return Path(f"/tmp/at-t{os.getpid()}-{abs(hash(base.name)) % 1000}")

"""What bash itself does with a script: run in an empty folder, where every command is a shim."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHERS = ("torchrun", "msrun", "deepspeed", "accelerate", "python", "python3")
RECORDED = ("rm", "find", "chmod", "mkdir", "pip", "cp", "mv", "git", "npu-smi", "conda", "touch")
"""Commands that would change something: their shims only note that they were called."""

REAL = ("awk", "basename", "bash", "cat", "cut", "dirname", "env", "expr", "head", "nohup")
REAL_TOO = ("readlink", "realpath", "seq", "stdbuf", "tail", "tee", "tr", "wc")
ANSWERS = {"date": "20260101", "hostname": "10.0.0.7 ", "nproc": "64"}
"""What commands print whose answer only a machine knows."""

_BASE = {"HOME": "/home/user", "LANG": "C.UTF-8"}
_OF_BASH = ("_", "OLDPWD", "PATH", "PWD", "SHLVL")

_RECORDER = """#!/bin/bash
number=$(/usr/bin/find "$AT_RECORD" -name '*.argv' | /usr/bin/wc -l)
printf '%s\\0' "${0##*/}" "$@" > "$AT_RECORD/$number.argv"
/bin/cat "/proc/$$/environ" > "$AT_RECORD/$number.env"
pwd > "$AT_RECORD/$number.folder"
"""


@dataclass(frozen=True)
class Launched:
    """One call of a launcher. environment: what the script has added."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str


@dataclass(frozen=True)
class Run:
    """What came of a script. called: names of the other commands that it called."""

    launches: tuple[Launched, ...]
    called: tuple[str, ...]
    stderr: str
    status: int


class Bash:
    """Runs scripts in `folder`, which holds the script and nothing else at first."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.folder.mkdir()
        self._bin = root / "bin"
        self._bin.mkdir()
        self._records = root / "records"
        for name in LAUNCHERS:
            self._write(name, _RECORDER)
        for name in RECORDED:
            self._write(name, f'#!/bin/bash\necho {name} >> "$AT_RECORD/called"\n')
        for name, text in ANSWERS.items():
            self._write(name, f"#!/bin/bash\necho '{text}'\n")
        for name in REAL + REAL_TOO:
            real = shutil.which(name)
            assert real is not None
            (self._bin / name).symlink_to(real)

    def run(
        self,
        script: str,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        name: str = "train.sh",
    ) -> Run:
        """Runs `bash name arguments`."""
        shutil.rmtree(self._records, ignore_errors=True)
        self._records.mkdir()
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8", newline="")
        given = {**_BASE, **(environment or {})}
        done = subprocess.run(
            ["/bin/bash", name, *arguments],
            cwd=self.folder,
            env={**given, "PATH": str(self._bin), "AT_RECORD": str(self._records)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        called = self._records / "called"
        return Run(
            launches=tuple(self._launches(given)),
            called=tuple(called.read_text().split()) if called.exists() else (),
            stderr=done.stderr,
            status=done.returncode,
        )

    def _launches(self, given: Mapping[str, str]) -> list[Launched]:
        paths = sorted(self._records.glob("*.argv"), key=lambda path: int(path.stem))
        return [
            Launched(
                argv=tuple(path.read_text("utf-8").split("\0")[:-1]),
                environment=self._added(path.with_suffix(".env"), given),
                folder=path.with_suffix(".folder").read_text().strip(),
            )
            for path in paths
        ]

    @staticmethod
    def _added(path: Path, given: Mapping[str, str]) -> dict[str, str]:
        pairs = (entry.partition("=") for entry in path.read_text("utf-8").split("\0") if entry)
        found = {name: value for name, _, value in pairs}
        ours = (*_OF_BASH, "AT_RECORD")
        return {
            name: value
            for name, value in found.items()
            if name not in ours and given.get(name) != value
        }

    def _write(self, name: str, text: str) -> None:
        path = self._bin / name
        path.write_text(text)
        path.chmod(0o755)

"""Prints, as one JSON object, what the interpreter that runs this has and where it runs.

Run by file name with the trainer's own Python: standard library only, Python 3.8 on. torch
is asked for its version without being imported, which would take seconds.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path

PACKAGES = ("torch", "torch_npu", "numpy")
CANN_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
# As CANN's installation guide has them: a line `version=8.0.RC3` in the first, and
# `toolkit_running_version=[7.6.0.1.220:8.0.RC3]` in the second.
CANN_FILES = (f"{platform.machine()}-linux/ascend_toolkit_install.info", "version.cfg")
CANN_NAMES = ("version", "toolkit_running_version")
NPU_DRIVER = Path("/usr/local/Ascend/driver/version.info")
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


def probe(device: str, packages: Sequence[str] = ()) -> dict[str, str]:
    """Versions and hardware as strings by name; what is absent is left out.

    packages: looked for beside the usual ones; of those that are used from a git work tree,
    `NAME_commit` too.
    """
    found = {
        "python": platform.python_version(),
        "hostname": platform.node(),
        "cpu": cpu_model(),
        "cpu_count": str(len(os.sched_getaffinity(0))),
        **{package: version_of(package) for package in (*PACKAGES, *packages)},
        **{f"{package}_commit": commit_of(package) for package in packages},
    }
    if device == "npu":
        homes = [Path(os.environ[name]) for name in CANN_HOMES if os.environ.get(name)]
        found["cann"] = cann_version(homes)
        found["driver"] = named_value(NPU_DRIVER, ("version",))
    elif device == "cuda":
        found["driver"] = (text_of(NVIDIA_DRIVER).splitlines() or [""])[0].strip()
    return {name: value for name, value in found.items() if value}


def version_of(package: str) -> str:
    """The version of an installed package, empty when it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def commit_of(package: str) -> str:
    """The commit of the git work tree that a package is imported from, empty without one."""
    try:
        found = util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    if found is None or not found.origin or "site-packages" in found.origin:
        return ""  # an installed package has a version; its folder may lie in anyone's work tree
    for folder in Path(found.origin).resolve().parents:
        if (folder / ".git").exists():
            return head_of(folder / ".git")
    return ""


def head_of(git: Path) -> str:
    """The commit that is checked out; `git` is a file in a linked work tree or a submodule."""
    if git.is_file():
        git = git.parent / text_of(git).partition("gitdir:")[2].strip()
    common = git / (text_of(git / "commondir").strip() or ".")
    head = text_of(git / "HEAD").strip()
    name = head.partition("ref: ")[2]
    if not name:
        return head
    return text_of(git / name).strip() or text_of(common / name).strip() or packed(common, name)


def packed(git: Path, name: str) -> str:
    """The commit of a branch that git keeps in one file with others."""
    for line in text_of(git / "packed-refs").splitlines():
        commit, _, packed_name = line.partition(" ")
        if packed_name == name:
            return commit
    return ""


def cpu_model() -> str:
    """The processor's name as Linux has it, else the machine type."""
    for line in text_of(Path("/proc/cpuinfo")).splitlines():
        if line.lower().startswith(("model name", "hardware")):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def cann_version(homes: list[Path]) -> str:
    """The version of the CANN toolkit in the first of the folders that says one."""
    for home in homes:
        for file in CANN_FILES:
            value = named_value(home / file, CANN_NAMES)
            if value:
                return value.strip("[]").rpartition(":")[2]
    return ""


def named_value(path: Path, names: tuple[str, ...]) -> str:
    """The value of the first line `name=value` in a file with one of the names."""
    for line in text_of(path).splitlines():
        name, _, value = line.partition("=")
        if name.strip().lower() in names:
            return value.strip()
    return ""


def text_of(path: Path) -> str:
    """The text of a file, empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    json.dump(probe(sys.argv[1], sys.argv[2:]), sys.stdout)

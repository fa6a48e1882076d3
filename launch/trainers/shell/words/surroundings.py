"""What a script may ask of the machine, answered without running anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

FROM_LOGIN = frozenset(
    (
        "BASHPID",
        "CONDA_PREFIX",
        "EUID",
        "HOME",
        "HOSTNAME",
        "HOSTTYPE",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LOGNAME",
        "MACHTYPE",
        "OSTYPE",
        "PATH",
        "PPID",
        "PYTHONPATH",
        "RANDOM",
        "SECONDS",
        "SHELL",
        "TMPDIR",
        "UID",
        "USER",
    )
)
"""Variables that a script may expect of any machine. What they hold is decided where it runs."""

FROM_TOOLKIT = ("ASCEND_", "ATB_", "CMAKE_PREFIX_PATH", "CONDA_", "TOOLCHAIN_HOME")
"""How the names begin that scripts for the environment set, such as CANN's `set_env.sh`."""

TOOLKIT_SCRIPTS = ("set_env.sh", "setenv.bash", "setvars.sh", "activate", "conda.sh", ".bashrc")
"""Names of scripts that set up a toolkit and nothing of the training itself."""


@dataclass(frozen=True)
class Surroundings:
    """Where a script is read as if it ran there.

    environment: given variables; they also answer what the script itself would find out by
    running something. folder: the working directory. exists: whether a path is there; None:
    nobody knows. read: the text of a file, None where it is not to be read.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    exists: Callable[[str], bool] | None = None
    read: Callable[[str], str | None] = lambda path: None

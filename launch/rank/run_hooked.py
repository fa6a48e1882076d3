"""Runs a training program's own script after a hook was laid: `run_hooked.py HOOK SCRIPT ...`.

Started by file name with the program's own Python, which may be older and hold nothing of ours:
standard library only, Python 3.8 on.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Lays the hook and runs the script as `python SCRIPT ...` would."""
    hook, script = sys.argv[1], sys.argv[2]
    make_importable(Path(__file__).resolve().parents[1])
    steps = importlib.import_module("launch.rank.hooks.steps").HookedSteps.from_environment()
    importlib.import_module(f"launch.rank.hooks.{hook}").lay(steps)
    report_exceptions(steps)
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))  # noqa: PTH100, PTH120 (as Python does)
    runpy.run_path(script, run_name="__main__")
    steps.end()


def make_importable(package: Path) -> None:
    """Makes `launch` importable and nothing else that lies beside it, such as our own numpy."""
    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module
    spec.loader.exec_module(module)


def report_exceptions(steps) -> None:  # type: ignore[no-untyped-def] # loaded by name
    """Records an exception that ends the script, before Python prints it."""
    before = sys.excepthook

    def hook(kind, error, trace) -> None:  # type: ignore[no-untyped-def]
        steps.failed(error)
        before(kind, error, trace)

    sys.excepthook = hook


if __name__ == "__main__":
    main()

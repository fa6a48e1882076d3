"""Launch scripts in bash: read without running them, and written anew.

`read_script` goes through a script as bash would and notes what it would launch, `the_launch`
picks the training to tune, `Options` changes its arguments, `render_script` writes a script that
does that launch and nothing besides.
"""

from launch.trainers.shell.arguments import Option, Options
from launch.trainers.shell.choice import the_launch
from launch.trainers.shell.reader import read_script
from launch.trainers.shell.reading import (
    Doubt,
    Ended,
    Exported,
    LaunchCommand,
    Prepared,
    ScriptReading,
    Skipped,
    Sourced,
    Step,
    Unset,
)
from launch.trainers.shell.render import render_script

__all__ = [
    "Doubt",
    "Ended",
    "Exported",
    "LaunchCommand",
    "Option",
    "Options",
    "Prepared",
    "ScriptReading",
    "Skipped",
    "Sourced",
    "Step",
    "Unset",
    "read_script",
    "render_script",
    "the_launch",
]

"""What is noted while a script is read, whichever of its shells it happens in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from launch.trainers.shell.reading import LaunchCommand, Skipped
from launch.trainers.shell.words.values import Text


@dataclass
class Journal:
    """Notes, in the order of what happens.

    outputs: files that got output of commands in pipelines. tests: what decides, unknown, whether
    the present place is reached. said: the last text that went to the terminal.
    """

    skipped: dict[Skipped, None] = field(default_factory=dict)
    launches: list[LaunchCommand] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    said: str = ""

    def skip(self, line: int, text: str, other_script: str | None = None) -> None:
        """A command was not run."""
        self.skipped[Skipped(line, text, other_script)] = None

    def write(self, path: str, text: Text, is_appended: bool) -> None:
        """A file was written; it is forgotten where part of its text is unknown."""
        old = self.written.pop(path, "" if is_appended else None)
        if text.is_known:
            self.written[path] = (old or "") + str(text) if is_appended else str(text)

    def log(self, first: int, path: str) -> None:
        """The launches from the `first` on, counted from 0, print into a file."""
        for at in range(first, len(self.launches)):
            launch = self.launches[at]
            if path not in launch.logs:
                self.launches[at] = replace(launch, logs=(*launch.logs, path))

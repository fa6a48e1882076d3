"""Steps in a log: what a program said before it went on training did not end it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Megatron's and mmcv's iterations, `step: 4  loss`, `global step 12`, a Hugging Face log entry.
# Bars of tqdm are none: weights are loaded under them too.
_STEP = re.compile(
    r"\biter(?:ation)?s?[ :=]*\[?[ ]*([0-9]+)[ ]*/[ ]*[0-9]+|(?<![\w-])step[ :=]+([0-9]+)"
    r"|\{'loss': ([0-9.]+)",
    re.IGNORECASE,
)
_ENOUGH = 2  # ranks that share a log may print the step in hand after one of them has failed


@dataclass(frozen=True)
class Progress:
    """Where in a log steps were reported: (line number, what tells the step from others)."""

    steps: tuple[tuple[int, str], ...]

    def went_on_after(self, line: int) -> bool:
        """Whether the program made several steps after that line."""
        return len({step for number, step in self.steps if number > line}) >= _ENOUGH


def find_progress(lines: list[str]) -> Progress:
    """The steps that these lines report."""
    found = ((number, _STEP.search(line)) for number, line in enumerate(lines))
    return Progress(
        tuple((number, match[1] or match[2] or match[3]) for number, match in found if match)
    )

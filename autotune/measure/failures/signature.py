"""One text that names a kind of failure, and how much it says about the cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from autotune.measure.failures.kinds import FailureKind, Policy


class Certainty(IntEnum):
    """How near to the cause a text is. The more certain one wins, whoever said it."""

    CONSEQUENCE = 1  # another rank is gone, or something failed: never the cause
    SYMPTOM = 2  # something was waited for in vain
    EXCEPTION = 3  # an exception or a signal that ended a rank, in no list here
    CAUSE = 4  # the text names what went wrong


class Scope(StrEnum):
    """Where a text counts."""

    LINE = "line"  # anywhere in a line
    EXCEPTION = "exception"  # only in the line in which an exception ended


@dataclass(frozen=True)
class Signature:
    """A text of one program or library.

    pattern: a regular expression that stays within one line. source: where the text comes
    from (file, documentation, issue). frame: what a frame of the exception's traceback must
    match, written `path in function`. policy: where this text calls for another than its kind.
    is_code: a number, beside which a text of the same kind says more.
    Raises ValueError for a pattern that could cross lines or a missing source.
    """

    kind: FailureKind
    pattern: str
    source: str
    certainty: Certainty = Certainty.CAUSE
    scope: Scope = Scope.LINE
    frame: str | None = None
    policy: Policy | None = None
    is_code: bool = False

    def __post_init__(self) -> None:
        if not self.source:
            raise ValueError(f"signature {self.pattern!r} needs a source")
        if re.search(r"(?<!\\)\[\^(?!\\n)", self.pattern):
            raise ValueError(f"{self.pattern!r}: a negated set must exclude \\n, as [^\\n...]")
        if self.frame is not None and self.scope is not Scope.EXCEPTION:
            raise ValueError(f"{self.pattern!r}: only an exception has frames")
        re.compile(self.pattern, re.MULTILINE)

    def find(self, text: str) -> list[int]:
        """Where the pattern begins in `text`, which may have many lines."""
        return [match.start() for match in re.finditer(self.pattern, text, re.MULTILINE)]

    def names(self, exception: str, frames: str = "") -> bool:
        """Whether it names the exception, given its line and its frames, one a line."""
        if not re.search(self.pattern, exception, re.MULTILINE):
            return False
        return self.frame is None or bool(re.search(self.frame, frames, re.MULTILINE))

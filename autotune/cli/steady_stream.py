"""An output that may go away: who started a sweep in the evening need not hear all of it."""

from __future__ import annotations

import os
from typing import TextIO


class SteadyStream:
    """Passes text on to a stream as long as that takes it, and is silent from then on.

    A terminal that is closed, or a program that read the output and has ended, ends no sweep.
    Characters that the stream's encoding lacks are written as escapes. stream: None where the
    program was started without one.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return (self._stream.encoding if self._stream is not None else None) or "utf-8"

    def write(self, text: str) -> int:
        """Takes all of the text, whether or not anyone hears it."""
        if self._stream is None:
            return len(text)
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoded = text.encode(self.encoding, "backslashreplace")
            return self.write(encoded.decode(self.encoding)) and len(text)
        except OSError:
            self._fall_silent()
        return len(text)

    def flush(self) -> None:
        """Passes on what was written."""
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError:
            self._fall_silent()

    def isatty(self) -> bool:
        """Whether a person sits there."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """Raises OSError without a stream."""
        if self._stream is None:
            raise OSError("there is no stream")
        return self._stream.fileno()

    def _fall_silent(self) -> None:
        """What the stream still holds must not fail again when the program ends."""
        assert self._stream is not None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream = None

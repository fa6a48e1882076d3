"""A rank's output: read without ever blocking the rank, kept within a bound on disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

HEAD_BYTES = 1 << 20
TAIL_BYTES = 4 << 20
_PIPE_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 18
_CHUNKS_PER_TURN = 16


class BoundedLog:
    """A file with the first `head` bytes written to it and at least the last half of `tail`.

    While it is written the tail lies beside it in two files that replace each other;
    `close` puts all together. When the disk is full the output is dropped: a trial must
    not fail or wait for the sake of its log.
    """

    def __init__(self, path: Path, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._path = path
        self._room = head
        self._segment_bytes = tail // 2
        self._older = path.with_name(f"{path.name}.tail-older")
        self._newer = path.with_name(f"{path.name}.tail-newer")
        self._file = path.open("wb", buffering=0)
        self._in_segment: int | None = None  # bytes in the newer segment, None: still in the head
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Appends output."""
        try:
            self._append(memoryview(data))
        except OSError:
            self._dropped += len(data)

    def _append(self, data: memoryview) -> None:
        if self._in_segment is None:
            self._file.write(data[: self._room])
            data, self._room = data[self._room :], max(0, self._room - len(data))
        while data:
            if self._in_segment is None or self._in_segment >= self._segment_bytes:
                self._next_segment()
            assert self._in_segment is not None
            part = data[: self._segment_bytes - self._in_segment]
            self._file.write(part)
            self._in_segment += len(part)
            data = data[len(part) :]

    def _next_segment(self) -> None:
        self._file.close()
        if self._older.exists():
            self._dropped += self._older.stat().st_size
        if self._in_segment is not None:
            self._newer.replace(self._older)
        self._file = self._newer.open("wb", buffering=0)
        self._in_segment = 0

    def close(self) -> None:
        """Joins head and tail in one file. May be repeated."""
        if self._file.closed:
            return
        self._file.close()
        if self._in_segment is None:
            return
        try:
            with self._path.open("ab") as whole:
                if self._dropped:
                    whole.write(b"\n[... %d bytes of output left out ...]\n" % self._dropped)
                for segment in (self._older, self._newer):
                    if segment.exists():
                        whole.write(segment.read_bytes())
                        segment.unlink()
        except OSError:
            return  # a full disk: head and tail stay as they lie


class RankOutput:
    """The reading end of a rank's output pipe and the log that it goes to.

    listener: is given the output too.
    """

    def __init__(
        self, descriptor: int, log: BoundedLog, listener: Callable[[bytes], None] | None = None
    ) -> None:
        self.descriptor = descriptor
        self._log = log
        self._listener = listener
        os.set_blocking(descriptor, False)
        # A larger pipe spares the rank from waiting for us during a burst; above
        # /proc/sys/fs/pipe-user-pages-soft the default size stays.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def pump(self) -> bool:
        """Moves what lies in the pipe, within a bound a call, to the log; False at its end."""
        for _ in range(_CHUNKS_PER_TURN):
            try:
                data = os.read(self.descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._log.write(data)
            if self._listener is not None:
                self._listener(data)
        return True

    def close(self) -> None:
        """Takes what is left in the pipe and closes the log, once."""
        self.pump()
        self._log.close()

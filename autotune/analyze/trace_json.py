"""Chrome-trace JSON, event by event: what Kineto and torch_npu write, plain or gzipped.

Either a bare list of events, or an object that has them under `traceEvents` with other keys
around it (the format: "Trace Event Format", Chromium project). A gigabyte is read in constant
memory. A killed job leaves files that end in the middle: what came before is given all the
same. Written on the standard library: `ijson` (yajl) measured a quarter faster (88 against
67 MB per CPU second), but gives up at `NaN`, control characters and bytes that are no UTF-8, all
of which profilers write, and needs a second pass for the other keys.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from autotune.errors import UserError

_CHUNK_BYTES = 1 << 20
# One event or one other key at most; something longer is a quote or a bracket that never closes.
_LONGEST_VALUE = 64 << 20
# How close to the end of what was read an error may come from a token that goes on after it:
# `-Infinity`, `\uXXXX`, the sign or the exponent of a number.
_LONGEST_TOKEN = 16
# Microseconds (101 days) up to which neighbouring floats are less than a nanosecond apart.
_EXACT_FLOAT = 2.0**43
_GZIP_MAGIC = b"\x1f\x8b"
# What profilers put before the events: a file cut there is a trace that was cut.
_KNOWN_KEYS = frozenset(
    {"schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "traceName"}
    | {"baseTimeNanoseconds", "record_shapes", "profile_memory", "with_stack", "otherData"}
)

# Microseconds of up to this power of ten are times; Decimal keeps 28 digits exactly.
_LARGEST_EXPONENT = 20

Event = dict[str, Any]


class NotATraceError(UserError):
    """The file holds no Chrome trace."""


class TraceFile:
    """One trace file. `events()` reads it; `other` and `cut` are complete when that has ended.

    other: the top-level keys besides `traceEvents`, by name. cut: the file ends in the middle,
    its gzip stream does, or what follows the events given so far is no JSON.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.other: dict[str, Any] = {}
        self.cut = False

    def events(self) -> Iterator[Event]:
        """The events in the order of the file, as `json` reads them: text stays text.

        A number beyond 2**43 with a fraction that no float holds (microseconds since the epoch) is
        a `decimal.Decimal`. What is no object is passed over. Raises `NotATraceError` when the
        file turns out to hold no trace.
        """
        self.other, self.cut = {}, False
        with self.path.open("rb") as file:
            text = _Text(_plain(file))
            try:
                yield from self._events(text)
            except _BrokenError:
                self.cut = True

    def _events(self, text: _Text) -> Iterator[Event]:
        opening = text.take()
        if opening == "[":
            yield from self._bare_list(text)
        elif opening == "{":
            yield from self._object(text)

    def _bare_list(self, text: _Text) -> Iterator[Event]:
        found = False
        try:
            for value in text.elements():
                if not found and not (isinstance(value, dict) and "ph" in value):
                    raise _no_trace(self.path, "a JSON list of something else than trace events")
                found = True
                if isinstance(value, dict):
                    yield value
        except _BrokenError as error:
            if not found and not error.at_end:
                raise _no_trace(self.path, "a bracket, but no JSON after it") from None
            raise

    def _object(self, text: _Text) -> Iterator[Event]:
        found = False
        try:
            for key in text.names():
                if key == "traceEvents" and text.peek() == "[":
                    found = True
                    text.take()
                    yield from (value for value in text.elements() if isinstance(value, dict))
                else:
                    self.other[key] = text.value()
        except _BrokenError:
            if not found and not self.other.keys() & _KNOWN_KEYS:
                raise _no_trace(self.path, "broken JSON without the key 'traceEvents'") from None
            raise
        if not found:
            keys = ", ".join(repr(key) for key in list(self.other)[:6]) or "none"
            raise _no_trace(self.path, f"a JSON object without 'traceEvents' (its keys: {keys})")


def read_events(path: Path) -> TraceFile:
    """The trace in `path`, not read yet but for its first bytes.

    Raises `NotATraceError` when they do not begin a trace, or the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = _plain(file).read1(256)
    except (OSError, EOFError, zlib.error) as error:
        raise NotATraceError(f"cannot read {path}: {_reason(error)}") from error
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not head:
        raise _no_trace(path, "an empty file")
    if start[:1] not in (b"[", b"{"):
        raise _no_trace(path, f"{bytes(head[:24])!r}")
    return TraceFile(path)


def nanoseconds(value: object) -> int | None:
    """Exact whole nanoseconds of a trace's `ts` or `dur` in microseconds.

    Takes numbers and text (decimals, blanks and tabs around them). None for what is no finite
    number.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * 1000 if abs(value) < 10**_LARGEST_EXPONENT else None
    if isinstance(value, float) and abs(value) < _EXACT_FLOAT / 2:
        return round(value * 1000)
    if not isinstance(value, (float, str, Decimal)):
        return None
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return None
    if not exact.is_finite() or exact.adjusted() > _LARGEST_EXPONENT:
        return None
    return int(exact.scaleb(3).to_integral_value())


class _ByteStream(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _BrokenError(Exception):
    """The text ends here (`at_end`), or goes on with what is no JSON."""

    def __init__(self, *, at_end: bool) -> None:
        super().__init__()
        self.at_end = at_end


class _Text:
    """The stretch of the text that is in memory, and where in it the next value begins."""

    _blanks = re.compile(r"[\s,:]*")

    def __init__(self, stream: _ByteStream) -> None:
        self._stream = stream
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._decode = json.JSONDecoder(strict=False, parse_float=_fraction).raw_decode
        self._text = ""
        self._position = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is no blank and no separator. Raises at the end."""
        while True:
            match = self._blanks.match(self._text, self._position)
            assert match is not None
            self._position = match.end()
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read(_CHUNK_BYTES):
                raise _BrokenError(at_end=True)

    def take(self) -> str:
        """`peek`, and goes past it."""
        character = self.peek()
        self._position += 1
        return character

    def value(self) -> Any:
        """The next JSON value. Raises when it is cut or broken."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                unfinished = self._is_unfinished(error)
                if unfinished and self._extend():
                    continue
                raise _BrokenError(at_end=unfinished) from error
            # A number that reaches the end of what was read may have more digits.
            if end == len(self._text) and self._read(_CHUNK_BYTES):
                continue
            self._position = end
            return value

    def elements(self) -> Iterator[Any]:
        """The values of a list whose bracket was taken, to its closing bracket."""
        while self.peek() != "]":
            yield self.value()
        self.take()

    def names(self) -> Iterator[str]:
        """The names in an object whose brace was taken; the caller takes each value."""
        while self.peek() == '"':
            yield str(self.value())
        if self.take() != "}":
            raise _BrokenError(at_end=False)

    def _is_unfinished(self, error: Exception) -> bool:
        """Whether the value may be right so far, and fail for want of text."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        at_the_end = error.pos >= len(self._text) - _LONGEST_TOKEN
        return at_the_end or error.msg.startswith("Unterminated string")

    def _extend(self) -> bool:
        """Reads on for a long value. Twice as much each time, for it is parsed anew each time."""
        held = len(self._text) - self._position
        return held <= _LONGEST_VALUE and self._read(max(_CHUNK_BYTES, held))

    def _read(self, size: int) -> bool:
        """Adds about `size` bytes. False where there are no more."""
        pieces = [self._text[self._position :]]
        wanted = size
        while wanted > 0 and not self._ended:
            try:
                data = self._stream.read1(wanted)
            except (EOFError, OSError, zlib.error):
                data = b""  # a gzip stream that was cut or damaged
            self._ended = not data
            wanted -= len(data)
            pieces.append(self._utf8.decode(data, final=self._ended))
        self._text = "".join(pieces)
        self._position = 0
        return len(self._text) > len(pieces[0])


def _fraction(text: str) -> float | Decimal:
    number = float(text)
    return number if abs(number) < _EXACT_FLOAT or repr(number) == text else Decimal(text)


def _plain(file: BinaryIO) -> _ByteStream:
    """The file's content, unpacked where it is gzip: names do not tell."""
    magic = file.read(len(_GZIP_MAGIC))
    file.seek(0)
    if magic == _GZIP_MAGIC:
        return gzip.GzipFile(fileobj=file)
    assert hasattr(file, "read1")
    return file


def _no_trace(path: Path, found: str) -> NotATraceError:
    return NotATraceError(
        f"{path} is no trace: found {found}; expected Chrome-trace JSON, plain or gzipped "
        "(a list of events, or an object with 'traceEvents'), as torch.profiler's "
        "export_chrome_trace and torch_npu's trace_view.json are"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__

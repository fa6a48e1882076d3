"""All signatures; where two name the same line, the more certain counts, then the earlier one."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.measure.failures import ascend, cuda, distributed, host, programs
from autotune.measure.failures.signature import Scope, Signature

SIGNATURES: tuple[Signature, ...] = (
    *cuda.SIGNATURES,
    *ascend.SIGNATURES,
    *distributed.SIGNATURES,
    *host.SIGNATURES,
    *programs.SIGNATURES,
)

LINE_SIGNATURES: tuple[Signature, ...] = tuple(s for s in SIGNATURES if s.scope is Scope.LINE)
EXCEPTION_SIGNATURES: tuple[Signature, ...] = tuple(
    s for s in SIGNATURES if s.scope is Scope.EXCEPTION
)


def line_matches(text: str) -> Iterator[tuple[int, Signature]]:
    """Where texts begin that count anywhere: (position, signature), in the order of the table."""
    for signature in LINE_SIGNATURES:
        for position in signature.find(text):
            yield position, signature


def name_exception(exception: str, frames: str) -> Signature | None:
    """What an exception is, by its line and its frames; None where it is in no list."""
    names = (s for s in EXCEPTION_SIGNATURES if s.names(exception, frames))
    return max(names, key=lambda signature: signature.certainty, default=None)

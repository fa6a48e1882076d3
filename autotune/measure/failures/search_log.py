"""A log -> what it says, by the table of signatures and by the exceptions in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.measure.failures.device_opening import is_opening_device
from autotune.measure.failures.evidence import Finding, RankEvidence
from autotune.measure.failures.kinds import FailureKind
from autotune.measure.failures.log_lines import Line, Log
from autotune.measure.failures.progress import find_progress
from autotune.measure.failures.signature import Certainty, Signature
from autotune.measure.failures.table import line_matches, name_exception
from autotune.measure.failures.tracebacks import Raised, chains

_CAUGHT = re.compile(r"Caught \w+ in (?:DataLoader worker process|pin memory thread)")
# What torchrun and its like say when a rank has ended; then the ranks share the log.
_SUMMARY = re.compile(r"ChildFailedError|ProcessExitedException|SignalException|KeyboardInterrupt")


def search_log(log: Log, raised: Sequence[Raised], evidence: RankEvidence) -> list[Finding]:
    """Everything in a log that may say why, in its order; what the program got over left out.

    raised: the exceptions in the log.
    """
    found = _by_text(log, raised, evidence)
    for ended in _uncaught(log, raised, found):
        number, signature = ended.line.number, name_exception(ended.text, ended.frames_text)
        if signature is None:
            if not _in_message(log, ended, found):
                found[number] = _unknown(log, ended, evidence)
        elif number not in found or _says_more(signature, found[number]):
            found[number] = _finding(signature, log, number, ended, evidence)
    root = {r.line.number: _root(r, raised) for r in raised if _CAUGHT.search(r.text)}
    progress = find_progress([line.body for line in log.lines])
    return [
        _with_root(finding, root.get(number))
        for number, finding in sorted(found.items())
        if not progress.went_on_after(number)
    ]


def _by_text(log: Log, raised: Sequence[Raised], evidence: RankEvidence) -> dict[int, Finding]:
    """What lines say by themselves, by their numbers."""
    best: dict[int, Signature] = {}
    for position, signature in line_matches(log.text):
        number = log.line_at(position).number
        if number not in best or signature.certainty > best[number].certainty:
            best[number] = signature
    said_by = {line.number: r for r in raised for line in log.message_at(r.line.number)}
    return {
        number: _finding(signature, log, number, said_by.get(number), evidence)
        for number, signature in best.items()
    }


def _says_more(signature: Signature, finding: Finding) -> bool:
    """A text that counts for its frames is the more special one."""
    return signature.certainty > finding.certainty or signature.frame is not None


def _uncaught(log: Log, raised: Sequence[Raised], found: Mapping[int, Finding]) -> list[Raised]:
    """The exceptions that ended ranks: of each rank the last chain.

    What a program has caught and printed comes before. In a log that ranks share without
    labels, other ranks' chains come before too, and the launcher's summary is last: there the
    last chain counts that is no mere consequence.
    """
    by_label: dict[str, list[Raised]] = {}
    for each in raised:
        by_label.setdefault(each.line.label, []).append(each)
    ended = []
    for group in by_label.values():
        is_shared = any(_SUMMARY.search(each.text) for each in group)
        for chain in reversed(chains(group)):
            ended += chain
            if not is_shared or any(not _is_weak(log, each, found) for each in chain):
                break
    return ended


def _is_weak(log: Log, raised: Raised, found: Mapping[int, Finding]) -> bool:
    signature = name_exception(raised.text, raised.frames_text)
    if signature is not None:
        return signature.certainty < Certainty.EXCEPTION
    near = _in_message(log, raised, found)
    return bool(near) and all(finding.certainty < Certainty.EXCEPTION for finding in near)


def _in_message(log: Log, raised: Raised, found: Mapping[int, Finding]) -> list[Finding]:
    """What is found in the lines of an exception's message."""
    numbers = (line.number for line in log.message_at(raised.line.number))
    return [found[number] for number in numbers if number in found]


def _root(caught: Raised, raised: Sequence[Raised]) -> Raised | None:
    """What a worker process raised, where the exception only says that one did."""
    later = [r for r in raised if r.line.number > caught.line.number and r.is_original]
    return later[0] if later else None


def _with_root(finding: Finding, root: Raised | None) -> Finding:
    if root is None:
        return finding
    return replace(finding, quote=root.text, frame=root.place or finding.frame)


def _finding(
    signature: Signature,
    log: Log,
    number: int,
    raised: Raised | None,
    evidence: RankEvidence,
) -> Finding:
    line = log.lines[number]
    message = log.message_at(number)
    context = "\n".join(each.body for each in message)
    return Finding(
        signature.kind,
        signature.certainty,
        evidence.rank if line.rank is None else line.rank,
        evidence.log_name,
        line.body.strip(),
        number,
        context,
        None if raised is None else raised.place,
        _time(message),
        signature.policy,
        is_opening_device(context, "" if raised is None else raised.frames_text),
        signature.is_code,
    )


def _unknown(log: Log, raised: Raised, evidence: RankEvidence) -> Finding:
    rank = evidence.rank if raised.line.rank is None else raised.line.rank
    number = raised.line.number
    return Finding(
        FailureKind.CRASHED,
        Certainty.EXCEPTION,
        rank,
        evidence.log_name,
        raised.text,
        number,
        frame=raised.place,
        time_s=_time(log.message_at(number)),
    )


def _time(lines: Sequence[Line]) -> float | None:
    """Of the line or of the next ones, which may carry the time of the same message."""
    times = (line.time_s for line in lines[:3])
    return next((time_s for time_s in times if time_s is not None), None)

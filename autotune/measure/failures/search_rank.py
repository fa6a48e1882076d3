"""A rank's records, and its log where they do not say the cause -> what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from autotune.measure.failures.device_opening import is_opening_device
from autotune.measure.failures.evidence import Finding, RankEvidence
from autotune.measure.failures.kinds import FailureKind
from autotune.measure.failures.log_lines import Line, Log
from autotune.measure.failures.search_log import search_log
from autotune.measure.failures.signature import Certainty, Signature
from autotune.measure.failures.table import line_matches, name_exception
from autotune.measure.failures.tracebacks import Raised, find_exceptions
from autotune.measure.records import RankError

# Exceptions that say nothing by their class: the log may know more than the record.
_VAGUE = re.compile(
    r"(?:\w+\.)*(?:RuntimeError|AcceleratorError|Dist\w*Error|SystemExit|Exception)\b|no message$"
)
# What the recorder calls an error counts where its text names none (launch/rank/recorder.py).
_RECORDED: Mapping[str, FailureKind] = MappingProxyType(
    {"oom": FailureKind.DEVICE_OOM, "config": FailureKind.CONFIGURATION_REFUSED}
)
_SAME_CHARS = 80  # that a recorded message and an exception in the log share


def search_rank(evidence: RankEvidence) -> list[Finding]:
    """What a rank says. What it recorded are its last words; a log has older ones too."""
    log = Log.parse(evidence.log)
    raised = find_exceptions(log.lines)
    recorded = [_of_record(error, evidence, raised) for error in evidence.errors]
    if any(not _is_vague(finding) for finding in recorded):
        return recorded
    return recorded + search_log(log, raised, evidence)


def search_records(evidence: RankEvidence) -> list[Finding]:
    """What a rank recorded."""
    return [_of_record(error, evidence, ()) for error in evidence.errors]


def _is_vague(finding: Finding) -> bool:
    if finding.certainty is Certainty.EXCEPTION:
        return bool(_VAGUE.match(finding.quote))
    return finding.certainty < Certainty.CAUSE


def _of_record(error: RankError, evidence: RankEvidence, in_log: Sequence[Raised]) -> Finding:
    message = Log.parse(error.message.strip())
    first = message.lines[0].body.strip() if message.lines else error.kind
    raised = _in_log(first, in_log)
    number, signature = _named(message, raised)
    kind, certainty, policy = FailureKind.CRASHED, Certainty.EXCEPTION, None
    if signature is not None:
        kind, certainty, policy = signature.kind, signature.certainty, signature.policy
    if certainty < Certainty.CAUSE and error.kind in _RECORDED:
        kind, certainty, policy = _RECORDED[error.kind], Certainty.CAUSE, None
    return Finding(
        kind,
        certainty,
        error.rank,
        evidence.records_name,
        message.lines[number].body.strip() if number else first,
        context=message.text,
        frame=raised.place,
        policy=policy,
        opens_device=is_opening_device(message.text, raised.frames_text),
    )


def _in_log(first_line: str, in_log: Sequence[Raised]) -> Raised:
    """The recorded exception with the frames that the log has of it."""
    same = [r for r in in_log if r.text[:_SAME_CHARS] == first_line[:_SAME_CHARS] and r.frames]
    return same[-1] if same else Raised(Line(0, first_line), first_line)


def _named(message: Log, raised: Raised) -> tuple[int, Signature | None]:
    """The line of the message that says most, and how."""
    exception = name_exception(raised.text, raised.frames_text)
    matches = [] if exception is None else [(0, exception)]
    matches += [(message.line_at(at).number, found) for at, found in line_matches(message.text)]
    return max(matches, key=lambda match: match[1].certainty, default=(0, None))

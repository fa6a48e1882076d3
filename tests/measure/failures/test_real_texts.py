"""Texts that people have posted: their kind, and the words that say so."""

from __future__ import annotations

import re

import pytest

from autotune.measure.failures.evidence import RankEvidence
from tests.measure.failures.made import error, of, of_log
from tests.measure.failures.real_texts import ALL, Case


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_in_a_log(case: Case) -> None:
    diagnosis = of_log(case.text, device=case.device, steps=case.steps)
    assert diagnosis.kind is case.kind
    assert case.quoted in diagnosis.quote
    assert diagnosis.where == "rank0.log"


def recorded(case: Case) -> str:
    """The message as a recorder writes it: the last exception with all its lines."""
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in case.text.splitlines()]
    begins = [n for n, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception): ", line)]
    return "\n".join(lines[begins[-1] :]) if begins else ""


@pytest.mark.parametrize("case", [*filter(recorded, ALL)], ids=lambda case: case.name)
def test_as_a_record_beside_its_log(case: Case) -> None:
    evidence = RankEvidence(0, (error(0, recorded(case)),), case.text, case.steps)
    assert of(evidence, device=case.device).kind is case.kind

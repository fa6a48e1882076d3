"""What ending trials early saves, and whether the same point wins.

Runs the same points twice on this machine, once with racing and once with every trial to its
last step, each followed by the same certification, and compares device time and winners:

    python benchmarks/racing.py model=tiny_vlm search.max_trials=16 measure.max_steps=32
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from autotune.certify.verdict import verdict_of
from autotune.cli.studies import KeptStudy, read_study

_VARIANTS = {
    "racing": ["measure.race=true"],
    # No interval is that narrow, so every trial makes measure.max_steps.
    "to the end": ["measure.race=false", "measure.precision=1e-9"],
}


def main() -> None:
    """Prints a line for each variant, then the saving."""
    overrides = sys.argv[1:] or ["model=tiny_vlm", "search.max_trials=16", "measure.max_steps=32"]
    folder = Path(tempfile.mkdtemp(prefix="racing-"))
    spent = {}
    for name, extra in _VARIANTS.items():
        where = folder / name.replace(" ", "-")
        command = [sys.executable, "-m", "autotune", *overrides, *extra]
        # The same points in both: random proposals do not depend on what was measured.
        command += ["search.sampler=random", f"study.dir={where}", "measure.control_every=0"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        study = read_study(where)
        spent[name] = sum(record.cost_s for record in study.records)
        print(f"{name:<11} {spent[name]:6.0f} s of trials  {_statuses(study)}  {_winner(study)}")
    saved = 1 - spent["racing"] / spent["to the end"]
    print(f"racing takes {saved:.0%} less device time for the trials; studies in {folder}")


def _statuses(study: KeptStudy) -> str:
    counts = Counter(record.status.value for record in study.records)
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _winner(study: KeptStudy) -> str:
    verdict = verdict_of(study.results)
    if verdict is None:
        return "nothing feasible"
    gain = "" if verdict.gain is None else f" {verdict.gain.ratio:.2f} x"
    certified = "certified" if verdict.certified else "not certified"
    return f"trial {verdict.winner.record.trial}{gain} {certified}: {verdict.winner.point}"


if __name__ == "__main__":
    main()

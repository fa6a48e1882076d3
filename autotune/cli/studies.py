"""Which study a verb is about, and what its folder says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autotune.certify.results import Results
from autotune.cli.arguments import Invocation
from autotune.cli.wiring import Problem, compose_problem, kept_problem
from autotune.config.places import expanded
from autotune.errors import UserError, did_you_mean
from autotune.study.identity import Identity
from autotune.study.paths import StudyPaths
from autotune.study.repeat import Repeat
from autotune.study.study import repeats_journal_of, trials_journal
from autotune.study.trial_record import TrialRecord

_STUDIES = Path("studies")


@dataclass(frozen=True)
class KeptStudy:
    """A study as its folder tells it, read without the database."""

    paths: StudyPaths
    problem: Problem
    identity: Identity
    records: tuple[TrialRecord, ...]
    repeats: tuple[Repeat, ...]

    @property
    def results(self) -> Results:
        """All runs, and what follows from them."""
        return self.problem.results(self.records, self.repeats)


def find_study(invocation: Invocation) -> Path:
    """The folder of the study that was named. Raises UserError."""
    keys = dict(override.partition("=")[::2] for override in invocation.overrides)
    if "model" in keys:
        composed = compose_problem(invocation.overrides, invocation.config_dir)
        return _existing(composed.config.study_dir)
    unknown = [key for key in keys if key not in ("study.name", "study.dir")]
    if unknown:
        raise UserError(
            f"{unknown[0]} means nothing to {invocation.verb} without a model; give "
            "study.name=NAME, study.dir=DIR, or model=NAME as for the sweep"
        )
    if "study.dir" in keys:
        return _existing(expanded(_unquoted(keys["study.dir"]), "study.dir"))
    if name := _unquoted(keys.get("study.name", "")):
        return _existing(_STUDIES / name)
    names = existing_studies(_STUDIES)
    if len(names) == 1:
        return _STUDIES / names[0]
    found = f"there are {', '.join(names)}" if names else f"there are none in {_STUDIES.absolute()}"
    raise UserError(f"which study? give study.name=NAME; {found}")


def named_study(name_or_folder: str, beside: Path) -> Path:
    """The folder of an older study, given by name beside the new one or by its folder."""
    for folder in (beside / name_or_folder, expanded(name_or_folder, "study.take_over")):
        if (folder / "config.yaml").exists():
            return folder
    known = existing_studies(beside)
    raise UserError(
        f"study.take_over={name_or_folder} is no study; {did_you_mean(name_or_folder, known)}"
    )


def read_study(folder: Path) -> KeptStudy:
    """Reads a study folder; writes nothing, safe beside a running sweep. Raises UserError."""
    paths = StudyPaths(folder.absolute())
    try:
        kept: dict[str, Any] = yaml.safe_load(paths.config.read_text(encoding="utf-8"))
        identity = Identity.from_data(kept["identity"])
        configuration = kept["configuration"]
    except (OSError, yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{paths.config} is no study configuration: {error}") from None
    records = tuple(trials_journal(paths).read())
    repeats = tuple(repeats_journal_of(paths).read())
    return KeptStudy(paths, kept_problem(configuration), identity, records, repeats)


def existing_studies(folder: Path) -> list[str]:
    """Names of the studies in `folder`."""
    if not folder.is_dir():
        return []
    return sorted(path.parent.name for path in folder.glob("*/config.yaml"))


def _existing(folder: Path) -> Path:
    if (folder / "config.yaml").exists():
        return folder
    known = existing_studies(folder.parent)
    raise UserError(f"there is no study in {folder.absolute()}; {did_you_mean(folder.name, known)}")


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text

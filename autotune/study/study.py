"""A study on disk: opened, resumed, refused, added to."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import yaml

from autotune.errors import UserError
from autotune.search.encoding import Encoding
from autotune.search.point_sampler import FixedPointSampler, PointSampler
from autotune.space.legal import LegalSpace
from autotune.space.point import Point
from autotune.study.files import write_atomically
from autotune.study.identity import Identity, differences
from autotune.study.journal import Journal
from autotune.study.paths import StudyPaths
from autotune.study.repeat import Repeat
from autotune.study.storage import OptunaStore, slowest, without_password
from autotune.study.trial_record import TrialRecord
from autotune.study.yaml_text import to_yaml

log = logging.getLogger(__name__)
_WRITTEN_AGAIN = "%s was gone, or empty; all results are written again"


@dataclass
class Study:
    """The results so far and where new ones go. The sweep holds the study's lock.

    records: finished trials in the order in which they ended; repeats: further runs of them.
    """

    paths: StudyPaths
    space: LegalSpace
    identity: Identity
    store: OptunaStore
    journal: Journal[TrialRecord]
    repeats_journal: Journal[Repeat]
    records: list[TrialRecord] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)

    @classmethod
    def open(
        cls,
        name: str,
        paths: StudyPaths,
        space: LegalSpace,
        identity: Identity,
        configuration: Mapping[str, Any],
        memory_limit_bytes: int,
        storage_url: str | None = None,
    ) -> Study:
        """Creates the study, or resumes it. Raises UserError when it is another one.

        configuration: the composed configuration, kept in `config.yaml`.
        """
        known = read_identity(paths)
        if known is not None:
            check_same(known, identity, name, paths)
        journal = trials_journal(paths)
        records = journal.read()
        repeats_journal = repeats_journal_of(paths)
        repeats = repeats_journal.read()
        require_legal(records, space, paths)
        for one in (journal, repeats_journal):
            cut = one.repair()
            if cut:
                log.warning(
                    "%s ended in the middle of a line; %d bytes were cut off", one.path, cut
                )
        store = OptunaStore.open(
            name, storage_url, paths.database, Encoding(space), memory_limit_bytes, records
        )
        paths.trials.mkdir(parents=True, exist_ok=True)
        _write_config(paths, configuration, identity)
        return cls(paths, space, identity, store, journal, repeats_journal, records, repeats)

    @property
    def encoding(self) -> Encoding:
        """How points are told to Optuna."""
        return self.store.encoding

    @property
    def finished(self) -> int:
        """Trials that count towards `search.max_trials`."""
        return sum(record.counts for record in self.records)

    def attempts(self, point: Point) -> int:
        """How often the point has been launched to an end."""
        return sum(
            r.parameters == point and r.taken_from is None and r.was_launched for r in self.records
        )

    @property
    def optuna_study(self) -> optuna.Study:
        """The trials as samplers see them."""
        return self.store.study

    def ask(self, sampler: PointSampler) -> tuple[int, Point]:
        """A new trial with a point of the sampler's choice: its number and the point."""
        return self.store.ask(sampler)

    def ask_for(self, point: Point) -> int:
        """A new trial with the given point: its number."""
        number, _ = self.store.ask(FixedPointSampler(self.encoding, point))
        return number

    def new_trial_folder(self, number: int) -> Path:
        """An empty folder for the trial.

        A number may come again when the database was lost while a trial ran; what that trial
        left has no result, and must not be read as the new one's.
        """
        return _empty(self.paths.trial(number))

    def new_repeat_folder(self, number: int) -> Path:
        """An empty folder for the repeat."""
        return _empty(self.paths.repeat(number))

    def finish(self, record: TrialRecord) -> None:
        """Keeps a result: in the journal first, then in the database."""
        self.restore_results()
        self.journal.append(record)
        self.records.append(record)
        self.store.tell(record, slowest(self.records))

    def keep_repeat(self, repeat: Repeat) -> None:
        """Keeps another run of a point."""
        self.restore_results()
        self.repeats_journal.append(repeat)
        self.repeats.append(repeat)

    def take_over(self, records: Sequence[TrialRecord]) -> None:
        """Keeps results of an older study, numbered anew; `taken_from` says whence."""
        assert not self.records, "results are taken over into an empty study"
        self.journal.append(*records)
        self.records.extend(records)
        self.store.write_again(self.records)

    def restore_results(self) -> None:
        """Writes results again that somebody has removed from the folder while the sweep runs."""
        if self.journal.restore(self.records):
            log.warning(_WRITTEN_AGAIN, self.journal.path)
        if self.repeats_journal.restore(self.repeats):
            log.warning(_WRITTEN_AGAIN, self.repeats_journal.path)

    def interrupted_points(self) -> list[Point]:
        """Points of trials that were to run and ended without a result, oldest first.

        Such a trial has a folder. A proposal that a sweep died over before that is made, and
        judged by the memory gate, anew.
        """
        return [
            point for number, point in self.store.interrupted() if self.paths.trial(number).exists()
        ]

    def restore_config(self, configuration: Mapping[str, Any]) -> None:
        """Writes `config.yaml` again where somebody has removed it: nothing reads without it."""
        if not self.paths.config.exists():
            _write_config(self.paths, configuration, self.identity)

    def close(self) -> None:
        """Lets go of the database, so that another sweep may claim the study."""
        if self.store.copy is not None:
            self.store.copy.close()

    def close_running(self, reason: str) -> None:
        """Closes trials that have no result; their points may be tried again."""
        self.store.close_open(reason)


def require_legal(records: Sequence[TrialRecord], space: LegalSpace, paths: StudyPaths) -> None:
    """Raises UserError for a result whose point the space does not have."""
    for record in records:
        if space.find(record.parameters) is None:
            raise UserError(
                f"{paths.journal}: trial {record.trial} ({record.parameters}) is no "
                "legal point of this space; start a new study with study.name=NAME"
            )


def trials_journal(paths: StudyPaths) -> Journal[TrialRecord]:
    """The journal of the study's trials."""
    return Journal(paths.journal, TrialRecord)


def repeats_journal_of(paths: StudyPaths) -> Journal[Repeat]:
    """The journal of the study's repeats."""
    return Journal(paths.repeats_journal, Repeat)


def _empty(folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def read_identity(paths: StudyPaths) -> Identity | None:
    """The identity that the study was started with, or None. Raises UserError."""
    if not paths.config.exists():
        if paths.journal.exists():
            raise UserError(
                f"{paths.root} holds results, but no config.yaml that says what they are of; "
                "put it back, or start a new study with study.name=NAME"
            )
        return None
    try:
        kept = yaml.safe_load(paths.config.read_text(encoding="utf-8"))
        return Identity.from_data(kept["identity"])
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{paths.config} is no study configuration: {error}") from None


def check_same(known: Identity, now: Identity, name: str, paths: StudyPaths) -> None:
    """Raises UserError with every difference, and with what to type to carry on."""
    found = differences(known, now)
    if not found:
        return
    lines = [f"the study {name!r} was started with another configuration:"]
    lines += [f"  {difference}" for difference in found]
    # By its name where the folder is the usual one, else the folder itself must change too.
    usual = paths.root == Path("studies", name).absolute()
    new = f"study.name=NAME study.take_over={name}" if usual else ""
    lines.append(
        "put it back to go on, or start a new study that takes over the old results: "
        f"{new or f'study.dir=NEW_FOLDER study.take_over={paths.root}'}"
    )
    raise UserError("\n".join(lines))


def _write_config(paths: StudyPaths, configuration: Mapping[str, Any], identity: Identity) -> None:
    study = configuration.get("study", {})
    shown = {**study, "storage": without_password(study.get("storage"))}
    content = {
        "configuration": {**configuration, "study": shown},
        "identity": identity.to_data(),
    }
    write_atomically(paths.config, to_yaml(content))

"""`autotune export` and `autotune report`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from autotune.certify.verdict import verdict_of
from autotune.cli.arguments import Invocation
from autotune.cli.studies import KeptStudy, find_study, read_study
from autotune.errors import ExitCode, UserError
from autotune.export import ExportContext, best_document
from autotune.ports import ExportPaths
from autotune.report.markdown import ReportContext, report_markdown
from autotune.report.table import trials_table
from autotune.study.events import read_events
from autotune.study.files import write_atomically
from autotune.study.yaml_text import to_yaml


def export(invocation: Invocation) -> int:
    """Prints `best.yaml`, or writes it to `--out`. Raises UserError."""
    study = read_study(find_study(invocation))
    best = best_of(study)
    if best is None:
        raise UserError(
            f"{study.paths.root} has no feasible configuration yet "
            f"({len(study.records)} trials finished); see python -m autotune status"
        )
    if invocation.out is None:
        sys.stdout.write(best.text)
        return ExitCode.DONE
    try:
        write_files(best)
        write_atomically(invocation.out, best.text)
    except OSError as error:
        raise UserError(f"cannot write --out {invocation.out}: {error}") from None
    Console(stderr=True, soft_wrap=True, highlight=False).print(
        f"wrote {invocation.out}", markup=False
    )
    return ExitCode.DONE


def report(invocation: Invocation) -> int:
    """Writes the report of a study again. Raises UserError."""
    study = read_study(find_study(invocation))
    write_report(study)
    Console(soft_wrap=True, highlight=False).print(
        f"wrote {study.paths.report_markdown}", markup=False
    )
    return ExitCode.DONE


def write_report(study: KeptStudy) -> None:
    """Writes `report/report.md` and `report/trials.csv`."""
    config, space = study.problem.config, study.problem.space
    plan = study.problem.measurement
    context = ReportContext(
        study=config.study.name,
        model=config.model.name,
        baseline_point=space.baseline,
        memory_limit_bytes=study.problem.memory_limit_bytes,
        device_memory_bytes=config.cluster.device_memory_bytes,
        legal_points=space.size_text,
        legal_count=space.size,
        steps=f"at most {plan.measured_steps} scored steps after {plan.warmup_steps} that warm up",
        study_dir=str(study.paths.root),
        device=config.cluster.device,
        environment=study.identity.environment,
        events=read_events(study.paths.events),
    )
    write_atomically(study.paths.report_markdown, report_markdown(study.results, context))
    table = trials_table(study.records, [p.name for p in space.parameters], space.baseline)
    write_atomically(study.paths.report_table, table.to_csv(index=False))


@dataclass(frozen=True)
class Best:
    """text: of `best.yaml`. files: of the trainer, text by path."""

    text: str
    files: Mapping[Path, str]


def best_of(study: KeptStudy) -> Best | None:
    """What is exported, or None while nothing is feasible."""
    config = study.problem.config
    verdict = verdict_of(study.results)
    if verdict is None:
        return None
    folder = study.paths.best_files(verdict.winner.record.trial)
    context = ExportContext(
        study=config.study.name,
        model=config.model.name,
        identity=study.identity,
        trainer=study.problem.trainer,
        placement=config.cluster.placement,
        memory_limit_bytes=study.problem.memory_limit_bytes,
        exported=ExportPaths(str(study.paths.best), str(folder)),
    )
    files = study.problem.trainer.files(verdict.winner.point)
    return Best(
        to_yaml(best_document(verdict, study.results, context)),
        {folder / name: text for name, text in files.items()},
    )


def write_best(study: KeptStudy) -> None:
    """Replaces `best.yaml` where there is a feasible trial, and puts the trainer's files beside.

    The files of an earlier best go once nothing names them any more.
    """
    best = best_of(study)
    if best is None:
        return
    write_files(best)
    write_atomically(study.paths.best, best.text)
    for folder in study.paths.best_folders():
        if not any(path.is_relative_to(folder) for path in best.files):
            shutil.rmtree(folder)


def write_files(best: Best) -> None:
    """Writes the trainer's own files."""
    for path, text in best.files.items():
        write_atomically(path, text)

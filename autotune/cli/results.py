"""`autotune export` and `autotune report`."""

from __future__ import annotations

import sys

from rich.console import Console

from autotune.cli.arguments import Invocation
from autotune.cli.studies import KeptStudy, find_study, read_study
from autotune.errors import ExitCode, UserError
from autotune.export import ExportContext, best_document
from autotune.report.markdown import ReportContext, report_markdown
from autotune.report.table import trials_table
from autotune.study.files import write_atomically
from autotune.study.yaml_text import to_yaml


def export(invocation: Invocation) -> int:
    """Prints `best.yaml`, or writes it to `--out`. Raises UserError."""
    study = read_study(find_study(invocation))
    text = best_text(study)
    if text is None:
        raise UserError(
            f"{study.paths.root} has no feasible configuration yet "
            f"({len(study.records)} trials finished); see python -m autotune status"
        )
    if invocation.out is None:
        sys.stdout.write(text)
        return ExitCode.DONE
    try:
        write_atomically(invocation.out, text)
    except OSError as error:
        raise UserError(f"cannot write --out {invocation.out}: {error}") from None
    Console(stderr=True, soft_wrap=True).print(f"wrote {invocation.out}")
    return ExitCode.DONE


def report(invocation: Invocation) -> int:
    """Writes the report of a study again. Raises UserError."""
    study = read_study(find_study(invocation))
    write_report(study)
    Console(soft_wrap=True).print(f"wrote {study.paths.report_markdown}")
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
        steps=f"at most {plan.measured_steps} scored steps after {plan.warmup_steps} that warm up",
        study_dir=str(study.paths.root),
        device=config.cluster.device,
        environment=study.identity.environment,
    )
    write_atomically(study.paths.report_markdown, report_markdown(study.results, context))
    table = trials_table(study.records, [p.name for p in space.parameters], space.baseline)
    write_atomically(study.paths.report_table, table.to_csv(index=False))


def best_text(study: KeptStudy) -> str | None:
    """The content of `best.yaml`, or None while nothing is feasible."""
    config = study.problem.config
    context = ExportContext(
        study=config.study.name,
        model=config.model.name,
        identity=study.identity,
        trainer=study.problem.trainer,
        placement=config.cluster.placement,
        memory_limit_bytes=study.problem.memory_limit_bytes,
        config_file=str(study.paths.best),
    )
    document = best_document(study.results, context)
    return None if document is None else to_yaml(document)


def write_best(study: KeptStudy) -> None:
    """Replaces `best.yaml` where there is a feasible trial."""
    text = best_text(study)
    if text is not None:
        write_atomically(study.paths.best, text)

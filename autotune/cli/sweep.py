"""`autotune sweep`: runs or resumes a study."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from rich.console import Console

from autotune.cli.arguments import Invocation
from autotune.cli.results import write_report
from autotune.cli.studies import KeptStudy, named_study, read_study
from autotune.cli.view import ConsoleView, summary_line, versus_baseline
from autotune.cli.wiring import Problem, check_devices, compose_problem, make_launcher, probe
from autotune.errors import ExitCode
from autotune.export import ExportContext, best_document, to_yaml
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.space.point import Point
from autotune.study.files import write_atomically
from autotune.study.identity import Identity
from autotune.study.lock import sweep_lock
from autotune.study.paths import StudyPaths
from autotune.study.study import Study, check_same, read_identity
from autotune.study.transfer import Transfer, plan_transfer
from autotune.sweep.loop import Sweep, SweepEnd, SweepPlan
from autotune.sweep.progress import Progress


def sweep(invocation: Invocation) -> int:
    """Runs or resumes the study, exports the best, reports. Raises UserError."""
    problem = compose_problem(invocation.overrides, invocation.config_dir)
    config = problem.config
    check_devices(config)
    identity = Identity.of(config, probe(config))
    paths = StudyPaths(config.study_dir)
    known = read_identity(paths)
    if known is not None:
        check_same(known, identity, config.study.name)
    transfer = _plan_transfer(problem, identity) if known is None else None
    sampler = make_sampler(config.search.sampler, Encoding(problem.space), config.search.seed)
    console = Console()
    with sweep_lock(paths.lock):
        study = _open_study(problem, identity, paths)
        proposals: tuple[Point, ...] = ()
        if transfer is not None and not study.records:
            study.take_over(transfer.measured)
            proposals = transfer.proposals
            console.print(transfer.explanation, soft_wrap=True)
        exporter = _Exporter(study, problem)
        exporter.write()
        with _interrupt_on_sigterm(), ConsoleView(console) as view:
            view.said(_greeting(problem, study))
            launcher = make_launcher(config)
            run = Sweep(
                study=study,
                trainer=problem.trainer,
                launcher=launcher,
                sampler=sampler,
                plan=SweepPlan(
                    config.search,
                    config.cluster.placement,
                    config.deadlines,
                    problem.measurement,
                    problem.judge_settings,
                ),
                listener=view,
                changed=exporter.write,
                first=list(proposals),
            )
            try:
                end = run.run()
            except KeyboardInterrupt:
                launcher.close()
                stopped = run.stop("interrupted: stopped by the user")
                view.said(_stopped(stopped, config.study.name))
                write_report(read_study(paths.root))
                return ExitCode.STOPPED
            finally:
                launcher.close()
        write_report(read_study(paths.root))
        return _conclude(console, run.progress(), end, read_study(paths.root))


def _open_study(problem: Problem, identity: Identity, paths: StudyPaths) -> Study:
    config = problem.config
    return Study.open(
        config.study.name,
        paths,
        problem.space,
        identity,
        problem.data,
        problem.memory_limit_bytes,
        config.study.storage,
    )


def _plan_transfer(problem: Problem, identity: Identity) -> Transfer | None:
    source = problem.config.study.take_over
    if source is None:
        return None
    old = read_study(named_study(source, problem.config.study_dir.parent))
    return plan_transfer(
        source, old.records, old.identity, identity, problem.space, problem.memory_limit_bytes
    )


@dataclass
class _Exporter:
    """Keeps `best.yaml` right from the first feasible trial on."""

    study: Study
    problem: Problem

    def write(self) -> None:
        """Replaces `best.yaml` where there is a feasible trial."""
        config = self.problem.config
        context = ExportContext(
            study=config.study.name,
            model=config.model.name,
            identity=self.study.identity,
            trainer=self.problem.trainer,
            placement=config.cluster.placement,
            memory_limit_bytes=self.problem.memory_limit_bytes,
            config_file=str(self.study.paths.best),
        )
        document = best_document(self.study.records, self.study.space.baseline, context)
        if document is not None:
            write_atomically(self.study.paths.best, to_yaml(document))


@contextlib.contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """SIGTERM stops a sweep as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _greeting(problem: Problem, study: Study) -> str:
    config = problem.config
    state = f"goes on with {study.finished} finished trials" if study.records else "is new"
    return (
        f"[bold]{config.model.name}[/]: {len(study.space.points)} legal points, "
        f"study {config.study.name} {state}, in {study.paths.root}"
    )


def _stopped(trials: list[int], name: str) -> str:
    lost = f"; trial {', '.join(map(str, trials))} was running and is tried again" if trials else ""
    return f"stopped{lost}. The same command goes on with the study {name}."


def _conclude(console: Console, progress: Progress, end: SweepEnd, study: KeptStudy) -> int:
    console.print(f"{end.value}: {summary_line(progress)}", soft_wrap=True, highlight=False)
    console.print(f"report: {study.paths.report_markdown}", soft_wrap=True, highlight=False)
    best = progress.best
    if best is None or best.outcome.batch_time_s is None:
        console.print("[bold red]no feasible configuration was found[/]; the causes:")
        for reason, count in _causes(progress):
            console.print(f"  {count:>3} x {reason}", soft_wrap=True, highlight=False, markup=False)
        return ExitCode.NOTHING_FEASIBLE
    console.print(
        f"best: trial {best.trial}, {best.outcome.batch_time_s * 1e3:.1f} ms per global batch"
        f"{versus_baseline(progress)}\n  {best.parameters}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    console.print(f"exported: {study.paths.best}", soft_wrap=True, highlight=False)
    return ExitCode.DONE


def _causes(progress: Progress) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for record in progress.records:
        cause = f"{record.status.value}: {record.outcome.reason}"
        counts[cause] = counts.get(cause, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])

"""`autotune sweep`: runs or resumes a study."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO, cast

from rich.console import Console
from rich.markup import escape

from autotune.analyze.phases import profiled_phases
from autotune.certify.results import next_repeat
from autotune.certify.verdict import verdict_of
from autotune.cli.arguments import Invocation
from autotune.cli.interrupt import interrupt_on_sigterm
from autotune.cli.noting import warnings_noted
from autotune.cli.results import write_best, write_report
from autotune.cli.steady_stream import SteadyStream
from autotune.cli.studies import KeptStudy, read_study
from autotune.cli.take_over import OlderStudyGoneError, knowledge_with, transfer_of
from autotune.cli.view import ConsoleView, describe_best, summary_line
from autotune.cli.wiring import (
    Problem,
    check_devices,
    compose_problem,
    look_ahead,
    make_launcher,
    probe,
)
from autotune.errors import ExitCode
from autotune.ports import Launcher
from autotune.report.gate import GateSummary
from autotune.report.markdown import challenge
from autotune.search.encoding import Encoding
from autotune.search.factory import make_sampler
from autotune.search.gate import MemoryGatekeeper
from autotune.study.best import is_tried_out
from autotune.study.events import Event, append_event
from autotune.study.identity import Identity
from autotune.study.lock import is_locked, refuse_second_sweep, sweep_lock
from autotune.study.paths import StudyPaths
from autotune.study.profiles import ProfileBudget
from autotune.study.study import (
    Study,
    check_same,
    read_identity,
    repeats_journal_of,
    require_legal,
    trials_journal,
)
from autotune.sweep.bench import Bench
from autotune.sweep.loop import Sweep, SweepEnd
from autotune.sweep.noted import NotedListener
from autotune.sweep.progress import Listener, Progress, finished_progress
from autotune.sweep.runner import Runner


def sweep(invocation: Invocation) -> int:
    """Runs or resumes the study, exports the best, reports. Raises UserError."""
    problem = compose_problem(invocation.overrides, invocation.config_dir)
    config = problem.config
    check_devices(config)
    identity = Identity.of(config, probe(problem))
    paths = StudyPaths(config.study_dir)
    known = read_identity(paths)
    if known is not None:
        check_same(known, identity, config.study.name, paths)
    console = Console(file=cast(TextIO, SteadyStream(sys.stdout)), highlight=False)
    try:
        transfer = transfer_of(problem, identity, paths)
    except OlderStudyGoneError as gone:
        transfer = None
        console.print(escape(str(gone)), soft_wrap=True)
    encoding, knowledge = Encoding(problem.space), knowledge_with(problem, transfer)
    sampler = make_sampler(config.search.sampler, encoding, config.search.seed, knowledge)
    gatekeeper = MemoryGatekeeper(encoding, knowledge, config.search.seed)
    if is_locked(paths.lock):
        refuse_second_sweep(paths.lock)
    if known is not None and _is_done(problem, paths):
        kept = replace(read_study(paths.root), problem=problem)
        write_best(kept)
        write_report(kept)
        return _conclude(console, SweepEnd.TRIALS_USED, kept)
    warnings = look_ahead(problem, is_set_up=True)
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(interrupt_on_sigterm())
        console.print(
            f"[bold]{escape(config.model.name)}[/]: {problem.space.size_text} legal points"
        )
        # Before anything is written: a cluster that cannot be had must leave no study behind.
        launcher = stack.enter_context(contextlib.closing(make_launcher(config)))
        stack.enter_context(sweep_lock(paths.lock))

        def note(text: str) -> None:
            append_event(paths.events, Event(launcher.now(), text))

        stack.enter_context(warnings_noted(note))
        study = stack.enter_context(contextlib.closing(_open_study(problem, identity, paths)))
        if transfer is not None and not study.records:
            study.take_over(transfer.measured)
            console.print(escape(transfer.explanation), soft_wrap=True)

        def export_best() -> None:
            study.restore_config(problem.data)
            records, repeats = tuple(study.records), tuple(study.repeats)
            write_best(KeptStudy(paths, problem, identity, records, repeats))

        export_best()
        view = stack.enter_context(ConsoleView(console))
        listener = NotedListener(view, note)
        for text in (_greeting(study, config.study.name), *warnings):
            listener.said(text)
        run = Sweep(
            study=study,
            bench=_make_bench(problem, study, launcher, listener),
            launcher=launcher,
            sampler=sampler,
            plan=problem.sweep_plan,
            knowledge=knowledge,
            listener=listener,
            changed=export_best,
            first=list(transfer.proposals) if transfer is not None else [],
            gatekeeper=gatekeeper if problem.has_memory_gate else None,
        )

        try:
            end = run.run()
        except KeyboardInterrupt:
            signals.wait_for_closing()
            view.stopping()
            launcher.close()
            listener.said(_stopped(run.stop("interrupted: stopped by the user"), config.study.name))
            _close(study, export_best)
            return ExitCode.STOPPED
        _close(study, export_best)
    return _conclude(console, end, read_study(paths.root))


def _close(study: Study, export_best: Callable[[], None]) -> None:
    """All that the folder must hold when the sweep is over, whatever was taken out of it."""
    study.restore_results()
    export_best()
    write_report(read_study(study.paths.root))


def _make_bench(problem: Problem, study: Study, launcher: Launcher, listener: Listener) -> Bench:
    """What runs trials and keeps their results in the study."""
    config, plan = problem.config, problem.sweep_plan
    runner = Runner(
        launcher,
        problem.trainer,
        config.cluster.placement,
        config.deadlines,
        plan.judge,
        profiled_phases,
        problem.space.baseline,
    )
    budget = ProfileBudget(study.paths, plan.profiles.budget_bytes)
    return Bench(study, runner, plan, listener, budget)


def _is_done(problem: Problem, paths: StudyPaths) -> bool:
    """Whether nothing is left to run: no device is needed to say so."""
    records = tuple(trials_journal(paths).read())
    require_legal(records, problem.space, paths)
    results = problem.results(records, tuple(repeats_journal_of(paths).read()))
    finished = sum(record.counts for record in records)
    if finished < problem.config.search.max_trials:
        return False
    return next_repeat(results) is None


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


def _greeting(study: Study, name: str) -> str:
    taken = len(study.records) - sum(record.taken_from is None for record in study.records)
    if not study.records:
        state = "is new"
    elif taken == len(study.records):
        state = f"is new, with {taken} results taken over"
    else:
        state = f"goes on after {study.finished} finished trials"
    return f"study {name} {state}, in {study.paths.root}"


def _stopped(trials: list[int], name: str) -> str:
    numbers = ", ".join(map(str, trials))
    lost = f"; trial {numbers} was running, and its point is tried again" if trials else ""
    return f"stopped{lost}. The same command goes on with the study {name}."


def _conclude(console: Console, end: SweepEnd, study: KeptStudy) -> int:
    progress = finished_progress(study.results, study.problem.config.search.max_trials)
    console.print(f"{end.value}: {summary_line(progress)}", soft_wrap=True)
    space = study.problem.space
    if is_tried_out(study.records, space.size):
        console.print(
            f"none of the {space.size_text} legal points is left; only a wider space holds others",
            soft_wrap=True,
        )
    elif end is SweepEnd.TRIALS_USED:
        more = 2 * progress.max_trials
        console.print(f"to go on, give search.max_trials={more}", soft_wrap=True)
    if gate := GateSummary.of(study.records).line:
        console.print(gate, soft_wrap=True)
    console.print(f"report: {study.paths.report_markdown}", soft_wrap=True, markup=False)
    verdict = verdict_of(study.results)
    if verdict is None:
        causes = _causes(progress)
        why = "; the causes:" if causes else ": no trial has finished"
        console.print(f"[bold red]no feasible configuration was found[/]{why}")
        for reason, count in causes:
            console.print(f"  {count:>3} x {reason}", soft_wrap=True, markup=False)
        if end is SweepEnd.HOPELESS:
            console.print(
                "mend it, then begin anew with study.name=NAME: what has failed in this study, the "
                "baseline among it, is not tried again",
                soft_wrap=True,
            )
        return ExitCode.NOTHING_FEASIBLE
    certified = f", certified in {verdict.rounds} rounds" if verdict.certified else ""
    console.print(
        f"best: {describe_best(progress)}{certified}\n  {verdict.winner.point}",
        soft_wrap=True,
        markup=False,
    )
    if verdict.keep_baseline:
        why = f"keep your baseline: {challenge(verdict)}"
        console.print(why, soft_wrap=True, markup=False)
    console.print(f"exported: {study.paths.best}", soft_wrap=True, markup=False)
    return ExitCode.DONE


def _causes(progress: Progress) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for record in progress.records:
        if not record.was_launched:
            continue  # how many there are is said in a line of its own
        cause = f"{record.status.value}: {record.outcome.reason}"
        counts[cause] = counts.get(cause, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])

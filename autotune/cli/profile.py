"""`autotune profile`: profiles a trial that runs, or runs a point of a study again under it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from autotune.certify.verdict import verdict_of
from autotune.cli.arguments import Invocation
from autotune.cli.studies import KeptStudy, find_study, read_study
from autotune.cli.wiring import (
    ask_for_profile,
    check_devices,
    make_launcher,
    profile_answers,
    require_ranks,
)
from autotune.config.quantities import format_bytes
from autotune.config.typed import build
from autotune.errors import ExitCode, UserError, did_you_mean
from autotune.measure.judge import judge
from autotune.measure.read import read_ranks, steps_done
from autotune.ports import MeasurementPlan, TrialRequest
from autotune.profile_plan import ProfilePlan
from autotune.space.point import Point
from autotune.study.lock import holder_file, is_locked, refuse_second_sweep, sweep_lock
from autotune.study.paths import profile_folder
from autotune.study.profiles import size_of

_STUDY_KEYS = ("study.name", "study.dir")
_OWN_KEYS = ("trial", "again")
_LOOK_S = 0.5
_USAGE = "profile study.name=NAME trial=N (that runs), or again=best, baseline or N"


def profile(invocation: Invocation) -> int:
    """Collects a profile. Raises UserError."""
    keys = _keys(invocation)
    study = read_study(
        find_study(
            dataclasses.replace(
                invocation,
                overrides=tuple(f"{k}={v}" for k, v in keys.items() if k in _STUDY_KEYS),
            )
        )
    )
    given = {k: _value(k, v) for k, v in keys.items() if k not in (*_STUDY_KEYS, *_OWN_KEYS)}
    console = Console(soft_wrap=True, highlight=False)
    if ("trial" in keys) == ("again" in keys):
        raise UserError(f"profile which trial? {_USAGE}")
    if "trial" in keys:
        return _of_running(study, _number(keys["trial"]), _plan(study, given), console)
    return _again(study, keys["again"], _plan(study, given), console)


def _keys(invocation: Invocation) -> dict[str, str]:
    keys = dict(override.partition("=")[::2] for override in invocation.overrides)
    options = [option.name for option in dataclasses.fields(ProfilePlan)]
    known = [*_STUDY_KEYS, *_OWN_KEYS, *options]
    for key in keys:
        if key not in known:
            raise UserError(f"profile has no key {key}; {did_you_mean(key, known)}")
    return keys


def _value(key: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise UserError(
            f"{key}={text} cannot be read; write it as {key}=2 or {key}=[0,1]"
        ) from None


def _plan(study: KeptStudy, given: Mapping[str, Any]) -> ProfilePlan:
    """The study's full profile with what was given on the command line."""
    full = study.problem.config.profile.full or ProfilePlan()
    plan = build(ProfilePlan, {**dataclasses.asdict(full), **given}, "profile")
    require_ranks(plan, study.problem.config.cluster.placement.world_size, "ranks")
    return plan


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UserError(f"trial={text} is no number of a trial; {_USAGE}")
    return int(text)


def _of_running(study: KeptStudy, number: int, plan: ProfilePlan, console: Console) -> int:
    """Asks the ranks of a running trial and waits for their answers."""
    folder = _running_folder(study, number)
    world_size = study.problem.config.cluster.placement.world_size
    step = steps_done(folder, study.problem.voices)
    request = ask_for_profile(folder, plan)
    wanted = [rank for rank in range(world_size) if plan.collects(rank)]
    console.print(
        f"asked trial {number}, at step {step}, to profile {plan.steps} step(s) on "
        f"{len(wanted)} rank(s)"
    )
    deadline = time.monotonic() + study.problem.config.deadlines.step_s
    while time.monotonic() < deadline:
        answers = profile_answers(folder, request)
        if len(answers) >= max(len(wanted), 1):
            return _conclude(folder, [a.path for a in answers], [a.error for a in answers], console)
        if any(r.trial == number for r in read_study(study.paths.root).records) and not answers:
            raise UserError(
                f"trial {number} ended before it came to another step; profile its point with "
                f"again={number}"
            )
        time.sleep(_LOOK_S)
    raise UserError(
        f"trial {number} made no step in {study.problem.config.deadlines.step_s:.0f} s; what it "
        f"profiles later will be in {profile_folder(folder)}"
    )


def _running_folder(study: KeptStudy, number: int) -> Path:
    """The folder of a trial that runs now. Raises UserError for one that does not."""
    folder, known = study.paths.trial(number), study.records
    ended = next((record for record in known if record.trial == number), None)
    if ended is not None:
        left = profile_folder(folder)
        found = f"; its profile is in {left}" if left.is_dir() else ""
        raise UserError(
            f"trial {number} has ended ({ended.status.value}){found}; to run its point again under "
            f"the profiler, give again={number} instead of trial={number}"
        )
    if not folder.is_dir():
        last = max((record.trial for record in known), default=-1)
        there = f"trials 0 to {last} have ended" if known else "no trial has ended yet"
        raise UserError(f"there is no trial {number} in {study.paths.root}; {there}")
    if not is_locked(study.paths.lock) or _is_older(folder, study.paths.lock):
        raise UserError(
            f"trial {number} does not run: it was interrupted; see python -m autotune status "
            f"study.dir='{study.paths.root}' for what does"
        )
    return folder


def _is_older(folder: Path, lock: Path) -> bool:
    """Whether the trial was started before the sweep that runs now."""
    return folder.stat().st_mtime < holder_file(lock).stat().st_mtime


def _again(study: KeptStudy, which: str, plan: ProfilePlan, console: Console) -> int:
    """Runs a point of the study once more, with a profile after one pass over the window."""
    point = _point(study, which)
    if is_locked(study.paths.lock):
        refuse_second_sweep(study.paths.lock)
    config, measurement = study.problem.config, study.problem.measurement
    check_devices(config)
    folder = study.paths.next_profiled()
    steps = MeasurementPlan(
        measurement.warmup_steps, measurement.window_steps, measurement.window_steps, plan
    )
    console.print(f"running {point} with {plan.steps} profiled step(s)")
    with (
        sweep_lock(study.paths.lock),
        contextlib.closing(make_launcher(config)) as launcher,
    ):
        folder.mkdir(parents=True)
        program = study.problem.trainer.trial_program(point, steps, folder)
        placement = config.cluster.placement
        launcher.start(TrialRequest(0, 1, folder, program, placement, config.deadlines))
        while not (ended := launcher.wait(60.0)):
            pass
    ranks = read_ranks(folder, study.problem.voices)
    settings = dataclasses.replace(study.problem.judge_settings, min_steps=1)
    outcome = judge(ended[0], ranks, settings)
    files = profile_folder(folder)
    if not files.is_dir() or not any(files.iterdir()):
        raise UserError(
            f"the run left no profile ({outcome.status.value}: {outcome.reason}); see {folder}"
        )
    return _conclude(folder, [str(files)], [], console)


def _point(study: KeptStudy, which: str) -> Point:
    if which == "baseline":
        return study.problem.space.baseline
    if which == "best":
        verdict = verdict_of(study.results)
        if verdict is None:
            raise UserError(f"{study.paths.root} has no feasible trial yet; give again=baseline")
        return verdict.winner.point
    number = _number(which)
    record = next((record for record in study.records if record.trial == number), None)
    if record is None:
        raise UserError(f"there is no finished trial {number} in {study.paths.root}; {_USAGE}")
    return record.parameters


def _conclude(
    folder: Path, paths: list[str | None], errors: list[str | None], console: Console
) -> int:
    """Says what was written, and how to read it. Raises UserError where nothing was."""
    written = [folder / path for path in paths if path]
    for path in written:
        console.print(f"wrote {path} ({format_bytes(size_of(path))})", markup=False)
    for error in filter(None, errors):
        console.print(f"a rank could not profile: {error}", markup=False)
    if not written:
        raise UserError("no rank wrote a profile; the causes are above")
    console.print(f"read it with: python -m autotune analyze '{written[0]}'", markup=False)
    return ExitCode.DONE

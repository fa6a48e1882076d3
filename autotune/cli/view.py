"""What a person sees while a sweep runs: a live panel on a terminal, lines elsewhere."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.certify.verdict import verdict_of
from autotune.config.quantities import format_bytes
from autotune.measure.outcome import Outcome, Status
from autotune.space.point import Point
from autotune.study.best import count_by_status, record_of
from autotune.study.repeat import Repeat, Role
from autotune.study.trial_record import TrialRecord
from autotune.sweep.progress import Progress, RunningTrial

_COLOURS = {
    Status.OK: "green",
    Status.OVER_LIMIT: "yellow",
    Status.OOM: "yellow",
    Status.STOPPED: "cyan",
    Status.SKIPPED: "cyan",
}


class ConsoleView:
    """`Listener` on a console. Use as a context manager: it holds the live panel."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> ConsoleView:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def started(self, trial: RunningTrial) -> None:
        """A terminal shows it in the panel."""
        if not self.console.is_terminal:
            again = f" (attempt {trial.attempt})" if trial.attempt > 1 else ""
            self._line(f"{describe_run(trial)} starts{again}: {escape(str(trial.point))}")

    def finished(self, record: TrialRecord, progress: Progress) -> None:
        """One line a trial, which stays."""
        self._line(describe_trial(record, progress.baseline_point))
        best = progress.best
        if best is not None and best.trial == record.trial and len(progress.records) > 1:
            self._line(f"           the best so far{versus_baseline(progress)}")
        if not self.console.is_terminal and record.was_launched:
            self._line(f"           {summary_line(progress)}")

    def repeated(self, repeat: Repeat, progress: Progress) -> None:
        """One line a repeat, which stays."""
        self._line(describe_repeat(repeat, progress))

    def moment(self, progress: Progress) -> None:
        """Draws the panel again."""
        if self.console.is_terminal:
            self._live.update(panel(progress))

    def said(self, message: str) -> None:
        """A line that stays. message: plain text."""
        self._line(escape(message))

    def stopping(self) -> None:
        """Takes the panel away: from here on lines are all there is."""
        self._live.stop()
        self._line("stopping ...")

    def _line(self, text: str) -> None:
        # A terminal wraps at spaces; a file gets whole lines.
        wraps = self.console.is_terminal
        self.console.print(Text.from_markup(text), soft_wrap=not wraps, highlight=False)


def describe_trial(record: TrialRecord, baseline: Point) -> str:
    """One finished trial as markup, with what differs from the baseline."""
    outcome = record.outcome
    colour = _COLOURS.get(outcome.status, "red")
    words = [f"trial {record.trial:>3}  [{colour}]{outcome.status.value:<10}[/]"]
    peak = outcome.peak_memory_bytes
    words.append(f"{_time(outcome):<19}{'' if peak is None else format_bytes(peak):>10} ")
    words.append(escape(describe_point(record.parameters, baseline)))
    if outcome.status not in (Status.OK, Status.OVER_LIMIT):
        words.append(f"\n           {escape(outcome.reason)}")
    return " ".join(words)


_PURPOSES = {
    Role.CONTROL: "control run of the baseline",
    Role.RECHECK: "recheck",
    Role.CERTIFY: "certification",
}


def describe_run(trial: RunningTrial) -> str:
    """What is running: a trial, or why a measured point runs again."""
    if trial.role is None:
        return f"trial {trial.trial}"
    round_ = f", round {trial.round + 1}" if trial.role is Role.CERTIFY else ""
    return f"{_PURPOSES[trial.role]}{round_}"


def describe_repeat(repeat: Repeat, progress: Progress) -> str:
    """Another run as markup, beside what the point's trial had measured."""
    record = repeat.record
    trial = record_of(progress.records, record.parameters)
    name = "" if trial is None else f"trial {trial.trial}"
    round_ = f" {repeat.round + 1}" if repeat.role is Role.CERTIFY else ""
    kind = f"{repeat.role.value}{round_}"
    text = f"[dim]{kind:<10}[/] {name:<10}{_time(record.outcome)}"
    if record.outcome.batch_time_s is None or (
        record.status not in (Status.OK, Status.STOPPED) or trial is None
    ):
        return f"{text} {record.status.value}: {escape(record.outcome.reason)}"
    return text


def _time(outcome: Outcome) -> str:
    if outcome.batch_time_s is None:
        return ""
    text = f"{outcome.batch_time_s * 1e3:8.1f} ms"
    if outcome.batch_time_ci95_s is None:
        return text
    half = (outcome.batch_time_ci95_s[1] - outcome.batch_time_ci95_s[0]) / 2
    return f"{text} ± {half / outcome.batch_time_s:.0%}"


def describe_point(point: Point, baseline: Point) -> str:
    """The values in which a point differs from the baseline."""
    if point == baseline:
        return "the baseline"
    differing = {name: value for name, value in point.items() if baseline.get(name) != value}
    # A point may differ only in what is inactive, such as an algorithm without a degree.
    return str(Point(differing) if differing else point)


def versus_baseline(progress: Progress) -> str:
    """How the best compares with the baseline, as a clause, empty where it cannot be said."""
    verdict = verdict_of(progress.results)
    if verdict is None or verdict.gain is None:
        return ""
    if verdict.winner.point == progress.baseline_point:
        return ", the baseline"
    interval = verdict.gain.ci95
    between = "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
    return f", {verdict.gain.ratio:.2f} x the baseline's speed{between}"


def describe_best(progress: Progress) -> str | None:
    """The best so far in one line: its trial, time, and gain over the baseline."""
    verdict = verdict_of(progress.results)
    if verdict is None:
        return None
    winner = verdict.winner
    return (
        f"trial {winner.record.trial}, {winner.time.mean_s * 1e3:.1f} ms per global batch"
        f"{versus_baseline(progress)}"
    )


def summary_line(progress: Progress) -> str:
    """Counts and time left in one line."""
    counts = ", ".join(f"{n} {status}" for status, n in count_by_status(progress.records).items())
    left = "" if not progress.left_s else f", about {format_seconds(progress.left_s)} left"
    counts = f" ({counts})" if counts else ""
    return f"{progress.finished} of {progress.max_trials} trials{counts}{left}"


def format_seconds(seconds: float) -> str:
    """A duration as people say it: `45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def panel(progress: Progress) -> RenderableType:
    """The live panel: running trials, best so far, counts, time left."""
    rows: list[RenderableType] = []
    for trial in progress.running:
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(trial.total_steps, 1), completed=trial.steps, width=16)
        spent = format_seconds(max(progress.now - trial.started_at, 0.0))
        steps = f"step {trial.steps} of {trial.total_steps}" if trial.steps else "starting"
        row.add_row(f"running {describe_run(trial)}", bar, steps, spent)
        point = describe_point(trial.point, progress.baseline_point)
        rows += [row, Text(f"  {point}", style="dim")]
    if (best := describe_best(progress)) is not None:
        rows.append(Text(f"best: {best}"))
    rows.append(Text(summary_line(progress), style="bold"))
    return Group(*rows)

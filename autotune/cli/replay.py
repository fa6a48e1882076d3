"""`autotune replay`: samplers against each other on a recorded table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autotune.cli.arguments import Invocation
from autotune.errors import ExitCode
from autotune.replay.baseline import baseline_row
from autotune.replay.case import RecordedSpace, ReplayCase
from autotune.replay.output import FILES, prepare_folder, write_results
from autotune.replay.parallel import replay as run_all
from autotune.replay.run import checked_sampler
from autotune.replay.scores import Row
from autotune.replay.settings import ReplayConfig, replay_config
from autotune.replay.table import ReplayTable, read_table

_FILE_WIDTH = 140


def replay(invocation: Invocation) -> int:
    """Replays every sampler and seed, writes the results, prints the summary.

    Raises UserError, before anything is written where the input is wrong.
    """
    config = replay_config(invocation.overrides)
    case, notes = _case(config)
    prepare_folder(config.out_path)
    console = _console()
    for line in (_headline(case), *case.table.notes, *notes):
        _say(console, line)
    with _Counter(config) as counter:
        runs = run_all(
            case, config.named_samplers, config.seed_numbers, config.processes, counter.done
        )
    summary = write_results(case, runs, config.out_path)
    console.print(_table(case, summary))
    _say(console, _LEGEND)
    _say(console, f"wrote {', '.join(FILES)} to {config.out_path}")
    return ExitCode.DONE


_LEGEND = (
    "regret: how far the best found is above the optimum; within 5 %: the runs that came so near, "
    "and the median evaluations that it took; score: 0 as random search, 1 as the optimum from the "
    "start; oom: launches a run out of memory; ask: time of a proposal"
)


def _console() -> Console:
    """A file gets lines as long as they are; rich would take it for a terminal of 80 columns."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def _say(console: Console, line: str) -> None:
    # Names come from files: what is no valid text (lone surrogates) becomes `?`.
    text = line.encode("utf-8", "replace").decode("utf-8")
    console.print(text, soft_wrap=True, markup=False)


def _case(config: ReplayConfig) -> tuple[ReplayCase, list[str]]:
    """What is replayed, checked as a whole, and what a person should know of it."""
    table, notes = read_table(config.table_path), []
    limit = config.limit_bytes
    if limit is not None:
        table = table.within(limit)
    evaluations = config.evaluations(len(table))
    if isinstance(config.budget, int) and config.budget > evaluations:
        notes.append(f"replay.budget={config.budget}: the table has no more than {len(table)} rows")
    case = ReplayCase(
        table,
        evaluations,
        baseline_row(table, config.baseline),
        table.separating_limit_bytes if limit is None else limit,
        config.run_noise,
    )
    space = RecordedSpace(table, case.baseline)
    for setting in config.named_samplers.values():
        checked_sampler(setting, space.encoding, config.seed)
    if case.baseline is not None:
        notes.append(f"trial 0 is the baseline: {table.point(case.baseline)}")
    return case, notes


def _headline(case: ReplayCase) -> str:
    table = case.table
    failing = len(table) - int(table.usable.sum())
    return (
        f"{table.name}: {len(table)} points of {len(table.parameters)} parameters, {failing} do "
        f"not run; the optimum is {_time(table)}; {case.evaluations} evaluations a run"
    )


def _time(table: ReplayTable) -> str:
    return f"{table.optimum_s * 1e3:.6g} ms"


def _table(case: ReplayCase, summary: Sequence[Row]) -> Table:
    """The summary for a person: a few columns, with standard errors."""
    names = ["sampler", "mean regret", "within 5 %", "evaluations to 5 %", "score", "oom"]
    names += ["duplicates", "ask"]
    if case.noise.is_planted:
        names.append("launches")
    table = Table(*names, box=None, header_style="bold")
    for row in summary:
        cells = [
            escape(str(row["sampler"])),
            _with_error(row["mean_regret"], row["mean_regret_se"]),
            _with_error(row["hit_5pct"], row["hit_5pct_se"]),
            _evaluations(case, row["median_evals_to_5pct"]),
            f"{row['score']:.3f}",
            f"{row['oom']:.1f}",
            f"{row['duplicates']:g}",
            f"{row['ask_ms']:.1f} ms",
        ]
        table.add_row(*cells, *([f"{row['launches']:.1f}"] if case.noise.is_planted else []))
    return table


def _with_error(share: object, error: object) -> str:
    within = "" if not isinstance(error, float) else f" ± {100 * error:.1f}"
    return f"{100 * float(str(share)):.1f}{within} %"


def _evaluations(case: ReplayCase, median: object) -> str:
    return f"> {case.evaluations}" if median is None else f"{median:g}"


class _Counter:
    """Tells how far the runs are: a line that moves on a terminal, one a sampler elsewhere."""

    def __init__(self, config: ReplayConfig) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.seeds, self.samplers = config.seeds, list(config.named_samplers)
        self.ended: Counter[str] = Counter()
        self.status = self.console.status(escape(self._text()))

    def __enter__(self) -> _Counter:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.status.stop()

    def done(self, sampler: str, seeds: int) -> None:
        """So many more seeds of a sampler have ended."""
        self.ended[sampler] += seeds
        if self.console.is_terminal:
            self.status.update(escape(self._text()))
        elif self.ended[sampler] == self.seeds:
            self.console.print(f"{sampler}: {self.seeds} seeds", markup=False, soft_wrap=True)

    def _text(self) -> str:
        counts = (f"{name} {self.ended[name]}" for name in self.samplers)
        return f"seeds of {self.seeds}: {', '.join(counts)}"

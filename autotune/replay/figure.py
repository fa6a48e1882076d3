"""Curves of a replay as a picture."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune.replay.case import ReplayCase
from autotune.replay.scores import Row

_LEAST = 1e-4  # a logarithmic axis has no zero: 0.01 % and below is drawn as 0.01 %


def draw_curves(path: Path, case: ReplayCase, curves: Sequence[Row]) -> None:
    """Writes a PNG: above the regret over the evaluations, below the share of near hits."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it talks about its font cache
    # Half a second and more, which only this needs.
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Names come from files: a $ is no formula, and a letter that no font has is a box.
    with mpl.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(8, 8), dpi=120, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        _draw(above, below, case, curves)
        FigureCanvasAgg(figure).print_png(path)


def _draw(above: Any, below: Any, case: ReplayCase, curves: Sequence[Row]) -> None:
    evaluations = np.arange(1, case.evaluations + 1)
    for sampler in dict.fromkeys(str(row["sampler"]) for row in curves):
        own = [row for row in curves if row["sampler"] == sampler]
        (line,) = above.plot(evaluations, _share(own, "mean_regret"), label=sampler)
        low, high = _share(own, "regret_q25"), _share(own, "regret_q75")
        above.fill_between(evaluations, low, high, color=line.get_color(), alpha=0.15, lw=0)
        below.plot(evaluations, [row["hit_5pct"] for row in own], color=line.get_color())
    random = case.random_expectation_s / case.table.optimum_s - 1
    above.plot(
        evaluations, np.maximum(random, _LEAST), "k--", lw=1, label="random search, expected"
    )
    above.axhline(0.05, color="0.6", lw=0.8)
    above.set_yscale("log")
    above.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    above.set_ylabel("mean regret (band: quartiles)")
    above.set_title(
        f"{case.table.name}: {len(case.table)} points, {int((~case.table.usable).sum())} do not run"
    )
    above.legend()
    below.set_ylim(-0.02, 1.02)
    below.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    below.set_ylabel("seeds within 5 % of the optimum")
    below.set_xlabel("evaluations (launched points)")
    for axes in (above, below):
        axes.grid(visible=True, alpha=0.3)


def _share(rows: Sequence[Row], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.maximum(np.array([row[column] for row in rows], np.float64), _LEAST)

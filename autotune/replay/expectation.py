"""What random search without replacement can expect: the yardstick of every sampler."""

from __future__ import annotations

import numpy as np

from autotune.replay.outcomes import Floats


def expected_best(times_s: Floats, draws: int) -> Floats:
    """The expected least of the first 1, 2, ..., `draws` of all rows in random order, exactly.

    times_s: seconds by row, what a row that does not run counts as included. With the times in
    ascending order, the best of i draws is beyond the k-th when all i are among the N - k rows
    behind it: E = t_1 + sum over k of (t_k+1 - t_k) * C(N-k, i) / C(N, i). The ratio is a
    product of factors (N-k-j) / (N-j) over j < i, so it neither overflows nor cancels.
    """
    ascending = np.sort(times_s)
    total = len(ascending)
    if not 1 <= draws <= total:
        raise ValueError(f"{draws} draws of {total} rows")
    ranks = np.flatnonzero(np.diff(ascending)) + 1  # k, where the next time is another one
    steps = np.diff(ascending)[ranks - 1]
    beyond = np.ones(len(ranks))
    expected = np.empty(draws)
    for drawn in range(draws):
        beyond *= np.maximum(total - ranks - drawn, 0) / (total - drawn)
        expected[drawn] = ascending[0] + steps @ beyond
    return expected


def expected_best_after(times_s: Floats, first: int, evaluations: int) -> Floats:
    """The same where the row `first` is run before the random ones: a planted baseline."""
    others = np.minimum(np.delete(times_s, first), times_s[first])
    if evaluations == 1:
        return times_s[[first]]
    return np.concatenate([times_s[[first]], expected_best(others, evaluations - 1)])

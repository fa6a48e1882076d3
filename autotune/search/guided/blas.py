"""Linear algebra on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """While it is entered, numpy and scipy compute on one thread.

    The matrices here are small: on two busy cores the threads of OpenBLAS wait for each other
    longer than they compute, up to thirty times as long. An environment variable would do too,
    but the ranks of trials would inherit it.
    """
    limiter: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limiter

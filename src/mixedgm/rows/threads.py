"""One pool of threads for passes over the rows, and BLAS kept out of its way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork; a child process starts its own.
    os.register_at_fork(after_in_child=_pools.clear)


def run_all(tasks: list[Callable[[], T]], n_threads: int) -> list[T]:
    """Results of the tasks in their order; the caller's own thread takes the first."""
    if n_threads == 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads, thread_name_prefix="mixedgm")
    futures = [_pools[n_threads].submit(task) for task in tasks[1:]]
    return [tasks[0](), *(future.result() for future in futures)]


@cache
def _controller() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401  (Numba multiplies by this one; load it first)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread: its own threads would fight with ours over the cores."""
    with _controller().limit(limits=1, user_api="blas"):
        yield

"""Tasks of one pass over the rows -> their results, from one pool of threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mixedgm.blas import single_threaded_blas

__all__ = ["run_all", "single_threaded_blas", "threads_for"]

T = TypeVar("T")

_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork; a child process starts its own.
    os.register_at_fork(after_in_child=_pools.clear)


def threads_for(work: int, n_threads: int) -> int:
    """One thread for what takes less time than handing it over; work is in operations, roughly."""
    return n_threads if work > 2_000_000 else 1


def run_all(tasks: Sequence[Callable[[], T]], n_threads: int) -> list[T]:
    """Results of the tasks in their order; the caller's own thread works, too.

    Every thread takes the next task when it is free, so handing over is paid once per thread.
    """
    if n_threads == 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads - 1, thread_name_prefix="mixedgm")
    waiting, results = deque(range(len(tasks))), dict[int, T]()

    def work() -> None:
        while waiting:
            try:
                k = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            results[k] = tasks[k]()

    helpers = [_pools[n_threads].submit(work) for _ in range(min(n_threads, len(tasks)) - 1)]
    work()
    for helper in helpers:
        # One that has not begun finds nothing left to do.
        if not helper.cancel():
            helper.result()
    return [results[k] for k in range(len(tasks))]

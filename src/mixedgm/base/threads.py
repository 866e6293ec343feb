"""Tasks -> their results, from one pool of threads; BLAS with one thread for sums in them.

Nothing is added up across tasks, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeVar

_lock = threading.Lock()
_holders: list[Any] = []
_count = 0


@cache
def _controller() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401  (Numba multiplies by this one; load it first)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread: several would compete for the cores, and add in another order.

    The limit holds for the whole process: the first thread sets it, the last one lifts it.
    """
    global _count
    with _lock:
        if _count == 0:
            _holders.append(_controller().limit(limits=1, user_api="blas"))
            _holders[-1].__enter__()
        _count += 1
    try:
        yield
    finally:
        with _lock:
            _count -= 1
            if _count == 0:
                while _holders:
                    _holders.pop().__exit__(None, None, None)


T = TypeVar("T")

_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork; a child process starts its own.
    os.register_at_fork(after_in_child=_pools.clear)


_in_use: ContextVar[int] = ContextVar("threads in use", default=1)
_RUNS = 2
"""Per thread: the quick ones take more."""


@contextmanager
def using_threads(n_threads: int) -> Iterator[None]:
    """Let long vectors be worked on by so many threads, until the end of the block.

    Examples
    --------
    >>> with using_threads(2):
    ...     over_range(lambda first, last: print(first, last), 3, work=1)
    0 3
    """
    token = _in_use.set(n_threads)
    try:
        yield
    finally:
        _in_use.reset(token)


def over_range(function: Callable[[int, int], object], n_items: int, work: int) -> None:
    """Call the function for runs (first, last) that cover all items, on the threads in use.

    What it does with an item must not depend on the run that the item is in.
    """
    n_threads = threads_for(work, _in_use.get())
    if n_threads == 1:
        function(0, n_items)
        return
    n_runs = _RUNS * n_threads
    cuts = [k * n_items // n_runs for k in range(n_runs + 1)]
    run_all([partial(function, *run) for run in pairwise(cuts)], n_threads)


def run_some(tasks: Sequence[Callable[[], T]], work: int) -> list[T]:
    """Results of the tasks in their order, from the threads in use if the work is worth it."""
    return run_all(tasks, threads_for(work, _in_use.get()))


def threads_for(work: int, n_threads: int) -> int:
    """Number of threads, at most `n_threads`, that this work keeps busy.

    Work is in operations, roughly; a million of them take longer than waking a thread.
    """
    return min(n_threads, max(1, work // 1_000_000))


def _pool(n_helpers: int) -> ThreadPoolExecutor:
    """The largest pool, if it has so many threads; else a new one."""
    size = max(_pools, default=0)
    if size < n_helpers:
        size = n_helpers
        _pools[size] = ThreadPoolExecutor(size, thread_name_prefix="mixedgm")
    return _pools[size]


def run_all(tasks: Sequence[Callable[[], T]], n_threads: int) -> list[T]:
    """Results of the tasks in their order; the caller's own thread works, too.

    Every thread takes the next task when it is free, so handing over is paid once per thread.
    """
    if n_threads == 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    pool = _pool(n_threads - 1)
    waiting, results = deque(range(len(tasks))), dict[int, T]()

    def work() -> None:
        while waiting:
            try:
                k = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            results[k] = tasks[k]()

    helpers = [pool.submit(work) for _ in range(min(n_threads, len(tasks)) - 1)]
    work()
    for helper in helpers:
        # One that has not begun finds nothing left to do.
        if not helper.cancel():
            helper.result()
    return [results[k] for k in range(len(tasks))]

"""Tasks of one pass over the rows -> their results, from one pool of threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mixedgm.parallel import single_threaded_blas

__all__ = ["run_all", "single_threaded_blas"]

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

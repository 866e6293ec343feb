"""Sums that need a fixed order -> BLAS limited to one thread while they are computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["single_threaded_blas"]

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

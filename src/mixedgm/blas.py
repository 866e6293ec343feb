"""Work that must add in a fixed order -> BLAS with one thread meanwhile."""

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
    """Let BLAS use one thread: its own would fight over the cores, and add in another order.

    The limit is the whole process's.  The first thread to come sets it, the last to leave lifts it.
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

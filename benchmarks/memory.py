"""Callables -> bytes: what the process held at most while they ran, and fresh processes."""

from __future__ import annotations

import os
import resource
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

MB = 1e6
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident() -> int:
    """Bytes held now."""
    return _status("VmRSS")


def peak_resident() -> int:
    """Most bytes held since the process started or `forget_peak`.

    Not from getrusage where the kernel tells otherwise: a child's figure there includes what the
    parent held when it forked.
    """
    return _status("VmHWM")


def forget_peak() -> bool:
    """Start a new peak; False where the kernel does not offer it."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def extra_resident(work: Callable[[], object]) -> int:
    """Bytes held during `work` at most, beyond those held before."""
    forget_peak()
    before = resident()
    work()
    return max(0, peak_resident() - before)


def traced(work: Callable[[], T]) -> tuple[T, int]:
    """The result, and the peak of what Python and NumPy allocated meanwhile."""
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def in_fresh_process(work: Callable[..., T], *args: Any) -> T:
    """Call a module's function in a new interpreter that shares nothing with this one.

    Tests set MIXEDGM_BENCHMARK_HERE and stay in this one: a new one takes seconds.
    """
    if os.environ.get("MIXEDGM_BENCHMARK_HERE"):
        return work(*args)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _status(field: str) -> int:
    if not _STATUS.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"{_STATUS} has no {field}")

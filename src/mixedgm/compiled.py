"""A plain function over arrays -> a compiled one, cached on disk; the options of all kernels.

Compilation is what the first fit ever waits for, so nothing is compiled that nobody calls: no
entry for C, and for functions that only other kernels call no entry for Python either.  Division
follows NumPy, whose inf costs no test in the loop.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls."""
    if function is None:
        return partial(kernel, **options)
    return njit(function, **_OPTIONS, **options)


def inner(function: Any = None, **options: Any) -> Any:
    """Compile a function that only kernels call."""
    return kernel(function, no_cpython_wrapper=True, **options)

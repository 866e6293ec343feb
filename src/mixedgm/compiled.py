"""A plain function over arrays -> a compiled one, cached on disk; the options of all kernels.

Compilation is what the first fit ever waits for, so nothing is compiled that nobody calls: no
entry for C, and for functions that only other kernels call no entry for Python either.  Those are
not cached apart, because whoever calls them is cached with them inside, and most of them count no
references: they only borrow the arrays of their callers.  Division follows NumPy, whose
inf costs no test in the loop.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from numba import njit
from numba.core import event

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls."""
    if function is None:
        return partial(kernel, **options)
    return njit(function, cache=True, **_OPTIONS, **options)


def inner(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function that only kernels call; one that makes arrays has to say so."""
    if function is None:
        return partial(inner, allocates=allocates, **options)
    return njit(function, no_cpython_wrapper=True, _nrt=allocates, **_OPTIONS, **options)


class _CollectLater(event.Listener):  # type: ignore[misc]
    """No garbage collection while a kernel of this package is compiled.

    A compiler makes very many objects that live until it is done; looking through them again and
    again for some that could go takes a tenth of its time.
    """

    depth, paused = 0, False

    def on_start(self, event: Any) -> None:
        """Begin with a kernel; then follow what is compiled for it."""
        if self.depth == 0:
            home = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
            if not home.startswith(f"{__package__}."):
                return
            self.paused = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Also after an error."""
        if self.depth == 1 and self.paused:
            gc.enable()
        self.depth = max(self.depth - 1, 0)


event.register("numba:compile", _CollectLater())

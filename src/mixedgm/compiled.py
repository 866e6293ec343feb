"""A plain function over arrays -> a compiled one, cached on disk; the options of all kernels.

Compilation is what the first fit ever waits for, so nothing is compiled that nobody calls: no
entry for C, and for functions that only other kernels call no entry for Python either.  Those are
not cached apart, because whoever calls them is cached with them inside, and most of them count no
references: they only borrow the arrays of their callers.  Division follows NumPy, whose
inf costs no test in the loop.
"""

from __future__ import annotations

import gc
import pickle
from contextlib import suppress
from functools import partial
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls."""
    if function is None:
        return partial(kernel, **options)
    compiled = njit(function, **_OPTIONS, **options)
    if not hasattr(compiled, "py_func"):  # the compiler is switched off
        return compiled
    with suppress(RuntimeError, OSError):  # a read-only installation, and no home folder
        compiled._cache = _OptionalCache(compiled.py_func)
    return compiled


class _OptionalCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, without which everything works, only later.

    A damaged file is thrown away; a full disk keeps nothing.  Numba would raise.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or None if the disk has none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged pickle raises
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function if that is possible."""
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            super().save_overload(sig, data)


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

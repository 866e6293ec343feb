"""Numba: a plain function over arrays -> a compiled one, cached on disk; options of all kernels.

The first fit ever waits for the compiler, so nothing is compiled that is never called: no entry
for C, and no entry for Python either where only other kernels call a function.  Such functions
are not cached by themselves, because they are compiled into their callers, and most of them count
no references: they only borrow the arrays of their callers.  Division follows NumPy: inf needs no
test in the loop.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def compile_function(
    function: object, *, inner: bool = False, allocates: bool = False, **options: Any
) -> Any:
    """Compile a function that Python calls, or an `inner` one, which only kernels call."""
    if inner:
        return njit(function, no_cpython_wrapper=True, _nrt=allocates, **_OPTIONS, **options)
    compiled = njit(function, **_OPTIONS, **options)
    if not hasattr(compiled, "py_func"):  # the compiler is switched off
        return compiled
    with suppress(RuntimeError, OSError):  # a read-only installation, and no home folder
        compiled._cache = _OptionalCache(compiled.py_func)
    return compiled


class _OptionalCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, which saves time and is never required.

    A damaged file is thrown away, and nothing is kept on a full disk.  Numba itself would raise, or
    run damaged code.
    """

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._cache_file = _SealedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )
        self._cache_file.function = function

    def load_overload(self, sig: object, target_context: Any) -> Any:
        """Return the compiled function, or None if the disk has none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged pickle raises
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: object, data: Any) -> None:
        """Keep the compiled function if that is possible."""
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            super().save_overload(sig, data)


class _SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Files that say what they hold, and which sources it was compiled from.

    Numba checks only the file that a kernel is in, so it would keep using old functions of another
    file.  And when two processes compile at once, one may find the other's code under its name.
    """

    function: Any = None

    def save(self, key: object, data: Any) -> None:
        """Keep the code with its key, its sources and a checksum."""
        body = self._dump(data)
        super().save(key, (self._label(key), hashlib.sha256(body).digest(), body))

    def load(self, key: object) -> Any:
        """Return the code if it is whole, and that of this key; None if there is none."""
        stored = super().load(key)
        if stored is None:
            return None
        label, checksum, body = stored
        if label != self._label(key) or checksum != hashlib.sha256(body).digest():
            return None
        return pickle.loads(body)

    def _label(self, key: object) -> str:
        name = self.function.__qualname__
        return repr((name, key, sorted(_sources(self.function, {}).items())))


def _sources(function: Any, known: dict[str, str]) -> dict[str, str]:
    """Files that a kernel's code comes from, and the numbers that are compiled into it."""
    code, names = function.__code__, function.__globals__
    with suppress(OSError):
        state = os.stat(code.co_filename)
        known[code.co_filename] = f"{state.st_mtime_ns} {state.st_size}"
    for name in code.co_names:
        value = names.get(name)
        called: Any = getattr(value, "py_func", getattr(value, "_defn", None))
        if isinstance(value, int | float):
            known[f"{code.co_filename} {name}"] = repr(value)
        elif hasattr(called, "__code__"):
            place = f"{called.__module__}.{called.__name__}"
            if place not in known:
                known[place] = ""
                _sources(called, known)
    return known


class _CollectLater(event.Listener):  # type: ignore[misc]
    """No garbage collection while a kernel of this package is compiled.

    The compiler makes very many objects that live until it is done; searching them for garbage
    again and again takes a tenth of its time.
    """

    depth, paused = 0, False

    def on_start(self, event: Any) -> None:
        """Start with a kernel of this package, and count what is compiled for it."""
        if self.depth == 0:
            home = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
            if not home.startswith("mixedgm."):
                return
            self.paused = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: object) -> None:
        """Count down; Numba calls this after an error, too."""
        if self.depth == 1 and self.paused:
            gc.enable()
        self.depth = max(self.depth - 1, 0)


event.register("numba:compile", _CollectLater())

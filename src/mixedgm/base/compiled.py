"""A plain function over arrays -> one that is compiled when it is first called.

So kernels stand beside what calls them, and files that have some are imported without Numba, which
takes longer to load than the whole package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from threading import RLock
from typing import Any

_COMPILING = RLock()


class Kernel:
    """A function over arrays, which Numba compiles when Python or another kernel needs it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self.options = function, options
        self._compiled: Any = None
        update_wrapper(self, function)

    @property
    def compiled(self) -> Any:
        """The function compiled by Numba; the plain function where Numba is switched off."""
        if self._compiled is None:
            from mixedgm.base.compiler import compile_function

            with _COMPILING:
                self._compiled = self._compiled or compile_function(self.py_func, **self.options)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """Type of the compiled function, which Numba looks up where another kernel calls it."""
        return self.compiled._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Compile it if that has not been done, and call it."""
        return self.compiled(*arguments)

    def __reduce__(self) -> str:
        """Pickle it by its name, as functions are."""
        return self.py_func.__qualname__

    def __repr__(self) -> str:
        """Tell which function it is."""
        return f"<kernel {self.py_func.__module__}.{self.py_func.__qualname__}>"


class Inner(Kernel):
    """A kernel that only other kernels call: Python cannot enter its compiled form."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the plain function."""
        return self.py_func(*arguments)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that Python calls."""
    return partial(Kernel, options=options) if function is None else Kernel(function, options)


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that only kernels call; `allocates=True` if it makes arrays."""
    options["inner"] = True
    return partial(Inner, options=options) if function is None else Inner(function, options)

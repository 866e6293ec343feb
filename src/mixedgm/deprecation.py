"""Old names -> the new ones, with a FutureWarning, for one release."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from mixedgm.errors import ParameterError, level_of_caller

__all__ = ["renamed", "renamed_arguments", "warn_renamed", "with_new_names"]

P = ParamSpec("P")
T = TypeVar("T")


def warn_renamed(old: str, new: str) -> None:
    """Warn the user, at the line that uses the old name."""
    warnings.warn(
        f"{old} is now called {new}; the old name will be removed in the next release.",
        FutureWarning,
        stacklevel=level_of_caller(),
    )


def renamed(function: Callable[P, T], old: str, new: str) -> Callable[P, T]:
    """Return a function or method under its old name."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        warn_renamed(old, new)
        return function(*args, **kwargs)

    call.__name__ = old.rpartition(".")[2]
    call.__doc__ = f"Old name of `{new}`, for one more release."
    return call


def renamed_arguments(names: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take arguments by their old names, too; its signature has the new ones.

    Examples
    --------
    >>> @renamed_arguments({"colour": "color"})
    ... def paint(color="red"):
    ...     return color
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore", category=FutureWarning):
    ...     paint(colour="blue")
    'blue'
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        order = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **with_new_names(kwargs, names, order[: len(args)]))

        return call

    return decorate


def with_new_names(
    given: Mapping[str, Any], names: Mapping[str, str], positional: Sequence[str] = ()
) -> Any:
    """Return arguments by their new names, with a warning for every old one."""
    arguments = dict(given)
    for old, new in names.items():
        if old in arguments:
            if new in arguments or new in positional:
                raise ParameterError(f"{old} is the old name of {new}: give only one of them.")
            warn_renamed(old, new)
            arguments[new] = arguments.pop(old)
    return arguments

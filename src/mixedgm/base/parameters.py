"""Options of criteria and solvers -> their names and values as scikit-learn asks; their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

from mixedgm.base.errors import ParameterError, near_matches
from mixedgm.base.printable import quoted


def ensure(holds: bool, name: str, wanted: str, value: object) -> None:
    """Raise ParameterError "<name> must be <wanted>" unless the condition holds."""
    if not holds:
        raise ParameterError.must_be(name, wanted, value)


def is_flag(value: object) -> bool:
    """Whether a value is a truth value, and not merely equal to one."""
    return isinstance(value, (bool, np.bool_))


def is_real(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, and not a truth value."""
    return isinstance(value, Real) and not is_flag(value)


def ensure_in(interval: str, **named: object) -> None:
    """Raise ParameterError unless all of these values are numbers in an interval.

    Examples
    --------
    >>> ensure_in("(0, 1]", level=0.95, share=1.0)
    """
    low, high = map(float, interval[1:-1].split(","))
    for name, value in named.items():
        inside = is_real(value) and (
            low < value < high
            or (interval[0] == "[" and value == low)
            or (interval[-1] == "]" and value == high)
        )
        ensure(inside, name, f"a number in {interval}", value)


def is_integer(value: object, low: float = -np.inf, high: float = np.inf) -> TypeGuard[int]:
    """Whether a value is a whole number in [low, high], and not a truth value.

    Examples
    --------
    >>> is_integer(2, 1), is_integer(2.0, 1), is_integer(True, 1), is_integer(7, 1, 5)
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not is_flag(value) and low <= int(value) <= high


class HasParams:
    """A frozen dataclass whose options scikit-learn can list, copy and search."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name.

        The object is frozen; to change an option, make a new one, or name it to the estimator:
        ``model.set_params(select__gamma=0.25)``.
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


def with_options(parameter: str, value: object, options: Mapping[str, Any]) -> Any:
    """Return a copy of the object that a parameter holds, with some options changed.

    Raises
    ------
    ParameterError
        When it is not an object with options, or has none of such a name.

    Examples
    --------
    >>> from mixedgm.select.criteria import EBIC
    >>> with_options("select", EBIC(), {"gamma": 0.25})
    EBIC(gamma=0.25, per_node=False)
    """
    if hasattr(value, "set_params"):  # a user's own object, which is not frozen
        return value.set_params(**options)
    if not is_dataclass(value) or isinstance(value, type):
        raise ParameterError(
            f"{parameter}__{next(iter(options))} is an option of an object, and {parameter} is "
            f"{quoted(value)}; give an object first, for example select=mixedgm.EBIC() or "
            "solver=mixedgm.ProximalNewton()."
        )
    names = [each.name for each in fields(value) if each.init]
    wrong = [name for name in options if name not in names]
    if wrong:
        raise ParameterError(
            f"{type(value).__name__} has no option {', '.join(map(quoted, wrong))}: "
            f"{near_matches(wrong[0], names, 'options')}"
        )
    return replace(value, **options)

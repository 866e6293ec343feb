"""A function that speaks of column numbers -> the same with column names in errors and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mixedgm.errors import DistributionError, SamplingWarning, level_of_caller
from mixedgm.printable import quoted
from mixedgm.table.schema import Schema

__all__ = ["with_names"]

P = ParamSpec("P")
T = TypeVar("T")


def with_names(
    schema: Schema, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
) -> T:
    """Call a function; its errors and warnings about the joint distribution get column names.

    Examples
    --------
    >>> from mixedgm.table import Column
    >>> def fails(number):
    ...     raise DistributionError("no distribution of {columns}", (number,))
    >>> with_names(Schema((Column("age", "continuous"),)), fails, 0)
    Traceback (most recent call last):
    mixedgm.errors.DistributionError: no distribution of 'age'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        try:
            result = function(*args, **options)
        except DistributionError as error:
            raise error.named([node.name for node in schema.nodes]) from None
    for warning in caught:
        if isinstance(warning.message, SamplingWarning):
            warnings.warn(warning.message.named(_places(schema)), stacklevel=level_of_caller())
        else:
            message, category = warning.message, warning.category
            warnings.warn_explicit(message, category, warning.filename, warning.lineno)
    return result


def _places(schema: Schema) -> list[str]:
    """Return names of the columns of numbers, then of all values of the others."""
    levels = [f"{quoted(c.name)} = {value}" for c in schema.discrete for value in c.value_names]
    return [*(quoted(column.name) for column in schema.real), *levels]

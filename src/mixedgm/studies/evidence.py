"""Column names and known values in -> positions, numbers and level codes, or what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from mixedgm.errors import ParameterError, near_matches
from mixedgm.model.nodes import in_node_order
from mixedgm.printable import quoted
from mixedgm.table.schema import Column, Level, Schema

__all__ = [
    "KnownValues",
    "column_positions",
    "level_code",
    "read_columns",
    "read_evidence",
    "shown",
]

_SHOWN_LEVELS = 10


@dataclass(frozen=True)
class KnownValues:
    """Known values of some columns: by name, in the table's order and in the data's own units.

    `numbers` has those of columns with real numbers by position, normal scores where a column has a
    transform; `discrete` the codes of all but Gaussian columns by position.
    """

    values: Mapping[str, float | Level] = field(default_factory=dict)
    numbers: Mapping[int, float] = field(default_factory=dict)
    discrete: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: Schema,
        encoded: Mapping[int, float],
        values: Mapping[str, float | Level] | None = None,
    ) -> KnownValues:
        """Return values of some nodes as the model has them; by default `values` are decoded."""
        spans, nodes = schema.spans, schema.nodes
        numbers = {v: float(x) for v, x in encoded.items() if spans.is_real(v)}
        discrete = {
            spans.place(v): int(x != 0.0 if v in numbers else x)
            for v, x in encoded.items()
            if not spans.is_gaussian(v)
        }
        if values is None:
            values = {nodes[v].name: nodes[v].value(x) for v, x in encoded.items()}
        return cls(values, numbers, discrete)

    def by_node(self, schema: Schema) -> dict[int, float]:
        """Return numbers and level codes by node."""
        spans = schema.spans
        nodes = (schema.node_index(name) for name in self.values)
        return {
            v: self.numbers[v] if spans.is_real(v) else self.discrete[spans.place(v)] for v in nodes
        }

    def __str__(self) -> str:
        """Return "age = 40, sex = Female"."""
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.values.items())


def read_evidence(schema: Schema, given: Mapping[Any, Any] | None) -> KnownValues:
    """Return known values as numbers and level codes, or raise one error with all that is wrong.

    A level is given as it is in the table or as its text.  None and NaN mean that nothing is known.

    Examples
    --------
    >>> sex = Column("sex", "categorical", levels=("F", "M"))
    >>> schema = Schema((sex, Column("age", "continuous")))
    >>> print(read_evidence(schema, {"age": 40, "sex": "F"}))
    sex = F, age = 40
    """
    if given is None:
        return KnownValues()
    if not hasattr(given, "items"):
        raise ParameterError.must_be("given", "a dict such as {'sex': 'Female', 'age': 40}", given)
    wrong: list[str] = []
    read: dict[str, tuple[float | Level, float]] = {}
    for name, value in given.items():
        try:
            column = schema.nodes[schema.node_index(name)]
            if not _missing(value):
                read[column.name] = _read_value(column, value)
        except ParameterError as error:
            wrong.append(str(error).rstrip("."))
    if wrong:
        text = "; ".join(wrong)
        raise ParameterError(text if text.endswith("?") else f"{text}.")
    names = [name for name in schema.names if name in read]
    encoded = {schema.node_index(name): read[name][1] for name in names}
    return KnownValues.of(schema, encoded, {name: read[name][0] for name in names})


def _read_value(column: Column, value: Any) -> tuple[float | Level, float]:
    """Return a value in the data's own units, and as the model has it."""
    if column.is_discrete:
        code = level_code(column, value)
        return column.value(code), code
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"column {quoted(column.name)} is {column.kind}, so its value must be a number. "
            f"Got {quoted(value)} instead"
        ) from None
    if not np.isfinite(number):
        raise ParameterError(
            f"the value of column {quoted(column.name)} must be finite. Got {number}"
        )
    return number, float(column.encoded(number))


def level_code(column: Column, value: Any) -> int:
    """Return the position of a level that is given as itself or as its text.

    Examples
    --------
    >>> level_code(Column("year", "categorical", levels=(2008, 2009)), "2009")
    1
    >>> level_code(Column("visits", "count", largest=9), 4)
    4
    """
    value = value.item() if isinstance(value, np.generic) else value
    if not column.has_levels:
        return _count(column, value)
    for at, level in enumerate(column.levels):
        # 1 is not a truth value here, and False is not the level 0.
        if level == value and isinstance(level, bool) == isinstance(value, bool):
            return at
    text = str(value)
    if text in column.level_names:
        return column.level_names.index(text)
    hint = near_matches(text, column.level_names)
    if not hint.startswith("did"):
        shown = ", ".join(quoted(level) for level in column.levels[:_SHOWN_LEVELS])
        more = len(column.levels) - _SHOWN_LEVELS
        hint = f"its levels are {shown}" + (f" and {more} more" if more > 0 else "")
    raise ParameterError(f"column {quoted(column.name)} has no level {quoted(value)}; {hint}")


def _count(column: Column, value: Any) -> int:
    """A value of a count column, or its text, as a whole number."""
    try:
        number = np.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 <= number < column.n_values or number != int(number):
        raise ParameterError(
            f"column {quoted(column.name)} is a count, so its value must be a whole number from 0 "
            f"to {column.n_values - 1}. Got {quoted(value)} instead"
        )
    return int(number)


def read_columns(schema: Schema, columns: Any, option: str = "columns") -> tuple[Column, ...]:
    """Return the columns that a name or a sequence of different names stands for, in that order."""
    single = isinstance(columns, (str, Integral))
    names = [columns] if single else list(columns) if np.iterable(columns) else []
    if not names:
        raise ParameterError.must_be(option, "a column name or a list of them", columns)
    named = [schema.nodes[schema.node_index(name)] for name in names]
    for at, column in enumerate(named):
        if column in named[:at]:
            raise ParameterError(f"column {quoted(column.name)} is named twice.")
    return tuple(named)


def column_positions(
    schema: Schema, columns: Sequence[Column]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return their columns of numbers and their columns of codes; a spiked column has both.

    They are in the order in which a schema of these columns has them.
    """
    ordered = in_node_order(columns, lambda column: column.kind)
    numbers, discrete = schema.spans.places(schema.node_index(c.name) for c in ordered)
    return tuple(numbers), tuple(discrete)


def _missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def shown(value: object, digits: int = 6) -> str:
    """A value as text."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)

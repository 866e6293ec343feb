"""Columns, values and counts in -> the phrases that findings are made of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mixedgm.printable import few, literal, quoted
from mixedgm.table.schema import Kind
from mixedgm.table.values import Values

__all__ = [
    "counted",
    "drop_line",
    "few",
    "number_of",
    "odd_values",
    "quoted",
    "rows",
    "types_line",
]


def odd_values(values: Values, *, text: bool) -> str:
    """Return the commonest texts (or else the commonest values that are not text) with counts."""
    if values.family == "mixed":
        cells = np.asarray(values.column, dtype=object)
        counter = Counter(cell for cell in cells if isinstance(cell, str) == text and cell == cell)
        counter.pop(None, None)
        return counted(list(counter.items()))
    factor = values.factor()
    counts = np.bincount(factor.codes[factor.codes >= 0], minlength=len(factor.levels))
    return counted(list(zip(factor.levels, counts.tolist(), strict=True)))


def counted(counts: list[tuple[Any, int]]) -> str:
    """Return values with their counts, the commonest first, at most five."""
    counts = sorted(((value, n) for value, n in counts if n), key=lambda pair: -pair[1])
    return few(counts, 5, lambda pair: f"{quoted(pair[0])} ({rows(pair[1])})")


def number_of(count: int, one: str, many: str) -> str:
    """Return a count with its noun, for example "1 entry" or "12 entries"."""
    return f"1 {one}" if count == 1 else f"{count:,} {many}"


def rows(count: int) -> str:
    """Return "1 row" or "<count> rows"."""
    return number_of(count, "row", "rows")


def types_line(name: str, kind: Kind) -> str:
    """Return the option that gives a column its kind, as the user would write it."""
    return f'types={{{literal(name)}: "{kind}"}}'


def drop_line(*names: str) -> str:
    """Return the advice to leave columns out, at most twenty of them by name.

    Examples
    --------
    >>> drop_line("id"), drop_line("alley", "pool")
    ("leave column 'id' out", "leave columns 'alley', 'pool' out")
    """
    if len(names) == 1:
        return f"leave column {quoted(names[0])} out"
    return f"leave columns {few(names, 20)} out"

"""The levels of a column and how often each occurs in -> whether it names rows, not categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.printable import literal, quoted
from mixedgm.table.schema import Level
from mixedgm.table.values import Factor, Values
from mixedgm.table.wording import counted, drop_line, number_of, rows, types_line

__all__ = ["names_rows", "numbering_finding", "text_finding"]

_SOME_LEVELS = 5  # no more texts than this name the rows, however few the rows
_MANY_LEVELS = 50
_FEW_NUMBERS = 10  # up to here numbers in text may well be codes
_FEW_WORDS = 10


def names_rows(n_levels: int, n_rows: int, *, declared: bool) -> bool:
    """Return whether there are too few rows for each level to learn anything about it.

    That is so for more than 5 levels with fewer than 2 rows each on average, and for more than 50
    levels with fewer than 5. Levels that a data frame declares are believed up to 50.

    Parameters
    ----------
    n_levels, n_rows : int
        Levels that occur, and rows with a value.
    declared : bool
        Whether the data frame declares levels (pandas category, polars Enum, ...).

    Examples
    --------
    >>> names_rows(400, 400, declared=False), names_rows(28, 2930, declared=False)
    (True, False)
    """
    few = _MANY_LEVELS if declared else _SOME_LEVELS
    scattered = n_levels > few and n_rows < 2 * n_levels
    return scattered or (n_levels > _MANY_LEVELS and n_rows < 5 * n_levels)


def text_finding(
    values: Values, factor: Factor, counts: NDArray[np.intp]
) -> tuple[Finding | None, str | None]:
    """Return a warning about a column of text that looks like no category.

    Parameters
    ----------
    values : Values
        The column.
    factor : Factor
        Its levels.
    counts : int array
        How often each level occurs.

    Returns
    -------
    Finding or None
        The warning.
    str or None
        Why the column is left out; None when it stays.
    """
    used = [factor.levels[int(at)] for at in np.flatnonzero(counts)]
    n_levels, n_rows = len(used), int(counts.sum())
    out = names_rows(n_levels, n_rows, declared=values.family != "text")
    keep = f"{types_line(values.name, 'categorical')} keeps it and ends this warning"
    if values.family == "text" and n_levels > _FEW_NUMBERS:
        words = [level for level in used if not _reads_as_number(level)]
        n_numbers = n_levels - len(words)
        if n_numbers > _FEW_NUMBERS and len(words) <= min(_FEW_WORDS, max(1, n_numbers // 10)):
            return _numbers_as_text(values, factor, counts, words, keep)
    size = f"{n_levels:,} distinct {'texts' if values.family == 'text' else 'levels'}"
    if out:
        what = f"looks like an identifier or free text, so it is left out: {size} in {rows(n_rows)}"
        reason = f"identifier or free text: {n_levels:,} levels in {rows(n_rows)}"
        keep = f"{types_line(values.name, 'categorical')} keeps it as a category"
        remedy = f"{keep} ({drop_line(values.name)} to end this warning)"
        return Finding(values.name, what, remedy, "warning"), reason
    if values.family != "text" or n_levels <= _MANY_LEVELS:
        return None, None
    what = f"many levels for a category: {size} in {rows(n_rows)}"
    remedy = f"merge rare levels, or {drop_line(values.name)}; {keep}"
    return Finding(values.name, what, remedy, "warning"), None


def _numbers_as_text(
    values: Values, factor: Factor, counts: NDArray[np.intp], words: Sequence[Level], keep: str
) -> tuple[Finding | None, str | None]:
    n_levels, n_rows = int(np.count_nonzero(counts)), int(counts.sum())
    out = n_levels > _MANY_LEVELS or names_rows(n_levels, n_rows, declared=False)
    taken = "left out" if out else f"taken as a category of {n_levels} levels"
    if words:
        lost = set(words)
        found = [
            (level, int(n)) for level, n in zip(factor.levels, counts, strict=True) if level in lost
        ]
        odd = number_of(len(words), "word", "words")
        what = (
            f"its {n_levels:,} distinct values are numbers but for {odd}: {counted(found)}; "
            f"so it is text, and {taken}"
        )
        remedy = f"{_conversion(values)} makes numbers of it, and missing values of the words"
        reason = f"numbers, but for {odd}"
    elif out:
        what = (
            f"its {n_levels:,} distinct texts in {rows(n_rows)} are numbers, for example "
            f"{quoted(factor.levels[int(np.argmax(counts > 0))])}; as text it is {taken}"
        )
        remedy = f"{_conversion(values)} makes numbers of it, if they measure something"
        reason = "numbers stored as text"
    else:
        return None, None
    return Finding(values.name, what, f"{remedy}; {keep}", "warning"), reason if out else None


def _conversion(values: Values) -> str:
    """Return the line that makes numbers of a column, as the user of a library would write it."""
    name = literal(values.name)
    if values.library == "pandas":
        return f'table[{name}] = pd.to_numeric(table[{name}], errors="coerce")'
    if values.library == "polars":
        return f"table = table.with_columns(pl.col({name}).cast(pl.Float64, strict=False))"
    return "converting it to float, with missing values for what is not a number,"


def _reads_as_number(level: object) -> bool:
    try:
        float(str(level))
    except ValueError:
        return False
    return True


def numbering_finding(name: str, numbers: NDArray[np.float64]) -> Finding | None:
    """Return a warning when whole numbers count the rows.

    They do when they are 0 to n - 1 or 1 to n in any order, or consecutive from any number on in
    the order of the rows.

    Parameters
    ----------
    name : str
        The column.
    numbers : float64 array of shape (n,)
        Its values in the order of the rows, none of them missing.

    Examples
    --------
    >>> print(numbering_finding("id", np.arange(1.0, 401.0)).what)
    looks like row numbers: the whole numbers 1 to 400, each once
    """
    n_rows, low = len(numbers), float(numbers.min())
    if n_rows <= _FEW_NUMBERS or float(numbers.max()) - low != n_rows - 1 or low != np.floor(low):
        return None
    steps = numbers - low
    in_order = bool((steps == np.arange(n_rows)).all())
    if not in_order:
        whole = low in (0.0, 1.0) and bool((steps == np.floor(steps)).all())
        if not whole or np.bincount(steps.astype(np.intp)).max() > 1:
            return None
    high = low + n_rows - 1
    what = f"looks like row numbers: the whole numbers {low:.15g} to {high:.15g}, each once"
    keep = f"{types_line(name, 'continuous')} keeps it and ends this warning"
    return Finding(name, what, f"{drop_line(name)}; {keep}", "warning")

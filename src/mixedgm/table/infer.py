"""One column, and what `types` says about it, in -> its kind, or a finding why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.printable import counted, literal, number_of, quoted, rows
from mixedgm.table.schema import Kind, Level, drop_line, types_line
from mixedgm.table.values import Factor, Values

__all__ = ["family_finding", "is_numeric", "kind_of_numbers", "numbering_finding", "text_finding"]

_FEW = 10
_SOME_LEVELS = 5  # so few texts never name the rows, however few the rows
_MANY_LEVELS = 50
_FEW_NUMBERS = 10  # up to this many, numbers in text may well be codes
_FEW_WORDS = 10


def family_finding(values: Values, declared: Kind | None) -> Finding | None:
    """Return why a column can be neither continuous nor categorical, or None."""
    if values.family == "empty":
        return Finding(values.name, "all of its values are missing", drop_line(values.name))
    if values.family == "other":
        return _unsupported(values)
    if values.family == "mixed":
        texts = values.shown(text=True)
        if not texts:
            what = "truth values among numbers"
            return Finding(values.name, what, "make all of its values numbers")
        what = f"text among other values: {texts}"
        return Finding(values.name, what, "make all of its values text, or all of them numbers")
    if declared == "continuous" and not is_numeric(values):
        what = f"types says continuous, but it holds text: {values.shown(text=True)}"
        remedy = f"{types_line(values.name, 'categorical')}, or convert the column to numbers"
        return Finding(values.name, what, remedy)
    return None


def is_numeric(values: Values) -> bool:
    """Return whether the values can be read as numbers (truth values are 0 and 1)."""
    if values.family == "category":
        return all(not isinstance(level, str) for level in values.factor().levels)
    return values.family in ("number", "boolean")


def _unsupported(values: Values) -> Finding:
    dtype = values.dtype.lower()
    if dtype == "object":
        types = Counter(type(each).__name__ for each in np.asarray(values.column, dtype=object))
        odd = {name: n for name, n in types.items() if name not in _PLAIN}
        if any(name.startswith("complex") for name in odd):
            return Finding(values.name, "Complex data not supported", _COMPLEX)
        shown = ", ".join(f"{name} ({rows(n)})" for name, n in list(odd.items())[:3])
        what = f"holds {shown}; each cell of the argument must be a string, a bool or a number"
        return Finding(values.name, what, drop_line(values.name), wrong_type=True)
    if "complex" in dtype:
        return Finding(values.name, f"Complex data not supported ({values.dtype})", _COMPLEX)
    remedies = (text for words, text in _REMEDIES.items() if any(word in dtype for word in words))
    what = f"values of type {values.dtype} cannot be modelled"
    return Finding(values.name, what, next(remedies, _OTHER))


_PLAIN = {"str", "int", "float", "bool", "NoneType", "NAType", "NaTType", "str_", "bool_"}
_COMPLEX = "use its real and imaginary parts as two columns"
_OTHER = "turn it into numbers, truth values or text, or leave it out"
_REMEDIES = {
    ("duration", "timedelta"): "turn it into a number, for example of seconds or days",
    ("date", "time", "period"): (
        "turn it into a number (for example days since a first date) or a category (for example "
        "the year), or leave it out"
    ),
    ("sparse",): "make it dense with .sparse.to_dense()",
    ("binary", "bytes", "|s"): "decode it to text",
    ("list", "struct", "array", "map"): "make one column of each entry",
}


def kind_of_numbers(values: Values, numbers: NDArray[np.float64]) -> tuple[Kind, Finding | None]:
    """Return the inferred kind of a numeric column, with a warning where it could be either.

    Two distinct whole numbers are categorical. Everything else is continuous; three to ten distinct
    whole numbers, or two numbers that are not whole, get a warning. `numbers` are the column's
    values without missing ones.
    """
    distinct = few_distinct(numbers)
    if distinct is None or len(distinct) < 2:
        return "continuous", None
    whole = bool((distinct == np.floor(distinct)).all())
    if len(distinct) == 2 and whole:
        return "categorical", None
    if len(distinct) > 2 and not whole:
        return "continuous", None
    shown = ", ".join(f"{value:.15g}" for value in distinct)
    what = f"its {len(distinct)} distinct values {shown} are taken as continuous"
    keep = f"({types_line(values.name, 'continuous')} keeps it and silences this warning)"
    line = f"{types_line(values.name, 'categorical')} {keep}"
    return "continuous", Finding(values.name, what, line, "warning")


def few_distinct(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the distinct values in order, or None when there are more than ten."""
    if len(np.unique(numbers[:4096])) > _FEW:  # settles nearly every continuous column
        return None
    distinct = np.unique(numbers)
    return distinct if len(distinct) <= _FEW else None


# -- names of rows, not categories -----------------------------------------------------------------


def names_rows(n_levels: int, n_rows: int, *, declared: bool) -> bool:
    """Return whether there are too few rows for each level to learn anything about it.

    That is so for more than 5 levels with fewer than 2 rows each on average, and for more than 50
    levels with fewer than 5. Levels that a data frame declares (pandas category, polars Enum, ...)
    are believed up to 50.

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
    """Return a warning about a column of text that does not look like a category.

    `counts` says how often each level occurs. With the warning comes the reason why the column is
    left out, None when it stays.
    """
    used = [level for level, n in zip(factor.levels, counts, strict=True) if n]
    n_levels, n_rows = len(used), int(counts.sum())
    out = names_rows(n_levels, n_rows, declared=values.family != "text")
    keep = f"{types_line(values.name, 'categorical')} keeps it and silences this warning"
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
        remedy = f"{keep} ({drop_line(values.name)} to silence this warning)"
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
        each = zip(factor.levels, counts.tolist(), strict=True)
        others = counted((level, n) for level, n in each if level in words)
        odd = number_of(len(words), "word")
        what = (
            f"its {n_levels:,} distinct values are numbers except for {odd}: {others}; "
            f"so it is text, and {taken}"
        )
        remedy = f"{_conversion(values)} turns it into numbers, and the words into missing values"
        reason = f"numbers, except for {odd}"
    elif out:
        what = (
            f"its {n_levels:,} distinct texts in {rows(n_rows)} are numbers, for example "
            f"{quoted(factor.levels[int(np.argmax(counts > 0))])}; as text it is {taken}"
        )
        remedy = f"{_conversion(values)} turns it into numbers, if they measure something"
        reason = "numbers stored as text"
    else:
        return None, None
    return Finding(values.name, what, f"{remedy}; {keep}", "warning"), reason if out else None


def _conversion(values: Values) -> str:
    """Return the line that turns a column into numbers, as the user of a library would write it."""
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
    """Return a warning when whole numbers, none of them missing, count the rows.

    They do when they are 0 to n - 1 or 1 to n in any order, or consecutive from any number on in
    the order of the rows.

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
    keep = f"{types_line(name, 'continuous')} keeps it and silences this warning"
    return Finding(name, what, f"{drop_line(name)}; {keep}", "warning")

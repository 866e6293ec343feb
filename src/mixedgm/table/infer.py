"""One column, and what `types` says about it, in -> its kind, or a finding why it has none."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.table.schema import Kind
from mixedgm.table.values import Values
from mixedgm.table.wording import drop_line, odd_values, rows, types_line

__all__ = ["family_finding", "few_distinct", "is_numeric", "kind_of_numbers"]

_FEW = 10


def family_finding(values: Values, declared: Kind | None) -> Finding | None:
    """Return why a column can be neither continuous nor categorical, or None.

    Parameters
    ----------
    values : Values
        The column.
    declared : kind or None
        What `types` says about it.

    Returns
    -------
    Finding or None
        The obstacle, if there is one.
    """
    if values.family == "empty":
        return Finding(values.name, "all of its values are missing", drop_line(values.name))
    if values.family == "other":
        return _unsupported(values)
    if values.family == "mixed":
        texts = odd_values(values, text=True)
        if not texts:
            what = "truth values among numbers"
            return Finding(values.name, what, "make all of its values numbers")
        what = f"text among other values: {texts}"
        return Finding(values.name, what, "make all of its values text, or all of them numbers")
    if declared == "continuous" and not is_numeric(values):
        what = f"types says continuous, but it holds text: {odd_values(values, text=True)}"
        remedy = f"{types_line(values.name, 'categorical')}, or convert the column to numbers"
        return Finding(values.name, what, remedy)
    return None


def is_numeric(values: Values) -> bool:
    """Return whether the values can be read as numbers (truth values are 0 and 1)."""
    if values.family == "category":
        return all(not isinstance(level, str) for level in values.factor().levels)
    return values.family in ("number", "boolean")


def _unsupported(values: Values) -> Finding:
    dtype = values.dtype
    low = dtype.lower()
    if dtype == "object" or dtype == "Object":
        types = Counter(type(each).__name__ for each in np.asarray(values.column, dtype=object))
        odd = {name: n for name, n in types.items() if name not in _PLAIN}
        if any(name.startswith("complex") for name in odd):
            return Finding(values.name, "Complex data not supported", _COMPLEX)
        shown = ", ".join(f"{name} ({rows(n)})" for name, n in list(odd.items())[:3])
        what = f"holds {shown}; each cell of the argument must be a string, a bool or a number"
        return Finding(values.name, what, drop_line(values.name), wrong_type=True)
    for words, remedy in _REMEDIES.items():
        if any(word in low for word in words):
            if "complex" in words:
                return Finding(values.name, f"Complex data not supported ({dtype})", remedy)
            return Finding(values.name, f"values of type {dtype} cannot be modelled", remedy)
    return Finding(values.name, f"values of type {dtype} cannot be modelled", _OTHER)


_PLAIN = {"str", "int", "float", "bool", "NoneType", "NAType", "NaTType", "str_", "bool_"}
_COMPLEX = "use its real and imaginary parts as two columns"
_OTHER = "turn it into numbers, truth values or text, or leave it out"
_REMEDIES = {
    ("complex",): _COMPLEX,
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

    Two distinct whole numbers are categorical. All else is continuous; three to ten distinct whole
    numbers, or two numbers that are not whole, get a warning.

    Parameters
    ----------
    values : Values
        The column.
    numbers : float64 array
        Its values, without missing ones.

    Returns
    -------
    kind
        "continuous" or "categorical".
    Finding or None
        The warning.
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
    keep = f"({types_line(values.name, 'continuous')} keeps it and ends this warning)"
    line = f"{types_line(values.name, 'categorical')} {keep}"
    return "continuous", Finding(values.name, what, line, "warning")


def few_distinct(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the distinct values in order, or None when there are more than ten."""
    if len(np.unique(numbers[:4096])) > _FEW:  # settles nearly every continuous column
        return None
    distinct = np.unique(numbers)
    return distinct if len(distinct) <= _FEW else None

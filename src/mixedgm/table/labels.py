"""Labels of the rows, in whatever form an option takes them -> a list that has one for each row."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError, TableError
from mixedgm.printable import number_of, rows

__all__ = ["given_labels", "numbered", "refuse_missing"]


def given_labels(option: str, given: Any, n_rows: int | None = None) -> list[Any]:
    """Return labels as a list, in their own types.

    ParameterError where they are not one-dimensional, or not as many as `n_rows`.

    Examples
    --------
    >>> given_labels("cluster", ("a", 1), 2)
    ['a', 1]
    """
    if isinstance(given, list | tuple):
        labels: Any = list(given)
    elif hasattr(given, "to_list"):  # of pandas, polars and narwhals
        labels = given.to_list()
    else:
        labels = given.to_pylist() if hasattr(given, "to_pylist") else np.asarray(given).tolist()
    shape = getattr(given, "shape", None)
    if not isinstance(labels, list):
        got = f"a value of type {type(given).__name__}"
    elif any(isinstance(label, list | dict | set | np.ndarray) for label in labels):
        got = "lists as labels" if shape is None or len(shape) == 1 else f"shape {shape}"
    elif n_rows not in (None, len(labels)):
        got = f"{number_of(len(labels), 'label')} for {rows(n_rows or 0)}"
    else:
        return labels
    wanted = "" if n_rows is None else f", in shape ({n_rows},)"
    raise ParameterError(f"{option} must have one label per row{wanted}. Got {got}.")


def refuse_missing(option: str, labels: Sequence[Any]) -> None:
    """Raise TableError where labels are missing."""
    count = sum(map(_is_missing, labels))
    if count:
        raise TableError(
            f"{option} has {number_of(count, 'missing label')}; every row needs one. Leave these "
            "rows out, or give them a label of their own."
        )


def _is_missing(label: Any) -> bool:
    if isinstance(label, Decimal):  # a signalling NaN cannot be compared
        return label.is_nan()
    # pandas' own missing values do not even equal themselves.
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def numbered(labels: Sequence[Any]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return the different labels in sorted order, and the number of each row's label.

    The order of the rows does not matter.

    Examples
    --------
    >>> numbered(["b", "a", "b"])
    (('a', 'b'), array([1, 0, 1]))
    """
    distinct = set(labels)
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=str)
    number = {label: at for at, label in enumerate(ordered)}
    return tuple(ordered), np.array([number[label] for label in labels], dtype=np.int64)

"""Named columns of values in -> a data frame of the wanted library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError, TableError

__all__ = [
    "Columns",
    "assembled",
    "frame",
    "frame_library",
    "frame_module",
    "named_rows_frame",
    "unused_name",
]

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]

# Library -> its name for what makes a frame of columns.
_FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_library(library: str) -> str:
    """Return the library to build a frame with for a table that came from `library`.

    "numpy" has no frames, so it takes pandas, polars or pyarrow, the first that is installed.
    """
    if library in _FRAMES:
        return library
    if library != "numpy":
        raise ParameterError.must_be("library", f"one of {', '.join(_FRAMES)}, numpy", library)
    for candidate in _FRAMES:
        if find_spec(candidate) is not None:
            return candidate
    raise TableError(
        "this result is a data frame, and neither pandas nor polars nor pyarrow is installed. "
        'Install one with: pip install "mixedgm[frames]"'
    )


def frame(columns: Columns, library: str) -> Any:
    """Return a data frame with these columns, in this order.

    None, and NaN in numbers, mean that there is no value: null in polars and pyarrow, the missing
    value of the type in pandas. A sequence without any value is text. `library` is as in
    `frame_library`.

    Examples
    --------
    >>> signs = frame({"edge": ["a-b", "a-c"], "sign": ["+", None]}, "pandas")
    >>> signs["sign"].isna().tolist()
    [False, True]
    """
    library = frame_library(library)
    series = {name: _series(_typed(values), library) for name, values in columns.items()}
    return assembled(series, library)


def plain_columns(frame: Any) -> dict[str, list[Any]]:
    """Return a frame of any library, or a matrix, as lists of plain values.

    Examples
    --------
    >>> plain_columns(frame({"edge": ["a-b"], "weight": [0.5]}, "pandas"))
    {'edge': ['a-b'], 'weight': [0.5]}
    """
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return {f"x{at}": column.tolist() for at, column in enumerate(frame.T)}
    columns: dict[str, list[Any]] = nw.from_native(frame, eager_only=True).to_dict(as_series=False)
    return columns


def named_rows_frame(
    names: Sequence[str], columns: Columns, library: str, heading: str = "column"
) -> Any:
    """Return a frame with names of rows: the index in pandas, else a first column.

    That column is called `heading`, with underscores where a column has this name.
    """
    library = frame_library(library)
    if library == "pandas":
        return frame(columns, library).set_axis(list(names), axis=0)
    return frame({unused_name(heading, list(columns)): list(names), **columns}, library)


def assembled(columns: Mapping[Any, Any], library: str) -> Any:
    """Return the library's frame of columns that are already its own."""
    return getattr(frame_module(library), _FRAMES[library])(dict(columns))


def frame_module(library: str) -> Any:
    """Return the module of a frame library, or raise TableError where it is not installed."""
    try:
        return import_module(library)
    except ImportError as error:
        raise TableError(
            f"the table came from {library}, which is not installed here. "
            f"Install it with: pip install {library}"
        ) from error


def unused_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores added until it differs from all that are taken."""
    while name in taken:
        name += "_"
    return name


def _typed(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any] | list[str | None]:
    """Return numbers and truth values as an array, everything else as text and None."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    items = list(values)
    kinds = {type(item) for item in items if item is not None}
    if not kinds or not kinds <= {bool, int, float, np.float64, np.int64, np.bool_}:
        return [None if item is None else str(item) for item in items]
    if None in items:
        return np.array([np.nan if item is None else item for item in items], dtype=np.float64)
    return np.array(items)


def _series(values: NDArray[Any] | list[str | None], library: str) -> Any:
    """Return values as a column of the library: an array of numbers, or text."""
    module, text = frame_module(library), not isinstance(values, np.ndarray)
    if library == "pandas":
        as_text = "str" if int(module.__version__.split(".")[0]) >= 3 else object
        return module.Series(values, dtype=as_text if text else None)
    if library == "polars":
        options = {"dtype": module.String} if text else {"nan_to_null": True}
        return module.Series(values, **options)
    return module.array(values, **({"type": module.string()} if text else {"from_pandas": True}))

"""Named columns of values in -> a data frame of the wanted library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError, TableError

__all__ = [
    "Columns",
    "absent",
    "assembled",
    "frame",
    "frame_library",
    "named_rows_frame",
    "unused_name",
]

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]

_FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_library(library: str) -> str:
    """Return the library to build a frame with for a table that came from `library`.

    "numpy" has no frames, so it takes pandas, polars or pyarrow, the first that is installed.
    """
    if library in _FRAME_LIBRARIES:
        return library
    if library != "numpy":
        raise ParameterError.must_be(
            "library", f"one of {', '.join(_FRAME_LIBRARIES)}, numpy", library
        )
    for candidate in _FRAME_LIBRARIES:
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
    make = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[library]
    try:
        series = {name: make(_typed(values)) for name, values in columns.items()}
    except ImportError as error:
        raise absent(library) from error
    return assembled(series, library)


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


def assembled(columns: Mapping[str, Any], library: str) -> Any:
    """Return the library's frame of columns that are already its own."""
    try:
        if library == "pandas":
            import pandas as pd

            return pd.DataFrame(dict(columns))
        if library == "polars":
            import polars as pl

            return pl.DataFrame(dict(columns))
        import pyarrow as pa

        return pa.table(dict(columns))
    except ImportError as error:
        raise absent(library) from error


def absent(library: str) -> TableError:
    """Return the error for a frame library that is not installed."""
    return TableError(
        f"the table came from {library}, which is not installed here. "
        f"Install it with: pip install {library}"
    )


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


def _pandas(values: NDArray[Any] | list[str | None]) -> Any:
    import pandas as pd

    if isinstance(values, np.ndarray):
        return pd.Series(values)
    return pd.Series(values, dtype="str" if int(pd.__version__.split(".")[0]) >= 3 else object)


def _polars(values: NDArray[Any] | list[str | None]) -> Any:
    import polars as pl

    if isinstance(values, np.ndarray):
        return pl.Series(values, nan_to_null=True)
    return pl.Series(values, dtype=pl.String)


def _pyarrow(values: NDArray[Any] | list[str | None]) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(values, from_pandas=True)
    return pa.array(values, type=pa.string())

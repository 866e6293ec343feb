"""Any data frame, array or file in -> a Frame; named columns in -> a frame of any library."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import Finding, ParameterError, TableError, near_matches
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import quoted
from mixedgm.table.files import path_name, read_table, reading

RawColumn = nw.Series[Any] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns of a table, still in the types of the library they came from.

    Examples
    --------
    >>> frame = as_frame([[1, "a"], [2, "b"]])
    >>> frame.names, frame.shape, frame.library
    (('x0', 'x1'), (2, 2), 'numpy')
    """

    names: tuple[str, ...]  # as given; they may still repeat, which the checks report
    columns: tuple[RawColumn, ...]
    n_rows: int
    library: str  # "pandas", "polars", "pyarrow" or "numpy"
    labels: tuple[int | None, ...] = ()  # whole numbers as names in pandas, None for text; often ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.names)

    @property
    def named(self) -> bool:
        """Whether the names are the user's own; those of an array are made up."""
        return self.library != "numpy"

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each name, the first where a name repeats."""
        positions: dict[str, int] = {}
        for at, name in enumerate(self.names):
            positions.setdefault(name, at)
        return positions


def without_column(frame: Frame, name: str) -> Frame:
    """Return the frame without a column that it has."""
    kept = [at for at in range(len(frame.names)) if at != frame.positions[name]]
    return replace(
        frame,
        names=tuple(frame.names[at] for at in kept),
        columns=tuple(frame.columns[at] for at in kept),
        labels=tuple(frame.labels[at] for at in kept) if frame.labels else (),
    )


def with_weights(
    frame: Frame, sample_weight: ArrayLike | str | None
) -> tuple[Frame, ArrayLike | None]:
    """Return the frame without the column that `sample_weight` names, and that column.

    Weights that are given as an array stay as they are.
    """
    if not isinstance(sample_weight, str):
        return frame, sample_weight
    column = named_column("sample_weight", sample_weight, frame)
    values = column.to_numpy() if isinstance(column, nw.Series) else column
    return without_column(frame, sample_weight), np.asarray(values)


def named_column(option: str, name: str, frame: Frame) -> RawColumn:
    """Return the column that an option names; ParameterError where there is none, or several."""
    count = frame.names.count(name)
    if count == 1:
        return frame.columns[frame.positions[name]]
    if count:
        raise ParameterError(
            f"{option} names {quoted(name)}, and {count} columns have this name; give each its own."
        )
    hint = near_matches(name, frame.names)
    raise ParameterError(f"{option} names {quoted(name)}, which is not a column; {hint}")


def as_frame(X: object) -> Frame:
    """Return a table of any supported sort as a Frame; nothing is copied, or checked but the shape.

    It is a pandas, polars or pyarrow table, or another frame that narwhals knows; a lazy frame is
    collected. A 2-D array or a list of rows gets the names x0, x1, ... A path is read by
    `read_table`. Anything else raises TableError.
    """
    if isinstance(X, Frame):
        return X
    _refuse_parts(X)
    if isinstance(X, str | PathLike):
        return as_frame(read_table(fspath(X)))
    if type(X).__module__.partition(".")[0] == "scipy" and hasattr(X, "toarray"):
        raise TableError(
            "Sparse data was passed, but a dense table is required. "
            "Use X.toarray() to convert it, if it fits in memory."
        )
    native = _eager_native(X)
    if native is not None:
        return _from_native(native)
    array = _as_array(X)
    columns = tuple(array[:, at] for at in range(array.shape[1]))
    return Frame(tuple(f"x{at}" for at in range(len(columns))), columns, len(array), "numpy")


def _refuse_parts(X: object) -> None:
    """Raise TableError for a table in parts, which only some functions take."""
    remedy = "pandas.read_parquet reads all files of a folder or list, if they fit in memory"
    if isinstance(X, str | PathLike):
        what, path = path_name(X), Path(fspath(X))
        with reading(f"the path {what}"):
            pattern = glob.has_magic(fspath(X)) and not path.exists()
            in_parts = pattern or (
                path.is_dir() and next(path.rglob("*.parquet"), None) is not None
            )
    elif isinstance(X, list | tuple):
        what, in_parts = "a list of files", bool(X) and all(map(_is_parquet, X))
    else:
        what, in_parts = "a dataset", type(X).__module__ == "pyarrow._dataset"
        remedy = "X.to_table() reads all of it, if it fits in memory"
    if in_parts:
        what = f"{what} is a table in parts, and this needs all of its rows in memory at once"
        raise TableError([Finding(None, what, remedy)])


def _is_parquet(item: object) -> bool:
    return isinstance(item, str | PathLike) and fspath(item).lower().endswith(".parquet")


def _eager_native(X: object) -> Any | None:
    """Return an eager pandas, polars or pyarrow table, or None when X is not a data frame."""
    X = nw.to_native(X, pass_through=True)
    # narwhals refuses repeated names, which the checks report together with all other findings
    if nw.dependencies.is_pandas_dataframe(X) or nw.dependencies.is_pyarrow_table(X):
        return X
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.Series):
        raise TableError(_one_column(type(X).__name__, "X.to_frame() or X[['name']]"))
    if isinstance(frame, nw.LazyFrame):
        with reading(f"the lazy frame of {frame.implementation.value}"):
            frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        if not hasattr(X, "__arrow_c_stream__") or find_spec("pyarrow") is None:
            return None
        import pyarrow as pa

        with reading(f"the table of type {type(X).__name__}"):
            return pa.table(X)  # record batches and other arrow producers
    known = ("pandas", "polars", "pyarrow")
    return frame.to_native() if frame.implementation.value in known else frame.to_arrow()


def _from_native(native: Any) -> Frame:
    """Take the columns by position, so that repeated names survive until they are reported."""
    columns: Iterable[Any]
    labels: tuple[int | None, ...] = ()
    if nw.dependencies.is_pandas_dataframe(native):
        library, names = "pandas", list(native.columns)
        columns = (native.iloc[:, at] for at in range(len(names)))
        labels = _numbers_as_names(names)
    elif nw.dependencies.is_polars_dataframe(native):
        library, names, columns = "polars", native.columns, native.get_columns()
    else:
        library, names, columns = "pyarrow", native.column_names, native.columns
    if len(set(names)) == len(names):  # narwhals is much quicker with all columns at once
        series = nw.from_native(native, eager_only=True).iter_columns()
    else:
        series = (nw.from_native(column, series_only=True) for column in columns)
    return Frame(tuple(map(str, names)), tuple(series), native.shape[0], library, labels)


def _numbers_as_names(names: list[Any]) -> tuple[int | None, ...]:
    """Return whole numbers that stand for names, nothing when there are none."""
    labels = tuple(
        int(name) if isinstance(name, Integral) and not isinstance(name, bool | np.bool_) else None
        for name in names
    )
    return labels if any(label is not None for label in labels) else ()


def _as_array(X: object) -> NDArray[Any]:
    """Return X as a 2-D array, with lists of rows kept as objects so that types survive."""
    if isinstance(X, np.ma.MaskedArray):
        gaps, X = np.ma.getmaskarray(X), X.data.astype(float if X.dtype.kind in "biuf" else object)
        X[gaps] = np.nan
    if X is None or isinstance(X, dict | set | bytes):
        raise _not_a_table(X)
    try:
        array = _from_rows(X) if isinstance(X, list | tuple) else np.asarray(X)
    except TableError:
        raise
    except (TypeError, ValueError) as error:
        raise _not_a_table(X) from error
    if array.ndim < 2:
        raise TableError(_one_column(f"{array.ndim}-D array", "X.reshape(-1, 1)"))
    if array.ndim > 2:
        raise TableError(f"Expected a 2-D array, got an array with shape {array.shape} instead.")
    return array


def _not_a_table(X: object) -> TableError:
    return TableError(
        f"a table is needed, and {type(X).__name__} is not one. "
        "Pass a pandas, polars or pyarrow frame, a 2-D array, or the path of a table file."
    )


def _from_rows(rows: Sequence[Any]) -> NDArray[Any]:
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows}
    if lengths and -1 in lengths:
        raise TableError(_one_column("list that is not a list of rows", "[[value] for value in X]"))
    if len(lengths) > 1:
        shown = ", ".join(str(length) for length in sorted(lengths)[:5])
        raise TableError(f"the rows of the list have different lengths: {shown}.")
    array = np.empty((len(rows), lengths.pop() if lengths else 0), dtype=object)
    for at, row in enumerate(rows):
        array[at] = row
    return array


def _one_column(what: str, line: str) -> str:
    return (
        f"Expected a table with two dimensions, got a {what} instead. "
        f"Reshape your data with {line} if it is one column."
    )


# -- frames of any library -------------------------------------------------------------------------

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]

# Library -> its name for what makes a frame of columns.
_FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_library(library: str) -> str:
    """Return the library to build a frame with for a table that came from `library`.

    "numpy" has no frames, so it takes pandas, polars or pyarrow, the first that is installed.
    """
    if library in _FRAMES:
        return library
    ensure(library == "numpy", "library", f"one of {', '.join(_FRAMES)}, numpy", library)
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

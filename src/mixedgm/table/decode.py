"""Continuous columns and level codes in -> a table like the one the schema was learnt from."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.parameters import ensure
from mixedgm.table.read import assembled, frame_module
from mixedgm.table.schema import Column, Level, Schema

_LIBRARIES = ("pandas", "polars", "pyarrow", "numpy")
_WHOLE = re.compile(r"(u?)int(\d+)")
_DECIMALS = re.compile("float|double", re.IGNORECASE)
_NARROW: dict[str, type[np.floating[Any]]] = {
    "float16": np.float16,
    "halffloat": np.float16,
    "float32": np.float32,
    "float": np.float32,
}


def decode(
    schema: Schema,
    numbers: ArrayLike,
    codes: ArrayLike,
    like: str | nw.Implementation,
    *,
    rounded: Collection[str] = (),
) -> Any:
    """Return numbers and codes as a table, the way back from a Design.

    Columns have the names, the order and, where `like` is the library that the schema was learnt
    from, the data types of the original table; in another library, categorical columns of text
    become that library's categorical type, ordered where they are ordinal. Transforms are undone. A
    column that held whole numbers comes back whole when all of its values are whole, else as
    float64; counts are always whole.

    `like` "numpy" gives a 2-D array: of float64 when every column is a number, else of objects.
    Columns named in `rounded` get whole values where they held whole numbers.

    Examples
    --------
    >>> from mixedgm.table.schema import Column, Schema
    >>> sex = Column("sex", "categorical", levels=("F", "M"))
    >>> schema = Schema((sex, Column("age", "continuous")))
    >>> decode(schema, [[31.0], [42.0]], [[1], [0]], "numpy").tolist()
    [['M', 31.0], ['F', 42.0]]
    """
    library = like.value if isinstance(like, nw.Implementation) else like
    ensure(library in _LIBRARIES, "like", f"one of {', '.join(_LIBRARIES)}", library)
    make = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow, "numpy": _numpy}[library]
    columns: dict[str, Any] = dict.fromkeys(schema.names)
    discrete = np.asarray(codes).T[schema.spans.n_spiked :]  # spiked columns are numbers, too
    parts = [*np.asarray(numbers, dtype=np.float64).T, *discrete]
    for column, part in zip(schema.nodes, parts, strict=True):
        values = column.decoded(part)
        if not column.has_levels and column.is_discrete:
            values = values.astype(np.int64)
        elif column.name in rounded and not column.has_levels:
            values = as_whole(column, values)
        owner, _, dtype = column.dtype.rpartition(":")
        original = dtype if (owner or "numpy") == library else None
        columns[column.name] = make(column, values, original)
    if library == "numpy":
        plain = all(column.dtype.kind in "iuf" for column in columns.values())
        return np.column_stack([c.astype(float if plain else object) for c in columns.values()])
    table = assembled(columns, library)
    if library == "pandas" and any(column.label is not None for column in schema.columns):
        labels = [c.name if c.label is None else c.label for c in schema.columns]
        table = table.set_axis(labels, axis=1)
    return table


def as_whole(column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values rounded to what the column's type can hold, if that is whole numbers.

    Examples
    --------
    >>> as_whole(Column("age", "continuous", dtype="pandas:uint8"), np.array([30.6, -2.0]))
    array([31.,  0.])
    """
    match = _WHOLE.search(column.dtype.lower())
    if match is None:
        return values
    unsigned, bits = bool(match[1]), int(match[2])
    top = 2.0 ** (bits if unsigned else bits - 1)
    largest = min(top - 1, np.nextafter(top, 0.0))  # the largest double of a type of 64 bits
    return np.clip(np.rint(values), 0.0 if unsigned else -top, largest)


def within(dtype: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values no larger than what a floating-point type of fewer bits can hold.

    Examples
    --------
    >>> within("float16", np.array([1.5, 1e6]))
    array([1.5000e+00, 6.5504e+04])
    """
    narrow = _NARROW.get(dtype.lower().partition("[")[0])
    if narrow is None:
        return values
    largest = float(np.finfo(narrow).max)
    return np.clip(values, -largest, largest)


# -- one column; `dtype` is the original one where that is the library's own ----------------------


def _levels(column: Column, codes: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Return the level of each code: as bool, int or float arrays where they are that."""
    return np.asarray(level_array(column.levels, dtype)[codes])


def level_array(levels: Sequence[Level], dtype: str | None = None) -> NDArray[Any]:
    """Return levels as an array of truth values or numbers where they are that, else of objects.

    Whole numbers that came from a type of decimals, or are too large for integers, are doubles.

    Examples
    --------
    >>> level_array((1, 2)), level_array((1, 2), "double"), level_array((1, 10**20))
    (array([1, 2]), array([1., 2.]), array([1.e+00, 1.e+20]))
    """
    kinds = {type(level) for level in levels}
    if dtype == "object" or len(kinds) != 1 or not kinds <= {bool, int, float}:
        return np.array(levels, dtype=object)
    array = np.array(levels)
    too_large, decimals = array.dtype.kind == "O", _DECIMALS.search(dtype or "")
    return array.astype(np.float64) if kinds == {int} and (too_large or decimals) else array


def _is_ordered(column: Column, dtype: str | None) -> bool:
    """Return whether categories are ordered: as in the table; elsewhere, where it is ordinal."""
    return column.ordered or (dtype is None and column.kind == "ordinal")


def _whole(values: NDArray[Any]) -> bool:
    return bool((values == np.floor(values)).all()) and bool((np.abs(values) < 2**63).all())


def _numbers(values: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Return numbers; whole ones where the original type and all values are."""
    if dtype is None or not _WHOLE.search(dtype.lower()):
        return values if dtype is None else within(dtype, values)
    return values.astype(np.int64) if _whole(values) else values


def _numpy(column: Column, values: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    return _levels(column, values, dtype) if column.has_levels else _numbers(values, dtype)


def _pandas(column: Column, values: NDArray[Any], dtype: str | None) -> Any:
    pd = frame_module("pandas")
    if not column.has_levels:
        series = pd.Series(_numbers(values, dtype))
        return _cast_pandas(series, dtype) if dtype else series
    text = any(isinstance(level, str) for level in column.levels)
    if (dtype is None and text) or (dtype or "").startswith("category"):
        inner = (dtype or "").removeprefix("category").strip("[]")
        index: Any = pd.Index(list(column.levels))
        with suppress(TypeError, ValueError):  # levels of intervals and dates were kept as text
            index = index.astype(inner) if inner and str(index.dtype) != inner else index
        ordered = _is_ordered(column, dtype)
        return pd.Series(pd.Categorical.from_codes(values.astype(np.int64), index, ordered=ordered))
    series = pd.Series(_levels(column, values, dtype), dtype=object if text else None)
    return _cast_pandas(series, dtype) if dtype else series


def _cast_pandas(series: Any, dtype: str) -> Any:
    """Cast to the original type, unless that is whole numbers and the values are not."""
    if series.dtype.kind == "f" and _WHOLE.search(dtype.lower()):
        return series
    try:
        return series.astype(dtype)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return series


def _polars(column: Column, values: NDArray[Any], dtype: str | None) -> Any:
    pl = frame_module("polars")
    if not column.has_levels:
        series = pl.Series(_numbers(values, dtype))
    elif any(isinstance(level, str) for level in column.levels):
        levels = pl.Series(list(column.levels), dtype=pl.Enum(column.level_names))
        series = levels.gather(values.astype(np.int64))
    else:
        series = pl.Series(_levels(column, values, dtype))
    wanted: Any = getattr(pl, dtype or "", None)
    known = isinstance(wanted, type) and issubclass(wanted, pl.DataType)
    simple = known and wanted not in (pl.Enum, pl.Decimal, pl.Object)
    if not simple or (series.dtype.is_float() and wanted.is_integer()):
        return series
    return series.cast(wanted)


def _pyarrow(column: Column, values: NDArray[Any], dtype: str | None) -> Any:
    pa = frame_module("pyarrow")
    if not column.has_levels:
        return _cast_arrow(pa.array(_numbers(values, dtype)), dtype)
    text = any(isinstance(level, str) for level in column.levels)
    match = re.fullmatch(r"dictionary<values=(\w+), indices=(\w+), ordered=\d>", dtype or "")
    if match is not None or (dtype is None and text):
        inner = match[1] if match else None
        levels = _arrow_levels(level_array(column.levels, inner), inner)
        index_type = match[2] if match else "int32"
        indices = pa.array(values.astype(np.int64)).cast(pa.type_for_alias(index_type))
        ordered = _is_ordered(column, dtype)
        return pa.DictionaryArray.from_arrays(indices, levels, ordered=ordered)
    return _arrow_levels(_levels(column, values, dtype), dtype)


def _arrow_levels(levels: NDArray[Any], dtype: str | None) -> Any:
    """Return levels as an Arrow array; as text where they are of several types."""
    import pyarrow as pa

    try:
        return _cast_arrow(pa.array(levels), dtype)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(list(map(str, levels)))


def _cast_arrow(array: Any, dtype: str | None) -> Any:
    import pyarrow as pa

    try:
        wanted = pa.type_for_alias("float16" if dtype == "halffloat" else dtype or "")
    except ValueError:
        return array
    if pa.types.is_floating(array.type) and pa.types.is_integer(wanted):
        return array
    return array.cast(wanted)

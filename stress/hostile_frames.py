"""Columns of cells and their names -> a table of a library, in one of its many types."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from stress.hostile_columns import Cells

Wrapper = Callable[[list[Cells], list[Any]], Any]


def _objects(cells: Cells) -> Any:
    array = np.empty(len(cells), dtype=object)
    for at, cell in enumerate(cells):
        array[at] = cell
    return array


def _or(make: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What a library makes of the cells, or something that it can."""
    try:
        return make()
    except KeyboardInterrupt:
        raise
    except BaseException:  # a library may refuse cells with any error, or panic
        return otherwise()


# -- pandas ----------------------------------------------------------------------------------------


def _frame(series: list[Any], names: list[Any]) -> Any:
    return pd.DataFrame(dict(enumerate(series))).set_axis(pd.Index(names, dtype=object), axis=1)


def _series(cells: Cells) -> Any:
    return _or(lambda: pd.Series(cells), lambda: _object_series(cells))


def _object_series(cells: Cells) -> Any:
    return pd.Series(_objects(cells), dtype=object)


def pandas_plain(columns: list[Cells], names: list[Any]) -> Any:
    return _frame([_series(cells) for cells in columns], names)


def pandas_object(columns: list[Cells], names: list[Any]) -> Any:
    return _frame([_object_series(cells) for cells in columns], names)


def pandas_category(columns: list[Cells], names: list[Any]) -> Any:
    def own(cells: Cells) -> Any:
        series = _object_series(cells).astype("category")
        if len(cells) % 3 == 0:
            series = series.cat.add_categories(["never"])
        return series.cat.as_ordered() if len(cells) % 2 else series

    return _frame([_or(lambda c=c: own(c), lambda c=c: _series(c)) for c in columns], names)


def pandas_nullable(columns: list[Cells], names: list[Any]) -> Any:
    return _frame(
        [_or(lambda c=c: _series(c).convert_dtypes(), lambda c=c: _series(c)) for c in columns],
        names,
    )


def pandas_arrow(columns: list[Cells], names: list[Any]) -> Any:
    def own(cells: Cells) -> Any:
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells, from_pandas=True)))

    return _frame([_or(lambda c=c: own(c), lambda c=c: _series(c)) for c in columns], names)


def pandas_sparse(columns: list[Cells], names: list[Any]) -> Any:
    def own(cells: Cells) -> Any:
        return pd.Series(pd.arrays.SparseArray(np.array(cells, dtype=np.float64)))

    found = [_or(lambda c=c: own(c), lambda c=c: _series(c)) for c in columns]
    return _frame([*found[:1], *map(_series, columns[1:])], names)


def pandas_multi_index(columns: list[Cells], names: list[Any]) -> Any:
    index = pd.MultiIndex.from_tuples([("top", str(name)[:20]) for name in names])
    return pandas_plain(columns, list(range(len(names)))).set_axis(index, axis=1)


def pandas_odd_index(columns: list[Cells], names: list[Any]) -> Any:
    table = pandas_plain(columns, names)
    index: Any = (
        np.zeros(len(table)) if len(table) % 2 else pd.date_range("2020", periods=len(table))
    )
    return table.set_axis(index, axis=0)


# -- polars ----------------------------------------------------------------------------------------


def _text_names(names: list[Any]) -> list[str]:
    found: list[str] = []
    for name in names:
        text = str(name)
        while text in found:
            text += "_"
        found.append(text)
    return found


def _polars(columns: list[Cells], names: list[Any], own: Callable[[Cells], Any]) -> Any:
    found = {}
    for name, cells in zip(_text_names(names), columns, strict=True):
        found[name] = _or(lambda c=cells: own(c), lambda c=cells: _polars_objects(c))
    return _or(
        lambda: pl.DataFrame(found),
        lambda: pl.DataFrame({k.encode(errors="replace").decode(): v for k, v in found.items()}),
    )


def _polars_objects(cells: Cells) -> Any:
    return _or(
        lambda: pl.Series(cells, dtype=pl.Object, strict=False),
        lambda: pl.Series(list(map(ascii, cells))),
    )


def polars_plain(columns: list[Cells], names: list[Any]) -> Any:
    return _polars(columns, names, lambda cells: pl.Series(cells, strict=False))


def polars_strict(columns: list[Cells], names: list[Any]) -> Any:
    return _polars(columns, names, lambda cells: pl.Series(cells))


def polars_category(columns: list[Cells], names: list[Any]) -> Any:
    def own(cells: Cells) -> Any:
        series = pl.Series(cells)
        if series.dtype != pl.String:
            return series
        if len(cells) % 2:
            return series.cast(pl.Categorical)
        return series.cast(pl.Enum([*series.drop_nulls().unique().sort(), "never"]))

    return _polars(columns, names, own)


def polars_lazy(columns: list[Cells], names: list[Any]) -> Any:
    return polars_strict(columns, names).lazy()


def polars_narrow(columns: list[Cells], names: list[Any]) -> Any:
    def own(cells: Cells) -> Any:
        series = pl.Series(cells)
        return series.shrink_dtype() if series.dtype.is_integer() else series.cast(pl.Float32)

    return _polars(columns, names, lambda cells: _or(lambda: own(cells), lambda: pl.Series(cells)))


# -- pyarrow ---------------------------------------------------------------------------------------


def _arrow(columns: list[Cells], names: list[Any], own: Callable[[Any], Any]) -> Any:
    def array(cells: Cells) -> Any:
        plain = _or(
            lambda: pa.array(cells, from_pandas=True),
            lambda: pa.array([ascii(cell) for cell in cells]),
        )
        return _or(lambda: own(plain), lambda: plain)

    text = [str(name).encode(errors="replace").decode() for name in names]
    return pa.Table.from_arrays([array(cells) for cells in columns], names=text)


def arrow_plain(columns: list[Cells], names: list[Any]) -> Any:
    return _arrow(columns, names, lambda array: array)


def arrow_dictionary(columns: list[Cells], names: list[Any]) -> Any:
    return _arrow(columns, names, lambda array: array.dictionary_encode())


def arrow_other_types(columns: list[Cells], names: list[Any]) -> Any:
    def own(array: Any) -> Any:
        if pa.types.is_string(array.type):
            return array.cast(pa.large_string() if len(array) % 2 else pa.string_view())
        if pa.types.is_floating(array.type):
            return array.cast(pa.float32() if len(array) % 2 else pa.float16())
        if pa.types.is_integer(array.type):
            return array.cast(pa.decimal128(38, 4) if len(array) % 2 else pa.uint64())
        return array

    return _arrow(columns, names, own)


def arrow_chunks(columns: list[Cells], names: list[Any]) -> Any:
    table = arrow_plain(columns, names)
    cut = len(table) // 3
    return pa.concat_tables([table.slice(0, cut), table.slice(cut, 0), table.slice(cut)])


def arrow_batch(columns: list[Cells], names: list[Any]) -> Any:
    table = arrow_plain(columns, names).combine_chunks()
    batches = table.to_batches()
    return batches[0] if len(batches) == 1 else table


# -- NumPy, lists, and what is no table ------------------------------------------------------------


def _grid(columns: list[Cells]) -> Any:
    grid = np.empty((len(columns[0]), len(columns)), dtype=object)
    for at, cells in enumerate(columns):
        grid[:, at] = _objects(cells)
    return grid


def _numeric(columns: list[Cells], dtype: Any = np.float64) -> Any:
    """The columns that are numbers, as an array."""
    found = []
    for cells in columns:
        try:
            found.append(np.array(cells, dtype=dtype))
        except (TypeError, ValueError, OverflowError):
            continue
    return np.column_stack(found) if found else _grid(columns)


def numpy_objects(columns: list[Cells], names: list[Any]) -> Any:
    return _grid(columns)


def numpy_floats(columns: list[Cells], names: list[Any]) -> Any:
    array = np.asfortranarray(_numeric(columns))
    array.flags.writeable = False
    return array


def numpy_other_floats(columns: list[Cells], names: list[Any]) -> Any:
    kinds = (np.float16, np.longdouble, np.dtype(">f8"), np.complex128, np.float32, np.int64)
    return _numeric(columns, kinds[(len(columns) + len(columns[0])) % len(kinds)])


def numpy_text(columns: list[Cells], names: list[Any]) -> Any:
    grid = _grid(columns)
    text = [[ascii(cell)[:50] for cell in row] for row in grid]
    return np.array(text, dtype="S" if len(columns) % 4 == 0 else "U").reshape(grid.shape)


def numpy_masked(columns: list[Cells], names: list[Any]) -> Any:
    array = _numeric(columns) if len(columns) % 4 else _grid(columns)
    mask = np.zeros(array.shape, dtype=bool)
    mask[: len(array) // 10, :1] = True
    return np.ma.MaskedArray(array, mask)


def numpy_structured(columns: list[Cells], names: list[Any]) -> Any:
    return np.rec.fromarrays([_objects(cells) for cells in columns])


def lists(columns: list[Cells], names: list[Any]) -> Any:
    return [list(row) for row in zip(*columns, strict=True)]


def tuples(columns: list[Cells], names: list[Any]) -> Any:
    return tuple(zip(*columns, strict=True))


def dictionaries(columns: list[Cells], names: list[Any]) -> Any:
    return [dict(zip(map(str, names), row, strict=True)) for row in zip(*columns, strict=True)]


def no_table(columns: list[Cells], names: list[Any]) -> Any:
    from scipy import sparse

    things: tuple[Callable[[], Any], ...] = (
        lambda: dict(zip(map(str, names), columns, strict=True)),
        lambda: columns[0],
        lambda: _series(columns[0]),
        lambda: pl.Series(np.arange(3.0)),
        lambda: sparse.csr_matrix(np.eye(4)),
        lambda: sparse.coo_array(np.eye(4)),
        lambda: iter(columns),
        lambda: 3.5,
        lambda: None,
        lambda: "no/such/file.csv",
        lambda: b"bytes",
        lambda: np.array(3.0),
        lambda: [[1, 2], [3]],
        lambda: [],
        lambda: pd.DataFrame(),
        lambda: pl.DataFrame(),
        lambda: pa.table({}),
        lambda: np.zeros((0, 3)),
        lambda: np.zeros((3, 0)),
        lambda: np.zeros((2, 2, 2)),
        lambda: object(),
        lambda: pd.DataFrame(index=range(30)),
    )
    return things[sum(map(len, columns)) % len(things)]()


WRAPPERS: dict[str, tuple[Wrapper, ...]] = {
    "pandas": (
        pandas_plain,
        pandas_plain,
        pandas_plain,
        pandas_object,
        pandas_category,
        pandas_nullable,
        pandas_arrow,
        pandas_sparse,
        pandas_multi_index,
        pandas_odd_index,
    ),
    "polars": (polars_plain, polars_strict, polars_category, polars_lazy, polars_narrow),
    "pyarrow": (arrow_plain, arrow_dictionary, arrow_other_types, arrow_chunks, arrow_batch),
    "numpy": (
        numpy_objects,
        numpy_floats,
        numpy_other_floats,
        numpy_text,
        numpy_masked,
        numpy_structured,
    ),
    "lists": (lists, tuples, dictionaries),
    "no table": (no_table,),
}


def wrapped(wrapper: Wrapper, columns: list[Cells], names: list[Any]) -> Any:
    """The table, made without a word from the libraries."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return wrapper(columns, names)

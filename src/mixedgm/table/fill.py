"""A table with gaps and completed numbers in -> the table with its gaps filled, all else as it was.

Only missing cells are written; a column without gaps is handed on untouched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.table.assemble import assembled
from mixedgm.table.decode import as_whole, decode, level_array, within
from mixedgm.table.encode import find_columns
from mixedgm.table.gaps import Gaps
from mixedgm.table.read import Frame
from mixedgm.table.schema import Column, Schema
from mixedgm.table.values import as_levels

__all__ = ["filled"]

Mask = NDArray[np.bool_]


def filled(
    X: object,
    frame: Frame,
    gaps: Gaps,
    numbers: NDArray[np.float64],
    codes: NDArray[Any],
    *,
    rounded: bool = False,
) -> Any:
    """Return the table `X`, which `frame` was made of, with its missing cells filled.

    Columns that the schema does not know are kept.  A column of an integer type stays one: the
    numbers that fill it are rounded to what the type can hold.

    `numbers` and `codes` are those of the completed table. `rounded` says whether gaps of a column
    of decimals get whole numbers where the schema has whole numbers.
    """
    schema, missing = gaps.schema, gaps.missing
    positions, _ = find_columns(frame, schema, list(schema.columns))
    columns: list[Any] = [getattr(c, "to_native", lambda c=c: c)() for c in frame.columns]
    fill = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow, "numpy": _numpy}
    for node, column in enumerate(schema.nodes):
        gap = missing[:, node]
        if gap.any():
            at, spans = positions[column.name], schema.spans
            given = numbers[:, node] if spans.is_real(node) else codes[:, spans.place(node)]
            dtype = str(getattr(columns[at], "dtype", getattr(columns[at], "type", "")))
            cells = _FilledCells(column, gap, np.asarray(given), frame.library, rounded, dtype)
            columns[at] = fill[frame.library](columns[at], cells)
    if frame.library == "numpy":
        table = np.column_stack(columns)
        all_known = len(schema.columns) == len(frame.names)
        numeric = all_known and _numeric(schema) and not isinstance(X, np.ndarray)
        return table.astype(float) if numeric else table
    if frame.library == "pandas":
        names = getattr(X, "columns", list(frame.names))
        return assembled(dict(enumerate(columns)), "pandas").set_axis(names, axis=1)
    return assembled(dict(zip(frame.names, columns, strict=True)), frame.library)


@dataclass(frozen=True, eq=False)
class _FilledCells:
    """The completed values of one column, and which of them are new."""

    column: Column
    gap: Mask
    given: NDArray[Any]
    library: str
    rounded: bool
    dtype: str  # of the column that is filled

    def whole_column(self) -> Any:
        """The column as the model's own table has it."""
        column = replace(self.column, label=None)
        n = len(self.given)
        part, nothing = self.given.reshape(n, 1), np.zeros((n, 0))
        schema = Schema((column,))
        numbers, codes = (nothing, part) if column.is_discrete else (part, nothing)
        rounded = (column.name,) if self.rounded else ()
        return decode(schema, numbers, codes, self.library, rounded=rounded)[column.name]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """All values of a column of numbers, in the data's own units."""
        values = np.asarray(self.column.decoded(self.given), dtype=np.float64)
        return within(self.dtype, as_whole(self.column, values) if self.rounded else values)

    @property
    def levels(self) -> list[Any]:
        """All values of a column with levels."""
        return [self.column.levels[code] for code in self.given]

    @property
    def new(self) -> Any:
        """The values that fill the gaps."""
        if self.column.has_levels:
            return [self.column.levels[code] for code in self.given[self.gap]]
        return self.numbers[self.gap]

    def rounded_to(self, dtype: object) -> _FilledCells:
        """Return the cells with numbers rounded to what an integer type can hold."""
        return replace(self, column=replace(self.column, dtype=str(dtype)), rounded=True)


# -- pandas ----------------------------------------------------------------------------------------


def _pandas(series: Any, cells: _FilledCells) -> Any:
    import pandas as pd

    integers = not cells.column.has_levels and pd.api.types.is_integer_dtype(series.dtype)
    if cells.gap.all() and not integers:
        return cells.whole_column().set_axis(series.index)
    cells = cells.rounded_to(series.dtype) if integers else cells
    out, new = series.copy(), cells.new
    if not cells.column.has_levels:
        if isinstance(out.dtype, pd.CategoricalDtype):
            out = out.astype("float64")
    elif isinstance(out.dtype, pd.CategoricalDtype):
        unknown = [each for each in dict.fromkeys(new) if each not in out.cat.categories]
        out = out.cat.add_categories(unknown) if unknown else out
    if getattr(out.dtype, "kind", "") == "f":
        new = np.asarray(new, dtype=out.dtype if isinstance(out.dtype, np.dtype) else np.float64)
    out.iloc[np.flatnonzero(cells.gap)] = new
    return out


# -- polars ----------------------------------------------------------------------------------------


def _polars(series: Any, cells: _FilledCells) -> Any:
    import polars as pl

    integers = not cells.column.has_levels and series.dtype.is_integer()
    if cells.gap.all() and not integers:
        return cells.whole_column().alias(series.name)
    if series.dtype == pl.Object:
        objects = dict(enumerate(series.to_list()))
        objects.update(zip(np.flatnonzero(cells.gap).tolist(), cells.new, strict=True))
        return pl.Series(series.name, list(objects.values()), dtype=pl.Object)
    if not cells.column.has_levels:
        cells = cells.rounded_to(series.dtype) if integers else cells
        complete = pl.Series(cells.numbers).cast(series.dtype, strict=False)
    elif series.dtype.is_numeric() or series.dtype == pl.Boolean:
        complete = cells.whole_column().cast(series.dtype)
    else:
        complete = pl.Series(list(map(str, cells.levels)))
        if series.dtype == pl.Enum and not set(complete) <= set(series.dtype.categories):
            series = series.cast(pl.String).cast(pl.Enum(cells.column.level_names))
        complete = complete.cast(series.dtype)
    return series.zip_with(pl.Series(~cells.gap), complete)


# -- pyarrow ---------------------------------------------------------------------------------------


def _pyarrow(array: Any, cells: _FilledCells) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    integers = not cells.column.has_levels and pa.types.is_integer(array.type)
    if cells.gap.all() and not integers:
        return cells.whole_column()
    if pa.types.is_dictionary(array.type):
        return _arrow_dictionary(array, cells)
    if str(array.type) == "string_view":  # Arrow chooses between strings of other types only
        return _pyarrow(array.cast(pa.large_string()), cells).cast(array.type)
    if not cells.column.has_levels:
        cells = cells.rounded_to(array.type) if integers else cells
        complete = pa.array(np.where(cells.gap, cells.numbers, 0.0)).cast(array.type)
    else:
        complete = pa.array(level_array(cells.levels, cells.dtype)).cast(array.type)
    return pc.if_else(pa.array(~cells.gap), array, complete)


def _arrow_dictionary(array: Any, cells: _FilledCells) -> Any:
    """Fill by positions in the dictionary, which keeps its order and its type."""
    import pyarrow as pa

    single = array.unify_dictionaries().combine_chunks()
    single = single.chunk(0) if isinstance(single, pa.ChunkedArray) else single
    if not cells.column.has_levels:
        return _pyarrow(pa.chunked_array([single.dictionary_decode()]), cells)
    values = single.dictionary
    known = list(as_levels(values.to_pylist()))
    absent = [level for level in dict.fromkeys(cells.new) if level not in known]
    if absent:
        more = pa.array(level_array(absent, str(values.type)))
        values = pa.concat_arrays([values, more.cast(values.type)])
    position = {level: at for at, level in enumerate(known + absent)}
    lookup = np.array([position.get(level, 0) for level in cells.column.levels])[cells.given]
    old = single.indices.fill_null(0).to_numpy(zero_copy_only=False)
    indices = pa.array(np.where(cells.gap, lookup, old)).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=array.type.ordered)


# -- arrays ----------------------------------------------------------------------------------------


def _numpy(column: NDArray[Any], cells: _FilledCells) -> NDArray[Any]:
    out = column.copy()
    out[cells.gap] = cells.new
    return out


def _numeric(schema: Schema) -> bool:
    """Whether a list of rows by this schema is an array of numbers."""
    levels = [level for column in schema.columns for level in column.levels]
    return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)

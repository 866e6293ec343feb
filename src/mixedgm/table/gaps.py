"""A table with missing cells -> Gaps: where they are; completed numbers -> the table, filled.

A table with gaps and completed numbers in -> the table with its gaps filled, all else as it was.

Only missing cells are written; a column without gaps is handed on untouched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import Finding
from mixedgm.base.printable import number_of, rows
from mixedgm.model.nodes import Mask
from mixedgm.table.checks.check import (
    MissingArg,
    PairsArg,
    Reading,
    check_whole,
    raise_or_warn,
)
from mixedgm.table.checks.dependence import sample_positions
from mixedgm.table.checks.structural_gaps import (
    gap_counts,
    gap_findings,
    named_pairs,
    structural_gaps,
)
from mixedgm.table.decode import as_whole, decode, level_array, within
from mixedgm.table.encode import (
    Codes,
    Design,
    UnseenArg,
    apply,
    code_dtype,
    encoded,
    find_columns,
    learnt,
    match,
)
from mixedgm.table.read import Frame, as_frame, assembled
from mixedgm.table.schema import Column, Schema
from mixedgm.table.values import as_levels


@dataclass(frozen=True, eq=False)
class Gaps:
    """A table of which some cells are missing: a Design with NaN, and with negative codes.

    A code is -1 where a value is missing, -2 where it is a level that the schema does not have.
    """

    schema: Schema
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]
    weights: NDArray[np.float64] | None = None
    kept: NDArray[np.intp] | None = None
    """(n,) rows of the table; None when all of them are kept."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.numbers)

    def take(self, rows: NDArray[Any]) -> Gaps:
        """Return some of the rows, by position."""
        weights = None if self.weights is None else self.weights[rows]
        kept = rows if self.kept is None else self.kept[rows]
        return Gaps(self.schema, self.numbers[rows], self.codes[rows], weights, kept)

    @cached_property
    def missing(self) -> Mask:
        """(n, p + q) where cells are missing, in the order of the nodes."""
        gaussian = self.numbers[:, self.schema.spans.gaussian]
        return np.column_stack([np.isnan(gaussian), self.codes == -1])

    @property
    def design(self) -> Design:
        """The table without gaps: 0 for a missing number, a negative code for a missing level."""
        gap = np.isnan(self.numbers)
        numbers = np.where(gap, 0.0, self.numbers) if gap.any() else self.numbers
        return Design(self.schema, numbers, self.codes, self.weights)

    @cached_property
    def known_together(self) -> NDArray[np.float64]:
        """(nodes, nodes) the share of the rows that have both values, by weight."""
        known = (~self.missing).astype(np.float64)
        weights = np.ones(self.n_rows) if self.weights is None else self.weights
        return np.asarray(known.T @ (known * weights[:, None]) / weights.sum())

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of observations."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    def structural(self, library: str, forbid: PairsArg = None) -> list[Finding]:
        """Return findings about columns that are missing where another has certain values.

        Pairs that `forbid` names are left out.
        """
        columns = {column.name: column for column in self.schema.nodes}
        values = {name: self._values(node) for node, name in enumerate(columns)}
        levels = {name: column.levels for name, column in columns.items() if column.has_levels}

        def counts(by: str, column: str, marks: Sequence[Any] | None) -> NDArray[np.int64]:
            size = len(levels[by]) if marks is None else len(marks) + 1
            gap = self.missing[:, self.schema.node_index(column)]
            return gap_counts(values[by], marks, size, gap)

        some = sample_positions(self.n_rows, len(columns))
        found = structural_gaps({name: v[some] for name, v in values.items()}, levels, counts)
        told = named_pairs(forbid)
        fills = {name: "level" if name in levels else "" for name in columns}
        return gap_findings((gap for gap in found if gap.pair not in told), fills, library, "drop")

    def _values(self, node: int) -> NDArray[Any]:
        """Codes of a column with levels, -1 where missing; other values in the table's units."""
        column, spans = self.schema.nodes[node], self.schema.spans
        if spans.is_real(node):
            return np.asarray(column.decoded(self.numbers[:, node]), dtype=np.float64)
        codes = np.maximum(self.codes[:, spans.place(node)], -1)
        return codes if column.has_levels else np.where(codes < 0, np.nan, codes)

    @property
    def complete(self) -> Design:
        """The table as a Design; nothing may be missing."""
        codes: Codes = np.asarray(self.codes, dtype=code_dtype(self.schema))
        return Design(self.schema, self.numbers, codes, self.weights, self.kept)

    def patterns(self) -> Iterator[tuple[NDArray[np.intp], Mask]]:
        """Yield rows with the same gaps, and where these are; rows without gaps are left out."""
        missing = self.missing
        gappy = np.flatnonzero(missing.any(axis=1))
        if not len(gappy):
            return
        packed = np.packbits(missing[gappy], axis=1)
        _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(group.ravel()))
        for at, members in zip(first, np.split(gappy[order], ends[:-1]), strict=True):
            yield members, missing[gappy[at]]


def learn_gaps(
    X: object, *, structural: bool = False, **how: Unpack[Reading]
) -> tuple[Gaps, tuple[Finding, ...]]:
    """Infer the schema of a table by the values that it has, and leave missing cells missing.

    The parameters are those of `check_table`.  Rows without any value, and those of weight zero,
    are left out.  `structural` allows gaps that another column decides about.

    Raises
    ------
    TableError
        With everything that is wrong with the table.

    Examples
    --------
    >>> gaps, _ = learn_gaps([[1.5, "b"], [None, "a"], [0.5, None], [3.0, "b"], [2.0, "a"]])
    >>> gaps.missing.sum(axis=0).tolist()
    [1, 1]
    """
    how["missing"] = "model"
    checked = check_whole(X, **how)
    if structural:
        findings = tuple(each for each in checked.findings if not each.structural)
        checked = replace(checked, findings=findings)
    schema, matched = learnt(checked)
    numbers, codes = encoded(schema, matched, np.nan, -1, np.int32)
    return Gaps(schema, numbers, codes, matched.weights, matched.kept), checked.findings


def read_gaps(
    frame: Frame,
    schema: Schema,
    *,
    sample_weight: ArrayLike | None = None,
    unseen: UnseenArg = "error",
    require: Collection[str] | None = None,
    require_covariates: bool = True,
) -> Gaps:
    """Encode a table by a schema that was learnt before, and leave missing cells missing.

    The table is read as in `apply`, but a column that is not read has all of its cells missing.
    `unseen` says whether levels that the schema does not have are an error, `require_covariates`
    whether missing covariates are.

    Raises
    ------
    TableError
        For absent columns, wrong types, unseen levels and infinite values, all at once; for
        missing covariates.

    Examples
    --------
    >>> from mixedgm.table.encode import learn
    >>> from mixedgm.table.read import as_frame
    >>> design, _ = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> gaps = read_gaps(as_frame([[None, "b"], [2.0, None]]), design.schema)
    >>> gaps.missing.tolist()
    [[True, False], [False, True]]
    """
    matched = match(frame, schema, "keep", sample_weight, require, unseen)
    raise_or_warn(matched.findings)
    numbers, codes = encoded(schema, matched, np.nan, -1, np.int32)
    gaps = Gaps(schema, numbers, codes, matched.weights, matched.kept)
    if require_covariates:
        raise_or_warn(_covariate_findings(gaps))
    return gaps


def read_rows(
    X: object, schema: Schema, missing: MissingArg, *, sample_weight: ArrayLike | None = None
) -> Design | Gaps:
    """Encode a table by a schema as a fit with this `missing` has done.

    Gaps that are modelled stay, and rows without any value are left out.
    """
    if missing != "model":
        return apply(X, schema, sample_weight=sample_weight, missing=missing)
    gaps = read_gaps(as_frame(X), schema, sample_weight=sample_weight)
    some = ~gaps.missing.all(axis=1)
    gaps = gaps if some.all() else gaps.take(np.flatnonzero(some))
    return gaps if gaps.missing.any() else gaps.complete


def _covariate_findings(gaps: Gaps) -> Iterator[Finding]:
    """Errors about missing covariates: a model has no distribution of them."""
    covariates = list(gaps.schema.covariates)
    for node, n in zip(covariates, gaps.missing[:, covariates].sum(axis=0), strict=True):
        if n:
            what = f"it is a covariate, and {number_of(int(n), 'value is', 'values are')} missing"
            remedy = (
                f"fill {'it' if n == 1 else 'them'} in first, or drop the "
                f"{'row' if n == 1 else rows(int(n))}: the model describes the effects of "
                "covariates, not their values"
            )
            yield Finding(gaps.schema.nodes[node].name, what, remedy)


# -- gaps filled -----------------------------------------------------------------------------------


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

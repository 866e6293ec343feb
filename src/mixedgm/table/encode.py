"""A table in -> Design: continuous columns, level codes and weights; learnt once, then applied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding, ParameterError
from mixedgm.table.check import MissingArg, TransformArg, TypesArg, check_table, raise_or_warn
from mixedgm.table.match import Matched, match
from mixedgm.table.schema import Schema
from mixedgm.table.transform import Nonparanormal

__all__ = ["Design", "apply", "code_dtype", "encoded", "learn"]

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8 | np.uint16 | np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Design:
    """A table as numbers.

    Examples
    --------
    >>> design, findings = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> design.numbers.ravel().tolist(), design.codes.ravel().tolist()
    ([1.5, 2.5, 0.5, 3.0], [1, 0, 0, 1])
    """

    schema: Schema
    numbers: Floats  # (n, p), C order, of `schema.gaussian`; normal scores of a transformed column
    codes: Codes  # (n, q), C order, of `schema.discrete`: positions in their levels
    weights: Floats | None = None  # (n,) frequencies, all positive; None: each row counts once
    kept: NDArray[np.intp] | None = None  # (n,) rows of the table; None when all of them are kept

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        return len(self.numbers)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of observations, as criteria count them."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    def values_of(self, node: int) -> NDArray[Any]:
        """Return the numbers or level codes of one node."""
        spans = self.schema.spans
        return (self.numbers if spans.is_gaussian(node) else self.codes)[:, spans.place(node)]

    def take(self, rows: NDArray[Any] | slice | Sequence[int]) -> Design:
        """Return a copy of some of the rows: positions, which may repeat, a mask or a slice."""
        chosen = np.arange(self.n_rows)[rows if isinstance(rows, slice) else np.asarray(rows)]
        return Design(
            self.schema,
            self.numbers[chosen],
            self.codes[chosen],
            None if self.weights is None else self.weights[chosen],
            chosen if self.kept is None else self.kept[chosen],
        )


def learn(
    X: object,
    *,
    types: TypesArg = None,
    transforms: TransformArg = None,
    covariates: Sequence[Any] | str | None = None,
    missing: MissingArg = "error",
    sample_weight: ArrayLike | None = None,
) -> tuple[Design, tuple[Finding, ...]]:
    """Infer the schema of a table and encode the table by it.

    The parameters are those of `check_table`. With `missing="drop"`, rows with missing values are
    dropped with a warning; rows of weight zero are left out. Warnings are returned, and issued
    together as one TableWarning.

    Raises
    ------
    TableError
        With everything that is wrong with the table.
    """
    checked = check_table(
        X,
        types=types,
        transforms=transforms,
        covariates=covariates,
        missing=missing,
        sample_weight=sample_weight,
    )
    raise_or_warn(checked.findings)
    columns = list(checked.schema.columns)
    for at, column in enumerate(columns):
        if not column.has_levels and checked.options.transformed(column.name):
            values = checked.values[column.name].numbers()
            values = values if checked.keep is None else values[checked.keep]
            beyond = checked.options.extrapolated(column.name)
            fitted = Nonparanormal.fit(values, checked.weights, extrapolate=beyond)
            columns[at] = replace(column, transform=fitted)
    codes = {name: factor.codes for name, factor in checked.factors.items()}
    schema = replace(checked.schema, columns=tuple(columns))
    matched = Matched(
        checked.findings, checked.values, codes, checked.keep, checked.weights, checked.frame.n_rows
    )
    return _design(schema, matched), checked.findings


def apply(
    X: object,
    schema: Schema,
    *,
    sample_weight: ArrayLike | None = None,
    missing: MissingArg = "error",
    require: Collection[str] | None = None,
) -> Design:
    """Encode new data by a schema that was learnt before.

    Columns of a frame are found by name, in any order, and columns that the schema does not know
    are ignored; those of an array are found by position. Rows of weight zero are left out, and so
    are those with gaps where `missing` is "drop"; `Design.kept` tells which rows remain. A column
    that is not among those that `require` names may be absent; it is filled with 0 or its first
    level, which mean nothing.

    Raises
    ------
    TableError
        For missing columns, wrong types, unseen levels, missing and infinite values: all at once.

    Examples
    --------
    >>> design, _ = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> apply([[7.0, "b"]], design.schema).codes.tolist()
    [[1]]
    """
    if missing not in ("error", "drop"):
        raise ParameterError.must_be("missing", "'error' or 'drop'", missing)
    matched = match(X, schema, missing, sample_weight, require)
    raise_or_warn(matched.findings)
    return _design(schema, matched)


def _design(schema: Schema, matched: Matched) -> Design:
    kept = None if matched.keep is None or matched.keep.all() else np.flatnonzero(matched.keep)
    numbers, codes = encoded(schema, matched, 0.0, 0, code_dtype(schema))
    return Design(schema, numbers, codes, matched.weights, kept)


def encoded(
    schema: Schema, matched: Matched, number: float, code: int, dtype: type[Any]
) -> tuple[Floats, NDArray[Any]]:
    """Return numbers and codes of the rows that are kept; `number` and `code` where none was read.

    One column is written after the other, so that at most one is held twice.
    """
    rows: Mask | slice = slice(None) if matched.keep is None else matched.keep
    numbers = np.full((matched.n_kept, schema.n_gaussian), number)
    for at, column in enumerate(schema.gaussian):
        values = matched.values.get(column.name)
        if values is not None and values.family != "empty":
            numbers[:, at] = column.encoded(values.numbers()[rows])
    codes = np.full((matched.n_kept, schema.n_discrete), code, dtype)
    for at, column in enumerate(schema.discrete):
        if column.name in matched.codes:
            codes[:, at] = matched.codes[column.name][rows]
    return numbers, codes


def code_dtype(schema: Schema) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    """Return the smallest integer type that holds the level codes of a schema."""
    most = max(schema.n_levels, default=0)
    if most <= 2**8:
        return np.uint8
    return np.uint16 if most <= 2**16 else np.int32

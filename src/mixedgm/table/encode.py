"""A table in -> Design: continuous columns, level codes and weights; learnt once, then applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding, ParameterError
from mixedgm.table.check import MissingArg, check_table, raise_or_warn
from mixedgm.table.decode import decode
from mixedgm.table.match import match
from mixedgm.table.options import TransformArg, TypesArg
from mixedgm.table.schema import Schema
from mixedgm.table.transform import Nonparanormal

__all__ = ["Design", "apply", "code_dtype", "decode", "learn"]

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8 | np.uint16 | np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Design:
    """A table as numbers.

    Parameters
    ----------
    schema : Schema
        What the columns mean.
    numbers : float64 array of shape (n, p), C order
        Continuous columns in the schema's order; normal scores where a column has a transform.
    codes : uint8, uint16 or int32 array of shape (n, q), C order
        Categorical columns in the schema's order, as positions in their levels.
    weights : float64 array of shape (n,) or None
        Frequencies of the rows, all positive; None means that each row counts once.
    kept : int array of shape (n,) or None
        Position of each row in the table it came from; None when no row was left out.

    Examples
    --------
    >>> design, findings = learn([[1.5, "b"], [2.5, "a"], [0.5, "a"], [3.0, "b"]])
    >>> design.numbers.ravel().tolist(), design.codes.ravel().tolist()
    ([1.5, 2.5, 0.5, 3.0], [1, 0, 0, 1])
    """

    schema: Schema
    numbers: Floats
    codes: Codes
    weights: Floats | None = None
    kept: NDArray[np.intp] | None = None

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

    def numbers_of(name: str) -> Floats:
        values = checked.values[name].numbers()
        return values if checked.keep is None else values[checked.keep]

    columns = list(checked.schema.columns)
    for at, column in enumerate(columns):
        if not column.has_levels and checked.options.transformed(column.name):
            beyond = checked.options.extrapolated(column.name)
            fitted = Nonparanormal.fit(numbers_of(column.name), checked.weights, extrapolate=beyond)
            columns[at] = replace(column, transform=fitted)
    codes = {name: factor.codes for name, factor in checked.factors.items()}
    schema = replace(checked.schema, columns=tuple(columns))
    design = _filled(schema, numbers_of, codes, checked.keep, checked.weights, checked.frame.n_rows)
    return design, checked.findings


def apply(
    X: object,
    schema: Schema,
    *,
    sample_weight: ArrayLike | None = None,
    missing: MissingArg = "error",
    require: Collection[str] | None = None,
) -> Design:
    """Encode new data by a schema that was learnt before.

    Parameters
    ----------
    X : data frame, 2-D array or path
        The table. Columns of a frame are found by name, in any order, and columns that the schema
        does not know are ignored; those of an array are found by position.
    schema : Schema
        The schema of the model.
    sample_weight : array of shape (n,), optional
        Frequencies of the rows. Rows of weight zero are left out.
    missing : {"error", "drop"}
        What to do about missing values. `Design.kept` tells which rows remain.
    require : collection of str, optional
        The columns that are read; all by default. A column that is not read may be absent; it is
        filled with 0 or its first level, which mean nothing.

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

    def numbers_of(name: str) -> Floats:
        if name not in matched.values:
            return np.zeros(matched.n_kept)
        values = matched.values[name].numbers()
        return values if matched.keep is None else values[matched.keep]

    return _filled(schema, numbers_of, matched.codes, matched.keep, matched.weights, matched.n_rows)


def _filled(
    schema: Schema,
    numbers_of: Callable[[str], Floats],
    codes: Mapping[str, NDArray[np.int32]],
    keep: Mask | None,
    weights: Floats | None,
    n_rows: int,
) -> Design:
    """Write one column after the other, so that at most one is held twice."""
    kept = None if keep is None or keep.all() else np.flatnonzero(keep)
    n_kept = n_rows if kept is None else len(kept)
    numbers = np.empty((n_kept, schema.n_gaussian), dtype=np.float64)
    for at, column in enumerate(schema.gaussian):
        numbers[:, at] = column.encoded(numbers_of(column.name))
    coded = np.zeros((n_kept, schema.n_discrete), dtype=code_dtype(schema))
    for at, column in enumerate(schema.discrete):
        if column.name in codes:
            all_codes = codes[column.name]
            coded[:, at] = all_codes if kept is None else all_codes[kept]
    return Design(schema, numbers, coded, weights, kept)


def code_dtype(schema: Schema) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    """Return the smallest integer type that holds the level codes of a schema."""
    most = max(schema.n_levels, default=0)
    if most <= 2**8:
        return np.uint8
    return np.uint16 if most <= 2**16 else np.int32

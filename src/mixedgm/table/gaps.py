"""A table with missing cells in -> Gaps: its numbers and codes, and where they are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding
from mixedgm.printable import number_of, rows
from mixedgm.table.check import (
    MissingArg,
    PairsArg,
    TransformArg,
    TypesArg,
    check_whole,
    raise_or_warn,
)
from mixedgm.table.encode import Codes, Design, UnseenArg, apply, code_dtype, encoded, learnt, match
from mixedgm.table.read import Frame, as_frame
from mixedgm.table.schema import Schema

__all__ = ["Gaps", "learn_gaps", "read_gaps", "read_rows"]

Mask = NDArray[np.bool_]


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
    X: object,
    *,
    types: TypesArg = None,
    transforms: TransformArg = "auto",
    covariates: Sequence[Any] | str | None = None,
    sample_weight: ArrayLike | None = None,
    forbid: PairsArg = None,
) -> tuple[Gaps, tuple[Finding, ...]]:
    """Infer the schema of a table by the values that it has, and leave missing cells missing.

    The parameters are those of `check_table`.  Rows without any value, and those of weight zero,
    are left out.

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
    checked = check_whole(
        X,
        types=types,
        transforms=transforms,
        covariates=covariates,
        missing="model",
        sample_weight=sample_weight,
        forbid=forbid,
    )
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
    >>> from mixedgm.table import as_frame, learn
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

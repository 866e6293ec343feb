"""A table with missing cells in -> Gaps: its numbers and codes, and where they are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.errors import Finding
from mixedgm.printable import number_of, rows
from mixedgm.table.check import raise_or_warn
from mixedgm.table.encode import Design, UnseenArg, encoded, match
from mixedgm.table.read import Frame
from mixedgm.table.schema import Schema

__all__ = ["Gaps", "read_gaps"]

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

    @property
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


def read_gaps(
    frame: Frame,
    schema: Schema,
    *,
    sample_weight: ArrayLike | None = None,
    unseen: UnseenArg = "error",
    require: Collection[str] | None = None,
) -> Gaps:
    """Encode a table by a schema that was learnt before, and leave missing cells missing.

    The table is read as in `apply`, but a column that is not read has all of its cells missing.
    `unseen` says whether levels that the schema does not have are an error.

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
    gaps = Gaps(schema, *encoded(schema, matched, np.nan, -1, np.int32), matched.weights)
    raise_or_warn(_covariate_findings(gaps))
    return gaps


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

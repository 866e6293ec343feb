"""A model of states only -> the same over the levels that can occur."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.errors import DistributionError
from mixedgm.joint.validity import allowed_levels
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class Discrete:
    """A pairwise field over the levels that can occur, one or many of them side by side.

    Levels of probability zero are taken out and columns with a single level left are folded into
    the others, so that all numbers are finite and such columns have no neighbours.  Fields side
    by side share the interactions and differ in their biases: rows with the same columns known.
    A column is a state of the model.
    """

    n_declared: tuple[int, ...]
    """Levels of every column in the model."""
    labels: tuple[Ints, ...]
    """Codes that are left for every column."""
    unary: Floats
    """(b, K) biases of the K levels that are left, one row per field."""
    pairwise: Floats
    """(K, K) interactions, symmetric, zero within a column."""
    log_constant: Floats
    """(b,) constants that folding took out."""

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Levels left in every column."""
        return tuple(len(each) for each in self.labels)

    @cached_property
    def start(self) -> Ints:
        """First level of every column among those left, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_levels)]).astype(np.int64)

    @cached_property
    def kept(self) -> Ints:
        """Positions of the levels left among all declared ones."""
        first = np.concatenate([[0], np.cumsum(self.n_declared)]).astype(np.int64)
        parts = [first[j] + labels for j, labels in enumerate(self.labels)]
        return np.concatenate([*parts, np.zeros(0, dtype=np.int64)])

    @property
    def n_fields(self) -> int:
        """Number of fields side by side."""
        return len(self.unary)

    def span(self, column: int) -> slice:
        """Levels of a column among those left."""
        return slice(int(self.start[column]), int(self.start[column + 1]))

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Neighbours of every column as the bits of an integer."""
        if not self.labels:
            return ()
        first = self.start[:-1]
        touched = np.logical_or.reduceat(self.pairwise != 0, first, axis=1)
        joined = np.logical_or.reduceat(touched, first, axis=0)
        return tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined)


def discrete(model: ConditionalGaussian, unary: Floats | None = None) -> Discrete:
    """Keep the levels that can occur in a model without numbers, as `integrate_out` leaves it.

    `unary` (b, sum of levels) are biases of b fields with the same interactions, in place of the
    model's.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_gaussian=0, n_levels=(2, 3))
    >>> model.bias[2] = -np.inf
    >>> discrete(model).n_levels
    (2, 2)
    """
    labels = tuple(allowed_levels(model))
    empty = [model.n_gaussian + j for j, left in enumerate(labels) if len(left) == 0]
    if empty:
        raise DistributionError(
            "no level of {columns} has a chance: every bias is -inf", tuple(empty)
        )
    bias = (model.bias[None] if unary is None else unary).astype(np.float64)
    field = Discrete(model.n_levels, labels, bias, model.interaction, np.zeros(len(bias)))
    single = np.repeat(np.array([len(left) == 1 for left in labels], bool), field.n_levels)
    if field.n_levels == field.n_declared and not single.any():
        return field
    bias, pairwise = bias[:, field.kept], model.interaction[np.ix_(field.kept, field.kept)]
    constant = bias[:, single].sum(axis=1) + 0.5 * pairwise[np.ix_(single, single)].sum()
    bias = np.where(single, 0.0, bias + pairwise[single].sum(axis=0))
    pairwise = np.where(single | single[:, None], 0.0, pairwise)
    return Discrete(model.n_levels, labels, bias, pairwise, constant)

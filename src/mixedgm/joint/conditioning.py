"""A model and values of some numbers and states -> the terms among these, and their log weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.kernels import add_level_rows, level_terms
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """Columns that are known in n rows: their positions in the model, and their values.

    `values` (n, number of known numbers) and `codes` (n, number of known states) have one column
    for every position in `numbers` and in `discrete`.
    """

    numbers: Sequence[int]
    discrete: Sequence[int]
    values: Floats
    codes: NDArray[np.integer]

    @classmethod
    def none(cls, n: int = 1) -> KnownColumns:
        """Nothing known in n rows."""
        return cls((), (), np.zeros((n, 0)), np.zeros((n, 0), dtype=np.int64))

    @classmethod
    def among(
        cls,
        places: tuple[Sequence[int], Sequence[int]],
        rows: tuple[Floats, NDArray[np.integer]],
    ) -> KnownColumns:
        """The numbers and states at these places of whole rows."""
        (numbers, discrete), (values, codes) = places, rows
        return cls(numbers, discrete, values[:, list(numbers)], codes[:, list(discrete)])

    @property
    def in_order(self) -> KnownColumns:
        """Known columns with the states in the order of the model."""
        order = np.argsort(np.asarray(self.discrete, dtype=np.int64))
        states = [self.discrete[at] for at in order]
        return KnownColumns(self.numbers, states, self.values, self.codes[:, order])


def log_weight(params: ConditionalGaussian, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n,) log density of rows without the constant; ``-inf`` for a level that cannot occur.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2,))
    >>> log_weight(params, np.array([[2.0]]), np.array([[0]]))
    array([-2.])
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    linear = params.linear - 0.5 * (numbers @ params.precision)
    add_level_rows(linear, codes, params.level_start, np.ascontiguousarray(params.shift.T))
    if params.seen is None:
        discrete = level_terms(codes, params.level_start, params.bias, params.coupling)
    else:
        seen = params.seen.design_columns(np.zeros((len(codes), 0)), codes)
        discrete = params.bias[params.level_start[:-1] + codes].sum(axis=1)
        discrete += 0.5 * ((seen @ params.coupling) * seen).sum(axis=1)
    with np.errstate(over="ignore"):  # a value as far away as doubles go cannot occur
        return np.asarray((linear * numbers).sum(axis=1) + discrete)


def levels_of(params: ConditionalGaussian, discrete: Ints) -> Ints:
    """Positions of the levels of some states among all levels."""
    start = params.level_start
    spans = [np.arange(start[j], start[j + 1]) for j in discrete]
    return np.concatenate([*spans, np.zeros(0, dtype=np.int64)])


def among(params: ConditionalGaussian, numbers: Ints, discrete: Ints) -> ConditionalGaussian:
    """The terms among some numbers and states only, as if there were no others.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=2, n_levels=(2, 3))
    >>> among(params, np.array([1]), np.array([1])).n_levels
    (3,)
    """
    levels, seen = levels_of(params, discrete), params.seen
    columns = columns_of(params, discrete)
    return ConditionalGaussian(
        tuple(params.n_levels[j] for j in discrete),
        params.precision[np.ix_(numbers, numbers)],
        params.linear[numbers],
        params.shift[np.ix_(numbers, levels)],
        params.coupling[np.ix_(columns, columns)],
        params.bias[levels],
        None if seen is None else seen.take(discrete),
    )


def columns_of(params: ConditionalGaussian, discrete: Ints) -> Ints:
    """Positions of some states in the coupling: of their levels, or of their design columns."""
    if params.seen is None:
        return levels_of(params, discrete)
    return np.flatnonzero(np.isin(params.seen.column_node, discrete))

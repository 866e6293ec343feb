"""A model and known values of many rows -> the models of the remaining columns.

Knowing some columns leaves the family: the interactions among the others stay as they are, and
every known value adds its terms to their biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.kernels import add_level_rows, level_terms
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class Given:
    """Many models of the remaining columns that differ in their biases only.

    Parameters
    ----------
    numbers, discrete : ndarray
        Positions of the remaining continuous and categorical columns in the whole model.
    model : ConditionalGaussian
        Model of the remaining columns; its biases are those of the whole model.
    linear : ndarray (n, p')
        Linear terms, one row per row of known values.
    bias : ndarray (n, sum of remaining levels)
        Biases of the remaining levels; ``-inf`` where the whole model has it.
    log_constant : ndarray (n,)
        The known columns' own terms: partition function times exp of this = density of the known
        values times the whole model's partition function.
    """

    numbers: Ints
    discrete: Ints
    model: ConditionalGaussian
    linear: Floats
    bias: Floats
    log_constant: Floats


def given_rows(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
) -> Given:
    """Condition on the same columns in many rows.

    Parameters
    ----------
    params : ConditionalGaussian
        The whole model.
    known_numbers, known_discrete : sequence of int
        Positions of the known columns.
    numbers : ndarray (n, number of known continuous columns)
        Their values.
    codes : ndarray (n, number of known categorical columns)
        Their level codes.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=2, n_levels=(2,))
    >>> params.precision[0, 1] = params.precision[1, 0] = 0.5
    >>> given = given_rows(params, [0], [], np.array([[2.0], [4.0]]), np.zeros((2, 0), int))
    >>> given.linear
    array([[-1.],
           [-2.]])
    """
    known = np.asarray(known_numbers, dtype=np.int64)
    known_states = np.asarray(known_discrete, dtype=np.int64)
    rest = np.setdiff1d(np.arange(params.n_gaussian), known)
    left = np.setdiff1d(np.arange(len(params.n_levels)), known_states)
    inside, outside = _levels(params, known_states), _levels(params, left)
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    inner = _select(params, known, known_states, inside)
    model = _select(params, rest, left, outside)
    linear = params.linear[rest] - numbers @ params.precision[np.ix_(known, rest)]
    shift = np.ascontiguousarray(params.shift[np.ix_(rest, inside)].T)
    add_level_rows(linear, codes, inner.level_start, shift)
    bias = params.bias[outside] + numbers @ params.shift[np.ix_(known, outside)]
    between = params.interaction[np.ix_(inside, outside)]
    add_level_rows(bias, codes, inner.level_start, between)
    return Given(rest, left, model, linear, bias, log_weight(inner, numbers, codes))


def log_weight(params: ConditionalGaussian, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n,) log density of rows without the constant; ``-inf`` for a level that cannot occur.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> log_weight(params, np.array([[2.0]]), np.array([[0]]))
    array([-2.])
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    linear = params.linear - 0.5 * (numbers @ params.precision)
    add_level_rows(linear, codes, params.level_start, np.ascontiguousarray(params.shift.T))
    discrete = level_terms(codes, params.level_start, params.bias, params.interaction)
    with np.errstate(over="ignore"):  # a value as far away as doubles go cannot occur
        return np.asarray((linear * numbers).sum(axis=1) + discrete)


def _levels(params: ConditionalGaussian, columns: Ints) -> Ints:
    """Level columns of some categorical columns."""
    start = params.level_start
    spans = [np.arange(start[j], start[j + 1]) for j in columns]
    return np.concatenate([*spans, np.zeros(0, dtype=np.int64)])


def among(params: ConditionalGaussian, numbers: Ints, discrete: Ints) -> ConditionalGaussian:
    """The terms among some columns only, as if there were no others.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=2, n_levels=(2, 3))
    >>> among(params, np.array([1]), np.array([1])).n_levels
    (3,)
    """
    return _select(params, numbers, discrete, _levels(params, discrete))


def _select(
    params: ConditionalGaussian, numbers: Ints, discrete: Ints, levels: Ints
) -> ConditionalGaussian:
    """The terms among some columns only."""
    return ConditionalGaussian(
        tuple(params.n_levels[j] for j in discrete),
        params.precision[np.ix_(numbers, numbers)],
        params.linear[numbers],
        params.shift[np.ix_(numbers, levels)],
        params.interaction[np.ix_(levels, levels)],
        params.bias[levels],
    )

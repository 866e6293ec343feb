"""Params and known values -> the model of the remaining columns, for one row or for many.

Knowing some columns leaves the family: the interactions among the others stay as they are, and
every known value adds its terms to their biases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import ParameterError
from mixedgm.joint.kernels import add_level_rows, level_terms
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Given:
    """Many models of the remaining columns that differ in their biases only.

    Parameters
    ----------
    numbers, discrete : ndarray
        Positions of the remaining continuous and categorical columns in the whole model.
    model : Params
        Model of the remaining columns; its biases are those of the whole model.
    cont_bias : ndarray (n, p')
        Linear terms, one row per row of known values.
    cat_bias : ndarray (n, sum of remaining levels)
        Biases of the remaining levels; ``-inf`` where the whole model has it.
    log_constant : ndarray (n,)
        The known columns' own terms: partition function times exp of this = density of the known
        values times the whole model's partition function.
    """

    numbers: Ints
    discrete: Ints
    model: Params
    cont_bias: Floats
    cat_bias: Floats
    log_constant: Floats


def given_rows(
    params: Params,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
) -> Given:
    """Condition on the same columns in many rows.

    Parameters
    ----------
    params : Params
        The whole model.
    known_numbers, known_discrete : sequence of int
        Positions of the known columns.
    numbers : ndarray (n, number of known continuous columns)
        Their values.
    codes : ndarray (n, number of known categorical columns)
        Their level codes.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=2, n_levels=(2,))
    >>> params.precision[0, 1] = params.precision[1, 0] = 0.5
    >>> given = given_rows(params, [0], [], np.array([[2.0], [4.0]]), np.zeros((2, 0), int))
    >>> given.cont_bias
    array([[-1.],
           [-2.]])
    """
    known, cats = (
        np.asarray(known_numbers, dtype=np.int64),
        np.asarray(known_discrete, dtype=np.int64),
    )
    rest = np.setdiff1d(np.arange(params.n_gaussian), known)
    left = np.setdiff1d(np.arange(len(params.n_levels)), cats)
    inside, outside = _levels(params, cats), _levels(params, left)
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    own = _select(params, known, cats, inside)
    model = _select(params, rest, left, outside)
    cont_bias = params.cont_bias[rest] - numbers @ params.precision[np.ix_(known, rest)]
    shift = np.ascontiguousarray(params.category_shift[np.ix_(rest, inside)].T)
    add_level_rows(cont_bias, codes, own.level_start, shift)
    cat_bias = params.cat_bias[outside] + numbers @ params.category_shift[np.ix_(known, outside)]
    between = params.cat_interaction[np.ix_(inside, outside)]
    add_level_rows(cat_bias, codes, own.level_start, between)
    return Given(rest, left, model, cont_bias, cat_bias, log_weight(own, numbers, codes))


def log_weight(params: Params, numbers: Floats, codes: NDArray[np.integer]) -> Floats:
    """(n,) log density of rows without the constant; ``-inf`` for a level that cannot occur.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=1, n_levels=(2,))
    >>> log_weight(params, np.array([[2.0]]), np.array([[0]]))
    array([-2.])
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    linear = params.cont_bias - 0.5 * (numbers @ params.precision)
    add_level_rows(linear, codes, params.level_start, np.ascontiguousarray(params.category_shift.T))
    discrete = level_terms(codes, params.level_start, params.cat_bias, params.cat_interaction)
    with np.errstate(over="ignore"):  # a value as far away as doubles go cannot occur
        return np.asarray((linear * numbers).sum(axis=1) + discrete)


def condition(
    params: Params,
    number_evidence: Mapping[int, float] | None = None,
    code_evidence: Mapping[int, int] | None = None,
) -> Params:
    """Model of the remaining columns given known values, exactly.

    Parameters
    ----------
    params : Params
        The whole model.  Its precision need not be positive definite.
    number_evidence : mapping of int to float
        Values of continuous columns, by position.
    code_evidence : mapping of int to int
        Level codes of categorical columns, by position.

    Returns
    -------
    Params
        The remaining columns in their order.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=1, n_levels=(2, 3))
    >>> params.category_shift[0, 1] = 5.0
    >>> rest = condition(params, code_evidence={0: 1})
    >>> rest.n_levels, rest.cont_bias
    ((3,), array([5.]))
    """
    values, levels = dict(number_evidence or {}), dict(code_evidence or {})
    check_evidence(params, values, levels)
    given = given_rows(
        params,
        sorted(values),
        sorted(levels),
        np.array([[values[s] for s in sorted(values)]], dtype=np.float64),
        np.array([[levels[j] for j in sorted(levels)]], dtype=np.int64),
    )
    return replace(given.model, cont_bias=given.cont_bias[0], cat_bias=given.cat_bias[0])


def check_evidence(params: Params, values: Mapping[int, float], levels: Mapping[int, int]) -> None:
    """Raise ParameterError for a column, a value or a level that there is not."""
    q = len(params.n_levels)
    for s, value in values.items():
        if not 0 <= s < params.n_gaussian:
            raise ParameterError(
                f"there is no continuous column {s}; there are {params.n_gaussian}."
            )
        if not np.isfinite(value):
            raise ParameterError.must_be(f"the value of continuous column {s}", "finite", value)
    for j, level in levels.items():
        if not 0 <= j < q:
            raise ParameterError(f"there is no categorical column {j}; there are {q}.")
        if not 0 <= level < params.n_levels[j]:
            wanted = f"a code from 0 to {params.n_levels[j] - 1}"
            raise ParameterError.must_be(f"the level of categorical column {j}", wanted, level)
        if np.isneginf(params.cat_bias[params.level_start[j] + level]):
            raise ParameterError(
                f"level {level} of categorical column {j} has probability zero in this model (it "
                "had no rows), so nothing can be conditioned on it."
            )


def _levels(params: Params, columns: Ints) -> Ints:
    """Level columns of some categorical columns."""
    start = params.level_start
    spans = [np.arange(start[j], start[j + 1]) for j in columns]
    return np.concatenate([*spans, np.zeros(0, dtype=np.int64)])


def among(params: Params, numbers: Ints, discrete: Ints) -> Params:
    """The terms among some columns only, as if there were no others.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=2, n_levels=(2, 3))
    >>> among(params, np.array([1]), np.array([1])).n_levels
    (3,)
    """
    return _select(params, numbers, discrete, _levels(params, discrete))


def _select(params: Params, numbers: Ints, discrete: Ints, levels: Ints) -> Params:
    """The terms among some columns only."""
    return Params(
        tuple(params.n_levels[j] for j in discrete),
        params.precision[np.ix_(numbers, numbers)],
        params.cont_bias[numbers],
        params.category_shift[np.ix_(numbers, levels)],
        params.cat_interaction[np.ix_(levels, levels)],
        params.cat_bias[levels],
    )

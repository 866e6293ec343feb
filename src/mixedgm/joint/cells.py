"""Rows with some columns known -> the log density of one more number of every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import TooLargeError
from mixedgm.joint.conditioning import given_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.sampling import Method, check_method
from mixedgm.joint.unknown_columns import Rest
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats


def log_density_of(
    params: ConditionalGaussian,
    node: int,
    values: Floats,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    method: Method = "auto",
    rng: np.random.Generator | None = None,
    limit: int = LIMIT,
) -> tuple[Floats, bool]:
    """Log density of a continuous column given the known ones, all others integrated out.

    Where categorical columns are unknown, it is a mixture of normal densities.

    Parameters
    ----------
    params : ConditionalGaussian
        The whole model; the precision of the columns that are not known must be positive definite.
    node : int
        The continuous column, which is not among the known ones.
    values : ndarray (n,)
        Its values.
    known_numbers, known_discrete, numbers, codes, method, rng, limit
        As for `posterior`.

    Returns
    -------
    ndarray (n,)
        The log densities.
    bool
        False when they were averaged over Gibbs chains.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> params.shift[0] = [-1.0, 1.0]
    >>> nothing = np.zeros((2, 0)), np.zeros((2, 0), int)
    >>> found, exact = log_density_of(params, 0, np.array([0.0, 1.0]), [], [], *nothing)
    >>> np.exp(found).round(3), exact
    (array([0.242, 0.226]), True)
    """
    check_method(method)
    without = _rest(params, known_numbers, known_discrete, numbers, codes)
    at = int(np.flatnonzero(without.given.numbers == node)[0])
    if method != "gibbs":
        extended = np.column_stack([numbers, values])
        with_value = _rest(params, [*known_numbers, node], known_discrete, extended, codes)
        try:
            found = _log_weight(with_value, params, limit) - _log_weight(without, params, limit)
        except TooLargeError:
            if method == "exact":
                raise
        else:
            own = without.given.linear[:, at] - 0.5 * params.precision[node, node] * values
            return found + own * values, True
    return without.sample_log_density(at, values, rng or np.random.default_rng(0)), False


def _rest(
    params: ConditionalGaussian,
    known_numbers: Sequence[int],
    known_discrete: Sequence[int],
    numbers: Floats,
    codes: NDArray[np.integer],
) -> Rest:
    """The unknown columns; what the known ones say about each other is left out."""
    given = given_rows(params, known_numbers, known_discrete, numbers, codes)
    return Rest.of(replace(given, log_constant=np.zeros(len(given.log_constant))))


def _log_weight(rest: Rest, params: ConditionalGaussian, limit: int) -> Floats:
    out = rest.log_constant.copy()
    for block, tree in rest.trees(params, limit):
        out[block] += tree.log_z
    return out

"""Params -> log partition function, log density of rows, exact expectations.

The log partition function is convex in the parameters and its gradient is the expectation of the
sufficient statistics.  With M the shift of the mean of x by each level and P the matrix of pair
probabilities (own blocks diagonal), m = E[x | no shift], C the covariance of x given y:

    E[x] = m + M'p     E[x d'] = m p' + M'P     E[xx'] = C + mm' + m(M'p)' + (M'p)m' + M'PM
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.joint.conditioning import log_weight
from mixedgm.joint.exact import exact
from mixedgm.joint.field import Gaussian
from mixedgm.joint.plan import LIMIT
from mixedgm.model.layout import Floats
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Expectations:
    """Expected sufficient statistics, under the names of the parameters they belong to.

    Parameters
    ----------
    n_levels : tuple of int
        Levels of every categorical column.
    precision : ndarray (p, p)
        E[x x'].
    cont_bias : ndarray (p,)
        E[x].
    category_shift : ndarray (p, sum of levels)
        E[x_s 1(y_j = a)].
    cat_interaction : ndarray (sum of levels, sum of levels)
        P(y_r = a, y_j = b), zero for a column with itself.
    cat_bias : ndarray (sum of levels,)
        P(y_j = a).
    log_partition : float
        Logarithm of the partition function at the same parameters.
    """

    n_levels: tuple[int, ...]
    precision: Floats
    cont_bias: Floats
    category_shift: Floats
    cat_interaction: Floats
    cat_bias: Floats
    log_partition: float

    @property
    def mean(self) -> Floats:
        """E[x]."""
        return self.cont_bias

    @property
    def covariance(self) -> Floats:
        """Covariance of x, categorical columns averaged out."""
        return self.precision - np.outer(self.cont_bias, self.cont_bias)

    def gradient(self) -> Params:
        """Derivatives of the log partition function by every parameter, as blocks.

        The two entries of a symmetric block are one parameter: the entry (s, t) of the precision
        has derivative ``-E[x_s x_t]``, a diagonal one ``-E[x_s^2] / 2``.  `to_theta` turns the
        result into the gradient by theta.
        """
        precision = -self.precision
        np.fill_diagonal(precision, 0.5 * np.diagonal(precision))
        return Params(
            self.n_levels,
            precision,
            self.cont_bias,
            self.category_shift,
            self.cat_interaction,
            self.cat_bias,
        )


def log_partition(params: Params, *, limit: int = LIMIT) -> float:
    """Logarithm of the partition function, exactly.

    Examples
    --------
    >>> round(log_partition(Params.independent(n_gaussian=2, n_levels=(3,))), 6)
    2.936489
    """
    return exact(params, limit=limit).log_partition


def log_density(
    params: Params,
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    log_z: float | None = None,
    limit: int = LIMIT,
) -> Floats:
    """(n,) joint log density of rows.

    Parameters
    ----------
    params : Params
        The model.
    numbers : ndarray (n, p)
        Continuous columns.
    codes : ndarray (n, q)
        Level codes.
    log_z : float, optional
        The log partition function where it is known already.
    limit : int
        Most entries of all tables together.

    Examples
    --------
    >>> params = Params.independent(n_gaussian=1, n_levels=(2,))
    >>> log_density(params, np.array([[0.0]]), np.array([[1]])).round(6)
    array([-1.612086])
    """
    constant = log_partition(params, limit=limit) if log_z is None else log_z
    return log_weight(params, numbers, codes) - constant


def expectations(params: Params, *, limit: int = LIMIT) -> Expectations:
    """Exact expectations of all sufficient statistics.

    Examples
    --------
    >>> found = expectations(Params.independent(n_gaussian=1, n_levels=(2, 4)))
    >>> found.cat_interaction[0, 2:]
    array([0.125, 0.125, 0.125, 0.125])
    """
    model = exact(params, limit=limit)
    return moments_from(params, model.given_y, model.tree.pairs[0], model.log_partition)


def moments_from(
    params: Params, given_y: Gaussian, pairs: Floats, log_z: float = np.nan
) -> Expectations:
    """Expectations from the probabilities of all pairs of levels, exact or estimated.

    The continuous columns need no draws: given y their moments are known.

    Parameters
    ----------
    params : Params
        The model.
    given_y : Gaussian
        Its continuous columns given the categorical ones.
    pairs : ndarray (sum of levels, sum of levels)
        Probabilities of pairs of levels; own blocks diagonal.
    log_z : float
        Log partition function, where it is known.
    """
    levels, shift = np.diagonal(pairs).copy(), given_y.shift
    moved = shift.T @ levels
    mean = given_y.start + moved
    cross = np.outer(given_y.start, levels) + shift.T @ pairs
    second = given_y.covariance + shift.T @ pairs @ shift
    second += np.outer(given_y.start, mean) + np.outer(moved, given_y.start)
    between = pairs - np.diag(levels)
    return Expectations(params.n_levels, second, mean, cross, between, levels, log_z)

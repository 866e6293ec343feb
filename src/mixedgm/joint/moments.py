"""A model -> log partition function, log density of rows, exact expectations.

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
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats


@dataclass(frozen=True, eq=False)
class Expectations:
    """Expected sufficient statistics."""

    mean: Floats
    """(p,) E[x]."""
    second: Floats
    """(p, p) E[x x']."""
    cross: Floats
    """(p, sum of levels) E[x_s 1(y_j = a)]."""
    pairs: Floats
    """(sum of levels, sum of levels) P(y_r = a, y_j = b), zero for a state with itself."""
    share: Floats
    """(sum of levels,) P(y_j = a)."""
    log_partition: float = np.nan
    """Logarithm of the partition function at the same parameters."""

    @property
    def covariance(self) -> Floats:
        """Covariance of x, states averaged out."""
        return self.second - np.outer(self.mean, self.mean)

    @property
    def column_mean(self) -> Floats:
        """(d,) expectations of x and of the indicators of y."""
        return np.concatenate([self.mean, self.share])

    @property
    def column_second(self) -> Floats:
        """(d, d) expected products of x and the indicators of y."""
        levels = self.pairs + np.diag(self.share)
        return np.block([[self.second, self.cross], [self.cross.T, levels]])


def log_partition(params: ConditionalGaussian, *, limit: int = LIMIT) -> float:
    """Logarithm of the partition function, exactly.

    Examples
    --------
    >>> round(log_partition(ConditionalGaussian.independent(n_gaussian=2, n_levels=(3,))), 6)
    2.936489
    """
    return exact(params, limit=limit).log_partition


def log_density(
    params: ConditionalGaussian,
    numbers: Floats,
    codes: NDArray[np.integer],
    *,
    log_z: float | None = None,
    limit: int = LIMIT,
) -> Floats:
    """(n,) joint log density of rows; `log_z` is the log partition function, where it is known.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))
    >>> log_density(params, np.array([[0.0]]), np.array([[1]])).round(6)
    array([-1.612086])
    """
    constant = log_partition(params, limit=limit) if log_z is None else log_z
    return log_weight(params, numbers, codes) - constant


def expectations(params: ConditionalGaussian, *, limit: int = LIMIT) -> Expectations:
    """Exact expectations of all sufficient statistics.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 4))
    >>> expectations(model).pairs[0, 2:]
    array([0.125, 0.125, 0.125, 0.125])
    """
    model = exact(params, limit=limit)
    return moments_from(model.given_y, model.tree.pairs[0], model.log_partition)


def moments_from(given_y: Gaussian, pairs: Floats, log_z: float = np.nan) -> Expectations:
    """Expectations from the probabilities of all pairs of levels, exact or estimated.

    The numbers need no draws: given y their moments are known.  The blocks of a state with itself
    in `pairs` (sum of levels, sum of levels) are diagonal.
    """
    levels, shift = np.diagonal(pairs).copy(), given_y.shift
    moved = shift.T @ levels
    mean = given_y.start + moved
    cross = np.outer(given_y.start, levels) + shift.T @ pairs
    second = given_y.covariance + shift.T @ pairs @ shift
    second += np.outer(given_y.start, mean) + np.outer(moved, given_y.start)
    return Expectations(mean, second, cross, pairs - np.diag(levels), levels, log_z)

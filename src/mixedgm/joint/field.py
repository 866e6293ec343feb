"""A model -> what is left when numbers are integrated out, and x given y.

Integrating the numbers x_O out of ``exp(-x'Bx/2 + (a + rho(y))'x)`` is one Gaussian integral for
every joint state y.  The result is quadratic in the indicators of y, so the
pairwise family is not left: with C the inverse of B_OO,

    phi_jj(a)    gains  a_O' C rho_Oj(a) + rho_Oj(a)' C rho_Oj(a) / 2
    phi_rj(a, b) gains  rho_Or(a)' C rho_Oj(b)

and the other numbers get the Schur complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixedgm.families.gaussian import LOG_TWO_PI
from mixedgm.joint.validity import TriangularFactor, factor
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints


def integrate_out(
    params: ConditionalGaussian, numbers: Sequence[int]
) -> tuple[ConditionalGaussian, float]:
    """Integrate numbers out, whose block of the precision must be positive definite.

    Returns the model of the remaining numbers and states, in their order, and the logarithm of the
    constant with which both models have the same partition function.  States that were attached to
    one connected set of the numbers are now neighbours; others are not.

    Examples
    --------
    >>> params = ConditionalGaussian.independent(n_numbers=2, n_levels=(2,))
    >>> rest, log_constant = integrate_out(params, [0, 1])
    >>> rest.n_numbers, round(log_constant, 6)
    (0, 1.837877)
    """
    out = np.asarray(sorted(numbers), dtype=np.int64)
    rest = np.setdiff1d(np.arange(params.n_numbers), out)
    made = factor(params.precision[np.ix_(out, out)])
    # Everything is a product with the root: exact zeros stay zeros and symmetry is kept.
    alpha, rho = made.root @ params.linear[out], made.root @ params.shift[out]
    cross = made.root @ params.precision[np.ix_(out, rest)]
    coupling, square = _coupled(params, rho)
    unary = params.bias + alpha @ rho + 0.5 * square
    reduced = ConditionalGaussian(
        params.n_levels,
        params.precision[np.ix_(rest, rest)] - cross.T @ cross,
        params.linear[rest] - cross.T @ alpha,
        params.shift[rest] - cross.T @ rho,
        coupling,
        unary,
        params.seen,
    )
    constant = 0.5 * (len(out) * LOG_TWO_PI - made.log_det + alpha @ alpha)
    return reduced, float(constant)


def _coupled(params: ConditionalGaussian, rho: Floats) -> tuple[Floats, Floats]:
    """The coupling of the states when what each level adds, `rho`, is integrated out.

    With it, the products of every level with itself.
    """
    if params.seen is None:
        pairwise = rho.T @ rho
        own = np.repeat(np.arange(len(params.n_levels)), params.n_levels)
        return params.coupling + _without_own_blocks(own, pairwise), np.diagonal(pairwise)
    by_column = params.seen.statistics.of_columns(rho)
    pairwise = _without_own_blocks(params.seen.column_node, by_column.T @ by_column)
    return params.coupling + pairwise, (rho**2).sum(axis=0)


def _without_own_blocks(column: Ints, matrix: Floats) -> Floats:
    """Zero the blocks of one state with itself."""
    return np.where(column[:, None] == column, 0.0, matrix)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The numbers given the states."""

    factor: TriangularFactor
    """Factor of the precision."""
    start: Floats
    """(p,) mean without any level's shift."""
    shift: Floats
    """(sum of levels, p) shift of the mean by each level."""

    @property
    def covariance(self) -> Floats:
        """Covariance of the numbers, which is equal for every joint state."""
        return self.factor.inverse


def gaussian(params: ConditionalGaussian) -> Gaussian:
    """Distribution of the numbers given all states.

    Examples
    --------
    >>> gaussian(ConditionalGaussian.independent(n_numbers=2, n_levels=(2,))).covariance
    array([[1., 0.],
           [0., 1.]])
    """
    made = factor(params.precision)
    return Gaussian(
        made,
        made.root.T @ (made.root @ params.linear),
        (made.root.T @ (made.root @ params.shift)).T,
    )

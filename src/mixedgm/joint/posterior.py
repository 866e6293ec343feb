"""Rows with the same columns known -> exact distribution of their other columns, row by row.

The rows' models share all interactions, so their trees are worked through side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import DistributionError
from mixedgm.joint.condition import Given, given_rows
from mixedgm.joint.exact import exact, renumbered, side_by_side
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.kernels import add_level_rows
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.tree import Tree
from mixedgm.model.density import LOG_TWO_PI
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params


@dataclass(frozen=True, eq=False)
class Posterior:
    """The unknown columns of n rows.

    Parameters
    ----------
    cont, cat : ndarray
        Positions of the unknown continuous and categorical columns.
    mean : ndarray (n, p')
        Means of the unknown continuous columns.
    variance : ndarray (n, p')
        Their variances; the spread of the unknown categorical columns is in them.
    levels : ndarray (n, sum of unknown levels)
        Probabilities of the levels of the unknown categorical columns.
    log_weight : ndarray (n,)
        Log density of the known values, up to the log partition function of the whole model:
        subtract that to have the density.
    """

    cont: Ints
    cat: Ints
    mean: Floats
    variance: Floats
    levels: Floats
    log_weight: Floats


def posterior(
    params: Params,
    known_cont: Sequence[int],
    known_cat: Sequence[int],
    cont: Floats,
    codes: NDArray[np.integer],
    *,
    limit: int = LIMIT,
) -> Posterior:
    """Means, variances and level probabilities of the unknown columns of every row.

    Parameters
    ----------
    params : Params
        The whole model; the precision of the unknown columns must be positive definite.
    known_cont, known_cat : sequence of int
        Positions of the known columns.
    cont, codes : ndarray
        Their values and level codes, (n, number of known columns of that kind).
    limit : int
        Most entries of the tables of one row.

    Examples
    --------
    >>> params = Params.independent(n_cont=1, n_levels=(2, 2))
    >>> params.category_shift[0] = [0.0, 4.0, 0.0, 0.0]
    >>> found = posterior(params, [], [1], np.zeros((1, 0)), np.array([[0]]))
    >>> found.mean.round(3), found.levels.round(2)
    (array([[3.999]]), array([[0., 1.]]))
    """
    rest = Rest.of(given_rows(params, known_cont, known_cat, cont, codes))
    levels, log_weight = np.empty(rest.unary.shape), np.empty(len(rest.unary))
    spread = np.zeros(rest.start.shape)
    shift = rest.given_y.shift
    for block, tree in rest.trees(params, limit):
        levels[block], log_weight[block] = tree.levels, tree.log_z
        if spread.size:
            spread[block] = ((tree.level_covariance @ shift) * shift).sum(axis=1)
    return Posterior(
        rest.given.cont,
        rest.given.cat,
        rest.start + levels @ shift,
        np.diagonal(rest.given_y.covariance) + np.maximum(spread, 0.0),
        levels,
        rest.log_constant + log_weight,
    )


def log_marginal(
    params: Params,
    known_cont: Sequence[int],
    known_cat: Sequence[int],
    cont: Floats,
    codes: NDArray[np.integer],
    *,
    limit: int = LIMIT,
) -> Floats:
    """(n,) log density of some columns of every row, the others integrated and summed out.

    Parameters
    ----------
    params : Params
        The whole model.
    known_cont, known_cat : sequence of int
        Positions of the columns whose density is wanted.
    cont, codes : ndarray
        Their values and level codes, (n, number of columns of that kind).
    limit : int
        Most entries of the tables of one row.

    Examples
    --------
    >>> params = Params.independent(n_cont=1, n_levels=(2, 4))
    >>> np.exp(log_marginal(params, [], [1], np.zeros((1, 0)), np.array([[3]])))
    array([0.25])
    """
    rest = Rest.of(given_rows(params, known_cont, known_cat, cont, codes))
    out = rest.log_constant - exact(params, limit=limit).log_partition
    for block, tree in rest.trees(params, limit):
        out[block] += tree.log_z
    return np.asarray(out)


def posterior_draw(
    params: Params,
    known_cont: Sequence[int],
    known_cat: Sequence[int],
    cont: Floats,
    codes: NDArray[np.integer],
    *,
    rng: np.random.Generator,
    limit: int = LIMIT,
) -> tuple[Floats, NDArray[np.int32]]:
    """One exact draw of the unknown columns of every row.

    Returns
    -------
    cont : ndarray (n, number of unknown continuous columns)
        Drawn values.
    codes : ndarray (n, number of unknown categorical columns)
        Drawn level codes.

    Examples
    --------
    >>> params = Params.independent(n_cont=1, n_levels=(2, 3))
    >>> rng = np.random.default_rng(0)
    >>> x, y = posterior_draw(params, [0], [0], np.zeros((5, 1)), np.zeros((5, 1), int), rng=rng)
    >>> x.shape, y.shape
    ((5, 0), (5, 1))
    """
    rest = Rest.of(given_rows(params, known_cont, known_cat, cont, codes))
    drawn = np.empty((len(rest.unary), len(rest.given.cat)), dtype=np.int32)
    for block, tree in rest.trees(params, limit):
        drawn[block] = tree.draw(block.stop - block.start, rng)
    values = rng.standard_normal(rest.start.shape) @ rest.given_y.factor.root + rest.start
    add_level_rows(values, drawn, rest.given.model.level_start, rest.given_y.shift)
    return np.asarray(values), drawn


@dataclass(frozen=True, eq=False)
class Rest:
    """The unknown columns with the continuous ones integrated out, row by row.

    Parameters
    ----------
    given : Given
        The models of the rows.
    given_y : Gaussian
        Unknown continuous columns given the unknown categorical ones; its `start` is not used.
    field : Params
        What the rows share: interactions, and which levels can occur.
    start : ndarray (n, p')
        Mean of x without the shift of any unknown level.
    unary : ndarray (n, levels)
        Biases of the unknown levels.
    log_constant : ndarray (n,)
        What was integrated out, and the terms of the known columns.
    """

    given: Given
    given_y: Gaussian
    field: Params
    start: Floats
    unary: Floats
    log_constant: Floats

    @classmethod
    def of(cls, given: Given) -> Rest:
        """Integrate the unknown continuous columns out."""
        model = given.model
        field, _ = integrate_out(model, range(model.n_cont))
        given_y = gaussian(model)
        root = given_y.factor.root
        rho, alpha = root @ model.category_shift, given.cont_bias @ root.T
        constant = 0.5 * (model.n_cont * LOG_TWO_PI - given_y.factor.log_det)
        return cls(
            given,
            given_y,
            field,
            alpha @ root,
            given.cat_bias + alpha @ rho + 0.5 * (rho**2).sum(axis=0),
            given.log_constant + constant + 0.5 * (alpha**2).sum(axis=1),
        )

    def trees(self, params: Params, limit: int) -> Iterator[tuple[slice, Tree]]:
        """Trees of the rows, block by block; errors have the node numbers of `params`."""
        try:
            yield from side_by_side(self.field, self.unary, limit=limit)
        except DistributionError as error:
            raise renumbered(error, params.n_cont + self.given.cat) from None

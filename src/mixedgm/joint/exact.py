"""A model -> exact answers: the tree of y, the constant, expectations, log densities.

A model -> log partition function, log density of rows, exact expectations.

The log partition function is convex in the parameters and its gradient is the expectation of the
sufficient statistics.  With M the shift of the mean of x by each level and P the matrix of pair
probabilities (own blocks diagonal), m = E[x | no shift], C the covariance of x given y:

    E[x] = m + M'p     E[x d'] = m p' + M'P     E[xx'] = C + mm' + m(M'p)' + (M'p)m' + M'PM
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError
from mixedgm.base.progress import track
from mixedgm.joint.conditioning import log_weight
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.plan import LIMIT, begin_tables
from mixedgm.joint.tree import Tree, calibrate, discrete, plan_for
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints

# Entries of the tables of one block of rows: a few MiB, so that a block stays in the cache.
_BLOCK_ENTRIES = 2**19
# Pairs of levels of one block of rows: 64 MiB.
_BLOCK_PAIRS = 2**23


@dataclass(frozen=True, eq=False)
class Exact:
    """A model in the form that exact answers need."""

    params: ConditionalGaussian
    given_y: Gaussian
    """Numbers given the states."""
    tree: Tree
    """States with the numbers integrated out."""
    log_partition: float
    """Logarithm of the partition function of the whole model."""


def exact(
    params: ConditionalGaussian, *, together: Sequence[int] = (), limit: int = LIMIT
) -> Exact:
    """Integrate x out and calibrate the tree of the states.

    The joint table of the states `together` will be asked for.  DistributionError when the
    precision is not positive definite; TooLargeError when all tables together have more entries
    than `limit`.

    Examples
    --------
    >>> round(exact(ConditionalGaussian.independent(n_numbers=1, n_levels=(2,))).log_partition, 6)
    1.612086
    """
    given_y = gaussian(params)
    field, log_constant = integrate_out(params, range(params.n_numbers))
    try:
        tree = calibrate(field, together=together, limit=limit)
    except DistributionError as error:
        raise renumbered(
            error, range(params.n_numbers, params.n_numbers + len(params.n_levels))
        ) from None
    return Exact(params, given_y, tree, log_constant + float(tree.log_z[0]))


def all_states(model: Exact) -> tuple[Ints, Floats]:
    """Every joint state, over the levels that can occur, and its probability.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 3))
    >>> codes, probability = all_states(exact(model))
    >>> codes[-1], probability.round(3)
    (array([1, 2]), array([0.167, 0.167, 0.167, 0.167, 0.167, 0.167]))
    """
    field = model.tree.field
    n_levels = field.n_levels
    n_states = prod(n_levels)
    codes = np.zeros((n_states, len(n_levels)), dtype=np.int64)
    if n_levels:
        codes[:] = np.column_stack(np.unravel_index(np.arange(n_states), n_levels))
    levels = codes + field.start[:-1]
    weight = np.zeros(n_states)
    for j in range(len(n_levels)):
        weight += field.unary[0, levels[:, j]]
        for r in range(j):
            weight += field.pairwise[levels[:, j], levels[:, r]]
    probability = np.exp(weight - weight.max())
    return codes, probability / probability.sum()


def side_by_side(
    field: ConditionalGaussian, unary: Floats, *, limit: int = LIMIT, pairs: bool = False
) -> Iterator[tuple[slice, Tree]]:
    """Trees of many fields with the same interactions: which ones, and the tree of these.

    `field` has no numbers, and its biases say which levels can occur; `unary` (n, sum of levels)
    are the biases of the n fields.  The tables of one field have at most `limit` entries, and
    those of all `MOST_TABLES` times as many.  With `pairs`, all pairs of levels of every field will
    be asked for.
    """
    entries = plan_for(discrete(field), limit=limit, small=0).entries
    seconds = begin_tables(len(unary), entries, limit)
    size = max(1, _BLOCK_ENTRIES // max(1, entries))
    if pairs:
        size = max(1, min(size, _BLOCK_PAIRS // max(1, unary.shape[1] ** 2)))
    blocks = range(0, len(unary), size)
    for first in track(blocks, what="exact answers", seconds=seconds):
        block = slice(first, min(first + size, len(unary)))
        yield block, calibrate(discrete(field, unary[block]), limit=limit)


def renumbered(error: DistributionError, nodes: Sequence[int] | Ints) -> DistributionError:
    """The error about columns of a tree with the numbers of the caller's nodes."""
    return type(error)(error.message, tuple(int(nodes[j]) for j in error.columns))


# -- constant and expectations ---------------------------------------------------------------------


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
    >>> round(log_partition(ConditionalGaussian.independent(n_numbers=2, n_levels=(3,))), 6)
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
    >>> params = ConditionalGaussian.independent(n_numbers=1, n_levels=(2,))
    >>> log_density(params, np.array([[0.0]]), np.array([[1]])).round(6)
    array([-1.612086])
    """
    constant = log_partition(params, limit=limit) if log_z is None else log_z
    return log_weight(params, numbers, codes) - constant


def expectations(params: ConditionalGaussian, *, limit: int = LIMIT) -> Expectations:
    """Exact expectations of all sufficient statistics.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_numbers=1, n_levels=(2, 4))
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

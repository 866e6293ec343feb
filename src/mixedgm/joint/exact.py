"""A model -> everything an exact answer starts from: the tree of y, the Gaussian of x given y."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mixedgm.errors import DistributionError
from mixedgm.joint.discrete import discrete
from mixedgm.joint.effort import begin_tables
from mixedgm.joint.field import Gaussian, gaussian, integrate_out
from mixedgm.joint.plan import LIMIT
from mixedgm.joint.tree import Tree, calibrate, plan_for
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.progress import track

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
    >>> round(exact(ConditionalGaussian.independent(n_gaussian=1, n_levels=(2,))).log_partition, 6)
    1.612086
    """
    given_y = gaussian(params)
    field, log_constant = integrate_out(params, range(params.n_gaussian))
    try:
        tree = calibrate(field, together=together, limit=limit)
    except DistributionError as error:
        raise renumbered(
            error, range(params.n_gaussian, params.n_gaussian + len(params.n_levels))
        ) from None
    return Exact(params, given_y, tree, log_constant + float(tree.log_z[0]))


def all_states(model: Exact) -> tuple[Ints, Floats]:
    """Every joint state, over the levels that can occur, and its probability.

    Examples
    --------
    >>> model = ConditionalGaussian.independent(n_gaussian=1, n_levels=(2, 3))
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

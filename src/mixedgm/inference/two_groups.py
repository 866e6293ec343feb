"""Equivalent z of all pairs -> the share of edges among them, and how probable each is.

A pair without an edge has a standard normal z.  A pair with an edge has a normal z of variance one
and of a mean of at least one, its noncentrality.  The share of edges and the distribution of their
noncentralities are estimated from all pairs of the table, so that a limit on the probability of no
edge adapts to tables of few strong and of many weak edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from mixedgm.model.layout import Floats

_FAR = 12.0
"""A larger z counts as this one: an edge is certain there."""
_NONCENTRALITIES = np.arange(1.0, _FAR + 0.01, 0.25)
_MANY = 50.0
"""Edges from which on the distribution of their noncentralities is smoothed less."""
_STEP = 0.05
"""Values of z are rounded to multiples of this before they are counted."""
_FEWEST = 0.1
"""Edges that a table is expected to have at least."""
_PRIOR = (0.5, 5.5)
"""Parameters of the beta distribution that the share of edges has before it is estimated."""
MOST_STEPS = 500
TOL = 1e-6


@dataclass(frozen=True, eq=False)
class TwoGroups:
    """Pairs with and without an edge.

    Shares are estimated by EM with smoothing (Silverman, Jones, Wilson and Nychka 1990).  The
    kernel has a width of one where edges are few, and less where they are many.  The share of edges
    has a beta distribution before the table is seen: so noise has next to no edges, and chance does
    not overstate the share where pairs are few.  One edge whose noncentrality is anything from 1 to
    12 is added to those of the table, so that a single large z does not tell how large others are.

    Examples
    --------
    >>> z = np.concatenate([np.linspace(0.0, 2.0, 40), [6.0, 8.0]])
    >>> groups = TwoGroups(z)
    >>> groups.no_edge[[0, -1]].round(2)
    array([1., 0.])
    """

    z: Floats
    """(pairs,) absolute values."""

    @cached_property
    def _estimate(self) -> tuple[float, Floats]:
        """Share of edges, and the share of each noncentrality among them."""
        places = np.rint(np.minimum(self.z, _FAR) / _STEP).astype(np.int64)
        count = np.bincount(places)
        some = np.flatnonzero(count)
        count, ratios = count[some], likelihood_ratios(np.float64(_STEP) * some)
        share, weights = 0.1, smoothed(np.zeros(ratios.shape[1]))
        less, total = 1.0 - _PRIOR[0], count.sum() + sum(_PRIOR) - 2.0
        for _ in range(MOST_STEPS):
            slab = ratios * (share * weights)
            edges = (count / (1.0 - share + slab.sum(axis=1))) @ slab
            before, share = share, max(float(edges.sum()) - less, _FEWEST) / total
            weights = smoothed(edges)
            if abs(share - before) <= TOL * before:
                break
        return share, weights

    @property
    def share(self) -> float:
        """The share of pairs that have an edge."""
        return self._estimate[0]

    @cached_property
    def no_edge(self) -> Floats:
        """(pairs,) probability that a pair has no edge: its local false discovery rate."""
        return np.asarray(expit(-logit(self.share) - self.log_bayes_factor(self.z)))

    def log_bayes_factor(self, z: Floats) -> Floats:
        """How much likelier every z is with an edge than without, in natural logarithms."""
        near = np.minimum(z, _FAR)
        ratio = np.log(likelihood_ratios(near) @ self._estimate[1])
        return np.asarray(ratio + 0.5 * (np.square(z) - np.square(near)))

    def least_z(self, limit: float) -> float:
        """The z from which on an edge is likelier than not by itself, and missing at most so often.

        The second means that the probability of no edge is at most `limit`.
        """
        z = np.arange(0.0, _FAR, 0.01)
        enough = self.log_bayes_factor(z) >= max(-logit(limit) - logit(self.share), 0.0)
        return float(z[int(np.argmax(enough))])


def likelihood_ratios(z: Floats) -> Floats:
    """(z, noncentralities) how much likelier each z is with these than with zero."""
    near = np.minimum(np.abs(z), _FAR)
    product = np.multiply.outer(near, _NONCENTRALITIES)
    log = np.logaddexp(product, -product) - np.log(2.0) - 0.5 * np.square(_NONCENTRALITIES)
    return np.asarray(np.exp(log))


def smoothed(edges: Floats) -> Floats:
    """(noncentralities,) their distribution, from the expected number of edges with each."""
    kernel = np.exp(-0.5 * _SQUARE * (1.0 + edges.sum() / _MANY) ** (2.0 / 3.0))
    weights = kernel @ (edges / kernel.sum(axis=0)) + 1.0 / len(_NONCENTRALITIES)
    return np.asarray(weights / weights.sum())


_SQUARE = np.square(np.subtract.outer(_NONCENTRALITIES, _NONCENTRALITIES))

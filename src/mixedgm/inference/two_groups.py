"""Equivalent z of all pairs -> how probable each edge is, and each difference between groups.

A pair without an edge has a standard normal z.  A pair with an edge has a normal z of variance one
and of a mean of at least one, its noncentrality.  The share of edges and the distribution of their
noncentralities are estimated from all pairs of the table, so that a limit on the probability of no
edge adapts to tables of few strong and of many weak edges.

Equivalent z of pairs in several groups -> how probable it is that a pair differs between them.

A pair follows one of these patterns: no edge in any group; the same edge in all groups; one edge in
some groups and none in the others; edges of different sizes.  How common every pattern is, and how
far estimates are from zero in it, is estimated from all pairs of the table.  So an edge that one
group has and another lacks is told by its size in the first group, which is more certain than the
difference of two estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

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
    ratios = np.cosh(np.multiply.outer(near, _NONCENTRALITIES))
    return np.asarray(ratios * np.exp(-0.5 * np.square(_NONCENTRALITIES)))


def smoothed(edges: Floats, width: float = 1.0) -> Floats:
    """(noncentralities,) their distribution, from the expected number of edges with each.

    The kernel has this width where edges are few.
    """
    narrow = (1.0 + edges.sum() / _MANY) ** (1.0 / 3.0) / width
    kernel = np.exp(-0.5 * _SQUARE * narrow**2)
    weights = kernel @ (edges / kernel.sum(axis=0)) + 1.0 / len(_NONCENTRALITIES)
    return np.asarray(weights / weights.sum())


_SQUARE = np.square(np.subtract.outer(_NONCENTRALITIES, _NONCENTRALITIES))


# -- group patterns --------------------------------------------------------------------------------

_FEWEST_DIFFERING = 0.2
"""Pairs that are expected to differ at least."""
_WIDTH = 0.5
"""Of the kernel by which noncentralities are smoothed: with one they reach so near to zero that
few differences are counted as too few, and certain ones make others seem likely."""
_ALL_SETS = 4
"""Up to so many groups, an edge may be in any set of them; with more, in one or in all but one."""
_MOST_PAIRS = 20_000
"""Patterns are estimated from at most so many pairs, evenly spread."""

_HALF = 0.5

Set = tuple[int, ...]


def sets_of(n_groups: int) -> tuple[Set, ...]:
    """Sets of groups that may share an edge which the others lack; the first one is all groups.

    Examples
    --------
    >>> sets_of(2)
    ((0, 1), (0,), (1,))
    """
    sizes = range(n_groups - 1, 0, -1) if n_groups <= _ALL_SETS else (n_groups - 1, 1)
    some = [each for size in sizes for each in combinations(range(n_groups), size)]
    return (tuple(range(n_groups)), *some)


@dataclass(frozen=True, eq=False)
class GroupPatterns:
    """Pairs that are the same in all groups, and pairs that differ.

    The likelihood of edges of different sizes is that of their mean times that of their difference.
    One pair without an edge, one with the same edge, and a fifth of one that differs are added to
    those of the table.

    Examples
    --------
    >>> nothing, difference = np.linspace(-2.0, 2.0, 60), np.array([0.1, 5.0])
    >>> edge = np.array([7.0, 5.0])
    >>> together, first = np.append(nothing, edge), np.append(nothing, [5.0, 7.0])
    >>> second = np.append(nothing[::-1], [5.0, 0.0])
    >>> z = np.stack([together, first, second])
    >>> GroupPatterns(z, np.append(nothing, difference)).same[-2:].round(1)
    array([1., 0.])
    """

    together: Floats
    """(sets, pairs) z of an edge that the groups of each set share, in the order of `sets_of`."""
    apart: Floats
    """(pairs,) z of the difference between all groups."""

    @cached_property
    def _ratios(self) -> list[Floats]:
        """(pairs, noncentralities) of every set, and of the difference."""
        return [likelihood_ratios(z) for z in (*self.together, self.apart)]

    @cached_property
    def _estimate(self) -> tuple[Floats, list[Floats]]:
        """Shares of no edge, of every set and of different sizes; noncentralities of the latter.

        All sets but the first have the same noncentralities.
        """
        stride = -(-len(self.apart) // _MOST_PAIRS) or 1
        ratios = [each[::stride] for each in self._ratios]
        n_sets = len(self.together)
        weights = [smoothed(np.zeros(each.shape[1]), _WIDTH) for each in ratios]
        added = np.append([1.0, 1.0], np.full(n_sets, _FEWEST_DIFFERING / n_sets))
        shares = added / added.sum()
        for _ in range(MOST_STEPS):
            given = self._given(ratios, shares, weights)
            before, counts = shares, given.sum(axis=1) + added
            shares = counts / counts.sum()
            expected = [
                w * ((number / np.maximum(each @ w, 1e-300)) @ each)
                for each, w, number in zip(ratios, weights, given[1:], strict=True)
            ]
            expected[0] = weights[0] * (
                ((given[1] + given[-1]) / np.maximum(ratios[0] @ weights[0], 1e-300)) @ ratios[0]
            )
            some = np.sum(expected[1:n_sets], axis=0)
            shared, one, apart = (smoothed(e, _WIDTH) for e in (expected[0], some, expected[-1]))
            weights = [shared, *[one] * (n_sets - 1), apart]
            if np.abs(shares - before).max() <= TOL:
                break
        return shares, weights

    def _given(self, ratios: list[Floats], shares: Floats, weights: list[Floats]) -> Floats:
        """(patterns, pairs) probabilities of all patterns."""
        likely = np.array([np.ones(len(ratios[0])), *map(np.matmul, ratios, weights)])
        likely[-1] *= likely[1]
        likely *= shares[:, None]
        return np.asarray(likely / likely.sum(axis=0))

    @cached_property
    def probabilities(self) -> Floats:
        """(patterns, pairs): no edge, an edge in every set of groups, different sizes."""
        return self._given(self._ratios, *self._estimate)

    @property
    def same(self) -> Floats:
        """(pairs,) probability that a pair is the same in all groups, with or without an edge."""
        return np.asarray(self.probabilities[:2].sum(axis=0))

    @property
    def shares(self) -> Floats:
        """(patterns,) how common they are."""
        return self._estimate[0]


def balanced_limit(same: Floats) -> float:
    """The limit on `same` with which missed and false differences are expected to balance best.

    Of k pairs that are said to differ, those with the largest probabilities q = 1 - same, sum(q of
    these) truly do, of sum(all q).  So F1, the harmonic mean of the found share of true differences
    and the true share of those found, is about 2 sum(q of these) / (k + sum(all q)).  Where it is
    largest, every pair counts whose q is at least half of it (Lipton, Elkan and Naryanaswamy 2014).
    It is 0.5 where no pair is more likely to differ than not: else equal graphs, whose best F1 is
    small, would have a verdict.

    Examples
    --------
    >>> round(balanced_limit(np.array([0.1, 0.5, 0.6, 0.7, 1.0, 1.0])), 2)
    0.65
    >>> balanced_limit(np.array([0.6, 0.9, 1.0]))
    0.5
    """
    q = np.sort(1.0 - same)[::-1]
    if q.max(initial=0.0) < _HALF:
        return _HALF
    return float(1.0 - np.max(np.cumsum(q) / (np.arange(1, len(q) + 1) + q.sum())))

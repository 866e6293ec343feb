"""Node scales and penalty factors -> weights of all permitted pairs, without a list of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.nodes import Mask
from mixedgm.model.pair_weights import PairWeights
from mixedgm.penalty.group_lasso import GroupLasso


@dataclass(frozen=True, eq=False)
class AllPairs:
    """All permitted pairs of a table with so many that a layout holds only candidates."""

    weights: PairWeights
    """The penalty's; zero for pairs that are free, inf for those that are not permitted."""
    yardstick: PairWeights
    """Calibrated weights, by which violations of optimality are divided."""

    @property
    def number(self) -> int:
        """How many pairs are permitted."""
        return self.weights.total(np.ones(self.weights.n_nodes, dtype=np.int64))

    @property
    def free(self) -> Ints:
        """(k, 2) pairs without penalty, sorted."""
        of = self.weights
        named = of.pairs[of.weights == 0.0]
        by_formula = pairs_of_kinds(of.kind, of.by_kind == 0.0)
        by_formula = by_formula[of.of(*by_formula.T) == 0.0]  # unless it is an exception
        return np.unique(np.concatenate([by_formula, named]), axis=0)

    def penalty(self, layout: Layout) -> GroupLasso:
        """Return the penalty on the pairs of a layout."""
        return GroupLasso(layout, self.weights.of(*layout.pairs.T))

    def first(self, known: Layout | None) -> Ints:
        """(k, 2) candidates to begin with: those that are free, and those of another layout."""
        pairs = self.free
        if known is None:
            return pairs
        others = known.pairs[np.isfinite(self.weights.of(*known.pairs.T))]
        mine, theirs = (each[:, 0] * self.weights.n_nodes + each[:, 1] for each in (pairs, others))
        return np.concatenate([others, pairs[~np.isin(mine, theirs)]])

    def calibrated(self) -> AllPairs:
        """Return the pairs with calibrated weights for all that have a penalty."""
        of, yard = self.weights, self.yardstick
        with np.errstate(invalid="ignore"):
            by_kind = np.where(
                (of.by_kind > 0.0) & np.isfinite(of.by_kind), yard.by_kind, of.by_kind
            )
            there = (of.weights > 0.0) & np.isfinite(of.weights)
        named = np.where(there, yard.of(*of.pairs.T), of.weights)
        return replace(self, weights=replace(yard, by_kind=by_kind, pairs=of.pairs, weights=named))

    def outside(self, pairs: Ints) -> PairWeights:
        """Weights of all pairs but these, which include those that are free."""
        by_kind = np.where(self.weights.by_kind == 0.0, np.inf, self.weights.by_kind)
        return replace(self.weights, by_kind=by_kind).without(pairs)

    def bounds(self, lam: float) -> tuple[PairWeights, PairWeights]:
        """The largest gradient that pairs without an edge have at lam, and their yardsticks."""
        of = self.weights
        # Those without penalty are candidates; 0 times inf is nothing.
        by_kind = np.where(np.isinf(of.by_kind), np.inf, lam * of.by_kind)
        weights = np.where(np.isinf(of.weights), np.inf, lam * of.weights)
        return replace(of, by_kind=by_kind, weights=weights), self.yardstick

    def times(self, factor: float, pairs: Ints, factors: Floats) -> AllPairs:
        """Return the pairs with weights times `factor` or, for `pairs`, times `factors`."""
        of = self.weights
        scaled = replace(of, by_kind=factor * of.by_kind, weights=factor * of.weights)
        return replace(self, weights=scaled.excepting(pairs, factors * of.of(*pairs.T)))


@dataclass(frozen=True, eq=False)
class Permitted:
    """Which pairs of nodes may have an edge, by kinds of nodes and by exceptions.

    Kinds are as fine as they must be: nodes of the same kind have the same penalty factors, are
    both targets or both not, vary or not, and have as many free parameters.
    """

    factors: PairWeights
    """Penalty factors over the fine kinds; inf where a pair is not permitted."""
    share: Floats
    """(kinds, kinds) in how many of its possible conditionals a pair is."""
    left_out: Ints
    """(k, 2) pairs that have too many parameters for the rows."""

    @classmethod
    def of(
        cls, freedom: Ints, factors: PairWeights, target: Mask, varies: Mask, most: float
    ) -> Permitted:
        """Permitted pairs by factors; if penalised, only those with fewer parameters than `most`.

        Their columns have fewer than half as many free parameters.  See `task.too_large`.
        """
        traits = np.column_stack([factors.kind, target, varies, freedom])
        each, kind = np.unique(traits, axis=0, return_inverse=True)
        old, is_target, is_varying, free = each.T
        factor = factors.by_kind[np.ix_(old, old)]
        share = 0.5 * np.add.outer(is_target, is_target)
        many = np.logical_and.outer(free >= 0.5 * most, is_target > 0)
        too_large = many | many.T | (np.multiply.outer(free, free) >= most)
        absent = (share == 0.0) | ~np.logical_and.outer(is_varying > 0, is_varying > 0)
        by_kind = np.where(absent | (too_large & (factor > 0.0)), np.inf, factor)
        kind = kind.ravel().astype(np.int64)
        u, v = factors.pairs.T
        refused = absent[kind[u], kind[v]]
        refused |= too_large[kind[u], kind[v]] & (factors.weights > 0.0)
        named = np.where(refused, np.inf, factors.weights)
        finer = replace(factors, kind=kind, by_kind=by_kind, weights=named)
        left_out = pairs_of_kinds(kind, too_large)
        given = factors.of(*left_out.T)
        left_out = left_out[(given > 0.0) & np.isfinite(given)]
        return cls(finer, share, left_out)

    def n_parameters(self, width: Ints) -> int:
        """Number of parameters of all permitted pairs."""
        return self.factors.total(width)

    def listed(self) -> Ints:
        """(k, 2) all permitted pairs, sorted: for tables that have not too many."""
        of = self.factors
        pairs = pairs_of_kinds(of.kind, np.isfinite(of.by_kind))
        pairs = pairs[np.isfinite(of.of(*pairs.T))]
        return np.unique(np.concatenate([pairs, of.pairs[np.isfinite(of.weights)]]), axis=0)

    def weighed(self, scales: Floats, weight_scales: Floats | None) -> AllPairs:
        """Calibrated yardsticks, and weights that are these or products of other scales."""
        # A constant column has no pairs; 0 times inf is not a number.
        scales = np.where(scales > 0.0, scales, 1.0)
        yardstick = _product(self.factors, scales, self.share)
        if weight_scales is None:
            base = yardstick
        else:
            base = _product(self.factors, weight_scales, np.ones_like(self.share))
        of = self.factors
        with np.errstate(invalid="ignore"):
            by_kind = np.where(np.isinf(of.by_kind), np.inf, base.by_kind * of.by_kind)
            named = np.where(np.isinf(of.weights), np.inf, base.of(*of.pairs.T) * of.weights)
        weights = replace(base, by_kind=by_kind, pairs=of.pairs, weights=named)
        return AllPairs(weights, yardstick)


def _product(of: PairWeights, scales: Floats, by_kind: Floats) -> PairWeights:
    return PairWeights.formula(scales, of.kind, by_kind)


def pairs_of_kinds(kind: Ints, chosen: Mask) -> Ints:
    """(k, 2) all pairs u < v whose kinds are marked in a symmetric mask, sorted.

    Examples
    --------
    >>> pairs_of_kinds(np.array([0, 1, 0]), np.array([[False, True], [True, False]])).tolist()
    [[0, 1], [1, 2]]
    """
    parts = [np.zeros((0, 2), dtype=np.int64)]
    for i, j in np.argwhere(np.triu(chosen)).tolist():
        first, second = np.flatnonzero(kind == i), np.flatnonzero(kind == j)
        if i == j:
            u, v = np.triu_indices(len(first), 1)
            parts.append(np.column_stack([first[u], first[v]]))
        else:
            both = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
            parts.append(np.sort(both, axis=1))
    pairs = np.concatenate(parts)
    return np.asarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])

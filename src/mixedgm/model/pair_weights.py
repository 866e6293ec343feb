"""Node scales, kinds of nodes and exceptions -> the weight of any pair of nodes, by one formula.

Tables with very many columns have too many pairs for a matrix or a vector over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixedgm.model.layout import Floats, Ints


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Weights of pairs (u, v) of nodes: scale[u] * scale[v] * by_kind[kind[u], kind[v]].

    Pairs that are listed as exceptions have a weight of their own instead.  An infinite weight
    takes a pair out: it is not permitted, or not asked about.

    Parameters
    ----------
    scale : ndarray (n_nodes,)
        Factor of every node in the weights of its pairs.
    kind : ndarray of int (n_nodes,)
        Nodes of the same kind have the same factors.  These kinds are finer than those of columns.
    by_kind : ndarray (n_kinds, n_kinds)
        Factor of a pair of kinds; inf where no such pair is permitted.  The row is the kind of u,
        the column that of v.
    pairs : ndarray of int (n_exceptions, 2)
        Exceptions, sorted, each once; u < v, unless the pairs of the question are ordered.
    weights : ndarray (n_exceptions,)
        Weights of the exceptions.

    Examples
    --------
    >>> weights = PairWeights.formula(np.array([1.0, 2.0, 3.0]))
    >>> weights.of(np.array([0, 1]), np.array([2, 2])).tolist()
    [3.0, 6.0]
    >>> weights.without(np.array([[0, 2]])).of(np.array([0, 1]), np.array([2, 2])).tolist()
    [inf, 6.0]
    """

    scale: Floats
    kind: Ints
    by_kind: Floats
    pairs: Ints
    weights: Floats

    @classmethod
    def formula(
        cls, scale: Floats, kind: Ints | None = None, by_kind: Floats | None = None
    ) -> PairWeights:
        """Weights without exceptions; without kinds, the products of the scales."""
        kind = np.zeros(len(scale), dtype=np.int64) if kind is None else kind
        by_kind = np.ones((1, 1)) if by_kind is None else by_kind
        return cls(scale, kind, by_kind, np.zeros((0, 2), dtype=np.int64), np.zeros(0))

    @classmethod
    def only(cls, n_nodes: int, pairs: Ints) -> PairWeights:
        """Weight 1 for these pairs (u < v), and no others."""
        nothing = cls.formula(np.ones(n_nodes), by_kind=np.full((1, 1), np.inf))
        return nothing.excepting(pairs, np.ones(len(pairs)))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.scale)

    def of(self, u: Ints, v: Ints) -> Floats:
        """Weights of these pairs."""
        out = self.scale[u] * self.scale[v] * self.by_kind[self.kind[u], self.kind[v]]
        if len(self._keys):
            key = u * self.n_nodes + v
            at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
            out = np.where(self._keys[at] == key, self.weights[at], out)
        return np.asarray(out)

    def matrix(self) -> Floats:
        """(n_nodes, n_nodes) weights of all pairs with u < v, on both sides; 1 on the diagonal.

        For tables that are not wide.
        """
        out = self.by_kind[np.ix_(self.kind, self.kind)] * np.outer(self.scale, self.scale)
        u, v = self.pairs.T
        out[u, v] = out[v, u] = self.weights
        np.fill_diagonal(out, 1.0)
        return np.asarray(out)

    def total(self, sizes: Ints) -> int:
        """Sum of sizes[u] * sizes[v] over all pairs u < v whose weight is finite.

        Examples
        --------
        >>> weights = PairWeights.formula(np.ones(4)).without(np.array([[0, 1]]))
        >>> weights.total(np.ones(4, dtype=np.int64))
        5
        """
        n_kinds, own = len(self.by_kind), sizes.astype(np.float64)
        by_kind = np.bincount(self.kind, own, n_kinds)
        both = np.outer(by_kind, by_kind)
        both[np.diag_indices(n_kinds)] -= np.bincount(self.kind, own**2, n_kinds)
        by_formula = 0.5 * float(both[np.isfinite(self.by_kind)].sum())
        u, v = self.pairs.T
        before = np.isfinite(self.by_kind[self.kind[u], self.kind[v]])
        change = np.isfinite(self.weights).astype(np.float64) - before
        return round(by_formula + float(change @ (own[u] * own[v])))

    def excepting(self, pairs: Ints, weights: Floats) -> PairWeights:
        """Return weights with these exceptions; a pair that already is one gets the new weight."""
        keys = np.concatenate([pairs[:, 0] * self.n_nodes + pairs[:, 1], self._keys])
        # The first of equal keys is kept: the new one.
        keys, first = np.unique(keys, return_index=True)
        both = np.column_stack(np.divmod(keys, max(self.n_nodes, 1)))
        return replace(self, pairs=both, weights=np.concatenate([weights, self.weights])[first])

    def without(self, pairs: Ints) -> PairWeights:
        """Return the weights with these pairs taken out: their weight is infinite."""
        return self.excepting(pairs, np.full(len(pairs), np.inf))

    @cached_property
    def first_exception(self) -> Ints:
        """(n_nodes + 1,) where the exceptions (u, ...) of every node u begin, and the end."""
        return np.searchsorted(self.pairs[:, 0], np.arange(self.n_nodes + 1)).astype(np.int64)

    @cached_property
    def _keys(self) -> Ints:
        return np.asarray(self.pairs[:, 0] * self.n_nodes + self.pairs[:, 1])

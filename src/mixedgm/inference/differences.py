"""Estimates of all pairs in several groups of rows -> tests of whether each pair differs.

With the differences D of all groups from the first one and their covariance S, the statistic is
W = D'S^-1 D, which for two independent groups is d'(V1 + V2)^-1 d.  A pair of many parameters is
also tested along the order of its levels, and both p-values are combined as in `statistics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.statistics import combined, log_tail, ordered_directions
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.nodes import Nodes


@dataclass(frozen=True, eq=False)
class Differences:
    """Estimates of groups that all have the same pairs, in the same units."""

    estimates: tuple[PairEstimates, ...]
    full: Nodes
    """With all their levels."""
    errors: Sequence[Floats] | None = None
    """(draws, edge parameters) of every group, drawn together, where groups depend on each other;
    covariances between groups come from them."""

    @property
    def layout(self) -> Layout:
        """Of the contrasts."""
        return self.estimates[0].layout

    @property
    def df(self) -> Ints:
        """(pairs,) degrees of freedom of the statistics."""
        return self.layout.sizes * (len(self.estimates) - 1)

    @cached_property
    def _whitened(self) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Pairs of one size k together, with K = (number of groups - 1) k differences each.

        Which pairs; (m, k) where their parameters are; (m, K, K) what makes their differences
        uncorrelated; (m, K, number of groups - 1) an orthonormal basis of the ordered directions
        then.
        """
        directions, n_others = ordered_directions(self.layout, self.full), len(self.estimates) - 1
        contrast = np.hstack([-np.ones((n_others, 1)), np.eye(n_others)])
        out = []
        for pairs, at, covariance in self._joint:
            m, k = at.shape
            apart = np.kron(contrast, np.eye(k))
            root = np.linalg.cholesky(apart @ covariance @ apart.T)
            whiten: Floats = np.asarray(np.linalg.inv(root), dtype=np.float64)
            along = np.kron(np.eye(n_others), directions[at][:, :, None])
            basis: Floats = np.linalg.qr(whiten @ along.reshape(m, n_others * k, n_others))[0]
            out.append((pairs, at, whiten, basis))
        return out

    @cached_property
    def _joint(self) -> list[tuple[Ints, Ints, Floats]]:
        """Pairs of one size k together.

        Which pairs; (m, k) where their parameters are; (m, groups k, groups k) the covariance of
        the estimates of all groups.
        """
        n_groups, out = len(self.estimates), []
        for (pairs, at), covariances in self._by_size():
            m, k = at.shape
            joint = np.zeros((m, n_groups, k, n_groups, k))
            for g, matrix in enumerate(covariances):
                joint[:, g, :, g] = matrix
                for h in range(g if self.errors is not None else 0):
                    assert self.errors is not None
                    between = [each[:, at] for each in (self.errors[g], self.errors[h])]
                    joint[:, g, :, h] = np.einsum("dma,dmb->mab", *between) / len(between[0])
                    joint[:, h, :, g] = joint[:, g, :, h].transpose(0, 2, 1)
            out.append((pairs, at, joint.reshape(m, n_groups * k, n_groups * k)))
        return out

    def _by_size(self) -> Iterator[tuple[tuple[Ints, Ints], list[Floats]]]:
        first = self.layout.starts - self.layout.n_node_terms
        for parts in zip(*(each.by_size() for each in self.estimates), strict=True):
            pairs, values, _ = parts[0]
            at = first[pairs][:, None] + np.arange(values.shape[1])
            yield (pairs, at), [covariance for _, _, covariance in parts]

    def tested(self, values: Sequence[Floats]) -> tuple[Floats, Floats]:
        """(..., pairs) statistics, and logarithms of p-values, of (..., edge parameters) per group.

        The covariances are those of the estimates, whatever the values.
        """
        shape = (*values[0].shape[:-1], self.layout.n_groups)
        statistic, log_p = np.zeros(shape), np.zeros(shape)
        for pairs, at, whiten, basis in self._whitened:
            apart = [other[..., at] - values[0][..., at] for other in values[1:]]
            whitened = np.einsum("mab,...mb->...ma", whiten, np.concatenate(apart, axis=-1))
            statistic[..., pairs] = (whitened**2).sum(axis=-1)
            log_p[..., pairs] = log_tail(statistic[..., pairs], whiten.shape[1])
            if at.shape[1] > 1:
                ordered = (np.einsum("mab,...ma->...mb", basis, whitened) ** 2).sum(axis=-1)
                df, along = basis.shape[1:]
                by_order = log_tail(ordered, along)
                log_p[..., pairs] = combined(log_p[..., pairs], by_order, df, along)
        return statistic, log_p

    def together(self, groups: Sequence[int]) -> PairEstimates:
        """Estimates of the parameters that these groups share, if the others have none.

        Errors of those of all groups are uncorrelated with the differences.
        """
        first = self.estimates[0]
        eta, covariance = np.empty_like(first.eta), np.empty_like(first.covariance)
        here = np.isin(np.arange(len(self.estimates)), groups).astype(np.float64)[:, None]
        for pairs, at, joint in self._joint:
            k = at.shape[1]
            spread = np.kron(here, np.eye(k))
            solved = np.linalg.solve(joint, spread[None])
            whole = np.linalg.inv(spread.T @ solved)
            values = np.hstack([each.eta[at] for each in self.estimates])
            eta[at] = np.einsum("mab,mcb,mc->ma", whole, solved, values)
            square = first.start[pairs][:, None] + np.arange(k * k)
            covariance[square] = whole.reshape(len(pairs), -1)
        return replace(first, eta=eta, covariance=covariance, n=sum(e.n for e in self.estimates))

"""Features and sums over plain design columns -> sums over products of the two, centred.

The column of feature k and design column a is ``f_k (z_a - c_a)``.  Kernels work with ``f_k z_a``
and an intercept ``f_k`` for each feature; the centre c enters here, in sums and coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.rows.contract import Coefficients, SoftmaxCurvature

Sums = Callable[[Floats | None], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Products:
    """Features that design columns are multiplied by, and the centre that is subtracted before."""

    features: Floats
    """(n, F), C order."""
    centre: Floats
    """(d,) centre of the design columns."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    def moments(self, sums: Sums, weights: Floats | None) -> tuple[Floats, Floats]:
        """Sums of the columns and of their products, design columns first.

        `sums` gives those of the design columns for any weights.
        """
        n, d = self.n_features + 1, len(self.centre)
        mean, second = np.empty((n, d)), np.empty((n, d, n, d))
        by_feature = [np.ones(len(self.features)), *self.features.T]
        centre = [np.zeros(d), *[self.centre] * self.n_features]
        base = by_feature[0] if weights is None else weights
        for k in range(n):
            for m in range(k, n):
                weight = None if m == 0 else base * by_feature[k] * by_feature[m]
                first, both = sums(weights if m == 0 else weight)
                total = float(base.sum() if weight is None else weight.sum())
                if k == 0:
                    mean[m] = first - total * centre[m]
                both = both - np.outer(centre[k], first) - np.outer(first, centre[m])
                both += total * np.outer(centre[k], centre[m])
                second[k, :, m] = both
                second[m, :, k] = both.T
        return mean.ravel(), second.reshape(n * d, n * d)

    def _moderated(self, coef: Coefficients) -> tuple[Ints, Ints, Ints, Ints]:
        """Entries with a feature and a softmax target: position, feature, column, its column."""
        incidence, d = coef.incidence, len(self.centre)
        first = incidence.softmax_entries.start
        at = first + np.flatnonzero(incidence.entry_column[first:] >= d)
        feature, column = np.divmod(incidence.entry_column[at], d)
        return at, feature - 1, column, incidence.nodes.softmax_column[incidence.entry_target[at]]

    def intercepts(self, coef: Coefficients, width: int) -> Floats:
        """(F, width) the intercept that the centre gives every feature, for `width` columns."""
        at, feature, column, target = self._moderated(coef)
        taken = self.centre[column] * coef.values[at]
        intercept = np.bincount(feature * width + target, taken, self.n_features * width)
        return np.asarray(-intercept.reshape(self.n_features, width), dtype=np.float64)

    def centre_support(self, support: Floats, expected: Floats, coef: Coefficients) -> None:
        """Make sums of f z E' those of f (z - c) E', in place; expected[k] is that of f_k E."""
        at, feature, column, target = self._moderated(coef)
        support[at] -= self.centre[column] * expected[feature, target]

    def centre_all(self, all_pairs: Floats, expected: Floats) -> None:
        """Centre sums for all pairs, as `centre_support` does: (1 + F, target columns, d)."""
        all_pairs[1:] -= expected[:, :, None] * self.centre

    def centre_curvatures(
        self, plain: SoftmaxCurvature, coef: Coefficients, nodes: Ints
    ) -> SoftmaxCurvature:
        """Sums over (1 + F intercepts, columns) of nodes -> over (intercept, centred columns).

        `nodes` are counted among the discrete ones.
        """
        parts, incidence = [], coef.incidence
        for k, node in enumerate(incidence.nodes.discrete_nodes[nodes].tolist()):
            size = int(plain.n_columns[k])
            both = plain.sums[plain.start[k] : plain.start[k + 1]].reshape(size, size, -1)
            column = incidence.entry_column[incidence.entries_of(node)][:: int(plain.n_levels[k])]
            parts.append(self._centred(both, column).ravel())
        start = np.cumsum([0, *map(len, parts)])
        left = plain.n_columns - self.n_features
        return replace(plain, sums=np.concatenate(parts), start=start, n_columns=left)

    def centre_matrix(self, plain: Floats, n_terms: int, column: Ints) -> Floats:
        """The matrix over (1 + F intercepts, own terms, columns) of one node -> without intercepts.

        `column` are the columns of its entries.
        """
        n = 1 + self.n_features
        feature, column = np.divmod(column, len(self.centre))
        intercept = np.concatenate([np.zeros(n_terms, dtype=np.int64), feature])
        share = np.concatenate([np.zeros(n_terms), np.where(feature > 0, self.centre[column], 0.0)])
        half = plain[n:] - share[:, None] * plain[intercept]
        return np.asarray(half[:, n:] - share * half[:, intercept])

    def _centred(self, both: Floats, column: Ints) -> Floats:
        """Centre the sums of one node over these columns; only pairs a <= b are filled."""
        n, size = 1 + self.n_features, len(both)
        lower = np.tril_indices(size, -1)
        whole = both.copy()
        whole[lower] = both.transpose(1, 0, 2)[lower]
        feature, column = np.divmod(column, len(self.centre))
        kept = np.concatenate([[0], np.arange(n, size)])
        intercept = np.concatenate([[0], feature])
        share = np.concatenate([[0.0], np.where(feature > 0, self.centre[column], 0.0)])
        half = whole[kept] - share[:, None, None] * whole[intercept]
        return np.asarray(half[:, kept] - share[:, None] * half[:, intercept])

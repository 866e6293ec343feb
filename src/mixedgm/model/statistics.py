"""Nodes -> the columns whose means and products are the sufficient statistics, and their moments.

Only what works with the whole joint distribution needs them: there every discrete node has one
indicator for each value.  Such columns are *over values*: the Gaussian nodes, then all values of
all discrete nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mixedgm.model.nodes import Nodes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Columns that the parameters of some nodes multiply in the log density.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> Nodes.mixed(1, (2,)).statistics.columns.toarray()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    nodes: Nodes

    @cached_property
    def expansion(self) -> Any:
        """(columns over values, d): design columns as sums over those over values."""
        from scipy import sparse

        nodes = self.nodes
        tables: list[Any] = [sparse.eye_array(nodes.n_gaussian)]
        tables += [sparse.csr_array(kind.scores(n)[:, None]) for _, kind, n in nodes.scored]
        tables.append(sparse.eye_array(nodes.n_columns - nodes.n_numeric))
        return sparse.block_diag(tables, format="csr")

    def over_values(self, predictors: Floats) -> Floats:
        """(n, columns over values) predictors of values, from those of design columns (n, d)."""
        if not self.nodes.n_scored:
            return predictors
        return np.ascontiguousarray((self.expansion @ predictors.T).T)

    def of_columns(self, over_values: Floats) -> Floats:
        """(n, d) the predictors of design columns behind what `over_values` makes of them."""
        nodes = self.nodes
        if not nodes.n_scored:
            return over_values
        p, at = nodes.n_gaussian, np.arange(over_values.shape[1])
        scores = np.concatenate([np.ones(p), nodes.scores])
        scores[p + nodes.level_start[nodes.n_scored] :] = 1.0
        for j in range(nodes.n_scored):  # one value tells: that with the largest score
            values = p + np.arange(nodes.level_start[j], nodes.level_start[j + 1])
            at[values[0]] = values[np.abs(scores[values]).argmax()]
        first = np.concatenate([np.arange(p), p + nodes.level_start[: nodes.n_scored]])
        kept = np.concatenate([first, np.arange(p + nodes.level_start[nodes.n_scored], len(at))])
        unit = np.where(scores[at[kept]] == 0.0, 1.0, scores[at[kept]])
        return np.asarray(over_values[:, at[kept]] / unit)

    @cached_property
    def columns(self) -> Any:
        """(columns over values, d + own terms of scored nodes): all that parameters multiply.

        The design columns, then what multiplies the own terms of scored nodes, as sums over the
        columns over values.  A statistic is one of them, or the product of two.
        """
        from scipy import sparse

        nodes, wide = self.nodes, self.expansion
        if not nodes.n_scored:
            return wide
        tables = [nodes.term_features(j) for j, _, _ in nodes.scored]
        terms: Any = sparse.block_diag(tables, format="csr")
        p = nodes.n_gaussian
        above = sparse.csr_array((p, terms.shape[1]))
        below = sparse.csr_array((wide.shape[0] - p - terms.shape[0], terms.shape[1]))
        return sparse.hstack([wide, sparse.vstack([above, terms, below])], format="csr")

    @cached_property
    def _from_values(self) -> Any:
        return self.columns.T.tocsr()

    def moments(self, mean: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Means and second moments of `columns`, from those of the columns over values."""
        if not self.nodes.n_scored:
            return mean, second
        wide = self._from_values
        return np.asarray(wide @ mean), np.asarray(wide @ np.asarray(wide @ second).T)

    def means(self, mean: Floats, shares: Floats) -> Floats:
        """Means of `columns`, from those of design columns and shares of values."""
        if not self.nodes.n_scored:
            return mean
        return np.concatenate([mean, self.nodes.term_sums(shares)[: self.nodes.n_scored_terms]])

    def rows(self, gaussian: Floats, codes: NDArray[np.integer]) -> Floats:
        """(n, d + own terms of scored nodes) `columns` of rows with these values."""
        terms = [self.nodes.term_features(j)[codes[:, j]] for j, _, _ in self.nodes.scored]
        return np.hstack([self.nodes.design_columns(gaussian, codes), *terms])

    def base_mean(self, shares: Floats) -> float:
        """Mean of the part of the log density that is known, from shares of values."""
        return float(self._base @ shares)

    @cached_property
    def _base(self) -> Floats:
        """Logits of all values where every own term is zero."""
        return self.nodes.own_logits(np.zeros(int(self.nodes.term_start[-1])))

    def column_moments(
        self, mean: Floats, variance: Floats, shares: Floats
    ) -> tuple[Floats, Floats]:
        """Means of all design columns, and variances of those that are numbers.

        From the moments of the real numbers and shares of values, all in own units.
        """
        nodes = self.nodes
        p, of_values = nodes.n_gaussian, np.split(shares, nodes.level_start[1:-1])
        means, variances = [mean[:p]], [variance[:p]]
        for j, spiked in nodes.spiked:
            there, middle, at = of_values[j][1], mean[p + j], spiked.location
            means.append(np.array([there, middle - at * there]))
            of_b, mixed = there * (1.0 - there), middle * (1.0 - there)
            of_x = variance[p + j] - 2.0 * at * mixed + at**2 * of_b
            variances.append(np.array([of_b, of_x]))
        for j, kind, n in nodes.scored:
            scores, share = kind.scores(n), of_values[j]
            means.append(np.array([share @ scores]))
            variances.append(np.array([share @ scores**2 - (share @ scores) ** 2]))
        of_indicators = shares[nodes.level_start[nodes.first_indicator] :]
        return np.concatenate([*means, of_indicators]), np.concatenate(variances)

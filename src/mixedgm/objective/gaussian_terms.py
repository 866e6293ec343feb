"""Moments and coefficients -> the losses of all Gaussian conditionals and their derivatives.

They depend on the rows through the moments only, so no pass over the rows is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.rows.contract import Moments, NodeMatrices
from mixedgm.threads import over_range


@dataclass(frozen=True, eq=False)
class GaussianSums:
    """Sum of the Gaussian terms and its derivatives."""

    value: float
    by_column: Floats
    """(c, n_gaussian) mean of z_a E_s, with E_s the derivative of term s in its predictor."""
    node_slopes: Floats
    """Derivatives in the linear terms, then in the diagonal."""

    def slopes(self, layout: Layout) -> Floats:
        """Derivatives in the coefficients of Gaussian conditionals, in the incidence's order."""
        entries, incidence = layout.incidence.gaussian_entries, layout.incidence
        return np.asarray(
            self.by_column[incidence.entry_column[entries], incidence.entry_target[entries]]
        )


@dataclass(frozen=True, eq=False)
class GaussianTerms:
    """Sum over Gaussian nodes of -log p(node | all others), averaged over rows."""

    moments: Moments

    def at(self, layout: Layout, theta: Floats, values: Floats) -> GaussianSums:
        """All terms; `values` are theta's in the order of the layout's incidence."""
        from mixedgm.objective.kernels import gaussian_terms

        p, incidence, moments = layout.n_gaussian, layout.incidence, self.moments
        slopes, out = np.zeros((p, layout.n_products)), np.empty((3, p))
        last = incidence.gaussian_entries.stop
        is_dense = last > 0.3 * slopes.size
        if is_dense:
            target, column = incidence.entry_target[:last], incidence.entry_column[:last]
            slopes[target, column] = values[:last]
            slopes = slopes @ moments.second
        terms = theta[layout.linear], theta[layout.diagonal]
        entries = (incidence.node_entries[: p + 1], incidence.entry_column, values)

        def some(*part: int) -> None:
            gaussian_terms(
                (moments.mean, moments.second), terms, entries, is_dense, part, slopes, out
            )

        over_range(some, p, slopes.size + (0 if is_dense else last * layout.n_products))
        if layout.covariates:
            unpredicted = ~layout.is_target[layout.nodes.gaussian]
            out[:, unpredicted] = 0.0
            slopes[unpredicted] = 0.0
        return GaussianSums(float(out[0].sum()), slopes.T, out[1:].ravel())

    def curvature(self, layout: Layout, theta: Floats, values: Floats, nodes: Ints) -> NodeMatrices:
        """Second derivative of these nodes' terms, in the order of ``layout.conditional``."""
        from mixedgm.objective.kernels import gaussian_curvatures

        ptr = layout.incidence.node_entries[: layout.n_gaussian + 1]
        size = ptr[nodes + 1] - ptr[nodes] + 2
        start = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.square(size).cumsum(out=start[1:])
        out = np.empty(int(start[-1]))
        gaussian_curvatures(
            (self.moments.mean, self.moments.second),
            (theta[layout.linear], theta[layout.diagonal]),
            nodes,
            ptr,
            layout.incidence.entry_column,
            values,
            start,
            out,
        )
        return NodeMatrices(nodes, start, out)

"""Rows and a layout -> the mean negative log pseudolikelihood, its gradient and its curvature.

Covariates of the layout have no conditional, so with some the function is that of the conditional
model of all other columns given them; with all but one, a regression of that one.

All in standardised units.  It is the sum of the Gaussian terms, which need moments only, and of
the softmax terms, which take a pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, RowsCounted
from mixedgm.objective.gaussian_blocks import GaussianBlocks, SupportSums
from mixedgm.objective.gaussian_terms import GaussianSums, GaussianTerms
from mixedgm.objective.softmax_terms import SoftmaxTerms, SoftmaxValues, softmax_coefficients
from mixedgm.rows.contract import (
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    Outside,
    Question,
    Rows,
)
from mixedgm.threads import over_range


@dataclass(frozen=True, eq=False)
class Pseudolikelihood(RowsCounted):
    """Sum over columns of -log p(column | all other columns), averaged over standardised rows."""

    rows: Rows
    layout: Layout
    moments: Moments | ColumnMoments
    """Those of single columns where the table is wide: what else is needed, the rows are asked for.
    Gradients are then always collected on the layout's own edges."""
    working: bool = False
    """True for a restriction to a working set: gradients are then collected on the layout's own
    edges only, instead of for all pairs at once."""

    terms_per_edge = 2  # the conditionals of both its ends
    by_nodes = True
    exact_curvature = True

    @property
    def part_seconds(self) -> tuple[float, float]:
        """Wall time so far in passes, and in curvature."""
        return self.rows.part_seconds

    @property
    def curvature_rows(self) -> int:
        """All rows."""
        return self.rows.n_rows

    @property
    def curvature_at_once(self) -> int:
        """Numbers of curvature to ask for in one call: what fits a cache, or what rows prefer."""
        return int(getattr(self.rows, "curvature_at_once", 2**18))

    def restrict(self, groups: Ints) -> Pseudolikelihood:
        """The same function with all other groups zero."""
        return Pseudolikelihood(self.rows, self.layout.restrict(groups), self.moments, True)

    def null(self) -> Floats:
        """Closed form: mean 0, precision 1, log frequencies."""
        return self.layout.independent(self.moments.shares)

    @cached_property
    def _gaussian(self) -> GaussianTerms | GaussianBlocks:
        if isinstance(self.moments, ColumnMoments):
            return GaussianBlocks(self.rows, self.moments, self.layout, whole=self.working)
        return GaussianTerms(self.moments)

    @cached_property
    def _softmax(self) -> SoftmaxTerms:
        return SoftmaxTerms(self.rows, self.moments)

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient; +inf where a diagonal precision is not positive."""
        if not (theta[self.layout.positive] > 0.0).all():
            return Evaluation(np.inf)
        on_support = self.working or isinstance(self.moments, ColumnMoments)
        layout, theta = (self.layout, theta) if on_support else self._support(theta, groups)
        wanted: Gradient = "support" if on_support else "all"
        values = theta[layout.incidence.theta_index]
        gaussian = self._gaussian.at(layout, theta, values)
        softmax = self._softmax.at(layout, theta, values, wanted if gradient else "none")
        value = gaussian.value + softmax.value
        if not gradient:
            return Evaluation(value)
        grad = np.empty(self.layout.n_theta)
        grad[self.layout.gaussian_terms] = gaussian.node_slopes
        grad[self.layout.biases] = softmax.node_slopes
        if isinstance(gaussian, GaussianSums) and not on_support:
            self._for_all_pairs(gaussian, softmax, grad[self.layout.edges])
        else:
            self._on_support(gaussian, softmax, grad[self.layout.edges])
        return Evaluation(value, grad)

    def outside(self, theta: Floats, question: Question) -> Outside:
        """Of all pairs that are asked about, those whose gradient at theta is near its bound."""
        layout, theta = self._support(theta, None)
        values = theta[layout.incidence.theta_index]
        conditionals = Conditionals(
            softmax_coefficients(layout, theta, values),
            theta[layout.linear],
            theta[layout.diagonal],
            layout.is_target,
            not layout.nodewise,
        )
        return self.rows.outside(conditionals, question)

    def _support(self, theta: Floats, groups: Ints | None) -> tuple[Layout, Floats]:
        """The layout of these groups (None: the active ones), and theta on it."""
        layout = self.layout
        if groups is None:
            groups = np.flatnonzero(layout.group_norms(theta))
        if len(groups) == layout.n_groups:
            return layout, theta
        return layout.restrict(groups), theta[layout.positions(groups)]

    def _on_support(
        self, gaussian: GaussianSums | SupportSums, softmax: SoftmaxValues, out: Floats
    ) -> None:
        """The gradient of the layout's own edges, added up over their conditionals."""
        layout = self.layout
        slopes = np.concatenate([gaussian.slopes(layout), softmax.slopes])
        out[:] = np.bincount(layout.incidence.theta_index, slopes, layout.n_theta)[layout.edges]

    def _for_all_pairs(self, gaussian: GaussianSums, softmax: SoftmaxValues, out: Floats) -> None:
        from mixedgm.objective.kernels import edge_gradient

        assert isinstance(self.moments, Moments)
        assert softmax.all_pairs is not None
        layout, second = self.layout, self.moments.second
        by_node = (gaussian.by_column.T, np.ascontiguousarray(softmax.all_pairs.T))

        def some(*part: int) -> None:
            edge_gradient(
                layout.pairs,
                (layout.first_feature, layout.n_blocks),
                layout.starts,
                not layout.nodewise,
                layout.is_target,
                layout.column_start,
                (*by_node, second),
                part,
                out,
            )

        over_range(some, layout.n_groups, 4 * len(out))

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Curvature:
        """Exact second derivative; the softmax terms from every `stride`-th row."""
        layout = self.layout
        nodes = np.arange(layout.n_nodes) if nodes is None else nodes
        targets = nodes[layout.is_target[nodes]]
        is_gaussian, has_indicators = (
            mask[targets] for mask in (layout.nodes.gaussian_nodes, ~layout.nodes.numeric_nodes)
        )
        scored, discrete = targets[~is_gaussian & ~has_indicators], targets[has_indicators]
        values = theta[layout.incidence.theta_index]
        single = self._gaussian.curvature(layout, theta, values, targets[is_gaussian])
        single = single.followed_by(
            self._softmax.scored_curvature(layout, theta, values, scored, stride)
        )
        softmax = self._softmax.curvature(layout, theta, values, discrete, stride)
        return Curvature(layout, nodes, single, discrete, softmax)

"""Rows and a layout -> the mean negative log pseudolikelihood, its gradient and its curvature.

Covariates of the layout have no conditional, so with some the function is that of the conditional
model of all other columns given them; with all but one, a regression of that one.

All in standardised units.  Gaussian conditionals depend on the rows through the moments only;
categorical ones take a softmax pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, GaussianCurvature
from mixedgm.objective.moments import independent
from mixedgm.rows.contract import Coefficients, Moments, Rows


@dataclass(frozen=True, eq=False)
class Pseudolikelihood:
    """Sum over columns of -log p(column | all other columns), averaged over rows.

    Parameters
    ----------
    rows : Rows
        The store of standardised rows.
    layout : Layout
        Which parameters exist.
    moments : Moments
        Of those rows.
    working : bool
        True for a restriction to a working set: gradients are then collected on the layout's own
        edges only, instead of for all pairs at once.
    """

    rows: Rows
    layout: Layout
    moments: Moments
    working: bool = field(default=False)

    @property
    def passes(self) -> float:
        """Passes over the rows so far."""
        return self.rows.passes

    @property
    def curvature_passes(self) -> float:
        """Passes over the rows for curvature so far."""
        return self.rows.curvature_passes

    @property
    def part_seconds(self) -> tuple[float, float]:
        """Wall time so far in passes, and in curvature."""
        return self.rows.part_seconds

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def terms_per_edge(self) -> int:
        """Every edge is in the conditionals of both its ends."""
        return 2

    @property
    def by_nodes(self) -> bool:
        """The curvature is a sum over nodes."""
        return True

    @property
    def curvature_rows(self) -> int:
        """All rows."""
        return self.rows.n_rows

    @property
    def exact_curvature(self) -> bool:
        """Exact when it is taken from all rows."""
        return True

    def restrict(self, groups: Ints) -> Pseudolikelihood:
        """The same function with all other groups zero."""
        return Pseudolikelihood(self.rows, self.layout.restrict(groups), self.moments, True)

    def null(self) -> Floats:
        """Closed form: mean 0, precision 1, log frequencies."""
        return independent(self.layout, self.moments)

    # -- value and gradient ------------------------------------------------------------------------

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient; +inf where a diagonal precision is not positive."""
        if not (theta[self.layout.diagonal] > 0.0).all():
            return Evaluation(np.inf)
        if self.working:
            return self._evaluate_on_support(theta, gradient)
        return self._evaluate_all_pairs(theta, gradient, groups)

    def _evaluate_on_support(self, theta: Floats, gradient: bool) -> Evaluation:
        layout, incidence = self.layout, self.layout.incidence
        values = theta[incidence.theta_index]
        gauss = _gaussian(self.moments, layout, theta, values)
        sums = (
            self.rows.softmax(
                self._coefficients(layout, values, theta),
                "support" if gradient else "none",
            )
            if len(layout.softmax_targets)
            else None
        )
        value = gauss.value + (float(sums.loss.sum()) if sums else 0.0)
        if not gradient:
            return Evaluation(value)
        first = int(incidence.entry_ptr[incidence.target_ptr[layout.n_gaussian]])
        column, target = incidence.entry_column, incidence.entry_target
        entry = np.empty(len(values))
        entry[:first] = gauss.by_column[column[:first], target[:first]]
        if sums is not None and sums.support is not None:
            observed = self.moments.second[column[first:], target[first:]]
            entry[first:] = sums.support[first:] - observed
        # Without any entry bincount would answer in integers.
        grad = np.bincount(incidence.theta_index, entry, layout.n_theta).astype(np.float64)
        grad[: layout.n_node_terms] = self._node_gradient(gauss, sums.mean_prob if sums else None)
        return Evaluation(value, grad)

    def _evaluate_all_pairs(self, theta: Floats, gradient: bool, groups: Ints | None) -> Evaluation:
        from mixedgm.objective.kernels import edge_gradient

        layout = self.layout
        support, small = self._support(theta, groups)
        values = small[support.incidence.theta_index]
        gauss = _gaussian(self.moments, support, small, values)
        sums = (
            self.rows.softmax(
                self._coefficients(support, values, theta),
                "all" if gradient else "none",
            )
            if len(layout.softmax_targets)
            else None
        )
        value = gauss.value + (float(sums.loss.sum()) if sums else 0.0)
        if not gradient:
            return Evaluation(value)
        by_level = np.zeros((0, layout.n_products)).T if sums is None else sums.all_pairs
        grad = np.empty(layout.n_theta)
        edge_gradient(
            layout.pairs,
            (layout.first_feature, layout.n_blocks),
            not layout.nodewise,
            layout.is_target,
            layout.column_start,
            gauss.by_column,
            by_level,
            self.moments.second,
            grad[layout.edges],
        )
        grad[: layout.n_node_terms] = self._node_gradient(gauss, sums.mean_prob if sums else None)
        return Evaluation(value, grad)

    def _support(self, theta: Floats, groups: Ints | None) -> tuple[Layout, Floats]:
        """The layout of these groups (None: the active ones), and theta on it."""
        layout = self.layout
        if groups is None:
            groups = np.flatnonzero(layout.group_norms(theta))
        if len(groups) == layout.n_groups:
            return layout, theta
        return layout.restrict(groups), theta[layout.positions(groups)]

    def _node_gradient(self, gauss: _Gaussian, mean_prob: Floats | None) -> Floats:
        layout, p = self.layout, self.layout.n_gaussian
        discrete = np.zeros(layout.n_level_terms)
        if mean_prob is not None:
            discrete = mean_prob - self.moments.mean[p : layout.n_columns]
        if layout.covariates:
            discrete[np.repeat(~layout.is_target[p:], layout.width[p:])] = 0.0
        return np.concatenate([gauss.cont_bias, gauss.diagonal, discrete])

    def _coefficients(self, layout: Layout, values: Floats, theta: Floats) -> Coefficients:
        bias = theta[layout.biases]
        return Coefficients(layout.incidence, values, bias, layout.softmax_targets)

    # -- curvature ---------------------------------------------------------------------------------

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Curvature:
        """Exact second derivative; the softmax terms from every `stride`-th row."""
        layout, p = self.layout, self.layout.n_gaussian
        nodes = np.arange(layout.n_nodes) if nodes is None else nodes
        targets = nodes[layout.is_target[nodes]]
        numbers, discrete = targets[targets < p], targets[targets >= p]
        values = theta[layout.incidence.theta_index]
        gaussian = _gaussian_curvatures(self.moments, layout, theta, values, numbers)
        if not len(discrete):
            return Curvature(layout, nodes, gaussian, discrete, None)
        coef = self._coefficients(layout, values, theta)
        softmax = self.rows.softmax_curvature(coef, discrete - p, stride)
        return Curvature(layout, nodes, gaussian, discrete, softmax)


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """Sum of the Gaussian terms and its derivatives; `by_column[:, s]` is the mean of z E_s."""

    value: float
    by_column: Floats
    cont_bias: Floats
    diagonal: Floats


def _gaussian(moments: Moments, layout: Layout, theta: Floats, values: Floats) -> _Gaussian:
    """All Gaussian terms from the moments; `values` is in the order of the layout's incidence."""
    from mixedgm.objective.kernels import gaussian_terms

    p, incidence = layout.n_gaussian, layout.incidence
    ptr = incidence.entry_ptr[incidence.target_ptr[: p + 1]]
    last = int(ptr[-1])
    slopes, out = np.zeros((p, layout.n_products)), np.empty((3, p))
    is_dense = last > 0.3 * slopes.size
    if is_dense:
        target, column = incidence.entry_target[:last], incidence.entry_column[:last]
        slopes[target, column] = values[:last]
        slopes = slopes @ moments.second
    gaussian_terms(
        (moments.mean, moments.second),
        (theta[layout.linear], theta[layout.diagonal]),
        (ptr, incidence.entry_column, values),
        is_dense,
        slopes,
        out,
    )
    if layout.covariates:
        unpredicted = ~layout.is_target[:p]
        out[:, unpredicted] = 0.0
        slopes[unpredicted] = 0.0
    return _Gaussian(float(out[0].sum()), slopes.T, out[1], out[2])


def _gaussian_curvatures(
    moments: Moments, layout: Layout, theta: Floats, values: Floats, nodes: Ints
) -> GaussianCurvature:
    """Second derivative of these Gaussian terms, in the order of ``layout.conditional``."""
    from mixedgm.objective.kernels import gaussian_curvatures

    p, incidence = layout.n_gaussian, layout.incidence
    ptr = incidence.entry_ptr[incidence.target_ptr[: p + 1]]
    size = ptr[nodes + 1] - ptr[nodes] + 2
    start = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.square(size).cumsum(out=start[1:])
    out = np.empty(int(start[-1]))
    gaussian_curvatures(
        (moments.mean, moments.second),
        (theta[layout.linear], theta[layout.diagonal]),
        nodes,
        ptr,
        incidence.entry_column,
        values,
        start,
        out,
    )
    return GaussianCurvature(nodes, start, out)

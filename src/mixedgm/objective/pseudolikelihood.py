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
        """From all rows it is."""
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
        if not np.all(theta[self.layout.diagonal] > 0.0):
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
            if len(layout.predicted_categories)
            else None
        )
        value = gauss.value + (float(sums.loss.sum()) if sums else 0.0)
        if not gradient:
            return Evaluation(value)
        first = int(incidence.entry_ptr[incidence.target_ptr[layout.n_cont]])
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
            if len(layout.predicted_categories)
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
        layout, p = self.layout, self.layout.n_cont
        discrete = np.zeros(layout.n_cat_columns)
        if mean_prob is not None:
            predicted = np.repeat(layout.is_target[p:], layout.width[p:])
            discrete[predicted] = (mean_prob - self.moments.mean[p : layout.n_columns])[predicted]
        return np.concatenate([gauss.cont_bias, gauss.diagonal, discrete])

    def _coefficients(self, layout: Layout, values: Floats, theta: Floats) -> Coefficients:
        bias = theta[layout.cat_bias]
        return Coefficients(layout.incidence, values, bias, layout.predicted_categories)

    # -- curvature ---------------------------------------------------------------------------------

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Curvature:
        """Exact second derivative; the softmax terms from every `stride`-th row."""
        layout, p = self.layout, self.layout.n_cont
        nodes = np.arange(layout.n_nodes) if nodes is None else nodes
        targets = nodes[layout.is_target[nodes]]
        cont, cat = targets[targets < p], targets[targets >= p]
        values = theta[layout.incidence.theta_index]
        gaussian = _gaussian_curvatures(self.moments, layout, theta, values, cont)
        if not len(cat):
            return Curvature(layout, nodes, gaussian, cat, None)
        coef = self._coefficients(layout, values, theta)
        softmax = self.rows.softmax_curvature(coef, cat - p, stride)
        return Curvature(layout, nodes, gaussian, cat, softmax)


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """Sum of the Gaussian terms and its derivatives; `by_column[:, s]` is the mean of z E_s."""

    value: float
    by_column: Floats
    cont_bias: Floats
    diagonal: Floats


def _gaussian(moments: Moments, layout: Layout, theta: Floats, values: Floats) -> _Gaussian:
    """All Gaussian terms from the moments: E_s = (a_s + z'c_s - b_s x_s) / b_s.

    `values` are the coefficients in the order of the layout's incidence.
    """
    from mixedgm.objective.kernels import moment_products

    p, incidence = layout.n_cont, layout.incidence
    bias, diagonal = theta[layout.cont_bias], theta[layout.diagonal]
    own = np.arange(p)
    ptr = incidence.entry_ptr[incidence.target_ptr[: p + 1]]
    last = int(ptr[-1])
    columns, coef = incidence.entry_column[:last], values[:last]
    target = incidence.entry_target[:last]
    # product[s] = S c_s, a row for every node
    if last > 0.3 * p * layout.n_products:
        dense = np.zeros((p, layout.n_products))
        dense.ravel()[target * layout.n_products + columns] = coef
        product = dense @ moments.second
        coef_square = np.einsum("sa,sa->s", dense, product)
        mean_z = dense @ moments.mean
    else:
        product = np.zeros((p, layout.n_products))
        moment_products(moments.second, ptr, columns, coef, product)
        # Without any entry bincount would answer in integers.
        coef_square = np.bincount(target, coef * product[target, columns], p).astype(np.float64)
        mean_z = np.bincount(target, coef * moments.mean[columns], p).astype(np.float64)
    cross = product[own, own]
    variance = moments.second[own, own]
    mean_x = moments.mean[:p]
    # mean of (a + z'c - b x)^2, term by term
    square = (
        bias**2
        + coef_square
        + diagonal**2 * variance
        + 2.0 * (bias * mean_z - diagonal * cross - diagonal * bias * mean_x)
    )
    loss = -0.5 * np.log(diagonal) + square / (2.0 * diagonal)
    by_node = product
    by_node += bias[:, None] * moments.mean
    by_node -= diagonal[:, None] * moments.second[:p]
    by_node /= diagonal[:, None]
    slope = (bias + mean_z - diagonal * mean_x) / diagonal
    steepness = -0.5 / diagonal - by_node[own, own] - 0.5 * square / diagonal**2
    if layout.covariates:
        unpredicted = ~layout.is_target[:p]
        for part in (loss, by_node, slope, steepness):
            part[unpredicted] = 0.0
    return _Gaussian(float(loss.sum()), by_node.T, slope, steepness)


def _gaussian_curvatures(
    moments: Moments, layout: Layout, theta: Floats, values: Floats, nodes: Ints
) -> GaussianCurvature:
    """Second derivative of these Gaussian terms, in the order of ``layout.conditional``."""
    from mixedgm.objective.kernels import gaussian_curvatures

    p, incidence = layout.n_cont, layout.incidence
    ptr = incidence.entry_ptr[incidence.target_ptr[: p + 1]]
    size = np.diff(ptr)[nodes] + 2
    start = np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64)
    out = np.empty(int(start[-1]))
    gaussian_curvatures(
        (moments.mean, moments.second),
        (theta[layout.cont_bias], theta[layout.diagonal]),
        nodes,
        ptr,
        incidence.entry_column,
        values,
        start,
        out,
    )
    return GaussianCurvature(nodes, start, out)

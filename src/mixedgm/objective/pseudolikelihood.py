"""Rows and a layout -> the mean negative log pseudolikelihood, its gradient and its curvature.

Covariates of the layout have no conditional, so with some the function is that of the conditional
model of all other columns given them; with all but one, a regression of that one.

All in standardised units.  It is the sum of the Gaussian terms, which need moments only, and of
the softmax terms, which take a pass over the rows.

Rows and a layout -> the Gaussian terms, from second moments of each node's own predictors only.

They are the terms of `pseudolikelihood.GaussianTerms`, for tables with so many columns that nothing
of size d x d is asked for: every node has a small matrix of the columns that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mixedgm.base.compiled import inner, kernel
from mixedgm.base.threads import over_range
from mixedgm.model.layout import Floats, Incidence, Ints, Layout, spans
from mixedgm.model.nodes import Nodes
from mixedgm.objective.contract import Curvature, Evaluation, RowsCounted
from mixedgm.rows.contract import (
    Coefficients,
    ColumnMoments,
    Conditionals,
    Gradient,
    Moments,
    NodeMatrices,
    Outside,
    Question,
    Rows,
    SoftmaxCurvature,
)

_SMALL, _FEW = 1000, 0.1
"""Numbers of all derivatives from which on, and share of coefficients among them up to which, the
layout's own are made one by one: of small tables all are made as quickly."""


@dataclass(frozen=True, eq=False)
class SoftmaxValues:
    """Sum of the softmax terms and, where it was asked for, its derivatives."""

    value: float
    node_slopes: Floats = field(default_factory=lambda: np.zeros(0))
    """Derivatives in the own terms."""
    slopes: Floats = field(default_factory=lambda: np.zeros(0))
    """Derivatives in the coefficients of softmax conditionals, in the incidence's order."""
    all_pairs: Floats | None = None
    """(c, softmax columns) mean of z E', where derivatives for all pairs were asked for."""


@dataclass(frozen=True, eq=False)
class SoftmaxTerms:
    """Sum over nodes of finitely many values of -log p(node | all others), averaged over rows."""

    rows: Rows
    moments: Moments | ColumnMoments
    nodes: Nodes

    def at(
        self, layout: Layout, theta: Floats, values: Floats, gradient: Gradient
    ) -> SoftmaxValues:
        """All terms, in one pass; `values` are theta's in the order of the layout's incidence."""
        if not len(layout.softmax_nodes):
            none = np.zeros((layout.n_products, 0))
            return SoftmaxValues(0.0, np.zeros(layout.n_level_terms), all_pairs=none)
        sums = self.rows.softmax(softmax_coefficients(layout, theta, values), gradient)
        value = float(sums.loss.sum())
        if sums.mean_terms is None:
            return SoftmaxValues(value)
        biases = sums.mean_terms - self._term_means
        if layout.covariates:
            unpredicted = ~layout.is_target[layout.nodes.discrete]
            biases[np.repeat(unpredicted, layout.nodes.n_biases[layout.nodes.discrete])] = 0.0
        if sums.support is None:
            return SoftmaxValues(value, biases, all_pairs=sums.all_pairs)
        entries = layout.incidence.softmax_entries
        return SoftmaxValues(value, biases, sums.support[entries] - self.seen(layout.incidence))

    @cached_property
    def _term_means(self) -> Floats:
        """Means of what multiplies the own terms of discrete nodes."""
        return self.nodes.term_sums(self.moments.shares)

    def seen(self, incidence: Incidence) -> Floats:
        """Mean of z_a z_t for every coefficient of softmax conditionals."""
        entries = incidence.softmax_entries
        column, target = incidence.entry_column[entries], incidence.entry_target[entries]
        if isinstance(self.moments, ColumnMoments):
            return self.rows.second_moments(column, target)
        return np.asarray(self.moments.second[column, target])

    def curvature(
        self, layout: Layout, theta: Floats, values: Floats, nodes: Ints, stride: int
    ) -> SoftmaxCurvature | None:
        """Second derivative of the terms of these nodes with indicators."""
        if not len(nodes):
            return None
        places = layout.nodes.node_place[nodes]
        return self.rows.softmax_curvature(
            softmax_coefficients(layout, theta, values), places, stride
        )

    def scored_curvature(
        self, layout: Layout, theta: Floats, values: Floats, nodes: Ints, stride: int
    ) -> NodeMatrices | None:
        """Second derivative of the terms of these scored nodes, from every `stride`-th row."""
        if not len(nodes):
            return None
        places = layout.nodes.node_place[nodes]
        coef = softmax_coefficients(layout, theta, values)
        return replace(self.rows.scored_curvature(coef, places, stride), nodes=nodes)


def softmax_coefficients(layout: Layout, theta: Floats, values: Floats) -> Coefficients:
    """Coefficients for a pass; `values` are theta's in the order of the layout's incidence."""
    logits = layout.nodes.own_logits(theta[layout.biases])
    return Coefficients(layout.incidence, values, logits, layout.softmax_targets)


@dataclass(frozen=True, eq=False)
class GaussianSums:
    """Sum of the Gaussian terms and its derivatives."""

    value: float
    by_column: Floats
    """(c, n_gaussian) mean of z_a E_s, with E_s the derivative of term s in its predictor."""
    node_slopes: Floats
    """Derivatives in the linear terms, then in the diagonal."""

    def on(self, layout: Layout) -> Floats:
        """Derivatives in the coefficients of Gaussian conditionals, in the incidence's order."""
        entries, incidence = layout.incidence.gaussian_entries, layout.incidence
        return np.asarray(
            self.by_column[incidence.entry_column[entries], incidence.entry_target[entries]]
        )


@dataclass(frozen=True, eq=False)
class GaussianTerms:
    """Sum over Gaussian nodes of -log p(node | all others), averaged over rows."""

    moments: Moments

    def at(
        self, layout: Layout, theta: Floats, values: Floats, own: bool = False
    ) -> GaussianSums | SupportSums:
        """All terms; `values` are theta's in the order of the layout's incidence.

        With `own`, derivatives in the layout's own coefficients are enough.
        """
        p, incidence, moments = layout.n_gaussian, layout.incidence, self.moments
        last = incidence.gaussian_entries.stop
        if own and last <= _FEW * p * layout.n_products and p * layout.n_products >= _SMALL:
            return self._on_support(layout, theta, values)
        slopes, out = np.zeros((p, layout.n_products)), np.empty((3, p))
        is_dense = last > 0.3 * slopes.size
        if is_dense:
            target, column = incidence.entry_target[:last], incidence.entry_column[:last]
            slopes[target, column] = values[:last]
            slopes = slopes @ moments.second
        terms = theta[layout.linear], theta[layout.diagonal]
        entries = (incidence.node_entries[: p + 1], incidence.entry_column, values)

        def some(*part: int) -> None:
            _gaussian_terms(
                (moments.mean, moments.second), terms, entries, is_dense, part, slopes, out
            )

        over_range(some, p, slopes.size + (0 if is_dense else last * layout.n_products))
        if layout.covariates:
            unpredicted = ~layout.is_target[layout.nodes.gaussian]
            out[:, unpredicted] = 0.0
            slopes[unpredicted] = 0.0
        return GaussianSums(float(out[0].sum()), slopes.T, out[1:].ravel())

    def _on_support(self, layout: Layout, theta: Floats, values: Floats) -> SupportSums:
        """All terms as `at` has them, from moments of each node's own predictors."""
        p, incidence = layout.n_gaussian, layout.incidence
        slopes, out = np.empty(incidence.gaussian_entries.stop), np.empty((3, p))
        ends = incidence.node_entries[: p + 1]
        _support_terms(
            (self.moments.mean, self.moments.second),
            (theta[layout.linear], theta[layout.diagonal]),
            (ends, incidence.entry_column, values),
            slopes,
            out,
        )
        if layout.covariates:
            unpredicted = ~layout.is_target[layout.nodes.gaussian]
            out[:, unpredicted] = 0.0
            slopes[np.repeat(unpredicted, np.diff(ends))] = 0.0
        return SupportSums(float(out[0].sum()), slopes, out[1:].ravel())

    def curvature(self, layout: Layout, theta: Floats, values: Floats, nodes: Ints) -> NodeMatrices:
        """Second derivative of these nodes' terms, in the order of ``layout.conditional``."""
        ptr = layout.incidence.node_entries[: layout.n_gaussian + 1]
        size = ptr[nodes + 1] - ptr[nodes] + 2
        start = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.square(size).cumsum(out=start[1:])
        out = np.empty(int(start[-1]))
        _gaussian_curvatures(
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


@dataclass(frozen=True, eq=False)
class NodeSlopes:
    """Contribution of every conditional to the gradient.

    Known on its own layout, and on any other where sums for all pairs were made.
    """

    terms: SoftmaxTerms
    layout: Layout
    gaussian: GaussianSums | SupportSums
    softmax: SoftmaxValues

    def on(self, layout: Layout) -> Floats | None:
        """Derivatives in the coefficients, in the order of the layout's incidence."""
        if self.softmax.all_pairs is None or not isinstance(self.gaussian, GaussianSums):
            return self._own if layout is self.layout else None
        incidence = layout.incidence
        softmax = self.softmax.all_pairs[incidence.softmax_places] - self.terms.seen(incidence)
        return np.concatenate([self.gaussian.on(layout), softmax])

    @cached_property
    def _own(self) -> Floats:
        known = self.gaussian
        gaussian = known.slopes if isinstance(known, SupportSums) else known.on(self.layout)
        return np.concatenate([gaussian, self.softmax.slopes])


@dataclass(frozen=True, eq=False)
class Pseudolikelihood(RowsCounted):
    """Sum over columns of -log p(column | all other columns), averaged over standardised rows."""

    rows: Rows
    layout: Layout
    moments: Moments | ColumnMoments
    """Moments of the rows; on wide tables those of single columns, and the rows compute all others.
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
        """Return the function with all other groups zero."""
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
        return SoftmaxTerms(self.rows, self.moments, self.layout.nodes)

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
        gaussian = self._gaussian.at(layout, theta, values, on_support or not gradient)
        softmax = self._softmax.at(layout, theta, values, wanted if gradient else "none")
        value = gaussian.value + softmax.value
        if not gradient:
            return Evaluation(value)
        grad = np.empty(self.layout.n_theta)
        grad[self.layout.gaussian_terms] = gaussian.node_slopes
        grad[self.layout.biases] = softmax.node_slopes
        slopes = NodeSlopes(self._softmax, layout, gaussian, softmax)
        if isinstance(gaussian, GaussianSums) and not on_support:
            self._for_all_pairs(gaussian, softmax, grad[self.layout.edges])
        else:
            self._on_support(slopes, grad[self.layout.edges])
        return Evaluation(value, grad, slopes)

    def outside(self, theta: Floats, question: Question) -> Outside:
        """Pairs whose gradient at theta is near its bound, among those that are asked about."""
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

    def _on_support(self, slopes: NodeSlopes, out: Floats) -> None:
        """The gradient of the layout's own edges, added up over their conditionals."""
        layout, single = self.layout, slopes.on(self.layout)
        out[:] = np.bincount(layout.incidence.theta_index, single, layout.n_theta)[layout.edges]

    def _for_all_pairs(self, gaussian: GaussianSums, softmax: SoftmaxValues, out: Floats) -> None:
        assert isinstance(self.moments, Moments)
        assert softmax.all_pairs is not None
        layout, second = self.layout, self.moments.second
        by_node = (gaussian.by_column.T, np.ascontiguousarray(softmax.all_pairs.T))

        def some(*part: int) -> None:
            _edge_gradient(
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


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _gaussian_terms(moments, terms, entries, is_multiplied, part, slopes, out):
    """Value and slopes of -log p(x_s | rest) for continuous s, from part[0] to part[1].

    moments = (mean, second); terms = (bias, diagonal); entries = (first of each node, columns,
    coefficients c_s).  With `is_multiplied`, slopes[s] is second @ c_s before, else zero.  After,
    slopes[s] is the mean of z E_s, E_s = (a_s + z'c_s - b_s x_s) / b_s, and out = (value, slope in
    the bias, slope in the diagonal), each by node.
    """
    (mean, second), (bias, diagonal), (entry_ptr, columns, values) = moments, terms, entries
    for s in range(part[0], part[1]):
        a, b, product = bias[s], diagonal[s], slopes[s]
        mean_z, square = 0.0, 0.0
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            x, column = values[e], columns[e]
            mean_z += x * mean[column]
            if not is_multiplied:
                for k in range(product.shape[0]):
                    product[k] += x * second[column, k]
        for e in range(entry_ptr[s], entry_ptr[s + 1]):
            square += values[e] * product[columns[e]]
        # mean of (a + z'c - b x)^2, term by term
        square += a * a + b * b * second[s, s]
        square += 2.0 * (a * mean_z - b * product[s] - b * a * mean[s])
        for k in range(product.shape[0]):
            product[k] = (product[k] + a * mean[k] - b * second[s, k]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * mean[s]) / b
        out[2, s] = -0.5 / b - product[s] - 0.5 * square / b**2


@kernel(fastmath={"reassoc", "contract"})
def _support_terms(moments, terms, entries, slopes, out):
    """Value and slopes as in `_gaussian_terms`, in the coefficients c_s only, in their order."""
    (mean, second), (bias, diagonal), (entry_ptr, columns, values) = moments, terms, entries
    for s in range(bias.shape[0]):
        a, b, begin, end = bias[s], diagonal[s], entry_ptr[s], entry_ptr[s + 1]
        mean_z, square, product = 0.0, 0.0, 0.0
        for e in range(begin, end):
            column, x, total = np.uint64(columns[e]), values[e], 0.0
            for f in range(begin, end):
                total += values[f] * second[column, np.uint64(columns[f])]
            mean_z += x * mean[column]
            square += x * total
            product += x * second[column, np.uint64(s)]
            slopes[e] = (total + a * mean[column] - b * second[column, np.uint64(s)]) / b
        square += a * a + b * b * second[s, s]
        square += 2.0 * (a * mean_z - b * product - b * a * mean[s])
        of_own = (product + a * mean[s] - b * second[s, s]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * mean[s]) / b
        out[2, s] = -0.5 / b - of_own - 0.5 * square / b**2


@kernel
def _gaussian_curvatures(moments, terms, nodes, column_ptr, columns, values, start, out):
    """Second derivative of the nodes' Gaussian terms in (bias, diagonal, coefficients).

    moments = (mean, second); terms = (bias, diagonal); node s has the coefficients
    column_ptr[s]:column_ptr[s + 1]; the matrix of nodes[k] begins at start[k] of the flat `out`.
    """
    mean, second = moments
    bias, diagonal = terms
    for k in range(nodes.shape[0]):
        s = nodes[k]
        here = slice(column_ptr[s], column_ptr[s + 1])
        width = here.stop - here.start + 2
        node_curvature(
            mean, second, columns[here], bias[s], diagonal[s], values[here], width, out[start[k] :]
        )


@kernel
def _edge_gradient(pairs, features, starts, shared, is_target, column_start, sums, part, out):
    """Sum over the conditionals that every edge is in; `out` is the edge part of theta's gradient.

    sums = (by_cont, by_level, second): by_cont[s, a] is the mean of z_a E_s, by_level[l, a] that of
    z_a P_l.  An edge that is not shared is in the conditional of its second node only.  features =
    (first of every group or -1, how many); products with feature k stand (1 + k) times d columns
    further on.  starts = where every group begins in theta; the groups from part[0] to part[1] are
    taken.  A shared edge has its nodes in the order of kinds.  Indices are unsigned, as in
    `rows/kernels.py`.
    """
    by_cont, by_level, second = sums
    n_cont, n_columns = np.uint64(by_cont.shape[0]), np.uint64(column_start[-1])
    one = np.uint64(1)
    for g in range(part[0], part[1]):
        u, v, at = pairs[g, 0], pairs[g, 1], np.uint64(starts[g] - starts[0])
        heard, said = is_target[v], shared and is_target[u]
        first, end = np.uint64(column_start[u]), np.uint64(column_start[u + 1])
        begin, last = np.uint64(column_start[v]), np.uint64(column_start[v + 1])
        for k in range(features[1][g]):
            on, plain = np.uint64(1 + features[0][g] + k) * n_columns, features[0][g] < 0
            if begin < n_cont:
                for a in range(first, end):
                    x = by_cont[begin, on + a] if heard else 0.0
                    if said:
                        x += by_cont[a, on + begin]
                    out[at] = x
                    at += one
            elif first < n_cont:
                for b in range(begin, last):
                    x = by_level[b - n_cont, on + first] - second[on + first, b] if heard else 0.0
                    if said:
                        x += by_cont[first, on + b]
                    out[at] = x
                    at += one
            else:
                for a in range(first, end):
                    for b in range(begin, last):
                        x = by_level[b - n_cont, on + a] - second[on + a, b] if heard else 0.0
                        if said:
                            # Without features it is symmetric, and this is read in order.
                            seen = second[a, b] if plain else second[on + b, a]
                            x += by_level[a - n_cont, on + b] - seen
                        out[at] = x
                        at += one


# -- gaussian blocks -------------------------------------------------------------------------------

_AT_ONCE = 2**20
"""Second moments that are asked for in one call."""


@dataclass(frozen=True, eq=False)
class SupportSums:
    """Sum of the Gaussian terms and its derivatives in the parameters of the layout."""

    value: float
    slopes: Floats
    """Derivatives in the coefficients of Gaussian conditionals, in the incidence's order."""
    node_slopes: Floats
    """Derivatives in the linear terms, then in the diagonal."""


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Second moments of some columns of each node (rows of a block) with all of them."""

    row_ptr: Ints
    row_entry: Ints
    """Coefficient of every row; that of a node's own column means nothing."""
    start: Ints
    second: Floats


@dataclass(frozen=True, eq=False)
class GaussianBlocks:
    """Sum over Gaussian nodes of -log p(node | its predictors), averaged over rows."""

    rows: Rows
    moments: ColumnMoments
    layout: Layout
    whole: bool = True
    """Whether second moments of all predictors of a node are kept, or at every point asked for
    those of coefficients that are not zero there: for a layout of which few are."""

    def at(self, layout: Layout, theta: Floats, values: Floats, own: bool = True) -> SupportSums:
        """All terms; `values` are theta's in the order of the layout's incidence."""
        p, last = layout.n_gaussian, layout.incidence.gaussian_entries.stop
        blocks = self._all if self.whole else self._of(np.flatnonzero(values[:last]))
        slopes, out = np.zeros(last), np.empty((3, p))
        _terms(
            (self._first, self._mean, blocks.start, blocks.second),
            (blocks.row_ptr, blocks.row_entry),
            (theta[layout.linear], theta[layout.diagonal]),
            values,
            slopes,
            out,
        )
        if layout.covariates:
            out[:, ~layout.is_target[layout.nodes.gaussian]] = 0.0
        return SupportSums(float(out[0].sum()), slopes, out[1:].ravel())

    def curvature(self, layout: Layout, theta: Floats, values: Floats, nodes: Ints) -> NodeMatrices:
        """Second derivative of these nodes' terms, in the order of ``layout.conditional``."""
        size, blocks = np.diff(self._first)[nodes] + 1, self._all
        start = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.square(size).cumsum(out=start[1:])
        out = np.empty(int(start[-1]))
        _curvatures(
            (self._first, self._mean, blocks.start, blocks.second),
            (theta[layout.linear], theta[layout.diagonal]),
            nodes,
            values,
            start,
            out,
        )
        return NodeMatrices(nodes, start, out)

    @cached_property
    def _first(self) -> Ints:
        """Where the columns of every node begin in `_columns`, and the end."""
        p = self.layout.n_gaussian
        return self.layout.incidence.node_entries[: p + 1] + np.arange(p + 1)

    @cached_property
    def _columns(self) -> Ints:
        """Design columns by node: the node's own, then those of its coefficients."""
        p, incidence = self.layout.n_gaussian, self.layout.incidence
        out = np.empty(int(self._first[-1]), dtype=np.int64)
        is_own = np.zeros(len(out), dtype=bool)
        is_own[self._first[:-1]] = True
        out[is_own] = np.arange(p)
        out[~is_own] = incidence.entry_column[incidence.gaussian_entries]
        return out

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(self.moments.mean[self._columns])

    @cached_property
    def _all(self) -> _Blocks:
        return self._of(np.arange(self.layout.incidence.gaussian_entries.stop))

    def _of(self, entries: Ints) -> _Blocks:
        """Rows for each node's own column and for these coefficients, which are sorted."""
        p, ends = self.layout.n_gaussian, self.layout.incidence.node_entries
        row_ptr = np.searchsorted(entries, ends[: p + 1]) + np.arange(p + 1)
        row_entry = np.full(int(row_ptr[-1]), -1, dtype=np.int64)
        is_own = np.zeros(len(row_entry), dtype=bool)
        is_own[row_ptr[:-1]] = True
        row_entry[~is_own] = entries
        node = np.repeat(np.arange(p), np.diff(row_ptr))
        place = np.where(is_own, self._first[node], row_entry + node + 1)
        width = np.diff(self._first)
        start = np.concatenate([[0], np.cumsum(np.diff(row_ptr) * width)]).astype(np.int64)
        second = np.empty(int(start[-1]))
        length = width[node]
        ends_at = np.cumsum(length)
        done = 0
        while done < len(node):
            before = int(ends_at[done - 1]) if done else 0
            upto = max(done + 1, int(np.searchsorted(ends_at, before + _AT_ONCE, "right")))
            part = slice(done, upto)
            second[before : int(ends_at[upto - 1])] = self.rows.second_moments(
                np.repeat(self._columns[place[part]], length[part]),
                self._columns[spans(self._first[node[part]], length[part])],
            )
            done = upto
        # The variance of a constant is 1 by custom, so that its own term has an optimum.
        second[start[:-1]] = self.moments.squares[:p]
        return _Blocks(row_ptr.astype(np.int64), row_entry, start, second)


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _terms(blocks, rows, terms, values, slopes, out):
    """Value and slopes, of coefficients the nodes' own only, in the order of `values`.

    blocks as in `_curvatures`, but of second moments only some rows are there: those of the
    node's own column, and of coefficients that are not zero.  rows = (first row of each node, the
    coefficient of every row).
    """
    (first, mean, at, second), (row_ptr, coefficient), (bias, diagonal) = blocks, rows, terms
    longest = 0
    for s in range(bias.shape[0]):
        longest = max(longest, first[s + 1] - first[s])
    product = np.empty(longest)
    for s in range(bias.shape[0]):
        a, b, size, entry = bias[s], diagonal[s], first[s + 1] - first[s], first[s] - s
        of_node, own = mean[first[s] : first[s + 1]], second[at[s] : at[s] + size]
        for j in range(size):
            product[j] = 0.0
        mean_z, square = 0.0, 0.0
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            x = values[coefficient[i]]
            mean_z += x * of_node[1 + coefficient[i] - entry]
            begin = at[s] + (i - row_ptr[s]) * size
            for j in range(size):
                product[j] += x * second[begin + j]
        for i in range(row_ptr[s] + 1, row_ptr[s + 1]):
            square += values[coefficient[i]] * product[1 + coefficient[i] - entry]
        square += a * a + b * b * own[0]
        square += 2.0 * (a * mean_z - b * product[0] - b * a * of_node[0])
        for j in range(1, size):
            slopes[entry + j - 1] = (product[j] + a * of_node[j] - b * own[j]) / b
        out[0, s] = -0.5 * np.log(b) + square / (2.0 * b)
        out[1, s] = (a + mean_z - b * of_node[0]) / b
        of_own = (product[0] + a * of_node[0] - b * own[0]) / b
        out[2, s] = -0.5 / b - of_own - 0.5 * square / b**2


@kernel
def _curvatures(blocks, terms, nodes, values, start, out):
    """Second derivatives of nodes' terms, each from a matrix of second moments of its own.

    blocks = (first column of each node, means, first entry of its matrix, matrices): the columns of
    a node are its own one, then those of its coefficients.
    """
    first, mean, at, second = blocks
    bias, diagonal = terms
    for k in range(nodes.shape[0]):
        s = nodes[k]
        size = first[s + 1] - first[s]
        matrix = second[at[s] : at[s] + size * size].reshape(size, size)
        here = slice(first[s] - s, first[s + 1] - s - 1)
        columns = np.arange(1, size)
        of_node, place = mean[first[s] : first[s + 1]], out[start[k] :]
        node_curvature(
            of_node, matrix, columns, bias[s], diagonal[s], values[here], size + 1, place
        )


@inner
def node_curvature(mean, second, columns, bias, b, values, width, out):
    """The matrix of one node, which has these columns and coefficients; out is flat."""
    size = columns.shape[0]
    mean_eta, square = bias, 0.0
    for i in range(size):
        a = columns[i]
        z_eta = mean[a] * bias
        for j in range(size):
            x = second[a, columns[j]]
            z_eta += x * values[j]
            out[(i + 2) * width + j + 2] = x / b
        mean_eta += mean[a] * values[i]
        square += values[i] * z_eta
        out[i + 2] = mean[a] / b
        out[(i + 2) * width] = mean[a] / b
        out[width + i + 2] = -z_eta / (b * b)
        out[(i + 2) * width + 1] = -z_eta / (b * b)
    square += bias * mean_eta
    out[0] = 1.0 / b
    out[1] = -mean_eta / (b * b)
    out[width] = -mean_eta / (b * b)
    out[width + 1] = 0.5 / (b * b) + square / (b * b * b)

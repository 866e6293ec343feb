"""A refitted graph and the rows -> an estimate of every pair without shrinkage, and its covariance.

Every pair is estimated given the own terms of all columns and the edges of a graph.  An edge of the
graph has its refitted coefficients; any other pair gets one Newton step from zero, with everything
in the graph following.  With all pairs in the graph, all are estimated at once.

The covariance is Godambe's, H^-1 J H^-1 / n, with the mean Hessian H and the mean square J of a
row's whole gradient: the conditionals of a row are not independent of each other.

Estimates of pairs -> estimates in units of the residual standard deviations of numbers.

A number whose precision term is k has the residual standard deviation 1/sqrt(k), given all other
columns.  In these units the coefficient of two numbers is their partial correlation.  So units of
columns, and variances that differ between groups of rows, are taken out.  Precision terms are
estimated as well, and the errors of an edge of the graph include theirs.  A pair outside the graph
is near zero, where they hardly matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from mixedgm.base.threads import run_all, single_threaded_blas
from mixedgm.inference.held import Batch, Held, PairPart, by_size, square_starts
from mixedgm.inference.row_scores import Scorer, redrawn
from mixedgm.inference.row_sums import (
    Completions,
    CurvatureSums,
    EndProducts,
    MissingSums,
    SquareSums,
    clustered_drawn_sums,
    clustered_square_sums,
    curvature_sums,
    drawn_means,
    drawn_sums,
    mirrored,
    missing_sums,
    spread_out,
    square_sums,
)
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.objective.contract import Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.contrasts import Contrasts

MOST_ROWS = 50_000
"""Second derivatives and squares of gradients are means over at most so many rows, evenly spread:
a relative error of half a percent."""

_FLAT = 1e-10
_LEAST_LEFT = 0.1
_LEAST_VARIANCE = 0.75
"""Of a score in units of its curvature, for each conditional that the pair is in.  Without an edge
the variance is at least the curvature, and one and a half times to three times it where both ends
are predicted.  With few rows in a cell the rows say far less: nothing, if it is empty."""
_LEAST_KNOWN = 0.01
"""Share of the information about any contrast that gaps leave at least."""
_LEAST_CLUSTERED = 0.05
"""The same with clusters, whose rows may vary less than independent ones."""


@dataclass(frozen=True, eq=False)
class PairEstimates:
    """Estimates of all groups in contrasts of standardised columns, and their covariances."""

    layout: Layout
    """Of the contrasts."""
    eta: Floats
    """(edge parameters,) estimates."""
    covariance: Floats
    """(sum of squared sizes,) a matrix for every group, one after the other; empty if not asked."""
    n: float
    """Number of observations."""
    missing: Floats | None = None
    """(n_groups,) share of every pair's information that gaps have taken, where there are some."""
    left: Floats | None = None
    """(nodes,) the share of the rows that a column's predictors leave, where estimates are less by
    it."""

    @cached_property
    def start(self) -> Ints:
        """Where the matrix of every group begins, and the end."""
        return square_starts(self.layout)

    def by_size(self) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Groups of the same size k together: which, estimates (m, k), covariances (m, k, k)."""
        for groups, at in by_size(self.layout):
            k = at.shape[1]
            square = self.start[groups][:, None] + np.arange(k * k)
            yield groups, self.eta[at], self.covariance[square].reshape(-1, k, k)

    def less_biased(self, left: Floats) -> PairEstimates:
        """The same tests with estimates that are not too large.

        A fit to n rows by k predictors is too large by n / (n - k), for numbers (their precisions
        are) as for levels (to first order; Cordeiro and McCullagh 1991).  `left` are 1 - k / n of
        every node; an estimate that two conditionals share has their mean.
        """
        mean = np.repeat(_mean_left(self.layout, left), self.layout.sizes)
        return replace(self.rescaled(mean), left=left)

    def among(self, groups: Ints) -> PairEstimates:
        """The estimates of some groups, in ascending order."""
        if len(groups) == self.layout.n_groups:
            return self
        return replace(
            self,
            layout=self.layout.restrict(groups),
            eta=self.eta[self.layout.edge_places(groups)],
            covariance=self.covariance[spans(self.start[groups], self.layout.sizes[groups] ** 2)],
            missing=None if self.missing is None else self.missing[groups],
        )

    def rescaled(self, unit: Floats) -> PairEstimates:
        """Estimates times these numbers (edge parameters,), with their covariances."""
        if not len(self.covariance):
            return replace(self, eta=self.eta * unit)
        covariance = self.covariance.copy()
        for groups, at in by_size(self.layout):
            k = at.shape[1]
            square = unit[at][:, :, None] * unit[at][:, None, :]
            covariance[self.start[groups][:, None] + np.arange(k * k)] *= square.reshape(-1, k * k)
        return replace(self, eta=self.eta * unit, covariance=covariance)


def estimated_pairs(
    smooth: Smooth,
    rows: MemoryRows | PartedRows,
    theta: Floats,
    graph: Ints,
    *,
    clusters: Ints | None = None,
    rng: np.random.Generator | None = None,
    errors: bool = True,
    dtype: type[np.floating] = np.float64,
    row: Ints | None = None,
    by_spread: bool = False,
) -> PairEstimates:
    """Estimate all groups given the graph.

    Parameters
    ----------
    smooth : Smooth
        The pseudolikelihood of all permitted pairs, with a ridge where the graph needs one.
    rows : MemoryRows or PartedRows
        Its rows.  Those in parts have no clusters or gaps, and are not redrawn.
    theta : ndarray
        Its optimum on the graph; zero elsewhere, and contrasts only.
    graph : ndarray of int
        Groups, sorted.
    clusters : ndarray of int, optional
        The cluster of every observation, counted from 0.  Gradients are added up within clusters
        before they are squared.
    rng : numpy.random.Generator, optional
        J is taken from rows that are redrawn from the model instead.
    errors : bool
        Whether covariances are wanted.  Estimates alone take no squares, and no curvature if the
        graph has all groups.
    dtype : numpy.float64 or numpy.float32
        Precision of sums of products over rows, which take most of the time.  Everything else is
        double.
    row : ndarray of int, optional
        Where the rows complete others that have gaps: which of these each belongs to.
    by_spread : bool
        Whether numbers are measured by their residual standard deviations.
    """
    contrasts = Contrasts(smooth.layout)
    reduced, n = contrasts.reduced, rows.total_weight
    eta = contrasts.down(theta)
    left = left_by_predictors(reduced, graph, _observations(rows, clusters, row))
    if not errors and len(graph) == reduced.n_groups:
        return PairEstimates(reduced, eta[reduced.edges], np.zeros(0), n).less_biased(left)
    gradient = contrasts.down(smooth.evaluate(theta).gradient)
    stride = max(1, rows.n_rows // MOST_ROWS)
    with single_threaded_blas():  # sums in a fixed order
        held, ends = Held(reduced, graph), EndProducts(reduced)
        inverse = inverse_of(hessian_of(smooth, theta, graph, stride), held.inside)
        independent = left_by_predictors(reduced, graph, _independent(rows, clusters, row))
        scorer = Scorer(smooth.layout, reduced, theta, eta, independent**-0.5)
        curvature = curvature_sums(held, ends, scorer, rows, stride, dtype)
        values = eta[reduced.edges].copy()
        if row is not None:
            assert isinstance(rows, MemoryRows)
            sums = missing_sums(held, scorer, Completions(rows, row, clusters))
            hessian = hessian_of(smooth, theta, graph, stride)
            steps = Steps(held, ends, inverse, gradient, curvature)
            smallest = _LEAST_VARIANCE if clusters is None else _LEAST_CLUSTERED
            found, followed = _with_gaps(steps, hessian, sums, values, n, smallest)
            if by_spread:
                found = _in_spreads(found, _spread(held, eta, left), followed)
            return found.less_biased(left)
        if not errors:
            steps = Steps(held, ends, inverse, gradient, curvature)
            for batch in held.batches():
                values[batch.params] = steps.of(batch).estimates
            return PairEstimates(reduced, values, np.zeros(0), n).less_biased(left)
        if clusters is not None:
            assert isinstance(rows, MemoryRows)
            squares = clustered_square_sums(held, ends, scorer, rows, clusters, inverse)
        elif rng is not None:
            assert isinstance(rows, MemoryRows)
            drawn = redrawn(scorer, rows, rng)
            squares = square_sums(held, ends, scorer, drawn, 1, inverse, dtype)
        else:
            squares = square_sums(held, ends, scorer, rows, stride, inverse, dtype)
        _add_ridge(smooth, held, inverse, squares.followed, dtype)
        smallest = _LEAST_VARIANCE if clusters is None else _LEAST_CLUSTERED
        least = np.asarray(smallest * reduced.conditionals, dtype=np.float64)
        inside = _inside(held, inverse, squares, least)
        outside = Steps(held, ends, inverse, gradient, curvature).with_errors(squares, least)
        parts = run_all([partial(outside, part) for part in held.parts], rows.n_threads)
        start, covariance = square_starts(reduced), np.empty(int((reduced.sizes**2).sum()))
        for groups, estimates, matrices in (*inside, *parts):
            k = matrices.shape[1]
            if estimates is not None:
                at = reduced.starts[groups] - reduced.n_node_terms
                values[at[:, None] + np.arange(k)] = estimates
            to = start[groups][:, None] + np.arange(k * k)
            covariance[to] = matrices.reshape(len(groups), -1) / n
        found = PairEstimates(reduced, values, covariance, n)
        if by_spread:
            found = _in_spreads(found, _spread(held, eta, left), squares.followed)
        return found.less_biased(left)


def _spread(held: Held, eta: Floats, left: Floats) -> ResidualSpread:
    """The residual standard deviations of all numbers at these contrasts."""
    return ResidualSpread(held, eta[held.layout.diagonal], left)


def inverse_curvature(smooth: Smooth, theta: Floats) -> Floats:
    """The inverse of the Hessian of own terms and all groups, in contrasts."""
    everything = np.arange(smooth.layout.n_groups)
    with single_threaded_blas():
        hessian = hessian_of(smooth, theta, everything, max(1, smooth.n_rows // MOST_ROWS))
        return inverse_of(hessian, Contrasts(smooth.layout).reduced)


def drawn_errors(
    smooth: Smooth,
    rows: MemoryRows,
    theta: Floats,
    graph: Ints,
    *,
    n_draws: int,
    rng: np.random.Generator,
    clusters: Ints | None = None,
    row: Ints | None = None,
) -> Floats:
    """(n_draws, edge parameters) errors of the estimates of all pairs by their residual spreads.

    Every row moves the estimates by its influence, here times a standard normal number: a
    multiplier bootstrap, which has their joint covariance and needs no other fit.  Rows of a
    cluster have the same number; so have clusters with the same label in other tables, where `rng`
    starts from the same seed.
    """
    contrasts = Contrasts(smooth.layout)
    reduced, n = contrasts.reduced, rows.total_weight
    eta = contrasts.down(theta)
    stride = max(1, rows.n_rows // MOST_ROWS)
    with single_threaded_blas():  # sums in a fixed order
        held, ends = Held(reduced, graph), EndProducts(reduced)
        inverse = inverse_of(hessian_of(smooth, theta, graph, stride), held.inside)
        left = left_by_predictors(reduced, graph, _observations(rows, clusters, row))
        independent = left_by_predictors(reduced, graph, _independent(rows, clusters, row))
        scorer = Scorer(smooth.layout, reduced, theta, eta, independent**-0.5)
        curvature = curvature_sums(held, ends, scorer, rows, stride)
        values, spread = eta[reduced.edges], _spread(held, eta, left)
        scale = np.repeat(_mean_left(reduced, left), reduced.sizes) / np.sqrt(n)
        if row is not None:
            completions = Completions(rows, row, clusters)
            sums = missing_sums(held, scorer, completions)
            moved = drawn_means(held, scorer, completions, (n_draws, rng))
            steps = Steps(held, ends, inverse, np.zeros(reduced.n_theta), curvature)
            hessian = hessian_of(smooth, theta, graph, stride)
            errors, followed = _errors_with_gaps(steps, hessian, sums, *moved)
            return np.asarray(spread.errors(errors, values, followed) * scale)
        if clusters is None:
            of_held, of_edges = drawn_sums(held, ends, scorer, rows, stride, (n_draws, rng))
        else:
            drawn = n_draws, int(rng.integers(2**63))
            of_held, of_edges = clustered_drawn_sums(held, scorer, rows, clusters, drawn)
        followed, errors = of_held @ inverse, np.empty_like(of_edges)
        inside = spans(reduced.starts[graph], reduced.sizes[graph]) - reduced.n_node_terms
        errors[:, inside] = followed[:, held.inside.edges]
        padded = np.pad(followed, ((0, 0), (0, 1)))
        nothing = np.zeros(reduced.n_theta)
        steps = Steps(held, ends, inverse, nothing, curvature)
        for batch in held.batches():
            across, root, _ = steps.of(batch)
            for d in range(n_draws):
                moved = np.einsum("gkj,gj->gk", across, padded[d, batch.held])
                alone = of_edges[d, batch.params] - moved
                errors[d, batch.params] = np.einsum("gab,gb->ga", root @ root, alone)
        return np.asarray(spread.errors(errors, values, followed) * scale)


def _in_spreads(found: PairEstimates, spread: ResidualSpread, followed: Floats) -> PairEstimates:
    """Estimates in units of residual spreads; `followed` is n times the covariance of the held."""
    covariance = spread.covariance(found.eta, found.covariance, followed / found.n)
    return replace(found, covariance=covariance).rescaled(spread.scale)


def _observations(
    rows: MemoryRows | PartedRows, clusters: Ints | None, row: Ints | None = None
) -> float:
    """Number of observations: with clusters weights are those of a design, as Kish counts them.

    Where rows complete others, weights are shares of these.
    """
    plain = clusters is None or row is not None
    if plain or isinstance(rows, PartedRows) or rows.weights is None:
        return rows.total_weight
    return float(rows.total_weight**2 / (rows.weights**2).sum())


def _independent(
    rows: MemoryRows | PartedRows, clusters: Ints | None, row: Ints | None = None
) -> float:
    """Number of independent observations: clusters, as Kish counts their weights.

    Variances from few clusters are too small by about the number of predictors among these.
    """
    if clusters is None or isinstance(rows, PartedRows):
        return rows.total_weight
    unit = clusters if row is None else clusters[row]
    of_units = np.bincount(unit, rows.weights)
    return float(of_units.sum() ** 2 / (of_units**2).sum())


def left_by_predictors(layout: Layout, graph: Ints, n: float) -> Floats:
    """(nodes,) the share of the rows that a column's predictors, and its mean, leave."""
    nodes, small = layout.nodes, layout.restrict(graph)
    u, v = small.pairs.T
    count = 1.0 + np.bincount(v, nodes.width[u] * small.n_blocks, layout.n_nodes)
    if not layout.nodewise:
        count += np.bincount(u, nodes.width[v] * small.n_blocks, layout.n_nodes)
    return np.asarray(np.maximum(1.0 - count / n, _LEAST_LEFT))


def _mean_left(layout: Layout, left: Floats) -> Floats:
    """(n_groups,) mean of what is left over the conditionals that a group is in."""
    part = left[layout.pairs] * layout.is_target[layout.pairs]
    if layout.nodewise:
        part[:, 0] = 0.0
    return np.asarray(part.sum(axis=1) / layout.conditionals)


_Estimated = tuple[Ints, Floats | None, Floats]
"""Groups, their estimates where these are new, and covariances of a single observation."""


def hessian_of(smooth: Smooth, theta: Floats, graph: Ints, stride: int) -> Floats:
    """Second derivatives in own terms and the graph, on contrasts."""
    layout = smooth.layout
    small = smooth.restrict(graph)
    inner = Contrasts(small.layout)
    size, start, matrices = inner.curvature(small, theta[layout.positions(graph)], stride)
    runs, out = inner.runs, np.zeros((inner.reduced.n_theta,) * 2)
    for v in np.flatnonzero(size).tolist():
        run = slice(int(runs.ptr[v]), int(runs.ptr[v + 1]))
        at = spans(runs.position[run], runs.length[run])
        out[np.ix_(at, at)] += matrices[start[v] : start[v + 1]].reshape(size[v], size[v])
    return out


def _add_ridge(
    smooth: Smooth, held: Held, inverse: Floats, followed: Floats, dtype: type[np.floating]
) -> None:
    """What a ridge adds to the curvature it adds to the variance of gradients."""
    if not isinstance(smooth, Ridged):
        return
    level = np.repeat(smooth.edges[held.graph], held.inside.sizes)
    some = np.flatnonzero(level)
    if not len(some):
        return
    of_ridge = inverse[held.inside.n_node_terms + some] * np.sqrt(level[some, None])
    of_ridge = of_ridge.astype(dtype)
    (half,) = linalg.get_blas_funcs(("syrk",), (of_ridge,))
    followed += mirrored(half(1.0, of_ridge.T, lower=1))


def _inside(
    held: Held, inverse: Floats, squares: SquareSums, least: Floats
) -> Iterator[_Estimated]:
    """Edges of the graph: they keep their estimates."""
    for groups, at in by_size(held.inside):
        own = at + held.inside.n_node_terms
        block, square = (
            each[own[:, :, None], own[:, None, :]] for each in (inverse, squares.followed)
        )
        root, unrooted = _roots(block)
        middle = _at_least(unrooted @ square @ unrooted, least[held.graph[groups]])
        yield held.graph[groups], None, root @ middle @ root


class _OneStep(NamedTuple):
    """One step from zero for groups outside the graph, with everything held following."""

    across: Floats
    """(G, k, K) curvature that a group shares with what is held."""
    root: Floats
    """(G, k, k) of the inverse of what is left of its own curvature."""
    estimates: Floats


def _with_gaps(
    steps: Steps, hessian: Floats, sums: MissingSums, values: Floats, n: float, smallest: float
) -> tuple[PairEstimates, Floats]:
    """All pairs, where rows have gaps, and n times the covariance (held, held) of what is held.

    The Hessian is that of the completed rows.
    """
    held, size, layout = steps.held, steps.held.size, steps.held.layout
    complete = steps.inverse
    inverse: Floats = np.asarray(np.linalg.pinv(hessian + sums.missing), dtype=np.float64)
    followed = inverse @ sums.squares @ inverse.T
    start, covariance = square_starts(layout), np.zeros(int((layout.sizes**2).sum()))
    missing, values = np.zeros(layout.n_groups), values.copy()
    least = np.asarray(smallest * layout.conditionals, dtype=np.float64)

    def put(groups: Ints, curved: Floats, whole: Floats, square: Floats) -> Floats:
        """Write covariances; return the inverse of the curvature."""
        root = _root_of_inverse(curved, whole)
        matrices = root @ _at_least(root @ square @ root, least[groups]) @ root
        to = start[groups][:, None] + np.arange(matrices[0].size)
        covariance[to] = matrices.reshape(len(groups), -1) / n
        return root @ root

    for numbers, at in by_size(held.inside):
        own, groups = at + held.inside.n_node_terms, held.graph[numbers]
        block = own[:, :, None], own[:, None, :]
        curved, whole = (_inverted(_symmetric(each[block])) for each in (inverse, complete))
        put(groups, curved, whole, curved @ followed[block] @ curved)
        missing[groups] = _missing_share(curved, whole)
    before = 0
    for number, part in enumerate(held.parts):
        batch, shape = held.batch(part), (len(part.groups), part.size, size)
        here = slice(before, before + shape[0] * shape[1])
        before = here.stop
        curved, follows, whole = _left_of(steps, sums, inverse, number, here, shape)
        one = follows.reshape(shape)
        products = one @ sums.products[here].reshape(shape).transpose(0, 2, 1)
        square = sums.own_squares[number] - products - products.transpose(0, 2, 1)
        square += (follows @ sums.squares).reshape(shape) @ one.transpose(0, 2, 1)
        push = steps.pull[batch.params] - one @ steps.gradient_of_held
        step = put(part.groups, curved, whole, square)
        values[batch.params] = -np.einsum("gab,gb->ga", step, push)
        missing[part.groups] = _missing_share(curved, whole)
    found = PairEstimates(layout, values, covariance, n, np.clip(missing, 0.0, 0.99))
    return found, followed


def _errors_with_gaps(
    steps: Steps, hessian: Floats, sums: MissingSums, of_held: Floats, of_edges: Floats
) -> tuple[Floats, Floats]:
    """(draws, edge parameters) and (draws, held): how estimates follow gradients."""
    held, size = steps.held, steps.held.size
    inverse: Floats = np.asarray(np.linalg.pinv(hessian + sums.missing), dtype=np.float64)
    errors = np.empty_like(of_edges)
    layout, graph = held.layout, held.graph
    inside = spans(layout.starts[graph], layout.sizes[graph]) - layout.n_node_terms
    followed = of_held @ inverse.T
    errors[:, inside] = followed[:, held.inside.edges]
    before = 0
    for number, part in enumerate(held.parts):
        batch, shape = held.batch(part), (len(part.groups), part.size, size)
        here = slice(before, before + shape[0] * shape[1])
        before = here.stop
        curved, follows, whole = _left_of(steps, sums, inverse, number, here, shape)
        root = _root_of_inverse(curved, whole)
        alone = of_edges[:, batch.params.ravel()] - of_held @ follows.T
        alone = alone.reshape(len(alone), *batch.params.shape)
        errors[:, batch.params] = np.einsum("gab,dgb->dga", root @ root, alone)
    return errors, followed


def _left_of(
    steps: Steps,
    sums: MissingSums,
    inverse: Floats,
    number: int,
    here: slice,
    shape: tuple[int, int, int],
) -> tuple[Floats, Floats, Floats]:
    """Of a part: curvature (G, k, k) with everything held following, how it follows, and H."""
    size = shape[2]
    batch = steps.held.batch(steps.held.parts[number])
    across = spread_out(batch, batch.taken(steps.curvature.across), size)
    follows = np.asarray((across + sums.missing_down[here]) @ inverse)
    other = (across + sums.missing_across[here]).reshape(shape).transpose(0, 2, 1)
    own = steps.ends.blocks(batch, steps.curvature.by_variances, None)
    curved = own + sums.own_missing[number] - follows.reshape(shape) @ other
    complete = steps.inverse
    joint = (across @ complete).reshape(shape) @ across.reshape(shape).transpose(0, 2, 1)
    return np.asarray(curved), follows, np.asarray(own - joint)


def _root_of_inverse(curved: Floats, whole: Floats) -> Floats:
    """(G, k, k) of a curvature of which at least a hundredth of that of completed rows is left."""
    root, unrooted = _roots(whole)
    left = _at_least(_symmetric(unrooted @ curved @ unrooted), np.full(len(curved), _LEAST_KNOWN))
    _, out = _roots(root @ left @ root)
    return out


def _inverted(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _symmetric(matrices: Floats) -> Floats:
    return np.asarray(0.5 * (matrices + matrices.transpose(0, 2, 1)))


def _missing_share(left: Floats, complete: Floats) -> Floats:
    """(G,) the share of information (G, k, k) that is not left."""
    traces = [np.trace(each, axis1=1, axis2=2) for each in (left, complete)]
    return np.asarray(1.0 - traces[0] / np.maximum(traces[1], 1e-300))


class Steps:
    """One step from zero of all pairs outside the graph, and their covariances, by batches."""

    def __init__(
        self,
        held: Held,
        ends: EndProducts,
        inverse: Floats,
        gradient: Floats,
        curvature: CurvatureSums,
    ) -> None:
        self.held, self.ends, self.curvature = held, ends, curvature
        self.pull = gradient[held.layout.edges]
        self.gradient_of_held = gradient[held.layout.positions(held.graph)]
        self.rest = np.append(inverse @ self.gradient_of_held, 0.0)
        self.inverse = inverse

    def of(self, batch: Batch) -> _OneStep:
        """The steps of a batch."""
        across = batch.taken(self.curvature.across)
        block = self.ends.blocks(batch, self.curvature.by_variances, None)
        _, root = _roots(block - batch.quadratic(self.inverse, across, across))
        push = self.pull[batch.params] - np.einsum("gkj,gj->gk", across, self.rest[batch.held])
        return _OneStep(across, root, -np.einsum("gab,gb->ga", root @ root, push))

    def with_errors(self, squares: SquareSums, least: Floats) -> Callable[[PairPart], _Estimated]:
        """What gives the estimates of a part and their covariances."""

        def of(part: PairPart) -> _Estimated:
            batch = self.held.batch(part)
            across, root, estimates = self.of(batch)
            own = squares.own[part.before : part.before + root.size].reshape(root.shape)
            mixed = across @ batch.taken(squares.cross).transpose(0, 2, 1)
            square = own - mixed - mixed.transpose(0, 2, 1)
            square += batch.quadratic(squares.followed, across, across)
            middle = _at_least(root @ square @ root, least[part.groups])
            return part.groups, estimates, root @ middle @ root

        return of


def _roots(matrices: Floats) -> tuple[Floats, Floats]:
    """Symmetric roots of positive matrices, and of their inverses.

    Directions in which the rows say next to nothing get a curvature that is just not zero.
    """
    values, vectors = np.linalg.eigh(matrices)
    values = np.sqrt(np.maximum(values, _FLAT * np.maximum(values[:, -1:], _FLAT)))
    turned = vectors.transpose(0, 2, 1)
    return (vectors * values[:, None, :]) @ turned, (vectors / values[:, None, :]) @ turned


def _at_least(matrices: Floats, least: Floats) -> Floats:
    """Variances of scores in units of their curvature, none of them less than it can be.

    Where rows are predicted with near certainty, as by a column that determines another, residuals
    vanish, and an estimate far out would seem to have no error at all.
    """
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, least[:, None])
    return np.asarray((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))


def inverse_of(matrix: Floats, held: Layout) -> Floats:
    """Inverse of a Hessian in node terms and edges of a layout.

    Node terms of different nodes share no curvature, so they are eliminated first: what is factored
    is as large as the number of edge parameters.
    """
    size, own = held.n_theta, held.n_node_terms
    if own == 0 or own == size:
        return _inverse(matrix)
    places = [held.node_terms_of(v) for v in range(held.n_nodes)]
    lengths, inverse = np.array([len(at) for at in places]), np.zeros((size, size))
    for length in np.unique(lengths[lengths > 0]).tolist():
        at = np.array([places[v] for v in np.flatnonzero(lengths == length)])
        block = at[:, :, None], at[:, None, :]
        of_nodes = matrix[block]
        ridge = np.maximum(_FLAT * np.einsum("vii->vi", of_nodes), _FLAT**2)
        inverse[block] = np.linalg.inv(of_nodes + ridge[:, :, None] * np.eye(length))
    across = sparse.csr_array(matrix[own:, :own])
    follows = across @ sparse.csr_array(inverse[:own, :own])
    rest = matrix[own:, own:] - (follows @ across.T).toarray()
    inverse[own:, own:] = _inverse(rest)
    moved = -np.asarray(follows.T @ inverse[own:, own:])
    inverse[:own, own:], inverse[own:, :own] = moved, moved.T
    inverse[:own, :own] -= np.asarray(follows.T @ moved.T)
    return inverse


def _inverse(matrix: Floats) -> Floats:
    """Of a positive matrix; what has next to no curvature is given a little."""
    size = len(matrix)
    ridge = _FLAT * np.maximum(np.diagonal(matrix), _FLAT)
    for power in range(6):
        factor, failed = linalg.lapack.dpotrf(matrix + np.diag(10.0**power * ridge), lower=1)
        if not failed:
            inverse, _ = linalg.lapack.dpotri(factor, lower=1)
            return mirrored(np.asarray(inverse))
    return np.asarray(linalg.pinvh(matrix, rtol=1e-6 * size))


# -- residual spread -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ResidualSpread:
    """The change of units."""

    held: Held
    precision: Floats
    """(numbers,) precision terms; those of covariates, which have none, are not used."""
    left: Floats
    """(nodes,) by which precision terms are to be multiplied, as they are too large."""

    @cached_property
    def scale(self) -> Floats:
        """(edge parameters,) what coefficients are multiplied by."""
        layout, p = self.held.layout, len(self.precision)
        of_node = np.ones(layout.n_nodes)
        target = layout.is_target[:p]
        of_node[:p][target] = (self.precision * self.left[:p])[target] ** -0.5
        of_column = of_node[layout.column_node]
        row, column = layout.edge_position
        return np.asarray(of_column[row % layout.n_columns] * of_column[column])

    def covariance(self, eta: Floats, covariance: Floats, of_held: Floats) -> Floats:
        """Covariances of estimates, with what errors of precision terms add, before scaling.

        They are a matrix for every group, one after the other; `of_held` (held, held) is the
        covariance of all that is held.
        """
        layout, out = self.held.layout, covariance.copy()
        start, first = square_starts(layout), layout.starts - layout.n_node_terms
        for pairs, own, terms, slope in self._inside():
            k = own.shape[1]
            values = eta[first[pairs][:, None] + np.arange(k)]
            mixed = np.einsum("gkl,gl->gk", of_held[own[:, :, None], terms[:, None, :]], slope)
            both = of_held[terms[:, :, None], terms[:, None, :]]
            spread = np.einsum("gl,glm,gm->g", slope, both, slope)
            added = values[:, :, None] * mixed[:, None, :]
            added = added + added.transpose(0, 2, 1)
            added += (spread[:, None] * values)[:, :, None] * values[:, None, :]
            out[start[pairs][:, None] + np.arange(k * k)] += added.reshape(-1, k * k)
        return out

    def errors(self, errors: Floats, eta: Floats, of_held: Floats) -> Floats:
        """(draws, edge parameters) errors in these units.

        `of_held` (draws, held) are errors of all that is held, `eta` the estimates.
        """
        out, layout = errors.copy(), self.held.layout
        for pairs, own, terms, slope in self._inside():
            at = (layout.starts[pairs] - layout.n_node_terms)[:, None] + np.arange(own.shape[1])
            moved = np.einsum("dgl,gl->dg", of_held[:, terms], slope)
            out[:, at] += moved[:, :, None] * eta[at]
        return np.asarray(out * self.scale)

    def _inside(self) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
        """Edges of the graph of one size k with a number at an end, together.

        Which pairs; (m, k) where they are among all that is held; (m, 2) where the precision terms
        of both ends are; (m, 2) the derivatives of the logarithm of the scale in these.
        """
        layout, inside, p = self.held.layout, self.held.inside, len(self.precision)
        slopes = np.zeros(layout.n_nodes)
        slopes[:p] = np.where(layout.is_target[:p], -0.5 / self.precision, 0.0)
        numbers = np.flatnonzero((slopes[inside.pairs] != 0.0).any(axis=1))
        for k in np.unique(inside.sizes[numbers]).tolist():
            some = numbers[inside.sizes[numbers] == k]
            ends = inside.pairs[some]
            own = inside.starts[some][:, None] + np.arange(k)
            terms = inside.diagonal.start + np.minimum(ends, p - 1)
            yield self.held.graph[some], own, terms, slopes[ends]

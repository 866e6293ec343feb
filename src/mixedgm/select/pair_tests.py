"""A task and a graph -> tests of all pairs given the graph.

Every pair is tested with the own terms of all columns and the edges of the graph adjusted for: an
edge of the graph by its own estimate, any other pair by one step from zero.

A refitted graph and the rows -> a rough test of every pair, in one pass and without inverses.

The derivative of the loss in a pair is z_u r_v + z_v r_u: columns of one end times residuals of the
other.  Here its variance is that of a pair whose ends have nothing to do with each other,

    S_u x O_v + O_u x S_v + C_u x C_v' + (C_u x C_v')',

with the second moments S of a node's columns, O of its residuals, and C of both.  Neighbours make
the true variance smaller, so a pair near the graph seems a little less certain than it is.  That
is enough to tell which pairs are worth a test.

A graph and its refit -> pairs outside it that could take the place of one of its edges.

Where two columns are close to each other, a third one that is related to one of them is seen to be
related to either: the edge that was found may stand for its rival.  If a rival f takes the place of
an edge e, everything else following, the log pseudolikelihood rises by

    gain of f given the graph - loss of e given the graph and f,

both to second order at the graph's own refit, so that nothing is refitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from mixedgm.base.printable import quoted
from mixedgm.base.threads import single_threaded_blas, using_threads
from mixedgm.inference.held import Batch, Held, by_size, square_starts
from mixedgm.inference.pairs import (
    MOST_ROWS,
    PairEstimates,
    Steps,
    drawn_errors,
    estimated_pairs,
    hessian_of,
    inverse_of,
    left_by_predictors,
)
from mixedgm.inference.row_scores import Scorer
from mixedgm.inference.row_sums import EndProducts, curvature_sums
from mixedgm.inference.statistics import PairStatistics, equivalent_z, pair_statistics
from mixedgm.inference.two_groups import TwoGroups
from mixedgm.model.layout import Floats, Ints, spans
from mixedgm.model.nodes import Mask
from mixedgm.model.params import Params
from mixedgm.objective.contract import Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.path.refits import Unshrunken, noise_worth_one_row, parameters, ridge_of, unshrunken
from mixedgm.path.rounds import ROUGH, Unpenalised
from mixedgm.path.task import Task
from mixedgm.rows.device import DeviceRows
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.working_set import Start

_REFIT_TOL = 1e-6
_ROUGH = 0.01
"""Tolerance of the refit of a graph that is only tried, in standard errors: gradients of pure noise
are near 1 / sqrt(n)."""

FEWEST_ROWS = 30
MOST_PARAMETERS = 200
"""Largest number of parameters of a pair that is tested: two columns of about fifteen levels."""
FEWEST_OF_COLUMN = 5
"""Rows that a column of levels has outside its most frequent one, and a hurdle column not at
zero: with fewer, tests by normal approximations mean little."""
MANY_PAIRS = 20_000
"""Number of pairs from which on a full test is made only of those that a rough test does not find
plainly absent."""
_NEAR = 2.0
"""The rough z of these."""
MOST_NUMBERS = 5e7
"""Sums that may stand in memory at once: 400 MB."""

TOO_WIDE = "the table is so wide that sums for all pairs would not fit in memory"


@dataclass(frozen=True, eq=False)
class PairTests:
    """Tests of all groups given a graph."""

    graph: Ints
    """Edges that the test of every pair is adjusted for."""
    theta: Floats
    """Refit of the graph, in contrasts only."""
    fit: Unshrunken
    """Refit of the graph, as it was solved."""
    statistics: PairStatistics
    """NaN where a pair is not tested."""
    tested: Mask
    """(n_groups,) pairs whose edge is in question and which have a test: all but those that are
    free of penalty, and those that are judged apart."""
    untested: dict[int, str] = field(default_factory=dict)
    """Groups that are judged apart, each with the reason."""
    estimates: PairEstimates | None = None
    """Estimates of the groups `estimated`."""
    estimated: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    smooth: Smooth | None = None
    """The pseudolikelihood of these, with the ridge that the refit needed."""
    task: Task | None = None
    """The rows that were tested: where they have gaps, completed by the graph's own refit."""
    ratios: dict[int, float] = field(default_factory=dict)
    """Likelihood ratio statistics of groups whose p-values are of these, not of W."""
    errors: Floats | None = None
    """(draws, edge parameters) errors such as those of the estimates by spread, if asked for."""

    @property
    def loss(self) -> float:
        """The smooth loss at the refit."""
        return self.fit.loss

    @property
    def ridge(self) -> Ints:
        """Groups of the graph that needed a ridge."""
        return self.fit.ridge

    @cached_property
    def decisive(self) -> Floats:
        """(n_groups,) the statistics whose p-values these are: W, or likelihood ratios."""
        out = self.statistics.statistic.copy()
        out[list(self.ratios)] = list(self.ratios.values())
        return out

    @property
    def params(self) -> Params:
        """The refit in the data's own units."""
        assert self.task is not None
        return self.task.params(self.theta)

    @cached_property
    def two_groups(self) -> TwoGroups:
        """Pairs with and without an edge."""
        return TwoGroups(self.statistics.z[self.tested])

    @cached_property
    def no_edge(self) -> Floats:
        """(n_groups,) probability that a pair has no edge.

        Zero where it is not in question, and NaN where the pair has no test.
        """
        out = np.zeros(len(self.tested))
        out[list(self.untested)] = np.nan
        out[self.tested] = self.two_groups.no_edge
        if not len(self.estimated):  # all tests are rough
            return out
        return np.where(self.tested, self._with_rivals(out), out)

    def _with_rivals(self, no_edge: Floats) -> Floats:
        """Probabilities of no edge, if an edge may also stand for its strongest rival.

        Of the two pairs either has an edge, or both, or none: each with its odds, which are the
        share of edges among all pairs times Bayes factors.  Rivals of one edge resemble each other,
        so that only the one that makes most of a difference is counted.
        """
        z = np.where(self.tested, self.statistics.z, 0.0)
        found, prior = self.rivals, logit(self.two_groups.share)
        some = self.tested[found.edge] & self.tested[found.rival]
        some &= (found.loss > 0.0) & np.isfinite(found.loss)
        edge, rival = found.edge[some], found.rival[some]
        alone, beside = (prior + self.two_groups.log_bayes_factor(z[g]) for g in (edge, rival))
        instead = prior + self.two_groups.log_bayes_factor(self._z_instead(found, some))
        either = np.logaddexp(0.0, beside)  # the edge, with or without its rival
        wrong = np.logaddexp(0.0, instead) - alone - either  # a log odds
        order = np.lexsort((rival, -wrong, edge))
        edge, first = np.unique(edge[order], return_index=True)
        at = order[first]
        at, edge = at[wrong[at] > -alone[at]], edge[wrong[at] > -alone[at]]
        out = no_edge.copy()
        taken = (instead - alone - either - np.logaddexp(0.0, wrong))[at]
        np.multiply.at(out, rival[at], -np.expm1(np.minimum(taken, 0.0)))
        out[edge] = expit(wrong[at])
        return out

    def _z_instead(self, found: Rivals, some: Mask) -> Floats:
        """Z that rivals would have given the graph without the edge whose place they take."""
        edge, rival = found.edge[some], found.rival[some]
        ratio = np.maximum(1.0 + found.rise[some] / found.loss[some], 0.0)
        statistic = self.statistics.statistic[edge] * ratio
        return equivalent_z(self.statistics.log_p_at(rival, statistic))

    @cached_property
    def rivals(self) -> Rivals:
        """Pairs that could take the place of edges."""
        assert self.task is not None
        assert self.smooth is not None
        at = self.task.layout.positions(self.estimated)
        held = np.searchsorted(self.estimated, self.graph)
        found = rivals(self.smooth, rows_of(self.task), self.theta[at], held)
        edge, rival = self.estimated[found.edge], self.estimated[found.rival]
        return replace(found, edge=edge, rival=rival)


def untestable(task: Task, graph: Ints) -> str:
    """Why tests of all pairs given this graph cannot be trusted, or take too much; else nothing."""
    layout, freedom = task.layout, task.layout.nodes.freedom
    if task.beyond is not None:
        return TOO_WIDE
    if task.total_weight < FEWEST_ROWS:
        return f"tests need {FEWEST_ROWS} rows, and there are {task.total_weight:,.6g}"
    apart = untested(task)
    if apart and len(apart) == np.count_nonzero(task.penalty.penalised):
        u, v = layout.pairs[next(iter(apart))].tolist()
        names = " and ".join(quoted(task.schema.nodes[node].name) for node in (u, v))
        return f"no pair can be tested ({names}: {next(iter(apart.values()))})"
    u, v = layout.pairs[graph].T
    size = freedom[u] * freedom[v] * layout.n_blocks[graph]
    length = np.bincount(u, size, layout.n_nodes) + np.bincount(v, size, layout.n_nodes)
    sums = float(layout.nodes.freedom.sum()) * float(((length + freedom) * freedom).sum())
    held = float(size.sum()) + layout.n_node_terms
    if max(sums, float((freedom**2).sum()) ** 2, held**2) > MOST_NUMBERS:
        return TOO_WIDE
    return ""


def untested(task: Task) -> dict[int, str]:
    """Groups with a penalty that no test can judge, each with the reason, in their order."""
    layout, nodes = task.layout, task.layout.nodes
    out: dict[int, str] = {}
    sizes = parameters(task, np.arange(layout.n_groups))
    for node, rows in _informative_rows(task).items():
        if rows < FEWEST_OF_COLUMN:
            where = "not at zero" if nodes.spiked_nodes[node] else "outside its most frequent level"
            name = quoted(task.schema.nodes[node].name)
            reason = f"{name} has {rows:,.6g} rows {where}, fewer than {FEWEST_OF_COLUMN}"
            for g in np.flatnonzero((layout.pairs == node).any(axis=1)).tolist():
                out.setdefault(g, reason)
    for g in np.flatnonzero(sizes > MOST_PARAMETERS).tolist():
        out[g] = f"{int(sizes[g]):,} parameters, more than {MOST_PARAMETERS}"
    return {g: out[g] for g in sorted(out) if task.penalty.penalised[g]}


def _informative_rows(task: Task) -> dict[int, float]:
    """Rows of each column that is not a number outside its most frequent level, or not at zero."""
    nodes, moments = task.layout.nodes, task.moments
    if moments is None:
        return {}
    out = {}
    for j in range(len(nodes.n_levels)):
        share, node = moments.shares[nodes.slots_of(j)], int(nodes.discrete_nodes[j])
        some = share[0] if nodes.spiked_nodes[node] else 1.0 - share.max(initial=0.0)
        out[node] = round(float(some) * task.total_weight, 6)
    return out


def rows_per_parameter(task: Task) -> Floats:
    """(n_groups,) rows outside the most frequent level of either end, over a pair's parameters."""
    layout = task.layout
    rows, by_node = np.full(layout.n_nodes, task.total_weight), _informative_rows(task)
    rows[list(by_node)] = list(by_node.values())
    size = np.maximum(1, parameters(task, np.arange(layout.n_groups)))
    return np.asarray(rows[layout.pairs].min(axis=1) / size)


def noise_level(task: Task) -> float:
    """The lam that the largest gradient of all pairs is expected to have in independent columns."""
    pairs = max(task.layout.n_groups, 2)
    return float(
        task.layout.conditionals_at_most * np.sqrt(2.0 * np.log(pairs) / task.total_weight)
    )


def rows_of(task: Task) -> MemoryRows | PartedRows:
    """The rows behind a pseudolikelihood; on a device those in memory, where tests are made."""
    rows = task.smooth.rows  # type: ignore[attr-defined]
    rows = rows.memory if isinstance(rows, DeviceRows) else rows
    assert isinstance(rows, MemoryRows | PartedRows)
    return rows


def refit(
    task: Task, graph: Ints, start: Floats, loose: Ints | None = None, *, tol: float = _REFIT_TOL
) -> Unshrunken:
    """The graph without shrinkage, from a theta that is known; `loose`: see `unshrunken`."""
    return unshrunken(task, graph, Start(start, task.null.evaluation), loose, tol=tol)


def rough_refit(task: Task, graph: Ints, start: Floats, loose: Ints | None = None) -> Unshrunken:
    """The refit of a graph that is only tried, solved to a small share of a standard error."""
    return refit(task, graph, start, loose, tol=_ROUGH / np.sqrt(task.total_weight))


def fine_refit(task: Task, graph: Ints, start: Floats) -> Floats:
    """The graph without shrinkage; where rows have gaps, completed anew from the rows alone."""
    if task.incomplete is None:
        with single_threaded_blas(), using_threads(task.n_threads):
            return refit(task, graph, start).solution.theta
    rows, theta = _settled_rows(task, graph, None, ROUGH)
    return task.theta_of(rows.params(theta))


def ridged(task: Task, fit: Unshrunken) -> Smooth:
    """The pseudolikelihood of all pairs, with what the refit of a graph needed."""
    if not len(fit.ridge) and not len(fit.noisy):
        return task.smooth
    groups, numbers = np.arange(task.layout.n_groups), np.zeros(task.layout.nodes.n_real)
    level = ridge_of(task, groups, fit.ridge)
    numbers[fit.noisy] = noise_worth_one_row(task)[fit.noisy]
    return Ridged(task.smooth, level, numbers)


def pairs_given(
    task: Task,
    graph: Ints,
    start: Floats | None = None,
    loose: Ints | None = None,
    *,
    clusters: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: tuple[int, np.random.Generator] | None = None,
    dtype: type[np.floating] = np.float64,
    apart: dict[int, str] | None = None,
    screened: bool = False,
) -> PairTests:
    """Refit the graph and test all pairs given it, but those that are judged `apart`.

    With `screened`, pairs whose rough test finds next to nothing have that test only.
    `loose`: see `unshrunken`.  `clusters`, `rng`, `dtype`: see `estimated_pairs`.
    draws = (how many errors of the estimates to draw, what draws them); estimates are then in units
    of residual spreads.
    """
    start = task.null.theta if start is None else start
    if task.incomplete is not None:
        share = ROUGH if dtype is np.float32 else ROUGH / 20.0
        task, start = _settled_rows(task, graph, start, share)
    layout, rows, apart = task.layout, rows_of(task), apart or {}
    tested = _but(layout.n_groups, apart)
    estimated = np.flatnonzero(tested | ~_but(layout.n_groups, graph))
    with single_threaded_blas(), using_threads(task.n_threads):
        fit = (rough_refit if dtype is np.float32 else refit)(task, graph, start, loose)
        theta = layout.centred(fit.solution.theta, graph)
        smooth = ridged(task, fit)
        if screened:
            rough = _rough_statistics(smooth, rows, theta, graph, estimated)
            estimated = np.flatnonzero((rough.z >= _NEAR) | ~_but(layout.n_groups, graph))
        at, smooth = layout.positions(estimated), smooth.restrict(estimated)
        held, row = np.searchsorted(estimated, graph), task.row
        estimates = estimated_pairs(
            smooth,
            rows,
            theta[at],
            held,
            clusters=None if clusters is None else np.unique(clusters, return_inverse=True)[1],
            rng=rng,
            dtype=dtype,
            row=row,
            by_spread=draws is not None,
        )
        statistics = pair_statistics(estimates, layout.nodes).among(estimated, layout.n_groups)
        if screened:
            statistics = rough.replaced(estimated, statistics)
        statistics.log_p[list(apart)] = statistics.statistic[list(apart)] = np.nan
    errors = None
    if draws is not None:
        assert isinstance(rows, MemoryRows)
        n_draws, source = draws
        errors = drawn_errors(
            smooth,
            rows,
            theta[at],
            held,
            n_draws=n_draws,
            rng=source,
            clusters=clusters,
            row=row,
        )
    tested &= task.penalty.penalised
    return PairTests(
        graph,
        theta,
        fit,
        statistics,
        tested,
        apart,
        estimates,
        estimated,
        smooth,
        task,
        errors=errors,
    )


def pairs_roughly(
    task: Task, graph: Ints, start: Floats, apart: dict[int, str], loose: Ints | None = None
) -> PairTests:
    """Refit the graph roughly and test all pairs by `rough_pairs`; `loose`: see `unshrunken`."""
    layout = task.layout
    with single_threaded_blas(), using_threads(task.n_threads):
        fit = rough_refit(task, graph, start, loose)
        theta = layout.centred(fit.solution.theta, graph)
        tested = _but(layout.n_groups, apart)
        groups = np.flatnonzero(tested | ~_but(layout.n_groups, graph))
        statistics = _rough_statistics(ridged(task, fit), rows_of(task), theta, graph, groups)
    statistics.log_p[list(apart)] = np.nan
    tested &= task.penalty.penalised
    return PairTests(graph, theta, fit, statistics, tested, apart, task=task)


def _but(n_groups: int, groups: Iterable[int]) -> Mask:
    """(n_groups,) all groups but these."""
    out = np.ones(n_groups, dtype=bool)
    out[np.fromiter(groups, dtype=np.int64)] = False
    return out


def _rough_statistics(
    smooth: Smooth, rows: MemoryRows | PartedRows, theta: Floats, graph: Ints, groups: Ints
) -> PairStatistics:
    """Rough tests of some groups, among them the graph; NaN for others."""
    layout = smooth.layout
    small, held = smooth.restrict(groups), np.searchsorted(groups, graph)
    rough = rough_pairs(small, rows, theta[layout.positions(groups)], held)
    return pair_statistics(rough, layout.nodes).among(groups, layout.n_groups)


def _settled_rows(
    task: Task, graph: Ints, start: Floats | None, share: float
) -> tuple[Task, Floats]:
    """The task at completions that the refit of a graph makes itself, and that refit.

    Both agree to this share of a standard error.
    """
    assert task.incomplete is not None
    params = None if start is None else task.params(start)
    tol, goal = share / np.sqrt(task.total_weight), Unpenalised(task.layout.triples[graph])
    ends = task.incomplete.settle(goal, params, tol=tol, most=40)
    assert ends.task.layout.same(task.layout)  # as in all completions of the same rows
    return ends.task, ends.theta


# -- rough tests -----------------------------------------------------------------------------------

_CELLS = 2**22
_FLAT = 1e-10


def rough_pairs(
    smooth: Smooth, rows: MemoryRows | PartedRows, theta: Floats, graph: Ints
) -> PairEstimates:
    """Score tests of all pairs, written as estimates: W is the squared score over its variance.

    The curvature of a pair counts as half its variance, which it is between independent columns;
    so an edge of the graph has half its refitted estimate here.  Arguments are those of
    `estimated_pairs`; there are no moderators.
    """
    contrasts = Contrasts(smooth.layout)
    reduced, n = contrasts.reduced, rows.total_weight
    left = left_by_predictors(reduced, graph, n)
    with single_threaded_blas():  # sums in a fixed order
        scorer = Scorer(smooth.layout, reduced, theta, contrasts.down(theta), left**-0.5)
        moments = _moments(rows, scorer, max(1, rows.n_rows // MOST_ROWS))
        gradient = contrasts.down(smooth.evaluate(theta).gradient)[reduced.edges]
        eta, start = np.zeros(len(gradient)), square_starts(reduced)
        covariance = np.empty(start[-1])
        (row, column), first = reduced.edge_position, reduced.column_start
        u, v = reduced.pairs.T
        for every, all_params in by_size(reduced):
            k = all_params.shape[1]
            step = max(1, _CELLS // k**2)
            for part in range(0, len(every), step):
                groups, at = every[part : part + step], all_params[part : part + step]
                ends = u[groups][:, None, None], v[groups][:, None, None]
                a, b = row[at] - first[u[groups]][:, None], column[at] - first[v[groups]][:, None]
                a, b = (a[:, :, None], a[:, None, :]), (b[:, :, None], b[:, None, :])
                s_u, o_u, c_u = (each[ends[0], a[0], a[1]] for each in moments)
                s_v, o_v, _ = (each[ends[1], b[0], b[1]] for each in moments)
                mixed = c_u * moments[2][ends[1], b[1], b[0]]
                variance = s_u * o_v + o_u * s_v + mixed + mixed.transpose(0, 2, 1)
                eta[at], inverse = _rough_steps(variance, gradient[at])
                to = start[groups][:, None] + np.arange(k * k)
                covariance[to] = inverse.reshape(len(groups), -1) / n
    held = spans(reduced.starts[graph], reduced.sizes[graph])
    eta[held - reduced.n_node_terms] += 0.5 * contrasts.down(theta)[held]
    return PairEstimates(reduced, eta, covariance, n)


def _rough_steps(variance: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """Minus V^-1 g, and V^-1, for every group; directions without variance count as certain."""
    if variance.shape[1] == 1:
        inverse = 1.0 / np.maximum(variance, _FLAT)
    else:
        values, vectors = np.linalg.eigh(variance)
        values = np.maximum(values, _FLAT * np.maximum(values[:, -1:], 1.0))
        inverse = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return -np.einsum("gab,gb->ga", inverse, gradient), inverse


def _moments(rows: MemoryRows | PartedRows, scorer: Scorer, stride: int) -> tuple[Floats, ...]:
    """(nodes, widest, widest) each: means of zz', rr' and zr', from every stride-th row."""
    if isinstance(rows, PartedRows):
        return tuple(rows.means(_all_moments, scorer, stride=stride))
    layout = scorer.reduced
    index = np.arange(0, rows.n_rows, stride)
    weights = np.ones(len(index)) if rows.weights is None else rows.weights[index]
    share, step = weights / weights.sum(), max(16, _CELLS // max(layout.n_columns, 1))
    widest = int(layout.width.max(initial=0))
    out = np.zeros((3, layout.n_nodes, widest, widest))
    for at in range(0, len(index), step):
        scores = scorer.score(rows, index[at : at + step])
        here = share[at : at + step]
        for w in np.unique(layout.width[layout.width > 0]).tolist():
            nodes = np.flatnonzero(layout.width == w)
            columns = layout.column_start[nodes][:, None] + np.arange(w)
            z, r = scores.columns[:, columns], scores.residuals[:, columns]
            for number, (one, other) in enumerate(((z, z), (r, r), (z, r))):
                sums = np.einsum("n,nmi,nmj->mij", here, one, other, optimize=True)
                out[number, nodes, :w, :w] += sums
    return tuple(out)


def _all_moments(rows: MemoryRows, scorer: Scorer) -> tuple[Floats, ...]:
    """`_moments` of some rows, all of which count."""
    return _moments(rows, scorer, 1)


# -- rivals of an edge -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rivals:
    """Edges of a graph, and pairs outside it with which they have a column in common."""

    edge: Ints
    """(S,) groups of the graph."""
    rival: Ints
    """(S,) groups outside."""
    rise: Floats
    """(S,) by how much the mean log pseudolikelihood is higher with the rival instead."""
    loss: Floats
    """(S,) by how much it is lower without the edge."""


def rivals(smooth: Smooth, rows: MemoryRows | PartedRows, theta: Floats, graph: Ints) -> Rivals:
    """Look at all pairs outside the graph that share a column with an edge.

    The arguments are those of `pairs.estimated_pairs`.
    """
    contrasts = Contrasts(smooth.layout)
    reduced = contrasts.reduced
    stride = max(1, rows.n_rows // MOST_ROWS)
    with single_threaded_blas():  # sums in a fixed order
        held, ends = Held(reduced, graph), EndProducts(reduced)
        left, eta = left_by_predictors(reduced, graph, rows.total_weight), contrasts.down(theta)
        scorer = Scorer(smooth.layout, reduced, theta, eta, left**-0.5)
        curvature = curvature_sums(held, ends, scorer, rows, stride, np.float32)
        gradient = contrasts.down(smooth.evaluate(theta).gradient)
        inverse = inverse_of(hessian_of(smooth, theta, graph, stride), held.inside)
        steps = _Swaps(held, Steps(held, ends, inverse, gradient, curvature), eta)
        parts = [part for batch in held.batches() for part in steps.of(batch)]
    if not parts:
        nothing = np.zeros(0)
        return Rivals(graph[:0], graph[:0], nothing, nothing)
    edge, rival, rise, loss = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((rival, edge))
    return Rivals(edge[order], rival[order], rise[order], loss[order])


class _Swaps:
    """What follows when an edge of the graph leaves for a pair outside."""

    def __init__(self, held: Held, steps: Steps, eta: Floats) -> None:
        self.held, self.steps = held, steps
        self.theta = eta[held.layout.positions(held.graph)]
        self.size = held.inside.sizes
        self.pairs = held.layout.pairs[held.graph]

    def of(self, batch: Batch) -> list[tuple[Ints, Ints, Floats, Floats]]:
        """Edges, pairs of a batch that share a column with them, rise and loss."""
        across, root, estimates = self.steps.of(batch)
        inverse, layout = self.steps.inverse, self.held.layout
        gain = 0.5 * np.square(np.linalg.solve(root, estimates[..., None])[..., 0]).sum(axis=1)
        first, second = _sharing(layout.pairs[batch.groups], self.pairs, layout.n_nodes)
        out = []
        for size in np.unique(self.size).tolist():
            some = self.size[second] == size
            f, e = first[some], second[some]
            if not size or not len(e):
                continue
            at = self.held.inside.starts[e][:, None] + np.arange(size)
            theta = self.theta[at]
            places = np.minimum(batch.held[f], len(inverse) - 1)  # `across` is zero beyond lists
            shared = across[f] @ inverse[places[:, :, None], at[:, None, :]]
            own = inverse[at[:, :, None], at[:, None, :]]
            lean = root[f] @ shared
            wider = own + lean.transpose(0, 2, 1) @ lean
            moved = theta - np.einsum("ska,sk->sa", shared, estimates[f])
            loss, after = half_square(own, theta), half_square(wider, moved)
            out.append((self.held.graph[e], batch.groups[f], gain[f] - after, loss))
        return out


def half_square(covariances: Floats, vectors: Floats) -> Floats:
    """Half of v' C^-1 v; infinite where C is singular, as of an edge that cannot move at all."""
    sign, _ = np.linalg.slogdet(covariances)
    out, some = np.full(len(vectors), np.inf), sign != 0.0
    solutions = np.linalg.solve(covariances[some], vectors[some, :, None])[..., 0]
    out[some] = 0.5 * np.einsum("sa,sa->s", vectors[some], solutions)
    return out


def _sharing(pairs: Ints, others: Ints, n_nodes: int) -> tuple[Ints, Ints]:
    """Numbers of pairs, and of others that have a column in common with them."""

    def incidence(ends: Ints) -> sparse.csr_array:
        rows = np.repeat(np.arange(len(ends)), 2)
        return sparse.csr_array(
            (np.ones(2 * len(ends)), (rows, ends.ravel())), (len(ends), n_nodes)
        )

    common = (incidence(pairs) @ incidence(others).T).tocoo()
    apart = common.data == 1.0  # of moderated pairs, both columns may be in common
    return common.row[apart].astype(np.int64), common.col[apart].astype(np.int64)

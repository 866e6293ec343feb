"""A task and a graph -> tests of all pairs given the graph.

Every pair is tested with the own terms of all columns and the edges of the graph adjusted for: an
edge of the graph by its own estimate, any other pair by one step from zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from mixedgm.inference.pairs import PairEstimates, drawn_errors, estimated_pairs
from mixedgm.inference.rivals import Rivals, rivals
from mixedgm.inference.rough import rough_pairs
from mixedgm.inference.statistics import PairStatistics, equivalent_z, pair_statistics
from mixedgm.inference.two_groups import TwoGroups
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params
from mixedgm.objective.contract import Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.path.refits import (
    Unshrunken,
    noise_worth_one_row,
    parameters,
    ridge_of,
    unshrunken,
)
from mixedgm.path.rounds import ROUGH, Unpenalised
from mixedgm.path.task import Task
from mixedgm.printable import quoted
from mixedgm.rows.device import DeviceRows
from mixedgm.rows.memory import MemoryRows
from mixedgm.rows.parts import PartedRows
from mixedgm.solve.working_set import Start
from mixedgm.threads import single_threaded_blas, using_threads

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

Mask = NDArray[np.bool_]


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
        some = self.tested[found.edge] & self.tested[found.rival] & (found.loss > 0.0)
        edge, rival = found.edge[some], found.rival[some]
        alone, beside = (prior + self.two_groups.log_bayes_factor(z[g]) for g in (edge, rival))
        instead = prior + self.two_groups.log_bayes_factor(self._z_instead(found, some))
        either = np.logaddexp(0.0, beside)  # the edge, with or without its rival
        wrong = np.exp(np.logaddexp(0.0, instead) - alone - either)
        order = np.lexsort((rival, -wrong, edge))
        edge, first = np.unique(edge[order], return_index=True)
        at = order[first]
        at, edge = at[wrong[at] > np.exp(-alone[at])], edge[wrong[at] > np.exp(-alone[at])]
        out = no_edge.copy()
        taken = np.exp(instead - alone - either)[at] / (1.0 + wrong[at])
        np.multiply.at(out, rival[at], 1.0 - np.minimum(taken, 1.0))
        out[edge] = wrong[at] / (1.0 + wrong[at])
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
    out = dict.fromkeys(np.flatnonzero(task.penalty.penalised).tolist(), "")
    sizes = parameters(task, np.arange(layout.n_groups))
    for node, rows in _informative_rows(task).items():
        if rows < FEWEST_OF_COLUMN:
            where = "not at zero" if nodes.spiked_nodes[node] else "outside its most frequent level"
            name = quoted(task.schema.nodes[node].name)
            reason = f"{name} has {rows:,.6g} rows {where}, fewer than {FEWEST_OF_COLUMN}"
            for g in np.flatnonzero((layout.pairs == node).any(axis=1)).tolist():
                if g in out and not out[g]:
                    out[g] = reason
    for g in np.flatnonzero(sizes > MOST_PARAMETERS).tolist():
        if g in out:
            out[g] = f"{int(sizes[g]):,} parameters, more than {MOST_PARAMETERS}"
    return {g: reason for g, reason in out.items() if reason}


def _informative_rows(task: Task) -> dict[int, float]:
    """Rows of each column that is not a number outside its most frequent level, or not at zero."""
    nodes, moments = task.layout.nodes, task.moments
    if moments is None:
        return {}
    out = {}
    for j in range(len(nodes.n_levels)):
        share, node = moments.shares[nodes.slots_of(j)], nodes.n_gaussian + j
        some = share[0] if nodes.spiked_nodes[node] else 1.0 - share.max(initial=0.0)
        out[node] = round(float(some) * task.total_weight, 6)
    return out


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

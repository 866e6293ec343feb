"""A graph that the whole table fixes, and a resample -> every pair's estimate without shrinkage.

Selection in a resample finds an edge or does not, so that its weight is no estimate of anything.
Given a graph that is the same in all resamples, every pair has a regular one: edges of the graph by
its refit, other pairs by one Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.checkpoint import Record
from mixedgm.inference.pairs import estimated_pairs, inverse_curvature
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.params import Params, to_theta
from mixedgm.path.pair_tests import ridged, rows_of
from mixedgm.path.refits import Unshrunken, refit_of_resample, unshrunken
from mixedgm.path.task import Task
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.loop import Solver
from mixedgm.solve.neighbour import Secant
from mixedgm.solve.working_set import Start

_TOL = 1e-2
"""Of a refit, in standard errors of a mean gradient."""
_MOST_AT_ONCE = 4000
"""Parameters of which the whole table's curvature is inverted."""


@dataclass(frozen=True, eq=False)
class HeldGraph:
    """What stands beside every pair in all resamples, and where their refits start."""

    method: str
    """ "free": all pairs; "graph": those that pass a test."""
    edges: Ints
    """Triples, as in layouts."""
    params: Params
    """The refit to the whole table."""
    settled: Ints
    """Edges (triples) that needed no ridge there."""

    @classmethod
    def of(cls, whole: Task, groups: Ints, method: str) -> HeldGraph:
        """Refit this graph to the whole table."""
        fit = unshrunken(whole, groups, whole.null, tol=0.01 * _tol(whole))
        params = whole.params(fit.solution.theta)
        triples = whole.layout.triples
        return cls(method, triples[groups], params, triples[np.setdiff1d(groups, fit.ridge)])

    def solver(self, whole: Task) -> Solver:
        """What refits resamples, with the whole table's curvature where that is not too large."""
        groups = whole.layout.groups_of(self.edges)
        small = whole.smooth.restrict(groups)
        if small.layout.n_theta > _MOST_AT_ONCE:
            return whole.solver
        theta = whole.theta_of(self.params)[whole.layout.positions(groups)]
        return Secant(small.layout, inverse_curvature(small, theta), whole.solver)

    def record(self, task: Task, whole: Task, theta: Floats, declared: Layout) -> Record:
        """Estimates of all pairs that may have an edge ("pair_values"), and of own terms ("own").

        All are in the data's own units and over all declared levels.  Those of a column that is
        constant in the resample, or has lost a level there, are not a number.
        """
        groups = task.layout.groups_of(self.edges)
        start = Start(theta, whole.null.evaluation)  # a refit evaluates where it begins
        fit = refit_of_resample(task, whole, groups, self.settled, start, tol=_tol(task))
        values, terms = _estimates(task, fit, groups, declared)
        for name in task.degenerate:
            node = task.schema.node_index(name)
            values[declared.spread((declared.pairs == node).any(axis=1)) > 0.0] = np.nan
            terms[declared.node_terms_of(node)] = np.nan
        numbers = declared.groups_of(whole.layout.triples)
        at = declared.positions(numbers)[declared.n_node_terms :] - declared.n_node_terms
        return {"pair_values": values[at], "own": terms}


def _tol(task: Task) -> float:
    return float(_TOL / np.sqrt(max(task.total_weight, 1.0)))


def has_empty_cells(task: Task) -> NDArray[np.bool_]:
    """(n_groups,) pairs of categories of which some combination of levels has no rows.

    Its coefficient has no finite estimate, and what a ridge makes of it is not uncertain.
    """
    layout, first = task.layout, task.layout.nodes.n_numeric
    row, column = layout.edge_position
    empty = (np.minimum(row, column) >= first) & (task.second_moments(row, column) == 0.0)
    return layout.group_sums(empty.astype(np.float64)) > 0.0


def _estimates(
    task: Task, fit: Unshrunken, groups: Ints, declared: Layout
) -> tuple[Floats, Floats]:
    """Parameters of all pairs and own terms, in the data's own units and over declared levels."""
    theta = task.layout.centred(fit.solution.theta, groups)
    found = estimated_pairs(
        ridged(task, fit), rows_of(task), theta, groups, errors=False, row=task.row
    )
    contrasts = Contrasts(task.layout)
    eta = contrasts.down(theta)
    eta[contrasts.reduced.edges] = found.eta
    values = to_theta(declared, task.params(contrasts.up(eta)))[declared.edges]
    terms = to_theta(declared, task.params(theta))[: declared.n_node_terms]
    return values, terms.copy()

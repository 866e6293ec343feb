"""A graph and where to start -> its estimate without shrinkage, finite and stable in any table.

A refit without penalty need not exist: a cell without rows drives an interaction to minus
infinity, a code that determines another column makes both predict each other perfectly, a number
that others determine has no variance left.  Such edges get a ridge worth one row: the curvature
that one row would add if the two columns were independent.  Such numbers get noise worth one row,
of a variance of 1 / n in standard units.  All others are estimated freely.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixedgm.model.layout import Ints
from mixedgm.objective.ridge import Ridged
from mixedgm.path.open_edges import open_edges, open_numbers, worth_one_row
from mixedgm.path.task import Task
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start

__all__ = [
    "FINEST_TOL",
    "ROWS_OF_A_STABLE_EDGE",
    "Unshrunken",
    "held",
    "stabilised",
    "unshrunken",
]

ROWS_OF_A_STABLE_EDGE = 10.0
"""An edge is free if every contrast of it has at least the curvature that so many rows of
independent columns would give it."""

FINEST_TOL = 1e-12
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Unshrunken:
    """An estimate of a graph without shrinkage.

    Parameters
    ----------
    solution : Solution
        Full-size theta; the certificate is that of the small problem, ridge included.
    loss : float
        The smooth loss, without what the ridge adds (with it, where the loss is sampled).
    ridge : ndarray of int
        Groups that needed a ridge.
    noisy : ndarray of int
        Continuous nodes that needed noise.
    """

    solution: Solution
    loss: float
    ridge: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    noisy: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def unshrunken(
    task: Task, groups: Ints, start: Start, *, tol: float, max_iter: int = 200
) -> Unshrunken:
    """The graph's estimate, with a ridge on those edges only that cannot do without.

    All edges that could be unstable are estimated with a ridge first.  Those whose curvature there
    is large enough are set free, and estimated again.  Where several edges are open together (three
    columns that separate a fourth), their ridges add up and hide it; then the curvature vanishes
    now, and they are held as well.
    """
    if isinstance(task.solver, MonteCarlo):
        return _sampled(task, groups, start, tol=tol, max_iter=max_iter)
    first = stabilised(task, groups, start, tol=tol, max_iter=max_iter)
    if len(first.ridge) == 0:
        return first
    # A rough solution would not have gone far enough; a finer one than this is beyond rounding.
    tol = min(tol, max(1.0 / task.total_weight, FINEST_TOL))
    again = Start(first.solution.theta, start.evaluation)
    latest, held = first, np.zeros(0, np.int64)
    for _ in range(_ROUNDS):
        weak = open_edges(task, groups, latest.solution.theta, rows=ROWS_OF_A_STABLE_EDGE)
        if latest is not first and np.isin(weak, held).all():
            return latest
        held = np.union1d(held, weak)
        if len(held) == len(first.ridge):
            return first
        latest = _solved(task, groups, again, held, tol=tol, max_iter=max_iter)
    return first


def stabilised(
    task: Task, groups: Ints, start: Start, *, tol: float, max_iter: int = 200
) -> Unshrunken:
    """The graph's estimate with a ridge on every edge that could be unstable."""
    could_be = groups[worth_one_row(task, groups) > 0.0]
    return _solved(task, groups, start, could_be, tol=tol, max_iter=max_iter)


def held(
    task: Task, groups: Ints, start: Start, loose: Ints, *, tol: float, max_iter: int = 200
) -> Unshrunken:
    """The graph's estimate with a ridge on those of the `loose` groups that could be unstable."""
    if isinstance(task.solver, MonteCarlo):
        return _sampled(task, groups, start, tol=tol, max_iter=max_iter)
    could_be = loose[worth_one_row(task, loose) > 0.0]
    return _solved(task, groups, start, could_be, tol=tol, max_iter=max_iter)


def _sampled(task: Task, groups: Ints, start: Start, *, tol: float, max_iter: int) -> Unshrunken:
    """A sampled likelihood gets the ridge that the exact pseudolikelihood of the graph needs."""
    from mixedgm.objective.sampled import RidgedSample, SampledLikelihood

    known = unshrunken(task.scoring, groups, start, tol=tol, max_iter=max_iter)
    small = task.smooth.restrict(groups)
    assert isinstance(small, SampledLikelihood)
    edges = np.where(np.isin(groups, known.ridge), worth_one_row(task, groups), 0.0)
    numbers = np.zeros(task.layout.n_gaussian)
    numbers[known.noisy] = 1.0 / task.total_weight
    ridged = RidgedSample.of(small, edges, numbers)
    none = GroupLasso.none(small.layout)
    problem = Problem(ridged, none, 0.0, task.yardstick[groups])
    solution = task.confined(problem, groups, start, task.solver, tol, max_iter)
    return Unshrunken(solution, solution.evaluation.value, known.ridge, known.noisy)


def _solved(
    task: Task, groups: Ints, start: Start, ridge: Ints, *, tol: float, max_iter: int
) -> Unshrunken:
    """The optimum with a ridge on these groups, and with noise in numbers that turn out to need it.

    A number needs it where the others leave less than 1 / n of its variance unexplained.
    """
    small = task.smooth.restrict(groups)
    edges = np.where(np.isin(groups, ridge), worth_one_row(task, groups), 0.0)
    floor = 1.0 / task.total_weight
    noisy = open_numbers(task, groups, start.theta, rows=2.0)
    for _ in range(_ROUNDS):
        ridged = Ridged(small, edges, np.where(noisy, floor, 0.0))
        smooth = ridged if edges.any() or noisy.any() else small
        none = GroupLasso.none(small.layout)
        problem = Problem(smooth, none, 0.0, task.yardstick[groups])
        with single_threaded_blas():
            solution = task.confined(problem, groups, start, task.solver, tol, max_iter)
        more = open_numbers(task, groups, solution.theta)
        if not (more & ~noisy).any():
            break
        noisy |= more
    added = ridged.added(solution.theta[task.layout.positions(groups)])
    loss = solution.evaluation.value - added
    return Unshrunken(solution, loss, ridge, np.flatnonzero(noisy))

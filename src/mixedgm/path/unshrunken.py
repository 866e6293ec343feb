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
from scipy import linalg

from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Smooth
from mixedgm.objective.ridge import Ridged
from mixedgm.path.task import Task
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.threads import single_threaded_blas
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.monte_carlo import MonteCarlo
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start

__all__ = [
    "ROWS_OF_A_STABLE_EDGE",
    "Unshrunken",
    "own_parameters",
    "parameters",
    "stabilised",
    "unshrunken",
]

ROWS_OF_A_STABLE_EDGE = 10.0
"""An edge is free if every contrast of it has at least the curvature that so many rows of
independent columns would give it."""

_ROUNDS = 4
# Beyond so many parameters in one conditional, its edges are judged one by one.
_LARGEST_INVERTED = 4000


@dataclass(frozen=True, eq=False)
class Unshrunken:
    """An estimate of a graph without shrinkage.

    Parameters
    ----------
    solution : Solution
        Full-size theta; the certificate is that of the small problem, ridge included.
    loss : float
        The smooth loss, without what the ridge adds.
    ridge : ndarray of int
        Groups that needed a ridge.
    noisy : ndarray of int
        Continuous nodes that needed noise.
    """

    solution: Solution
    loss: float
    ridge: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    noisy: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def parameters(task: Task, groups: Ints) -> Ints:
    """Identifiable parameters of each of these edges, over observed levels."""
    own = own_parameters(task)
    u, v = task.layout.pairs[groups].T
    return np.asarray(own[u] * own[v] * task.layout.n_blocks[groups])


def own_parameters(task: Task) -> Ints:
    """1 for a continuous node, levels - 1 for a categorical one."""
    layout = task.layout
    return np.where(np.arange(layout.n_nodes) < layout.n_cont, 1, layout.width - 1)


def unshrunken(
    task: Task, groups: Ints, start: Start, *, tol: float, max_iter: int = 200
) -> Unshrunken:
    """The graph's estimate, with a ridge on those edges only that cannot do without.

    All edges that could be unstable are estimated with a ridge first.  Those whose curvature there
    is large enough are set free, and estimated again.
    """
    first = stabilised(task, groups, start, tol=tol, max_iter=max_iter)
    if len(first.ridge) == 0:
        return first
    weak = _weak(task, groups, first.solution.theta)
    again = Start(first.solution.theta, start.evaluation)
    if len(weak) == len(first.ridge):
        return first
    return _solved(task, groups, again, weak, tol=tol, max_iter=max_iter)


def stabilised(
    task: Task, groups: Ints, start: Start, *, tol: float, max_iter: int = 200
) -> Unshrunken:
    """The graph's estimate with a ridge on every edge that could be unstable."""
    if isinstance(task.solver, MonteCarlo):  # has steps of its own, which know of no ridge
        solution = task.unpenalised(groups, start, tol=tol, max_iter=max_iter)
        return Unshrunken(solution, solution.evaluation.value)
    could_be = groups[_worth_one_row(task, groups) > 0.0]
    return _solved(task, groups, start, could_be, tol=tol, max_iter=max_iter)


def _solved(
    task: Task, groups: Ints, start: Start, ridge: Ints, *, tol: float, max_iter: int
) -> Unshrunken:
    """The optimum with a ridge on these groups, and with noise in numbers that turn out to need it.

    A number needs it where the others leave less than 1 / n of its variance unexplained.
    """
    small = task.smooth.restrict(groups)
    edges = np.where(np.isin(groups, ridge), _worth_one_row(task, groups), 0.0)
    floor = 1.0 / task.total_weight
    noisy = _unexplained(task, groups, start.theta) < 2.0 * floor
    for _ in range(_ROUNDS):
        ridged = Ridged(small, edges, np.where(noisy, floor, 0.0))
        smooth = ridged if edges.any() or noisy.any() else small
        none = GroupLasso(small.layout, np.zeros(len(groups)))
        problem = Problem(smooth, none, 0.0, task.yardstick[groups])
        with single_threaded_blas():
            solution = task.confined(problem, groups, start, task.solver, tol, max_iter)
        more = _unexplained(task, groups, solution.theta) < floor
        if not (more & ~noisy).any():
            break
        noisy |= more
    added = ridged.added(solution.theta[task.layout.positions(groups)])
    loss = solution.evaluation.value - added
    return Unshrunken(solution, loss, ridge, np.flatnonzero(noisy))


def _unexplained(task: Task, groups: Ints, theta: Floats) -> Floats:
    """Variance of every number given its neighbours, in standard units; infinite without any."""
    layout = task.layout
    joined = np.zeros(layout.n_nodes, dtype=bool)
    joined[layout.pairs[groups]] = True
    explained = (joined & layout.is_target)[: layout.n_cont]
    return np.where(explained, 1.0 / theta[layout.diagonal], np.inf)


def _worth_one_row(task: Task, groups: Ints) -> Floats:
    """Mean curvature of each group's contrasts that one row adds, if all columns were independent.

    Zero for groups that are in the conditional of a number: means of a number are always finite.
    """
    layout, one_term = task.layout, task.smooth.terms_per_edge == 1
    ends = layout.pairs[groups]
    number = layout.is_target[ends] & (ends < layout.n_cont)
    among = number[:, 1] if layout.nodewise else number.any(axis=1)
    times = layout.conditionals[groups]
    scale = task.yardstick[groups]
    if not one_term:
        scale = scale * layout.conditionals_at_most / times
    terms = np.minimum(times, task.smooth.terms_per_edge)
    level = terms * scale**2 / np.maximum(1, parameters(task, groups)) / task.total_weight
    return np.where(among, 0.0, level)


def _weak(task: Task, groups: Ints, theta: Floats) -> Ints:
    """Groups of which some contrast has less curvature than a stable edge needs."""
    level = _worth_one_row(task, groups)
    small = task.smooth.restrict(groups)
    asked = np.flatnonzero(level > 0.0)
    if small.curvature_rows == 0:
        return groups[asked]
    here = theta[task.layout.positions(groups)]
    with single_threaded_blas():
        least = _least_curvature(small, here, asked, level)
    return groups[asked[least < ROWS_OF_A_STABLE_EDGE * level[asked]]]


def _least_curvature(smooth: Smooth, theta: Floats, asked: Ints, level: Floats) -> Floats:
    """Smallest curvature of the contrasts of each group, all other parameters free to follow.

    By nodes it is a lower bound: every conditional follows on its own.
    """
    contrasts = Contrasts(smooth.layout)
    if not smooth.by_nodes:
        return _least_of_whole(contrasts, smooth, theta, asked, level)
    size, start, matrices = contrasts.curvature(smooth, theta, 1)
    runs, layout = contrasts.runs, smooth.layout
    group = runs.block - (layout.n_cont + layout.n_nodes)
    wanted = np.zeros(layout.n_groups, dtype=bool)
    wanted[asked] = True
    total: dict[int, Floats] = {}
    for v in range(layout.n_nodes):
        mine = np.arange(runs.ptr[v], runs.ptr[v + 1])
        mine = mine[(group[mine] >= 0) & wanted[np.maximum(group[mine], 0)]]
        if not len(mine) or not size[v]:
            continue
        matrix = matrices[start[v] : start[v + 1]].reshape(size[v], size[v])
        places: dict[int, list[Ints]] = {}
        for a in mine.tolist():  # a deviation has several runs
            at = np.arange(runs.local[a], runs.local[a] + runs.length[a])
            places.setdefault(int(group[a]), []).append(at)
        joined = {g: np.concatenate(parts) for g, parts in places.items()}
        for g, own in _given_the_rest(matrix, joined, float(level[asked].min())).items():
            total[g] = total[g] + own if g in total else own
    return np.array([np.linalg.eigvalsh(total[g])[0] for g in asked.tolist()])


def _least_of_whole(
    contrasts: Contrasts, smooth: Smooth, theta: Floats, asked: Ints, level: Floats
) -> Floats:
    matrix, layout = contrasts.whole_curvature(smooth, theta, 1), contrasts.reduced
    places = {g: np.arange(layout.starts[g], layout.starts[g + 1]) for g in asked.tolist()}
    found = _given_the_rest(matrix, places, float(level[asked].min()))
    return np.array([np.linalg.eigvalsh(found[g])[0] for g in asked.tolist()])


def _given_the_rest(matrix: Floats, places: dict[int, Ints], level: float) -> dict[int, Floats]:
    """Curvature at these places when everything else in the matrix follows: a Schur complement.

    That is the inverse of a part of the inverse.
    """
    if len(matrix) > _LARGEST_INVERTED:
        return {g: matrix[np.ix_(at, at)] for g, at in places.items()}
    ridge = 1e-6 * level + 1e-14 * float(np.trace(matrix)) / len(matrix)
    inverse = _inverse(matrix, ridge)
    return {g: np.asarray(linalg.inv(inverse[np.ix_(at, at)])) for g, at in places.items()}


def _inverse(matrix: Floats, ridge: float) -> Floats:
    """Inverse of the matrix plus a ridge, from its triangular factor."""
    factor, failed = linalg.lapack.dpotrf(matrix + ridge * np.eye(len(matrix)), lower=1)
    if failed:  # rounding: no contrast is certain
        return np.eye(len(matrix)) / ridge
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)

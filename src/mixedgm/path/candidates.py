"""A wide task and a lam -> the solution among all pairs, of which only candidates are laid out.

Pairs become candidates when their gradient comes near its bound.  At a solution among candidates
the rows are asked for all others: what breaks its bound there becomes a candidate, and the lam is
solved on, until the certificate holds for all pairs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Task
from mixedgm.rows.contract import Outside
from mixedgm.solve.loop import Cost, Status
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.threads import single_threaded_blas

_GROWTH = 0.5
"""Share of the growth that the strong rule allows a gradient when lam falls: candidates are more
than the groups that a solver begins with, because asking for them is a pass over all pairs."""
_FALL = 0.8
"""Factor by which lam is expected to fall where nothing is known of those before it."""
_LOWEST = 0.3
_NEAR = 0.05
"""When gradients still change, those so near to lam may end above it."""


def solve_among_all(
    task: Task, lam: float, recipe: Recipe, start: Start
) -> tuple[Task, Solution, Start]:
    """Solve for a lam from a start; also the task with new candidates, and the next start."""
    here = start
    if start.outside is not None or start.lam is not None:  # else it is asked at the solution
        task, here = _with_near(task, start, _threshold(lam, start.lam))
    solutions: list[Solution] = []
    while True:
        left = recipe.max_iter - sum(each.n_iter for each in solutions)
        with single_threaded_blas():
            solution = solve(task.problem(lam), recipe.solver, here, tol=recipe.tol, max_iter=left)
        solutions.append(solution)
        before = _counted(task)
        floor = _threshold(_next(lam, start.lam), lam)
        outside = task.outside(solution.theta, floor)
        spent = _counted(task).since(before)
        here = replace(Start.at(solution, lam), outside=outside, reach=_reach(outside, floor))
        violation = _violation(task, outside, lam)
        solutions.append(replace(solution, cost=spent, trace=[]))
        if np.isnan(violation) or violation <= recipe.tol or not solution.converged or left <= 1:
            break
        task, here = _with_near(task, here, (1.0 - _NEAR) * lam)
    return task, _joined(solutions, violation, recipe), here


def _threshold(lam: float, before: float | None) -> float:
    """Entry from which on a pair becomes a candidate for lam, after a larger one."""
    if before is None or not 0.0 < before - lam < 0.5 * lam:
        return lam
    return max(lam - _GROWTH * (before - lam), _LOWEST * lam)


def _next(lam: float, before: float | None) -> float:
    """The lam that is expected to come next."""
    if before is None or not lam < before <= 1.5 * lam:
        return _FALL * lam
    return lam * lam / before


def _reach(outside: Outside, floor: float) -> float:
    """Entry down to which the answer has all pairs."""
    if outside.count > len(outside.entries):
        return float(outside.entries.min(initial=np.inf))
    return floor


def _with_near(task: Task, start: Start, threshold: float) -> tuple[Task, Start]:
    """The task with those pairs as candidates that are near their bound at the start."""
    outside, reach = start.outside, start.reach
    if outside is None or (reach > threshold and outside.count == len(outside.entries)):
        outside = task.outside(start.theta, threshold)
    near = outside.pairs[outside.entries >= threshold]
    if len(near) == 0:
        return task, start
    task = task.with_candidates(near)
    return task, replace(task.extended(start), outside=None)


def _violation(task: Task, outside: Outside, lam: float) -> float:
    """Largest violation of pairs that are no candidates, on the calibrated scale.

    A lower bound where not all were listed that do; so many are more than any tolerance.
    """
    assert task.beyond is not None
    if not outside.largest > lam:  # NaN stays NaN
        return outside.largest if np.isnan(outside.largest) else 0.0
    broken = outside.entries > lam
    u, v = outside.pairs[broken].T
    excess = (outside.entries[broken] - lam) * task.beyond.weights.of(u, v)
    return float((excess / task.beyond.yardstick.of(u, v)).max(initial=0.0))


def _joined(solutions: list[Solution], violation: float, recipe: Recipe) -> Solution:
    """The last solution with the cost of all, and with what other pairs say."""
    last = solutions[-1]
    certificate = replace(last.certificate, kkt=float(np.maximum(last.kkt, violation)))
    if certificate.converged and not certificate.kkt <= recipe.tol:
        certificate = certificate.but(Status.ITERATION_LIMIT)
    return replace(
        last,
        certificate=certificate,
        cost=Cost.total(each.cost for each in solutions),
        trace=[row for each in solutions for row in each.trace],
        notes=tuple(dict.fromkeys(note for each in solutions for note in each.notes)),
    )


def _counted(task: Task) -> Cost:
    return Cost.until_now(task.smooth)

"""Problem + start -> certified Solution, working on the few groups that matter.

The solver sees only a working set: groups that are active, free, or that the strong rule (or a
violated optimality condition) points at.  From a distant start that would be far too many, so such
a problem is solved in stages.  The certificate is taken on the whole problem; its full gradient
finds the groups that were left out wrongly, and serves the next lam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Evaluation
from mixedgm.rows.contract import Outside
from mixedgm.solve.loop import Account, Certificate, Cost, Run, Solver, Status, TraceRow, run
from mixedgm.solve.problem import Optimality, Problem

_GROWTH = 0.3
# A fall of lam that is long: this times the new lam.
_LONG = 0.5
# A stage takes in at most as many groups as are active, this number, or so many per node; brings
# lam down by this factor at least; and ends when the KKT number is this share of what it was, or
# after so many steps.
_NEW, _NEW_PER_NODE = 200, 2
_STAGE = 0.6
_ROUGHLY, _MOST_STEPS = 0.4, 30
# After stages gradients still change: those so near to lam may end above it.
_NEAR = 0.05


@dataclass(frozen=True, eq=False)
class Solution(Account):
    """A point and the account of it; the certificate is recomputed at that point."""

    theta: Floats
    evaluation: Evaluation
    """Smooth value and full gradient at theta: the next lam starts from it."""
    trace: list[TraceRow]
    """Of the problem itself: what stages took is counted in it, but their steps have no rows."""
    notes: tuple[str, ...] = ()
    memory: Memory | None = None
    groups: Ints | None = None
    """Those that theta has; it is zero elsewhere.  None: not known."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: theta, the full evaluation there, and the lam it solves (if it does)."""

    theta: Floats
    evaluation: Evaluation
    lam: float | None = None
    memory: Memory | None = None
    working: Ints | None = None
    """Groups to work on from the start, besides those that screening finds."""
    rough: bool = False
    """Whether it solves for its lam only roughly."""
    outside: Outside | None = None
    """Of a wide table: pairs that are not in the layout and are near their bound at theta."""
    reach: float = np.inf
    """Entry down to which `outside` has all of them."""
    groups: Ints | None = None
    """As in `Solution`."""

    @classmethod
    def at(cls, solution: Solution, lam: float) -> Start:
        """Begin where a solution for `lam` is."""
        known = (solution.theta, solution.evaluation, lam, solution.memory)
        return cls(*known, groups=solution.groups)


@dataclass(frozen=True, eq=False)
class Memory:
    """What a solver remembers of a working set."""

    groups: Ints
    content: Any

    def on(self, groups: Ints) -> Any:
        """The content on this working set; on another one, what of it serves elsewhere, too."""
        if np.array_equal(groups, self.groups):
            return self.content
        return getattr(self.content, "elsewhere", None)


def solve(problem: Problem, solver: Solver, start: Start, *, tol: float, max_iter: int) -> Solution:
    """Solve on growing working sets until the certificate of the whole problem is within `tol`.

    A solver that works with sampled gradients has a `solve` of its own, and is left to it.
    """
    solve_alone = getattr(solver, "solve", None)
    if solve_alone is not None:
        done: Solution = solve_alone(problem, start, tol=tol, max_iter=max_iter)
        return done
    so_far = _Tally(problem, max_iter)
    at = _approached(problem, solver, start, tol, so_far)
    groups, inner_tol = screened(problem, at), tol
    while True:
        result, optimality, at = _work(problem, groups, solver, at, inner_tol, so_far)
        if optimality.kkt <= tol or so_far.left <= 0:
            break
        more = violators(problem, optimality, groups, tol)
        if len(more) == 0 and result.status is not Status.CONVERGED:
            break
        if len(more) == 0:
            if inner_tol < 1e-3 * tol:
                break
            inner_tol *= 0.3
        groups = np.union1d(groups, more)
    status = _status(optimality.kkt <= tol, so_far.left <= 0, result.status)
    return so_far.solution(at, status, optimality)


def _work(
    problem: Problem,
    groups: Ints,
    solver: Solver,
    at: Start,
    tol: float,
    so_far: _Tally,
    most: float = np.inf,
) -> tuple[Run, Optimality, Start]:
    """Run the solver on these groups; also, what the whole problem says of where that ends."""
    small = problem.restrict(groups)
    begin = at.evaluation
    here = Evaluation(begin.value, begin.gradient[small.index], begin.slopes)
    began = so_far.spent()
    result = run(
        small,
        solver,
        (at.theta[small.index], here),
        tol=tol,
        max_iter=int(min(most, so_far.left)),
        memory=None if at.memory is None else at.memory.on(groups),
    )
    so_far.add(problem, result, began)
    theta = small.lifted(result.theta)
    optimality = problem.optimality(theta, groups)
    memory = Memory(groups, result.memory)
    at = Start(theta, optimality.evaluation, problem.lam, memory, groups=groups)
    return result, optimality, at


def _approached(
    problem: Problem, solver: Solver, start: Start, tol: float, so_far: _Tally
) -> Start:
    """A start that is not far away: rough solutions for larger lam on the way, one after the other.

    Without edges (or far from the solution) most groups violate their conditions, and most of them
    no longer do so once a few others are active; curvature of all of them would be expensive.
    """
    begun = start
    while so_far.left > 0 and (lam := _reachable(problem, start)) > problem.lam:
        stage = replace(problem, lam=lam)
        roughly = max(tol, _ROUGHLY * stage.measure(start.theta, start.evaluation.gradient))
        groups, working = screened(stage, start), start.working
        result, _, start = _work(stage, groups, solver, start, roughly, so_far, _MOST_STEPS)
        start = replace(start, working=working, memory=None)
        if result.status is not Status.CONVERGED:
            break
    return start if start is begun else replace(start, rough=True)


def _reachable(problem: Problem, start: Start) -> float:
    """The next lam to solve for: that of the problem, unless it brings too many new groups."""
    if start.lam is None or start.lam - problem.lam < _LONG * problem.lam:
        return problem.lam
    layout, penalty = problem.smooth.layout, problem.penalty
    active, outside = layout.active(start.theta, start.groups), penalty.penalised.copy()
    outside[active] = False
    enters = penalty.entry(start.evaluation.gradient)[outside]
    most = max(_NEW, _NEW_PER_NODE * layout.n_nodes, len(active))
    if np.count_nonzero(enters > problem.lam) <= most:
        return problem.lam
    fitting = float(np.partition(enters, -most)[-most])
    return max(problem.lam, min(_STAGE * start.lam, fitting))


def screened(problem: Problem, start: Start) -> Ints:
    """Active and free groups, and those whose gradient may exceed its bound at the solution.

    The strong rule (Tibshirani et al. 2012) allows a gradient to grow as fast as lam falls:
    from the solution at lam_0 it keeps all above the bound at 2 lam - lam_0.  That is safe but most
    of what it keeps stays zero, and curvature is expensive; three tenths of that growth miss next
    to nothing, and the certificate finds what they miss.  After a long jump only groups that are
    violated at the start are taken.
    """
    layout, penalty = problem.smooth.layout, problem.penalty
    fall = (start.lam or np.inf) - problem.lam
    threshold = problem.lam - _GROWTH * fall if 0.0 < fall < _LONG * problem.lam else problem.lam
    if start.rough:
        threshold -= _NEAR * problem.lam
    chosen = layout.group_norms(start.evaluation.gradient) >= penalty.bound(threshold)
    if start.working is not None:
        chosen[start.working] = True
    chosen[layout.active(start.theta, start.groups)] = True
    chosen[penalty.free] = True
    return np.flatnonzero(chosen)


def violators(problem: Problem, optimality: Optimality, groups: Ints, tol: float) -> Ints:
    """Groups outside the working set that break their optimality condition.

    The worst ones, at most as many as the set has already (and ten).
    """
    outside = np.ones(len(optimality.edge_distance), dtype=bool)
    outside[groups] = False
    broken = np.flatnonzero(outside & (optimality.edge_distance > tol))
    worst = broken[np.argsort(-optimality.edge_distance[broken], kind="stable")]
    return np.sort(worst[: max(10, len(groups))])


class _Tally:
    """What all runs of one solve took."""

    def __init__(self, problem: Problem, max_iter: int) -> None:
        self._problem = problem
        self._max_iter = max_iter
        self._n_iter = 0
        self._trace: list[TraceRow] = []
        self._notes: tuple[str, ...] = ()
        self._before = Cost.until_now(problem.smooth)

    @property
    def left(self) -> int:
        """Steps that may still be made."""
        return self._max_iter - self._n_iter

    def spent(self) -> Cost:
        """What it took until now."""
        return Cost.until_now(self._problem.smooth).since(self._before, self._n_iter)

    def add(self, problem: Problem, result: Run, began: Cost) -> None:
        """Count a run; stages on the way, which minimise something else, have no say but that."""
        self._n_iter += result.n_iter
        if problem.lam != self._problem.lam:
            return
        self._notes = tuple(dict.fromkeys([*self._notes, *result.notes]))
        self._trace += [
            replace(row, passes=row.passes + began.passes, seconds=row.seconds + began.seconds)
            for row in result.trace
        ]

    def solution(self, at: Start, status: Status, optimality: Optimality) -> Solution:
        """The end of it."""
        return Solution(
            Certificate.of(status, optimality.objective, optimality.kkt),
            self.spent(),
            at.theta,
            optimality.evaluation,
            self._trace,
            self._notes,
            at.memory,
            at.groups,
        )


def _status(certified: bool, out_of_steps: bool, solver_says: Status) -> Status:
    """The certificate decides; a solver that merely believes to have converged has not."""
    if certified:
        return Status.CONVERGED
    if solver_says is not Status.CONVERGED:
        return solver_says
    return Status.ITERATION_LIMIT if out_of_steps else Status.NO_PROGRESS

"""A solved problem -> starts for problems that differ little from it, such as resamples.

The curvature at the solution serves their Newton steps, so that most of them never compute their
own; and they work from the beginning on every group that is likely to matter.  `Chord` is for
problems with a penalty, `Secant` for those without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.choose import Auto
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import KnownCurvature, flatten
from mixedgm.solve.loop import Solver, State
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_newton import NewtonState, ProximalNewton
from mixedgm.solve.subproblem import QuadraticModel
from mixedgm.solve.working_set import Memory, Start

_NEAR = 0.5
_MOST_STEPS = 5


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A solved problem, from which problems that differ little from it are started."""

    layout: Layout
    """Layout of the solved problem."""
    working: Ints
    """Active groups of the solved problem, and those that are closest to becoming active."""
    memory: Memory | None
    """Curvature of the solved problem on these groups, where the solver uses one."""

    def start(self, theta: Floats, evaluation: Evaluation, layout: Layout) -> Start:
        """A start for a problem on `layout`; on another layout than its own, a plain one."""
        if not layout.same(self.layout):
            return Start(theta, evaluation)
        return Start(theta, evaluation, memory=self.memory, working=self.working)


def neighbour_of(problem: Problem, solver: Solver, theta: Floats) -> Neighbour:
    """Compute what other problems can use of this one, which `theta` solves."""
    here = problem.smooth.evaluate(theta)
    groups = _working(problem, theta, here)
    layout = problem.smooth.layout
    index = layout.positions(groups)
    small = problem.restrict(groups)
    start = Evaluation(here.value, here.gradient[index])
    if hasattr(solver, "solve"):  # its gradients are sampled, and so would its curvature be
        return Neighbour(layout, groups, None)
    state = solver.init(small, theta[index], start, 0.0, None)
    newton = solver.newton_for(small) if isinstance(solver, Auto) else solver
    memory = None
    if isinstance(state, NewtonState) and _keeps_curvature(newton):
        contrasts = Contrasts(small.smooth.layout)
        # Made once for all of them: from more rows than a step of one problem would take.
        sampled = newton.hessian == "sampled"
        stride = max(1, small.smooth.curvature_rows // newton.sample_rows) if sampled else 1
        blocks = flatten(contrasts, small.smooth, theta[index], stride)
        memory = Memory(groups, KnownCurvature(contrasts, blocks))
    return Neighbour(layout, groups, memory)


def _keeps_curvature(solver: object) -> TypeGuard[ProximalNewton]:
    return (
        isinstance(solver, ProximalNewton)
        and solver.hessian != "limited-memory"
        and solver.subproblem == "coordinate-descent"
    )


def _working(problem: Problem, theta: Floats, here: Evaluation) -> Ints:
    """Active groups, and the inactive ones whose gradient is nearest to its bound.

    At most as many of the latter as of the former, and ten.
    """
    layout, penalty = problem.smooth.layout, problem.penalty
    active = layout.group_norms(theta) > 0.0
    gradient = layout.group_norms(here.gradient)
    limit = penalty.bound(problem.lam)
    near = np.flatnonzero(~active & (gradient >= _NEAR * limit) & (limit > 0.0))
    closest = near[np.argsort(-gradient[near] / limit[near], kind="stable")]
    chosen = active.copy()
    chosen[penalty.free] = True
    chosen[closest[: int(active.sum()) + 10]] = True
    return np.flatnonzero(chosen)


# -- the solver --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chord:
    """Newton steps with the curvature of a neighbouring problem, while they get on well.

    A step is taken as it is, without a line search: what counts is that the KKT number falls.  When
    it falls too slowly to reach the tolerance within a few steps, `solver` goes on from there.
    """

    solver: Solver
    """Solver for problems without a known neighbour, and for those that are too far from theirs."""

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: object = None
    ) -> State:
        """Start at theta; without curvature in memory, with the other solver."""
        if not isinstance(memory, KnownCurvature):
            return self.solver.init(problem, theta, here, tol, memory)
        eta = memory.contrasts.down(theta)
        return ChordState.at(problem, theta, here, tol, curvature=memory, eta=eta)

    def step(self, problem: Problem, state: object) -> State:
        """Minimise the quadratic model and go there."""
        if not isinstance(state, ChordState):
            return self.solver.step(problem, state)
        contrasts = state.curvature.contrasts
        slope = contrasts.down(state.evaluation.gradient)
        layout, blocks = contrasts.reduced, state.curvature.blocks
        model = QuadraticModel(problem, layout, state.eta, slope, blocks)
        target = model.minimise(max(0.1 * state.tol, 0.03 * state.measure))
        step = Step(target, target - state.eta)
        eta = _mixed(step, state.last)
        theta = contrasts.up(eta)
        here = problem.smooth.evaluate(theta)
        measure = np.inf
        if np.isfinite(here.value):
            measure = problem.measure(theta, here.gradient)
        if _hopeless(state.measure, measure, state.tol):
            best = (theta, here) if measure < state.measure else (state.theta, state.evaluation)
            return self.solver.init(problem, *best, state.tol, None)
        return state.moved(problem, theta, here, measure=measure, eta=eta, last=step)


class Step(NamedTuple):
    """Where a model has its minimum, and how far from its own point that is."""

    target: Floats
    length: Floats


def _mixed(step: Step, last: Step | None) -> Floats:
    """Anderson's mixture (1965) of this target and the last, where both have the same groups.

    The one that would have the shortest step if steps changed linearly between the two.
    """
    if last is None or not np.array_equal(step.target == 0.0, last.target == 0.0):
        return step.target
    change = step.length - last.length
    square = float(change @ change)
    share = float(change @ step.length) / square if square > 0.0 else 0.0
    if abs(share) > 0.5:
        return step.target
    return step.target - share * (step.target - last.target)


def _hopeless(before: float, now: float, tol: float) -> bool:
    """Whether more steps at this rate would cost more than computing the curvature here."""
    if now <= tol:
        return False
    return now >= before or np.log(tol / now) / np.log(now / before) > _MOST_STEPS


@dataclass(frozen=True, eq=False, kw_only=True)
class ChordState(State):
    """State with the neighbour's curvature."""

    curvature: KnownCurvature
    eta: Floats
    last: Step | None = None

    @property
    def memory(self) -> KnownCurvature:
        """The curvature, which serves the next problem."""
        return self.curvature


_MOST_PAIRS = 30
_TRIALS = 4


@dataclass(frozen=True, eq=False)
class Secant:
    """Steps by the inverse curvature of a neighbouring problem, which gradients correct on the way.

    That is the method of Broyden, Fletcher, Goldfarb and Shanno, from a good guess instead of the
    identity.  It serves problems without penalty; a step costs one gradient.
    """

    layout: Layout
    """Layout of the neighbour."""
    inverse: Floats
    """Inverse of the neighbour's curvature, in contrasts."""
    solver: Solver
    """Solver for problems with a penalty or another layout, and where steps lead nowhere."""

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: object = None
    ) -> State:
        """Start at theta."""
        if not problem.smooth.layout.same(self.layout) or problem.penalty.penalised.any():
            return self.solver.init(problem, theta, here, tol, memory)
        contrasts = Contrasts(problem.smooth.layout)
        return SecantState.at(problem, theta, here, tol, contrasts=contrasts)

    def step(self, problem: Problem, state: object) -> State:
        """Go where the corrected curvature points to."""
        if not isinstance(state, SecantState):
            return self.solver.step(problem, state)
        slope = state.contrasts.down(state.evaluation.gradient)
        length = -_corrected(self.inverse, state.pairs, slope)
        most = state.objective + 1e-12 * abs(state.objective)
        for _ in range(_TRIALS if len(state.pairs) < _MOST_PAIRS else 0):
            theta = state.theta + state.contrasts.up(length)
            here = problem.smooth.evaluate(theta)
            if here.value <= most:
                break
            length *= 0.5
        else:
            return self.solver.init(problem, state.theta, state.evaluation, state.tol, None)
        change = state.contrasts.down(here.gradient) - slope
        more = ((length, change),) if length @ change > 0.0 else ()
        return state.moved(problem, theta, here, pairs=state.pairs + more)


def _corrected(inverse: Floats, pairs: tuple[tuple[Floats, Floats], ...], slope: Floats) -> Floats:
    """The inverse curvature times the slope, as it must be to explain steps and their changes."""
    left, shares = slope.copy(), []
    for length, change in reversed(pairs):
        shares.append(float(length @ left) / float(length @ change))
        left -= shares[-1] * change
    found = inverse @ left
    for (length, change), share in zip(pairs, reversed(shares), strict=True):
        found += length * (share - float(change @ found) / float(length @ change))
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class SecantState(State):
    """State with steps so far."""

    contrasts: Contrasts
    pairs: tuple[tuple[Floats, Floats], ...] = ()
    """Steps, and what the gradient changed by."""

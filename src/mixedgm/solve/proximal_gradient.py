"""Accelerated proximal gradient in the six variants of TFOCS.

All six read, with y = (1 - t) x + t z, gradient g at y and step 1/L:

    z+ chained       prox of z - g / (t L)
       accumulated   prox of z_0 - sum of all g / (t L) since the start
       implied       x + (x+ - x) / t
    x+ averaged      (1 - t) x + t z+
       projected     prox of y - g / L

and differ only in the two choices.  Whatever the variant, the point offered as the answer is the
proximal step from y, because an average of sparse points is not sparse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mixedgm.base.parameters import HasParams, ensure, ensure_in, is_flag
from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.loop import State
from mixedgm.solve.problem import Problem

ZRule = Literal["chained", "accumulated", "implied", "none"]
XRule = Literal["averaged", "projected"]

VARIANTS: dict[str, tuple[ZRule, XRule]] = {
    "auslender-teboulle": ("chained", "averaged"),
    "lan-lu-monteiro": ("chained", "projected"),
    "tseng": ("accumulated", "averaged"),
    "nesterov-2007": ("accumulated", "projected"),
    "nesterov-1983": ("implied", "projected"),
    "plain": ("none", "projected"),
}


@dataclass(frozen=True)
class ProximalGradient(HasParams):
    """First-order solver.

    Parameters
    ----------
    variant : str
        "auslender-teboulle" (default), "lan-lu-monteiro", "tseng", "nesterov-2007",
        "nesterov-1983" (FISTA) or "plain".
    lengthen : float
        Factor in (0, 1] on the curvature estimate L before every step, so that steps can grow.
    shorten : float
        Factor > 1 on L when the step proves too long.
    restart : bool
        Drop the momentum when it points uphill.

    Examples
    --------
    >>> ProximalGradient("tseng").rules
    ('accumulated', 'averaged')
    """

    variant: str = "auslender-teboulle"
    lengthen: float = 0.95
    shorten: float = 2.0
    restart: bool = True

    def __post_init__(self) -> None:
        offered = f"one of {', '.join(map(repr, VARIANTS))}"
        ensure(self.variant in tuple(VARIANTS), "variant", offered, self.variant)
        ensure_in("(0, 1]", lengthen=self.lengthen)
        ensure_in("(1, inf)", shorten=self.shorten)
        ensure(is_flag(self.restart), "restart", "True or False", self.restart)

    @property
    def rules(self) -> tuple[ZRule, XRule]:
        """How z and x are updated."""
        return VARIANTS[self.variant]

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: None = None
    ) -> GradientState:
        """Start at theta, whose evaluation is `here`, without momentum."""
        own = {"x": theta, "z": theta, "origin": theta, "pulled": np.zeros_like(theta)}
        return GradientState.at(problem, theta, here, tol, **own)

    def step(self, problem: Problem, state: GradientState) -> GradientState:
        """One accelerated step, its line search and the test of the candidate answer."""
        bound = state.curvature * self.lengthen
        for _ in range(60):
            t, y, at_y = self._look_ahead(problem, state, bound)
            if not np.isfinite(at_y.value):
                return _restarted(state)
            trial = self._trial(problem, state, bound, (t, y, at_y))
            at_x, local, fine = _local_curvature(problem, (y, at_y), trial.x, state.fine)
            state = replace(state, fine=fine)
            if local <= bound * (1.0 + 1e-9):
                return self._accept(problem, state, trial, at_x)
            # A little more than the curvature just met, so that the next steps fit at once.
            bound = max(1.05 * bound, min(self.shorten * bound, 1.3 * local))
        return _restarted(state)

    def _look_ahead(
        self, problem: Problem, state: GradientState, bound: float
    ) -> tuple[float, Floats, Evaluation]:
        """Momentum weight t, the point y and the evaluation there, for one value of L."""
        z_rule, _ = self.rules
        if state.fresh or z_rule == "none":
            here = state.evaluation
            return 1.0, state.x, problem.smooth.evaluate(state.x) if here.grad is None else here
        # The weight of all steps so far, 1 / (L t^2), grows as (1 - t) / (L t^2) = that of before.
        ratio = bound / state.curvature / state.momentum**2
        t = 2.0 / (1.0 + float(np.sqrt(1.0 + 4.0 * ratio)))
        y = (1.0 - t) * state.x + t * state.z
        return t, y, problem.smooth.evaluate(y)

    def _trial(
        self,
        problem: Problem,
        state: GradientState,
        bound: float,
        at: tuple[float, Floats, Evaluation],
    ) -> _Trial:
        """Candidate z+, x+ and the proximal point of y for one value of L."""
        t, y, at_y = at
        z_rule, x_rule = self.rules
        grad, prox, lam = at_y.gradient, problem.penalty.prox, problem.lam
        step = 1.0 / (t * bound)
        answer = prox(y - grad / bound, lam, 1.0 / bound)
        pulled, pull, z = state.pulled, state.pull, state.z
        if z_rule == "chained":
            z = prox(state.z - step * grad, lam, step)
        elif z_rule == "accumulated":
            pulled, pull = pulled + step * grad, pull + step
            z = prox(state.origin - pulled, lam, pull)
        x = (1.0 - t) * state.x + t * z if x_rule == "averaged" else answer
        if z_rule == "implied":
            z = state.x + (x - state.x) / t
        return _Trial(x, z, answer, y, t, bound, pulled, pull)

    def _accept(
        self, problem: Problem, state: GradientState, trial: _Trial, at_x: Evaluation
    ) -> GradientState:
        objective = problem.objective(at_x, trial.x)
        uphill = (trial.y - trial.answer) @ (trial.x - state.x) > 0.0 and not state.fresh
        worse = objective > problem.objective(state.evaluation, state.x) + 1e-14 * abs(objective)
        # Averages of z creep up without ever overshooting; for them a falling speed is the sign
        # that the momentum is spent (Su, Boyd & Candes 2016).
        speed = float(np.linalg.norm(trial.x - state.x))
        slower = "averaged" in self.rules or "accumulated" in self.rules
        slower = slower and speed < state.speed and state.age >= 5
        after = replace(
            state,
            speed=speed,
            age=state.age + 1,
            theta=trial.answer,
            objective=objective,
            measure=np.inf,
            x=trial.x,
            evaluation=at_x,
            z=trial.z,
            pulled=trial.pulled,
            pull=trial.pull,
            curvature=trial.bound,
            momentum=trial.t,
            fresh=False,
        )
        after = _test_answer(problem, after, trial)
        if self.restart and self.rules[0] != "none" and (uphill or worse or slower):
            return _restarted(after)
        return after


@dataclass(frozen=True, eq=False, kw_only=True)
class GradientState(State):
    """State with momentum; `evaluation` is that of x."""

    x: Floats
    z: Floats
    origin: Floats
    pulled: Floats
    pull: float = 0.0
    curvature: float = 1.0
    momentum: float = 1.0
    fresh: bool = True
    speed: float = 0.0
    age: int = 0
    fine: bool = False
    next_test: float = np.inf


@dataclass(frozen=True, eq=False)
class _Trial:
    x: Floats
    z: Floats
    answer: Floats
    y: Floats
    t: float
    bound: float
    pulled: Floats
    pull: float


def _restarted(state: GradientState) -> GradientState:
    """Drop the momentum and go on from x."""
    if state.fresh:
        return replace(state, halted=True)
    return replace(
        state,
        z=state.x,
        origin=state.x,
        pulled=np.zeros_like(state.x),
        pull=0.0,
        momentum=1.0,
        fresh=True,
        age=0,
    )


def _local_curvature(
    problem: Problem, at: tuple[Floats, Evaluation], x: Floats, fine: bool
) -> tuple[Evaluation, float, bool]:
    """Evaluation at x, and the least L whose quadratic bound around y holds there.

    The third value says whether function values agree to rounding, so that gradients (which
    still carry information) are compared.
    """
    y, at_y = at
    move = x - y
    squared = float(move @ move)
    at_x = problem.smooth.evaluate(x, gradient=fine)
    if squared == 0.0 or not np.isfinite(at_x.value):
        return at_x, 0.0 if squared == 0.0 else np.inf, fine
    gap = at_x.value - at_y.value - float(at_y.gradient @ move)
    if abs(gap) > 1e-9 * max(1.0, abs(at_y.value)):
        return at_x, 2.0 * gap / squared, False
    if at_x.grad is None:
        at_x = problem.smooth.evaluate(x)
    return at_x, float(move @ (at_x.gradient - at_y.gradient)) / squared, True


def _test_answer(problem: Problem, state: GradientState, trial: _Trial) -> GradientState:
    """Spend a pass on the exact KKT number only when the step length says it may be small."""
    mapping = trial.bound * (trial.y - trial.answer)
    norms = problem.smooth.layout.group_norms(mapping)
    estimate = problem.conditions.worst(norms / problem.yardstick, mapping)
    if estimate > min(state.tol, state.next_test):
        return state
    at_answer = problem.smooth.evaluate(trial.answer)
    if not np.isfinite(at_answer.value):
        return state
    return replace(
        state,
        objective=problem.objective(at_answer, trial.answer),
        measure=problem.measure(trial.answer, at_answer.gradient),
        next_test=0.7 * estimate,
    )

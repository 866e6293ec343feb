"""A direction -> a step along it that lowers the objective enough and stays in the domain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.problem import Problem

_SUFFICIENT = 1e-4


class Step(NamedTuple):
    """An accepted point, its evaluation, and the objective there."""

    theta: Floats
    evaluation: Evaluation
    objective: float
    kept: float
    """How much of what the gradient promises for a full step came true; half of it, if the function
    is quadratic and the direction leads to its minimum."""


def armijo(
    problem: Problem,
    begin: tuple[Floats, Evaluation, float],
    direction: Floats,
    trials: int = 30,
    *,
    final: bool = False,
) -> Step | None:
    """Halve the step from 1 until the objective falls by a fraction of what the model promises.

    `begin` is the point, its evaluation, and the objective there.  Every trial computes the
    gradient too: the first one is almost always accepted and its gradient is the next step's.
    With `final` a full step is expected to reach the solution.  Returns None when no step is
    accepted.
    """
    theta, here, objective = begin
    full = problem.penalty.value(theta + direction, problem.lam)
    promise = float(here.gradient @ direction) + full - (objective - here.value)
    # Near the optimum the promised decrease drowns in rounding; there the KKT number decides.
    rounding = 1e-12 * max(1.0, abs(objective))
    if promise > rounding or not np.isfinite(promise):
        return None
    step = 1.0
    for _ in range(trials):
        point = theta + step * direction
        there = problem.evaluate(point, final=final and step == 1.0)
        if np.isfinite(there.value):
            new = there.value + full if step == 1.0 else problem.objective(there, point)
            if new - objective <= _SUFFICIENT * step * promise and promise < 0.0:
                return Step(point, there, new, (new - objective) / promise)
            if abs(new - objective) <= rounding and problem.measure(
                point, there.gradient
            ) < problem.measure(theta, here.gradient):
                return Step(point, there, new, 0.5)
        step *= 0.5
    return None

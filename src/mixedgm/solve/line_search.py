"""A direction -> a step along it that lowers the objective enough and stays in the domain."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.problem import Problem

_SUFFICIENT = 1e-4


def armijo(
    problem: Problem, theta: Floats, here: Evaluation, direction: Floats, trials: int = 30
) -> tuple[Floats, Evaluation] | None:
    """Halve the step from 1 until the objective falls by a fraction of what the model promises.

    Every trial computes the gradient too: the first one is almost always accepted and its
    gradient is the next step's.  Returns None when no step is accepted.
    """
    penalty = problem.penalty
    old_penalty = penalty.value(theta)
    objective = here.value + problem.lam * old_penalty
    measure = problem.measure(theta, here.gradient)
    full_penalty = penalty.value(theta + direction)
    promise = float(here.gradient @ direction) + problem.lam * (full_penalty - old_penalty)
    # Near the optimum the promised decrease drowns in rounding; there the KKT number decides.
    rounding = 1e-12 * max(1.0, abs(objective))
    if promise > rounding or not np.isfinite(promise):
        return None
    step = 1.0
    for _ in range(trials):
        point = theta + step * direction
        there = problem.smooth.evaluate(point)
        if np.isfinite(there.value):
            change = problem.objective(there, point) - objective
            if change <= _SUFFICIENT * step * promise and promise < 0.0:
                return point, there
            if abs(change) <= rounding and problem.measure(point, there.gradient) < measure:
                return point, there
        step *= 0.5
    return None

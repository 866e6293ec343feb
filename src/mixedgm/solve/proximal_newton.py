"""Proximal Newton: quadratic models with exact, sampled or limited-memory curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.limited_memory import LimitedMemory, minimise_by_products
from mixedgm.solve.line_search import armijo
from mixedgm.solve.problem import Problem
from mixedgm.solve.subproblem import Blocks, QuadraticModel, flatten

Hessian = Literal["exact", "sampled", "limited-memory"]
Subproblem = Literal["coordinate-descent", "proximal-gradient"]


@dataclass(frozen=True)
class ProximalNewton:
    """Second-order solver.

    Parameters
    ----------
    hessian : {"sampled", "exact", "limited-memory"}
        Curvature from a systematic sample of the rows (which grows when progress slows), from
        all rows, or from gradient differences.
    subproblem : {"coordinate-descent", "proximal-gradient"}
        How the quadratic model is minimised.  Limited-memory curvature always uses the latter.
    sample_rows : int
        Rows in the first sample of ``hessian="sampled"``.
    memory : int
        Pairs kept by ``hessian="limited-memory"``.

    Examples
    --------
    >>> ProximalNewton(hessian="exact").subproblem
    'coordinate-descent'
    """

    hessian: Hessian = "sampled"
    subproblem: Subproblem = "coordinate-descent"
    sample_rows: int = 2500
    memory: int = 20

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("hessian", self.hessian, ("exact", "sampled", "limited-memory")),
            ("subproblem", self.subproblem, ("coordinate-descent", "proximal-gradient")),
        ):
            if value not in allowed:
                raise ParameterError(
                    f"{name} must be one of {', '.join(map(repr, allowed))}. Got {value!r} instead."
                )
        if self.sample_rows < 1 or self.memory < 1:
            raise ParameterError("sample_rows and memory must be positive integers.")

    def init(self, problem: Problem, theta: Floats, here: Evaluation, tol: float) -> NewtonState:
        """Start at theta, whose evaluation is `here`."""
        stride = 1
        if self.hessian == "sampled":
            stride = max(1, problem.smooth.n_rows // self.sample_rows)
        return NewtonState(
            theta=theta,
            objective=problem.objective(here, theta),
            measure=problem.measure(theta, here.gradient),
            tol=tol,
            evaluation=here,
            stride=stride,
            memory=LimitedMemory(self.memory),
        )

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Model, direction, line search."""
        target = self._model_minimiser(problem, state)
        direction = target - state.theta
        found = armijo(problem, state.theta, state.evaluation, direction)
        if found is None:
            return self._fall_back(problem, state)
        theta, evaluation = found
        measure = problem.measure(theta, evaluation.gradient)
        stride = state.stride
        if measure > 0.3 * state.measure:
            stride = max(1, stride // 4)
        return replace(
            state,
            theta=theta,
            objective=problem.objective(evaluation, theta),
            measure=measure,
            evaluation=evaluation,
            stride=stride,
            memory=state.memory.updated(
                theta - state.theta, evaluation.gradient - state.evaluation.gradient
            ),
        )

    def _model_minimiser(self, problem: Problem, state: NewtonState) -> Floats:
        # Solve the model just well enough: a fraction of the current KKT number that shrinks
        # with it (superlinear), never far below what is asked of the whole problem.
        forcing = max(0.1 * state.tol, min(0.1, state.measure**0.5) * state.measure)
        if self.hessian == "limited-memory":
            return minimise_by_products(
                problem, state.memory.product, (state.theta, state.evaluation.gradient), forcing
            )
        curvature = problem.smooth.curvature(state.theta, state.stride)
        if self.subproblem == "proximal-gradient":
            return minimise_by_products(
                problem, curvature.product, (state.theta, state.evaluation.gradient), forcing
            )
        blocks: Blocks = flatten(problem.smooth.layout, curvature)
        model = QuadraticModel(problem, curvature, state.theta, state.evaluation.gradient, blocks)
        return model.minimise(forcing)

    def _fall_back(self, problem: Problem, state: NewtonState) -> NewtonState:
        """The Newton direction failed: more exact curvature first, then a gradient step."""
        if self.hessian == "sampled" and state.stride > 1:
            return replace(state, stride=1)
        if self.hessian == "limited-memory" and state.memory.pairs:
            return replace(state, memory=LimitedMemory(self.memory))
        bound = 1.0
        for _ in range(40):
            target = problem.penalty.prox(
                state.theta - state.evaluation.gradient / bound, problem.lam / bound
            )
            found = armijo(problem, state.theta, state.evaluation, target - state.theta, trials=1)
            if found is not None:
                theta, evaluation = found
                note = "a Newton line search failed; a proximal gradient step was taken instead"
                return replace(
                    state,
                    theta=theta,
                    objective=problem.objective(evaluation, theta),
                    measure=problem.measure(theta, evaluation.gradient),
                    evaluation=evaluation,
                    notes=tuple(dict.fromkeys([*state.notes, note])),
                )
            bound *= 4.0
        return replace(state, halted=True)


@dataclass(frozen=True, eq=False)
class NewtonState:
    """Everything that changes from step to step."""

    theta: Floats
    objective: float
    measure: float
    tol: float
    evaluation: Evaluation
    stride: int
    memory: LimitedMemory
    halted: bool = False
    notes: tuple[str, ...] = ()

"""Proximal Newton: quadratic models with exact, sampled or limited-memory curvature."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, Smooth
from mixedgm.parameters import HasParams, ensure
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import KnownCurvature, flatten
from mixedgm.solve.loop import run
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.subproblem import QuadraticModel

_SLOW = 0.3
# What exact curvature makes of a KKT number: this times its square, on survey data and on
# simulated graphs.
_QUADRATIC = 0.4
# In a pass, a value of a scored node costs about as much as so many groups of one parameter.
_GROUPS_OF_A_VALUE = 3.5

# After a direction along which no step is good, or one that keeps little of what it promises,
# curvature is added to the model: so much at first.
_TRIALS = 12
_DAMPING, _MOST_DAMPING = 1e-3, 1e3
# Share of the promised decrease that a step must achieve.
_SUFFICIENT = 1e-4

Hessian = Literal["exact", "sampled", "limited-memory"]
Subproblem = Literal["coordinate-descent", "proximal-gradient"]


@dataclass(frozen=True)
class ProximalNewton(HasParams):
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
        for name, offered in (("hessian", get_args(Hessian)), ("subproblem", get_args(Subproblem))):
            value, wanted = getattr(self, name), f"one of {', '.join(map(repr, offered))}"
            ensure(value in offered, name, wanted, value)
        for count in (self.sample_rows, self.memory):
            if not (isinstance(count, numbers.Integral) and count >= 1):
                raise ParameterError("sample_rows and memory must be positive integers.")

    def init(
        self,
        problem: Problem,
        theta: Floats,
        here: Evaluation,
        tol: float,
        memory: KnownCurvature | None = None,
    ) -> NewtonState:
        """Start at theta, whose evaluation is `here`, with curvature from an earlier run if any."""
        n_rows = problem.smooth.curvature_rows
        if self.hessian == "exact" and not problem.smooth.exact_curvature:
            raise ParameterError(
                "hessian='exact' would have to visit too many states of the categorical columns "
                "for this loss; use hessian='sampled' or 'limited-memory'."
            )
        stride = max(1, n_rows // self.sample_rows) if self.hessian == "sampled" else 1
        first = stride
        measure = problem.measure(theta, here.gradient)
        exact = stride == 1 and problem.smooth.exact_curvature
        near = exact and _QUADRATIC * measure**2 <= tol
        if memory is not None and memory.rough and near:
            memory = None  # one good step is enough
        if memory is None and not near and self.hessian == "sampled" and problem.smooth.by_nodes:
            first = max(stride, n_rows // _rows_for_a_first_step(problem))
        return NewtonState(
            theta=theta,
            objective=problem.objective(here, theta),
            measure=measure,
            tol=tol,
            evaluation=here,
            stride=stride,
            first=first,
            pairs=LimitedMemory(self.memory),
            memory=memory,
            contrasts=Contrasts(problem.smooth.layout) if memory is None else memory.contrasts,
        )

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Model, direction, line search."""
        stale = state.memory is not None
        target, memory = self._model_minimiser(problem, state)
        begin = (state.theta, state.evaluation, state.objective)
        final = self._expected(problem, state) <= _certainty(problem) * state.tol
        accepted = _armijo(problem, begin, target - state.theta, _TRIALS, final=final)
        if accepted is None:
            return self._fall_back(problem, state, stale)
        theta, evaluation, objective, kept = accepted
        measure = problem.measure(theta, evaluation.gradient)
        gain = measure / state.measure
        slow = gain > _SLOW and measure > state.tol
        rough = state.memory.rough if state.memory is not None else state.first > state.stride
        # Three more steps like this one are about as expensive as fresh curvature and a step.
        lasting = not rough and not slow and gain**3 * measure <= state.tol
        keep = memory is not None and lasting and self._expensive(problem, state.stride)
        return replace(
            state,
            theta=theta,
            objective=objective,
            measure=measure,
            evaluation=evaluation,
            stride=max(1, state.stride // 4) if slow and not stale and not rough else state.stride,
            first=state.stride,
            gain=gain,
            damping=_next_damping(state.damping, kept) if self._damps else 0.0,
            memory=memory if keep else None,
            pairs=self._pairs(state, theta, evaluation),
        )

    @property
    def _damps(self) -> bool:
        return self.hessian != "limited-memory" and self.subproblem == "coordinate-descent"

    def _pairs(self, state: NewtonState, theta: Floats, there: Evaluation) -> LimitedMemory:
        if self.hessian != "limited-memory":
            return state.pairs
        return state.pairs.updated(theta - state.theta, there.gradient - state.evaluation.gradient)

    def _expected(self, problem: Problem, state: NewtonState) -> float:
        """The KKT number after the next step, if all goes on as before.

        Known curvature gains about the same factor again, often less.
        """
        if state.memory is not None:
            return np.inf if state.memory.rough else 3.0 * state.gain * state.measure
        fresh = state.first == state.stride == 1 and problem.smooth.exact_curvature
        return _QUADRATIC * state.measure**2 if fresh and problem.smooth.by_nodes else np.inf

    def _expensive(self, problem: Problem, stride: int) -> bool:
        """Whether curvature costs more than the pass that an outdated one may cost in addition.

        A row costs about eight times as much in curvature as in a pass.  One matrix for
        everything is always expensive.
        """
        smooth = problem.smooth
        many = not smooth.by_nodes or 8 * (1 + smooth.n_rows // stride) > smooth.n_rows
        return self.hessian == "sampled" and many

    def _model_minimiser(
        self, problem: Problem, state: NewtonState
    ) -> tuple[Floats, KnownCurvature | None]:
        # Solve the model just well enough: a fraction of the current KKT number that shrinks
        # with it (superlinear), never far below what is asked of the whole problem.
        forcing = max(0.3 * state.tol, min(0.1, state.measure**0.5) * state.measure)
        theta, grad = state.theta, state.evaluation.gradient
        if self.hessian == "limited-memory":
            return minimise_by_products(problem, state.pairs.product, (theta, grad), forcing), None
        if self.subproblem == "proximal-gradient":
            curvature = problem.smooth.curvature(theta, state.stride)
            return minimise_by_products(problem, curvature.product, (theta, grad), forcing), None
        contrasts, memory = state.contrasts, state.memory
        if memory is None:
            stride = max(state.first, state.stride)
            memory = KnownCurvature(contrasts, flatten(contrasts, problem.smooth, theta, stride))
        here, slope = contrasts.down(theta), contrasts.down(grad)
        blocks = memory.blocks
        if state.damping > 0.0:
            blocks = memory.damped(state.damping, problem.yardstick)
        model = QuadraticModel(problem, contrasts.reduced, here, slope, blocks)
        return contrasts.up(model.minimise(forcing)), memory

    def _fall_back(self, problem: Problem, state: NewtonState, stale: bool) -> NewtonState:
        """The Newton direction failed: better curvature first, then a gradient step."""
        if stale:
            return replace(state, memory=None)
        if self.hessian == "sampled" and state.stride > 1:
            return replace(state, stride=1, first=1)
        if self.hessian == "limited-memory" and state.pairs.pairs:
            return replace(state, pairs=LimitedMemory(self.memory))
        if self._damps and state.damping < _MOST_DAMPING:
            return replace(state, damping=max(10.0 * state.damping, _DAMPING))
        bound = 1.0
        for _ in range(40):
            target = problem.penalty.prox(
                state.theta - state.evaluation.gradient / bound, problem.lam, 1.0 / bound
            )
            begin = (state.theta, state.evaluation, state.objective)
            accepted = _armijo(problem, begin, target - state.theta, trials=1)
            if accepted is not None:
                theta, evaluation, objective, _ = accepted
                note = "a Newton line search failed; a proximal gradient step was taken instead"
                return replace(
                    state,
                    theta=theta,
                    objective=objective,
                    measure=problem.measure(theta, evaluation.gradient),
                    evaluation=evaluation,
                    notes=tuple(dict.fromkeys([*state.notes, note])),
                )
            bound *= 4.0
        return replace(state, halted=True)


def _next_damping(damping: float, kept: float) -> float:
    """More after a step that kept little of its promise, less after one that kept much."""
    if kept < 0.05:
        return max(4.0 * damping, _DAMPING)
    if kept < 0.25:
        return damping
    return damping / 4.0 if damping > 1e-3 * _DAMPING else 0.0


def _certainty(problem: Problem) -> float:
    """How far below tol a step must be expected to lead to be taken for the last one.

    A right guess saves a gradient on the working set, a wrong one costs one on the whole problem:
    the smaller the share of the working set, the surer the guess has to be.  Where the two cost
    almost the same, a step that may just miss tol is worth a try.
    """
    if problem.whole is None:
        return 1.0
    layout, whole = problem.smooth.layout, problem.whole.smooth.layout
    # The values of scored nodes cost the same on any working set.
    values = _GROUPS_OF_A_VALUE * int(layout.nodes.level_start[layout.nodes.first_indicator])
    share = (layout.n_groups + values) / max(1, whole.n_groups + values)
    return min(1.0 + 6.0 * share, (30.0 * share) ** 2)


def _rows_for_a_first_step(problem: Problem) -> int:
    """Rows whose curvature is good enough for the step that a new lam begins with.

    That step goes far, so exact curvature where it begins would soon be outdated; the second
    step, near the solution, takes the better sample.
    """
    layout = problem.smooth.layout
    entries = layout.incidence.entry_ptr[layout.incidence.target_ptr]
    return max(250, 4 * int((np.diff(entries) + np.maximum(2, layout.width)).max(initial=0)))


@dataclass(frozen=True, eq=False)
class NewtonState:
    """Everything that changes from step to step."""

    theta: Floats
    objective: float
    measure: float
    tol: float
    evaluation: Evaluation
    stride: int
    first: int
    pairs: LimitedMemory
    contrasts: Contrasts
    memory: KnownCurvature | None = None
    damping: float = 0.0
    """Curvature that is added to the model, in units of that of independent columns."""
    gain: float = np.inf
    """What the last step multiplied the KKT number by."""
    halted: bool = False
    notes: tuple[str, ...] = ()


class _Step(NamedTuple):
    """An accepted point, its evaluation, and the objective there."""

    theta: Floats
    evaluation: Evaluation
    objective: float
    kept: float
    """How much of what the gradient promises for a full step came true; half of it, if the function
    is quadratic and the direction leads to its minimum."""


def _armijo(
    problem: Problem,
    begin: tuple[Floats, Evaluation, float],
    direction: Floats,
    trials: int = 30,
    *,
    final: bool = False,
) -> _Step | None:
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
                return _Step(point, there, new, (new - objective) / promise)
            if abs(new - objective) <= rounding and problem.measure(
                point, there.gradient
            ) < problem.measure(theta, here.gradient):
                return _Step(point, there, new, 0.5)
        step *= 0.5
    return None


# -- limited-memory curvature and models that are known by products --------------------------------


@dataclass(frozen=True, eq=False)
class LimitedMemory:
    """B = s I - W M W', the compact form of BFGS over the last `size` pairs."""

    size: int
    pairs: tuple[tuple[Floats, Floats], ...] = ()

    def updated(self, move: Floats, change: Floats) -> LimitedMemory:
        """Take in one step and its gradient change (skipped when it carries no curvature)."""
        if float(move @ change) <= 1e-10 * float(move @ move):
            return self
        return LimitedMemory(self.size, (*self.pairs, (move, change))[-self.size :])

    def product(self, delta: Floats) -> Floats:
        """B times delta."""
        if not self.pairs:
            return delta
        scale, wide, inverse = self._compact
        return np.asarray(scale * delta - wide @ (inverse @ (wide.T @ delta)))

    @cached_property
    def _compact(self) -> tuple[float, Floats, Floats]:
        """Return s, W and M."""
        moves = np.column_stack([s for s, _ in self.pairs])
        changes = np.column_stack([y for _, y in self.pairs])
        last_s, last_y = self.pairs[-1]
        scale = float(last_y @ last_y) / float(last_s @ last_y)
        cross = moves.T @ changes
        lower = np.tril(cross, -1)
        middle = np.block(
            [[scale * moves.T @ moves, lower], [lower.T, -np.diag(np.diagonal(cross))]]
        )
        wide = np.hstack([scale * moves, changes])
        return scale, wide, np.linalg.inv(middle)


@dataclass(eq=False)
class ProductModel:
    """The quadratic model as a smooth function that needs products with the Hessian only."""

    layout: Layout
    product: Callable[[Floats], Floats]
    theta: Floats
    grad: Floats
    passes: float = 0.0
    curvature_passes: float = 0.0
    part_seconds: tuple[float, float] = (0.0, 0.0)
    n_rows: int = 0
    terms_per_edge: int = 1
    by_nodes: bool = True
    curvature_rows: int = 0
    exact_curvature: bool = False

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Model value relative to the centre, and its gradient."""
        if not np.all(theta[self.layout.positive] > 0.0):
            return Evaluation(np.inf)
        delta = theta - self.theta
        bent = self.product(delta)
        return Evaluation(float(self.grad @ delta + 0.5 * delta @ bent), self.grad + bent)

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Curvature:
        """Not available."""
        raise NotImplementedError("a product model has no node blocks")

    def restrict(self, groups: Ints) -> Smooth:
        """Not available."""
        raise NotImplementedError("a product model is not restricted")

    def null(self) -> Floats:
        """The centre of the model."""
        return self.theta


def minimise_by_products(
    problem: Problem, product: Callable[[Floats], Floats], at: tuple[Floats, Floats], tol: float
) -> Floats:
    """Minimise the model around theta = at[0], gradient at[1], by accelerated proximal gradient."""
    theta, grad = at
    model = ProductModel(problem.smooth.layout, product, theta, grad)
    inner = Problem(model, problem.penalty, problem.lam, problem.yardstick)
    start = (theta, Evaluation(0.0, grad))
    return run(inner, ProximalGradient("nesterov-1983"), start, tol=tol, max_iter=500).theta

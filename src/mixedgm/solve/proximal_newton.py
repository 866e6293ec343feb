"""Proximal Newton: quadratic models with exact, sampled or limited-memory curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import HasParams, ensure, is_integer
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Curvature, Evaluation, Smooth
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import KnownCurvature, flatten
from mixedgm.solve.loop import State, run
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.subproblem import QuadraticModel

_SLOW = 0.3
_SURE = 1.0
# What exact curvature makes of a KKT number: this times its square, on survey data and on
# simulated graphs.
_QUADRATIC = 0.4
# What curvature that steps correct makes of one, usually.
_CORRECTED = 0.03
# Rows that curvature is taken from where steps correct it; of so many rows one at least.
_FEW_ROWS, _FEWEST = 1250, 16
# Numbers of curvature, beside those that a pass multiplies, from which on that costs too much.
_MUCH = 0.1
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
        Rows in the first sample of ``hessian="sampled"``; where steps correct the curvature,
        fewer are taken, or one in 16 of very many.
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
            if not is_integer(count, 1):
                raise ParameterError("sample_rows and memory must be positive integers.")

    def init(
        self,
        problem: Problem,
        theta: Floats,
        here: Evaluation,
        tol: float,
        memory: Remembered | None = None,
    ) -> NewtonState:
        """Start at theta, whose evaluation is `here`, with what an earlier run remembers if any."""
        smooth = problem.smooth
        if self.hessian == "exact" and not smooth.exact_curvature:
            raise ParameterError(
                "hessian='exact' would have to visit too many states of the categorical columns "
                "for this loss; use hessian='sampled' or 'limited-memory'."
            )
        curvature = None if memory is None else memory.curvature
        contrasts = Contrasts(smooth.layout) if curvature is None else curvature.contrasts
        corrects = self._corrects(smooth, contrasts)
        stride = self._first_stride(problem, corrects)
        return NewtonState.at(
            problem,
            theta,
            here,
            tol,
            stride=stride if memory is None else int(min(stride, memory.enough)),
            pairs=LimitedMemory(self.memory),
            contrasts=contrasts,
            corrects=corrects,
            past=Remembered(problem.lam) if memory is None else memory.at(problem.lam),
            miss=None if memory is None else memory.miss(problem, theta),
            curvature=curvature,
        )

    def _corrects(self, smooth: Smooth, contrasts: Contrasts) -> bool:
        """Whether steps correct the curvature of nodes: not where that is much beside a pass."""
        if self.hessian != "sampled" or not smooth.by_nodes:
            return False
        numbers = float((contrasts.runs.node_size**2.0).sum())
        return numbers <= _MUCH * smooth.n_rows * len(smooth.layout.incidence.theta_index)

    def _first_stride(self, problem: Problem, corrects: bool) -> int:
        """Every how many rows one is taken at first.

        Where steps correct the curvature few rows are enough; but of very many rows so many that
        they save passes over all of them.  Without a penalty rare cells count, of which few rows
        may have none.
        """
        if self.hessian != "sampled":
            return 1
        n_rows, rows = problem.smooth.curvature_rows, self.sample_rows
        if corrects and problem.penalty.penalised.any():
            rows = max(min(rows, _FEW_ROWS), n_rows // _FEWEST)
            return max(1, round(n_rows / rows))
        return max(1, n_rows // rows)

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Model, direction, line search."""
        target, curvature = self._model_minimiser(problem, state)
        past = state.past if state.past.expected is not None else state.past.seeing(problem, target)
        begin = (state.theta, state.evaluation, state.objective)
        final = self._expected(problem, state) <= _certainty(problem) * state.tol
        accepted = None
        if state.miss is not None:
            further = _with_miss(problem.smooth.layout, target, state.miss)
            accepted = _armijo(problem, begin, further - state.theta, 1, final=final)
        if accepted is None:
            accepted = _armijo(problem, begin, target - state.theta, _TRIALS, final=final)
        if accepted is None:
            return self._fall_back(problem, state)
        theta, evaluation, objective, kept = accepted
        measure = problem.measure(theta, evaluation.gradient)
        gain = measure / state.measure
        slow = gain > _SLOW and measure > state.tol
        fresh = state.curvature is None
        after = replace(
            state,
            theta=theta,
            objective=objective,
            measure=measure,
            evaluation=evaluation,
            stride=max(1, state.stride // 4) if slow and fresh else state.stride,
            gain=gain,
            damping=_next_damping(state.damping, kept) if self._damps else 0.0,
            past=past,
            miss=None,
            curvature=None,
            pairs=self._pairs(state, theta, evaluation),
        )
        if curvature is None or slow or self.hessian != "sampled":
            return after
        lasting = self._kept(problem, state, after, curvature)
        return replace(after, curvature=lasting, corrected=lasting is not curvature)

    def _kept(
        self, problem: Problem, before: NewtonState, after: NewtonState, curvature: KnownCurvature
    ) -> KnownCurvature | None:
        """Curvature for the next step, or None: corrected by this step, if it may be.

        Else it serves if three more steps like this one are enough, about as expensive as fresh
        curvature and a step; a row costs about eight times as much in curvature as in a pass.  One
        matrix for everything is always expensive.
        """
        smooth = problem.smooth
        if before.corrects:
            if after.measure <= after.tol:
                return None
            was, now = before.slopes(smooth.layout), after.slopes(smooth.layout)
            if was is not None and now is not None:
                change = after.evaluation.gradient - before.evaluation.gradient
                return curvature.corrected(after.theta - before.theta, change, now - was)
        expensive = not smooth.by_nodes or 8 * (1 + smooth.n_rows // before.stride) > smooth.n_rows
        lasting = after.gain**3 * after.measure <= after.tol
        return curvature if expensive and lasting else None

    @property
    def _damps(self) -> bool:
        return self.hessian != "limited-memory" and self.subproblem == "coordinate-descent"

    def _pairs(self, state: NewtonState, theta: Floats, there: Evaluation) -> LimitedMemory:
        if self.hessian != "limited-memory":
            return state.pairs
        return state.pairs.updated(theta - state.theta, there.gradient - state.evaluation.gradient)

    def _expected(self, problem: Problem, state: NewtonState) -> float:
        """The KKT number after the next step, if all goes on as before.

        Curvature that lasts gains about the same factor again, often less.
        """
        smooth = problem.smooth
        if state.curvature is not None:
            return (_CORRECTED if state.corrected else 3.0 * state.gain) * state.measure
        fresh = state.stride == 1 and smooth.exact_curvature and smooth.by_nodes
        return _QUADRATIC * state.measure**2 if fresh else np.inf

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
        contrasts, known = state.contrasts, state.curvature
        if known is None:
            blocks = flatten(contrasts, problem.smooth, theta, state.stride)
            known = KnownCurvature(contrasts, blocks)
        here, slope = contrasts.down(theta), contrasts.down(grad)
        blocks = known.blocks
        if state.damping > 0.0:
            blocks = known.damped(state.damping, problem.yardstick)
        model = QuadraticModel(problem, contrasts.reduced, here, slope, blocks)
        return contrasts.up(model.minimise(forcing)), known

    def _fall_back(self, problem: Problem, state: NewtonState) -> NewtonState:
        """The Newton direction failed: better curvature first, then a gradient step."""
        state = replace(state, miss=None)
        if state.curvature is not None:
            return replace(state, curvature=None)
        if self.hessian == "sampled" and state.stride > 1:
            return replace(state, stride=1)
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
                theta, evaluation, *_ = accepted
                note = "a Newton line search failed; a proximal gradient step was taken instead"
                notes = tuple(dict.fromkeys([*state.notes, note]))
                return state.moved(problem, theta, evaluation, notes=notes)
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
    return min(1.0 + 6.0 * share, max(_SURE, (30.0 * share) ** 2))


def _with_miss(layout: Layout, target: Floats, miss: Floats) -> Floats:
    """Where the model has its minimum, and what is expected to be missing from there.

    Only groups that are large beside it count: others may end up at zero.
    """
    sure = 2.0 * layout.group_norms(miss) <= layout.group_norms(target)
    out = target + miss
    out[layout.edges] -= layout.spread(np.where(sure, 0.0, 1.0)) * miss[layout.edges]
    positive = layout.positive
    out[positive] = np.where(out[positive] > 0.0, out[positive], target[positive])
    return out


def _positions(problem: Problem) -> Ints:
    """Where every parameter of the problem stands in theta of the whole one, in order."""
    return np.arange(problem.smooth.layout.n_theta) if problem.index is None else problem.index


@dataclass(frozen=True, eq=False)
class Remembered:
    """Memory of a run for the next one, at a smaller lam.

    The first model of a run does not know how curvature will change on the way, and misses the
    solution by an amount that hardly changes from one lam to the next.
    """

    lam: float
    before: float | None = None
    """The lam of the run before, where this one began."""
    expected: tuple[Ints, Floats] | None = None
    """Where the first model had its minimum: positions in the whole problem's theta, and values."""
    curvature: KnownCurvature | None = None
    """Where the run ended; serves the same working set only."""
    strides: tuple[float, float] = (np.inf, np.inf)
    """Strides at the end of the run before, and of this one: curvature was taken from every so many
    rows."""

    @property
    def enough(self) -> float:
        """Stride for curvature that is enough: both of the last two runs have come to it."""
        return max(self.strides)

    @property
    def elsewhere(self) -> Remembered:
        """Memory that serves another working set: all but the curvature."""
        return replace(self, curvature=None)

    def at(self, lam: float) -> Remembered:
        """Memory with which a run for `lam` begins."""
        if lam == self.lam:
            return self.elsewhere
        return Remembered(lam, self.lam, strides=(self.strides[1], np.inf))

    def seeing(self, problem: Problem, target: Floats) -> Remembered:
        """Return the memory with the minimum of the first model."""
        return replace(self, expected=(_positions(problem), target))

    def miss(self, problem: Problem, theta: Floats) -> Floats | None:
        """Expected error of the first model for the problem's lam, begun at theta; None: unknown.

        It grows with the square of the fall in lam.
        """
        if self.expected is None or self.before is None:
            return None
        fall, last = self.lam - problem.lam, self.before - self.lam
        if not 0.0 < fall <= 1.5 * last:
            return None
        layout, out, (places, values) = problem.smooth.layout, np.zeros(len(theta)), self.expected
        index = _positions(problem)
        at = np.minimum(np.searchsorted(places, index), len(places) - 1)
        known = places[at] == index
        share = min(1.0, (fall / last) ** 2)
        out[known] = share * (theta - values[at])[known]
        out[layout.edges] *= layout.spread(np.where(layout.group_norms(theta) > 0.0, 1.0, 0.0))
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class NewtonState(State):
    """State with curvature and what is known of it."""

    stride: int
    pairs: LimitedMemory
    contrasts: Contrasts
    corrects: bool
    """Whether steps correct the curvature of nodes."""
    past: Remembered
    miss: Floats | None = None
    """Error that is expected of the first model."""
    curvature: KnownCurvature | None = None
    """Curvature that the next model may take."""
    corrected: bool = False
    """Whether the last step has corrected it."""
    damping: float = 0.0
    """Curvature that is added to the model, in units of that of independent columns."""
    gain: float = np.inf
    """Factor by which the last step multiplied the KKT number."""

    @property
    def memory(self) -> Remembered:
        """Memory that the next run may use."""
        strides = (self.past.strides[0], self.stride)
        return replace(self.past, curvature=self.curvature, strides=strides)

    def slopes(self, layout: Layout) -> Floats | None:
        """Contribution of every conditional to the gradient, where that is known."""
        known = self.evaluation.slopes
        return None if known is None else known.on(layout)


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
        """Raise: a product model has no node blocks."""
        raise NotImplementedError("a product model has no node blocks")

    def restrict(self, groups: Ints) -> Smooth:
        """Raise: a product model is not restricted."""
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

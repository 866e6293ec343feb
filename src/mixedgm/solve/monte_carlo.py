"""Problem with sampled gradients + start -> Solution, and how far it can be trusted.

Proximal Newton steps with gradient and curvature from Gibbs chains.  A step cannot be judged by
the objective, whose value is not known, so there is no line search; what is judged is whether the
optimality conditions hold within their sampling error.  Where they do and the error is still too
large, the chains run longer before the next step: growing samples do for full steps what
decreasing steps and averaging do for samples of fixed size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import HasParams, ensure, ensure_in, is_integer
from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.contrasts import Contrasts
from mixedgm.solve.curvature import one_matrix
from mixedgm.solve.loop import Certificate, Cost, State, Status, TraceRow
from mixedgm.solve.problem import Problem
from mixedgm.solve.subproblem import QuadraticModel
from mixedgm.solve.working_set import Memory, Solution, Start, screened

if TYPE_CHECKING:
    from mixedgm.objective.sampled import GradientEstimate, SampledLikelihood

STANDARD_ERRORS = 4.0
"""Up to so many a violated condition may be chance."""

# Standard errors from which on a group that was left out is taken in.
_SUSPECT = 2.0
_FEWEST = 16
# Standard deviations of the statistics along one stretch of the integral for the value.
_STRETCH = 0.5
_MOST_STRETCHES = 20


@dataclass(frozen=True)
class MonteCarlo(HasParams):
    """Solver of ``loss="likelihood-mc"``: Newton steps with gradients from Gibbs chains.

    Parameters
    ----------
    accuracy : float
        Standard error of the KKT number at which a solution is accurate enough.  To halve it takes
        four times as long.
    n_chains : int
        Chains side by side, a multiple of 64.
    max_sweeps : int
        Most sweeps of every chain per lam.

    Examples
    --------
    >>> MonteCarlo(accuracy=0.001).n_chains
    512
    """

    accuracy: float = 0.005
    n_chains: int = 512
    max_sweeps: int = 20_000

    def __post_init__(self) -> None:
        n, most = self.n_chains, self.max_sweeps
        ensure_in("(0, 1)", accuracy=self.accuracy)
        multiple = is_integer(n, 64) and n % 64 == 0
        ensure(multiple, "n_chains", "a positive multiple of 64", n)
        ensure(is_integer(most, 1), "max_sweeps", "a positive integer", most)

    def solve(self, problem: Problem, start: Start, *, tol: float, max_iter: int) -> Solution:
        """Solve until the conditions hold within sampling errors of `accuracy`."""
        from mixedgm.objective.sampled import SampledLikelihood

        smooth = problem.smooth
        if not isinstance(smooth, SampledLikelihood):
            raise self._wrong_loss()
        before, swept = Cost.until_now(smooth), smooth.chains.sweeps
        kept = start.memory.content if start.memory is not None else None
        sweeps = max(_FEWEST, kept.sweeps // 8) if isinstance(kept, _Kept) else _FEWEST
        begin = kept.at if isinstance(kept, _Kept) else _begin(smooth, start, sweeps)
        theta, here, groups, source = begin.theta, begin.here, screened(problem, start), np.inf
        trace: list[TraceRow] = []
        while True:
            verdict = judge(problem, theta, here)
            spent = Cost.until_now(smooth).since(before)
            trace.append(TraceRow(np.nan, verdict.kkt, 0.0, spent.seconds))
            settled = verdict.within(tol, STANDARD_ERRORS)
            precise = max(verdict.noise, source / 1.5) <= self.accuracy
            left = self.max_sweeps + swept - smooth.chains.sweeps
            status = _status(verdict, tol, settled and precise, left, max_iter + 1 - len(trace))
            if status is not Status.UNFINISHED:
                break
            if settled:
                # For an error that is `excess` times too large; at most eight times as many.
                excess = verdict.noise / self.accuracy
                sweeps = min(int(sweeps * min(8.0, max(1.0, 1.1 * excess**2))) + 1, left)
            # Groups whose violation is probably not chance.
            suspect = (verdict.distance > tol + _SUSPECT * verdict.error)[: len(problem.yardstick)]
            groups = np.union1d(groups, np.flatnonzero(suspect))
            source = verdict.noise
            theta, here = _step(problem, smooth, (theta, here), groups, sweeps)
        at = _integrated(smooth, begin, (theta, here), sweeps)
        objective = at.value + problem.penalty.value(theta, problem.lam)
        return Solution(
            Certificate.of(status, objective, verdict.kkt, verdict.kkt_error, at.value_error),
            Cost.until_now(smooth).since(before, len(trace) - 1),
            theta,
            Evaluation(at.value, here.grad),
            trace,
            _notes(verdict, at, self.n_chains, sweeps),
            Memory(groups, _Kept(at, sweeps)),
        )

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: object = None
    ) -> State:
        """Raise: this solver does not step by exact evaluations."""
        raise self._wrong_loss()

    def step(self, problem: Problem, state: object) -> State:
        """Raise: this solver does not step by exact evaluations."""
        raise self._wrong_loss()

    def _wrong_loss(self) -> ParameterError:
        return ParameterError("solver=MonteCarlo(...) is for loss='likelihood-mc' only.")


@dataclass(frozen=True, eq=False)
class Point:
    """Theta, what the chains say there, and the value there with its error.

    The value is integrated from a point where it is known: along each stretch it follows the
    curve that has both ends' gradients and curvatures.
    """

    theta: Floats
    here: GradientEstimate
    value: float
    variance: float
    move: Floats
    """The stretch that led here; half of it and half of the next weigh this gradient's error."""

    def followed(self, theta: Floats, there: GradientEstimate) -> Point:
        """The point at the end of a stretch that begins here."""
        move = theta - self.theta
        bend = self.here.curvature.variance_of(move) - there.curvature.variance_of(move)
        change = 0.5 * (self.here.grad + there.grad) @ move + bend / 12.0
        variance = self.variance + self.here.variance_along(0.5 * (self.move + move))
        return Point(theta, there, self.value + float(change), variance, move)

    def size_of(self, move: Floats) -> float:
        """Length of a move in standard deviations of the statistics it is about."""
        return float(np.sqrt(self.here.curvature.variance_of(move)))

    @property
    def value_error(self) -> float:
        """Standard error of the value."""
        return float(np.sqrt(self.variance + self.here.variance_along(0.5 * self.move)))


@dataclass(frozen=True, eq=False)
class Verdict:
    """How far the optimality conditions are from holding, and how far that may be chance."""

    distance: Floats
    """Violations of every edge, then of every node term, on the calibrated scale."""
    error: Floats

    @property
    def kkt(self) -> float:
        """The largest violation."""
        return float(self.distance.max(initial=0.0))

    @property
    def kkt_error(self) -> float:
        """Standard error of the largest violation."""
        return float(self.error[self.distance.argmax()]) if len(self.error) else 0.0

    @property
    def noise(self) -> float:
        """The largest standard error."""
        return float(self.error.max(initial=0.0))

    def within(self, tol: float, errors: float) -> bool:
        """Whether every violation is at most so many standard errors, or `tol`."""
        return bool(np.all(self.distance <= tol + errors * self.error))


def judge(problem: Problem, theta: Floats, here: GradientEstimate) -> Verdict:
    """Compare every optimality condition with its sampling error."""
    layout = problem.smooth.layout
    nodes = slice(0, layout.n_node_terms)
    noise = np.sqrt(layout.group_sums(here.error[layout.edges] ** 2)) / problem.yardstick
    distance = problem.conditions.edge_distance(theta, here.grad)
    return Verdict(
        np.concatenate([distance, np.abs(here.grad[nodes])]),
        np.concatenate([noise, here.error[nodes]]),
    )


def _integrated(
    smooth: SampledLikelihood, begin: Point, end: tuple[Floats, GradientEstimate], sweeps: int
) -> Point:
    """The point at the end with its value, integrated along the straight line in short stretches.

    Not along the steps that were taken: these follow the errors of the gradients, which would
    then no longer cancel.
    """
    theta, here = end
    n = int(np.ceil(begin.size_of(theta - begin.theta) / _STRETCH))
    at = begin
    for k in range(1, min(n, _MOST_STRETCHES)):
        point = begin.theta + k / min(n, _MOST_STRETCHES) * (theta - begin.theta)
        there = smooth.estimate(point, max(_FEWEST, sweeps // 4))
        assert there is not None  # between two distributions there are others
        at = at.followed(point, there)
    return at.followed(theta, here)


def _status(verdict: Verdict, tol: float, good: bool, sweeps: int, steps: int) -> Status:
    """How the solve ends, if it does, with so many sweeps and steps left."""
    if verdict.kkt <= tol and verdict.noise == 0.0:
        return Status.CONVERGED
    if good:
        return Status.WITHIN_ERROR
    if sweeps <= 0:
        return Status.SAMPLING_LIMIT
    return Status.ITERATION_LIMIT if steps <= 0 else Status.UNFINISHED


@dataclass(frozen=True, eq=False)
class _Kept:
    """Point that the next lam starts from, and its sweeps."""

    at: Point
    sweeps: int


def _begin(smooth: SampledLikelihood, start: Start, sweeps: int) -> Point:
    """The chains at the start, and the value there, from the model without edges."""
    if smooth.layout.group_norms(start.theta).any():
        here = smooth.estimate(start.theta, sweeps)
        if here is not None:
            null = _without_edges(smooth, smooth.null(), sweeps)
            return _integrated(smooth, null, (start.theta, here), sweeps)
    theta = smooth.null() if smooth.layout.group_norms(start.theta).any() else start.theta
    return _without_edges(smooth, theta, sweeps)


def _without_edges(smooth: SampledLikelihood, theta: Floats, sweeps: int) -> Point:
    """Exact but for the curvature."""
    known, here = smooth.evaluate(theta), smooth.estimate(theta, sweeps)
    assert here is not None  # independent columns have a distribution
    none = np.zeros_like(theta)
    here = replace(here, grad=known.gradient, error=none, batches=here.batches * 0.0)
    return Point(theta, here, known.value, 0.0, none)


def _step(
    problem: Problem,
    smooth: SampledLikelihood,
    at: tuple[Floats, GradientEstimate],
    groups: Ints,
    sweeps: int,
) -> tuple[Floats, GradientEstimate]:
    """Minimise the quadratic model on these groups and let the chains go on there.

    The step is halved until it stays a distribution and does not make things clearly worse.
    """
    theta, here = at
    index = smooth.layout.positions(groups)
    small = problem.restrict(groups)
    contrasts = Contrasts(small.smooth.layout)
    model = QuadraticModel(
        small,
        contrasts.reduced,
        contrasts.down(theta[index]),
        contrasts.down(here.grad[index]),
        one_matrix(contrasts, here.curvature.on(contrasts.reduced, contrasts.columns)),
    )
    old = judge(problem, theta, here)
    target = problem.embedded(index, contrasts.up(model.minimise(0.1 * max(old.noise, 1e-6))))
    for halvings in range(30):
        point = target if halvings == 0 else theta + 0.5**halvings * (target - theta)
        there = smooth.estimate(point, sweeps)
        if there is None:
            continue
        new = judge(problem, point, there)
        if new.kkt <= 2.0 * old.kkt + STANDARD_ERRORS * max(new.noise, old.noise) or halvings > 5:
            return point, there
    return at


def _notes(verdict: Verdict, at: Point, n_chains: int, sweeps: int) -> tuple[str, ...]:
    if verdict.noise == 0.0:
        return ()
    return (
        f"sampled by {n_chains} Gibbs chains, {sweeps} sweeps each at the end: standard "
        f"error {verdict.kkt_error:.1e} of the KKT number (at most {verdict.noise:.1e} of any "
        f"condition), {at.value_error:.1e} of the objective",
    )

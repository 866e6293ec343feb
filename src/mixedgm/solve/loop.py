"""Problem + solver + start -> where it ended, and the account of it: the one loop."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation, Smooth
from mixedgm.solve.problem import Problem

T = TypeVar("T")


@dataclass(frozen=True)
class Certificate:
    """How optimal a point is, and how the solve that led there ended."""

    objective: float
    kkt: float
    converged: bool
    """Whether `kkt` is known to be within tol; of sampled gradients, within their error."""
    message: str
    kkt_error: float = 0.0
    """Monte Carlo standard error of `kkt`; zero unless gradients or completions were sampled."""
    objective_error: float = 0.0

    @classmethod
    def of(cls, status: Status, objective: float, kkt: float, *errors: float) -> Certificate:
        """The certificate of a solve with this status."""
        return cls(objective, kkt, status.good, status.value, *errors)

    def but(self, status: Status) -> Certificate:
        """Return the certificate with another status."""
        return replace(self, converged=status.good, message=status.value)

    @property
    def solved(self) -> bool:
        """Whether the solver came to its end: converged, if only at completions that were drawn."""
        return self.converged or self.message == Status.SOLVED_AT_DRAWS.value

    def of_draws(self, error: float, tol: float) -> Certificate:
        """The certificate at completions that were drawn, with the error of these draws.

        The number is within `tol` for certain only if the error is as well.
        """
        stated = replace(self, kkt_error=error)
        if not self.converged or error <= max(tol - self.kkt, 0.0):
            return stated
        return stated.but(Status.SOLVED_AT_DRAWS)

    @classmethod
    def none(cls, message: str) -> Certificate:
        """Certificate for parameters that minimise nothing."""
        return cls(np.nan, np.nan, converged=False, message=message)


@dataclass(frozen=True)
class Cost:
    """Cost of a solve: steps, passes over the rows, seconds."""

    n_iter: int = 0
    passes: float = 0.0
    curvature_passes: float = 0.0
    seconds: float = field(default=0.0, compare=False)
    """Wall time, of which the next two are parts; the rest is the solver's own."""
    pass_seconds: float = field(default=0.0, compare=False)
    curvature_seconds: float = field(default=0.0, compare=False)

    @classmethod
    def until_now(cls, smooth: Smooth) -> Cost:
        """The counters and the clock, of which only differences mean anything."""
        passes = smooth.passes, smooth.curvature_passes
        return cls(0, *passes, time.perf_counter(), *smooth.part_seconds)

    def since(self, before: Cost, n_iter: int = 0) -> Cost:
        """Cost of so many steps: the rise of the counters after `before`."""
        counters = zip(vars(self).values(), vars(before).values(), strict=True)
        return Cost(n_iter, *[now - then for now, then in counters][1:])

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """Total cost of several solves."""
        return cls(*map(sum, zip(*(vars(cost).values() for cost in costs), strict=True)))


class _Part(Generic[T]):
    """An attribute that is one of the certificate or of the cost."""

    def __init__(self, holder: Literal["certificate", "cost"]) -> None:
        self.holder = holder

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, account: Account, owner: type) -> T:
        part: T = getattr(getattr(account, self.holder), self.name)
        return part


@dataclass(frozen=True, eq=False)
class Account:
    """Whatever holds a certificate and a cost shows their parts as its own."""

    certificate: Certificate
    cost: Cost

    objective = _Part[float]("certificate")
    objective_error = _Part[float]("certificate")
    kkt = _Part[float]("certificate")
    kkt_error = _Part[float]("certificate")
    converged = _Part[bool]("certificate")
    solved = _Part[bool]("certificate")
    message = _Part[str]("certificate")
    n_iter = _Part[int]("cost")
    passes = _Part[float]("cost")
    curvature_passes = _Part[float]("cost")
    seconds = _Part[float]("cost")
    pass_seconds = _Part[float]("cost")
    curvature_seconds = _Part[float]("cost")

    @property
    def status(self) -> Status:
        """How the solve ended."""
        return Status(self.message)


class Status(Enum):
    """How a solve ended; the value is the message for the user."""

    CONVERGED = "converged: the recomputed KKT number is within tol"
    ITERATION_LIMIT = (
        "stopped at max_iter before the KKT number reached tol: raise max_iter, raise tol, or "
        "use solver='proximal-newton' (a small lam with few rows is badly conditioned)"
    )
    NO_PROGRESS = (
        "no step lowers the objective any further at this precision, but the KKT number is still "
        "above tol: raise tol, or look for nearly collinear columns and very rare levels"
    )
    NOT_CERTIFIED = (
        "the KKT number that was computed apart from the solver is above tol, though the solver's "
        "own is not: please report this, with the table if you can"
    )
    ROUND_LIMIT = (
        "stopped before the estimate and the rows that it completes agreed to tol: so much is "
        "missing that rounds go on for long; raise tol or lam, or leave out the columns with most "
        "gaps"
    )
    UNBOUNDED = (
        "an estimate without penalty grows without bound, because no rows tell how large it is (a "
        "cell without rows, or a column that others determine): give it a penalty, merge levels, "
        "or use refit=True, which keeps it finite by a ridge"
    )
    WITHIN_ERROR = (
        "the KKT conditions hold within the Monte Carlo error of the sampled gradients, which is "
        "stated; tol is not reached"
    )
    SOLVED_AT_DRAWS = (
        "solved up to the Monte Carlo error of the completions, which is stated and exceeds tol: "
        "at the completions that were drawn, the KKT number is within tol"
    )
    SAMPLING_LIMIT = (
        "stopped at the largest number of sweeps before the Monte Carlo error was small enough: "
        "pass solver=MonteCarlo(accuracy=..., max_sweeps=...) with a larger one of both, or a "
        "larger lam (strong interactions make chains slow)"
    )
    UNFINISHED = "running"

    @property
    def good(self) -> bool:
        """Whether the solution is what was asked for, as far as that can be known."""
        return self in (Status.CONVERGED, Status.WITHIN_ERROR)


@dataclass(frozen=True)
class TraceRow:
    """One iteration: objective, the solver's own KKT number, passes over the rows, seconds."""

    objective: float
    kkt: float
    passes: float
    seconds: float


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """Where a solver stands; each adds what else changes from step to step."""

    theta: Floats
    """The point that would be returned."""
    objective: float
    """Smooth value plus penalty."""
    measure: float
    """KKT number at theta as known to the solver; +inf when unknown."""
    evaluation: Evaluation
    """Smooth value and gradient from which the next step is taken."""
    tol: float
    halted: bool = False
    """Whether the solver cannot go on."""
    notes: tuple[str, ...] = ()
    """Notes for the user, e.g. that a line search fell back."""

    @classmethod
    def at(cls, problem: Problem, theta: Floats, here: Evaluation, tol: float, **own: Any) -> Self:
        """The state at theta, whose evaluation is `here`, with what is the solver's own."""
        objective, measure = problem.objective(here, theta), problem.measure(theta, here.gradient)
        return cls(
            theta=theta, objective=objective, measure=measure, evaluation=here, tol=tol, **own
        )

    def moved(self, problem: Problem, theta: Floats, there: Evaluation, **own: Any) -> Self:
        """The state at another point, with changes of what is the solver's own."""
        if "measure" not in own:
            own["measure"] = problem.measure(theta, there.gradient)
        objective = problem.objective(there, theta)
        return replace(self, theta=theta, objective=objective, evaluation=there, **own)

    @property
    def memory(self) -> Any:
        """Memory that a later run on the same layout may use; None if there is none."""
        return None


class Solver(Protocol):
    """Frozen options; all that changes is in the state, whose type is the solver's own."""

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: Any = None
    ) -> State:
        """Return the state at theta, whose evaluation is `here`.

        `memory` is what an earlier state on the same layout remembered, or None.
        """

    def step(self, problem: Problem, state: Any) -> State:
        """Return the next state."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run of the loop, not yet certified."""

    theta: Floats
    measure: float
    status: Status
    n_iter: int
    trace: list[TraceRow] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    memory: Any = None


def run(
    problem: Problem,
    solver: Solver,
    start: tuple[Floats, Evaluation],
    *,
    tol: float,
    max_iter: int,
    memory: Any = None,
) -> Run:
    """Step until the solver's KKT number is at most `tol`, it halts, or `max_iter` steps.

    `start` is a point and the evaluation there, which warm starts have at hand.
    """
    clock, passes = time.perf_counter(), problem.smooth.passes
    state: State = solver.init(problem, *start, tol, memory)
    trace: list[TraceRow] = []
    n_iter = 0
    while True:
        spent = problem.smooth.passes - passes, time.perf_counter() - clock
        trace.append(TraceRow(state.objective, state.measure, *spent))
        if state.measure <= tol:
            status = Status.CONVERGED
        elif state.halted:
            status = Status.NO_PROGRESS
        elif n_iter >= max_iter:
            status = Status.ITERATION_LIMIT
        else:
            state = solver.step(problem, state)
            n_iter += 1
            continue
        return Run(state.theta, state.measure, status, n_iter, trace, state.notes, state.memory)

"""Problem + solver + start -> Solution: the one loop, its stopping rule, status and trace."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.problem import Problem


class Status(Enum):
    """How a solve ended; the value is the message for the user."""

    CONVERGED = "converged: the recomputed KKT number is within tol"
    STATIONARY = (
        "converged to a stationary point: the recomputed KKT number is within tol, but the penalty "
        "is not convex, so that another point may have a lower objective"
    )
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
    SAMPLING_LIMIT = (
        "stopped at the largest number of sweeps before the Monte Carlo error was small enough: "
        "pass solver=MonteCarlo(accuracy=..., max_sweeps=...) with a larger one of both, or a "
        "larger lam (strong interactions make chains slow)"
    )
    UNFINISHED = "running"

    @property
    def good(self) -> bool:
        """Whether the solution is what was asked for, as far as that can be known."""
        return self in (Status.CONVERGED, Status.STATIONARY, Status.WITHIN_ERROR)


@dataclass(frozen=True)
class TraceRow:
    """One iteration: objective, the solver's own KKT number, passes over the rows, seconds."""

    objective: float
    kkt: float
    passes: float
    seconds: float


class State(Protocol):
    """What every solver's state shows to the loop."""

    @property
    def theta(self) -> Floats:
        """The point that would be returned."""

    @property
    def objective(self) -> float:
        """Smooth value plus penalty."""

    @property
    def measure(self) -> float:
        """KKT number at theta as known to the solver; +inf when unknown."""

    @property
    def halted(self) -> bool:
        """The solver cannot go on."""

    @property
    def memory(self) -> Any:
        """What a later run on the same layout may use; None if nothing."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, e.g. that a line search fell back."""


class Solver(Protocol):
    """Frozen options; all that changes is in the state, whose type is the solver's own."""

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: Any = None
    ) -> Any:
        """Return the state at theta, whose evaluation is `here`.

        `memory` is what an earlier state on the same layout remembered, or None.
        """

    def step(self, problem: Problem, state: Any) -> Any:
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

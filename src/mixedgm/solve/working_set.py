"""Problem + start -> certified Solution, working on the few groups that matter.

The solver sees only a working set: groups that are active, free, or that the strong rule (or a
violated optimality condition) points at.  The certificate is taken on the whole problem; its full
gradient finds the groups that were left out wrongly, and serves the next lam.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Evaluation, Smooth
from mixedgm.solve.loop import Run, Solver, Status, TraceRow, run
from mixedgm.solve.problem import Certificate, Problem

_GROWTH = 0.3


@dataclass(frozen=True, eq=False)
class Solution:
    """A point and how optimal it is, as recomputed at that point."""

    theta: Floats
    status: Status
    kkt: float
    objective: float
    n_iter: int
    trace: list[TraceRow]
    notes: tuple[str, ...]
    evaluation: Evaluation
    """Smooth value and full gradient at theta: the next lam starts from it."""
    passes: float
    curvature_passes: float
    seconds: float
    pass_seconds: float
    """Part of `seconds` spent in passes over the rows."""
    curvature_seconds: float
    memory: Memory | None = None
    kkt_error: float = 0.0
    """Standard error of `kkt` where gradients were sampled."""
    objective_error: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the KKT number is within tol, or within its sampling error."""
        return self.status.good


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: theta, the full evaluation there, and the lam it solves (if it does)."""

    theta: Floats
    evaluation: Evaluation
    lam: float | None = None
    memory: Memory | None = None
    working: Ints | None = None
    """Groups to work on from the start, besides those that screening finds."""


@dataclass(frozen=True, eq=False)
class Memory:
    """What a solver remembers of a working set."""

    groups: Ints
    content: Any

    def on(self, groups: Ints, problem: Problem) -> Any:
        """The content, if it belongs to this working set or can be carried over to it."""
        if np.array_equal(groups, self.groups):
            return self.content
        extended = getattr(self.content, "extended", None)
        return None if extended is None else extended(self.groups, groups, problem)


def solve(problem: Problem, solver: Solver, start: Start, *, tol: float, max_iter: int) -> Solution:
    """Solve on growing working sets until the certificate of the whole problem is within `tol`.

    A solver that works with sampled gradients has a `solve` of its own, and is left to it.
    """
    own = getattr(solver, "solve", None)
    if own is not None:
        done: Solution = own(problem, start, tol=tol, max_iter=max_iter)
        return done
    so_far = _Account(problem.smooth)
    theta, evaluation, groups = start.theta, start.evaluation, screened(problem, start)
    inner_tol, memory = tol, start.memory
    while True:
        small = problem.restrict(groups)
        here = Evaluation(evaluation.value, evaluation.gradient[small.index])
        result = run(
            small,
            solver,
            (theta[small.index], here),
            tol=inner_tol,
            max_iter=max_iter - so_far.n_iter,
            memory=None if memory is None else memory.on(groups, small),
        )
        so_far.add(result)
        memory = Memory(groups, result.memory)
        theta = small.lifted(result.theta)
        certificate = problem.certificate(theta, groups)
        evaluation = certificate.evaluation
        if certificate.kkt <= tol or so_far.n_iter >= max_iter:
            break
        more = violators(problem, certificate, groups, tol)
        if len(more) == 0 and result.status is not Status.CONVERGED:
            break
        if len(more) == 0:
            if inner_tol < 1e-3 * tol:
                break
            inner_tol *= 0.3
        groups = np.union1d(groups, more)
    status = _status(certificate.kkt <= tol, so_far.n_iter >= max_iter, result.status)
    return so_far.solution(theta, status, certificate, memory)


class _Account:
    """What all runs of one solve took."""

    def __init__(self, smooth: Smooth) -> None:
        self.smooth = smooth
        self.n_iter = 0
        self._trace: list[TraceRow] = []
        self._notes: tuple[str, ...] = ()
        self._clock = time.perf_counter()
        self._before = _effort(smooth)

    def add(self, result: Run) -> None:
        self.n_iter += result.n_iter
        self._trace += _shifted(result, self._trace)
        self._notes = tuple(dict.fromkeys([*self._notes, *result.notes]))

    def solution(
        self, theta: Floats, status: Status, certificate: Certificate, memory: Memory
    ) -> Solution:
        effort = _effort(self.smooth) - self._before
        passes, curvature_passes, pass_seconds, curvature_seconds = effort.tolist()
        return Solution(
            theta,
            status,
            certificate.kkt,
            certificate.objective,
            self.n_iter,
            self._trace,
            self._notes,
            certificate.evaluation,
            passes,
            curvature_passes,
            time.perf_counter() - self._clock,
            pass_seconds,
            curvature_seconds,
            memory,
        )


def screened(problem: Problem, start: Start) -> Ints:
    """Active and free groups, and those whose gradient may exceed lam * w at the solution.

    The strong rule (Tibshirani et al. 2012) allows a gradient to grow as fast as lam falls:
    from the solution at lam_0 it keeps all above (2 lam - lam_0) w.  That is safe but most of
    what it keeps stays zero, and curvature is dear; three tenths of that growth miss next
    to nothing, and what they miss the certificate finds.  After a long jump only groups that are
    violated at the start are taken.
    """
    layout, penalty = problem.smooth.layout, problem.penalty
    active = layout.group_norms(start.theta) > 0.0
    fall = (start.lam or np.inf) - problem.lam
    threshold = problem.lam - _GROWTH * fall if 0.0 < fall < 0.5 * problem.lam else problem.lam
    candidate = layout.group_norms(start.evaluation.gradient) >= threshold * penalty.weights
    if start.working is not None:
        candidate[start.working] = True
    return np.flatnonzero(active | candidate | (penalty.weights == 0.0))


def violators(problem: Problem, certificate: Certificate, groups: Ints, tol: float) -> Ints:
    """Groups outside the working set that break their optimality condition.

    The worst ones, at most as many as the set has already (and ten).
    """
    outside = np.ones(len(certificate.edge_distance), dtype=bool)
    outside[groups] = False
    broken = np.flatnonzero(outside & (certificate.edge_distance > tol))
    worst = broken[np.argsort(-certificate.edge_distance[broken], kind="stable")]
    return np.sort(worst[: max(10, len(groups))])


def _effort(smooth: Smooth) -> Floats:
    """Counters so far: passes, curvature passes, and the seconds of both."""
    return np.array([smooth.passes, smooth.curvature_passes, *smooth.part_seconds])


def _status(certified: bool, out_of_steps: bool, solver_says: Status) -> Status:
    """The certificate decides; a solver that merely believes to have converged has not."""
    if certified:
        return Status.CONVERGED
    if solver_says is not Status.CONVERGED:
        return solver_says
    return Status.ITERATION_LIMIT if out_of_steps else Status.NO_PROGRESS


def _shifted(result: Run, before: list[TraceRow]) -> list[TraceRow]:
    """The run's trace with passes and seconds counted on from an earlier one."""
    if not before:
        return result.trace
    last = before[-1]
    return [
        TraceRow(row.objective, row.kkt, row.passes + last.passes, row.seconds + last.seconds)
        for row in result.trace
    ]

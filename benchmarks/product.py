"""An encoded table -> the package's own problem and path, with a stopwatch on every part."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.context import THREADS, TOL
from benchmarks.timing import Stamped, TimedModels, TimedRows
from mixedgm.path.path import Path, geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Task, prepare
from mixedgm.solve.choose import solver_for
from mixedgm.table.encode import Design

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solved:
    """A path and where its time went."""

    path: Path
    seconds: float
    """From the encoded table's task to the last solution."""
    per_lam: Floats
    """(n_lams,) wall time of every lam, everything included."""
    pass_seconds: float
    curvature_seconds: float
    model_seconds: Floats
    """(n_lams,) of minimising quadratic models, every lam."""

    @property
    def other_seconds(self) -> float:
        """All that is not a pass: curvature, subproblems, bookkeeping."""
        return self.seconds - self.pass_seconds

    @property
    def passes_per_lam(self) -> float:
        return float(self.path.passes.mean())


def task_of(design: Design, n_threads: int = THREADS) -> Task:
    """The package's problem for all lam."""
    return prepare(design, n_threads=n_threads)


def grid(task: Task, n_lams: int, ratio: float) -> Floats:
    """From lam_max down to ratio * lam_max."""
    return geometric_lams(task.lam_max, n_lams, ratio)


def solve(task: Task, lams: Floats, tol: float = TOL, solver: object = "auto") -> Solved:
    """Solve a path as the package does by default, and time it."""
    smooth = cast(Any, task.smooth)
    rows = TimedRows(smooth.rows)
    watched = replace(task, smooth=replace(smooth, rows=rows))
    stamped = Stamped(lams)
    clock = time.perf_counter()
    with TimedModels() as models:
        path = solve_path(watched, cast(Floats, stamped), Recipe(solver_for(solver), tol, 1000))
    seconds = time.perf_counter() - clock
    of_models = models.between(stamped.stamps)
    of_rows = (rows.pass_seconds, rows.curvature_seconds)
    return Solved(path, seconds, stamped.seconds, *of_rows, of_models)


def warm_up() -> None:
    """Load (or compile) every kernel on a tiny table, so that it is in nobody's time."""
    rng = np.random.default_rng(0)
    from benchmarks.data import encoded

    codes = rng.integers(0, 3, size=(60, 3))
    numbers = rng.normal(size=(60, 2)) + codes[:, :2]
    for n_threads in (1, THREADS):
        task = task_of(encoded(numbers, codes, (3, 3, 3)), n_threads)
        solve(task, grid(task, 4, 0.05))


def dense_theta(task: Task, seed: int = 0) -> Floats:
    """A point where every edge is active and no probability is extreme."""
    layout = task.layout
    theta = task.smooth.null()
    size = 1.0 / np.sqrt(layout.n_columns)
    edges = np.random.default_rng(seed).normal(size=layout.n_theta - layout.n_node_terms)
    theta[layout.edges] = 0.3 * size * edges
    return theta

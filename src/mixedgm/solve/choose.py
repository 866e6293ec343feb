"""A solver's name or object -> a solver; the rule behind "auto"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from mixedgm.base.errors import ParameterError
from mixedgm.model.layout import Floats, Ints, Layout, offsets
from mixedgm.objective.contract import Evaluation
from mixedgm.solve.loop import Solver
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import NewtonState, ProximalNewton
from mixedgm.solve.spectral_gradient import SpectralGradient, SpectralState

_CUBES_OF_A_STEP = 3e6
"""Cost of a step that does not depend on the rows, as cubes of block sizes."""


@dataclass(frozen=True)
class Auto:
    """Proximal Newton as long as the curvature of the working set is small enough.

    Proximal Newton with sampled curvature needs the fewest passes over the rows at every size
    that was measured.  It keeps one dense matrix per column over that column's own parameters in
    the working set, and decomposes the block of every edge.  The step is left to
    `SpectralGradient`, which keeps no curvature, when the matrices together exceed `limit_bytes`,
    the cubes of the blocks' sizes add up to more than `limit_cubes` (two columns with many levels),
    or to more than many passes over few rows cost, a column has more than `limit_levels` levels (or
    own terms), or curvature takes as long as `limit_passes` passes.

    A function whose curvature is one matrix (the likelihood) gets it up to `limit_whole` rows and
    columns, and limited-memory curvature from there on, or where it has none: its evaluations are
    expensive.
    """

    limit_bytes: float = 2.0**30
    limit_cubes: float = 2e9
    limit_levels: int = 100
    limit_passes: float = 300.0
    limit_whole: int = 1500
    newton: ProximalNewton = field(default_factory=ProximalNewton)
    memory: ProximalNewton = field(default_factory=lambda: ProximalNewton("limited-memory"))
    spectral: SpectralGradient = field(default_factory=SpectralGradient)

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: Any = None
    ) -> NewtonState | SpectralState:
        """Choose by the size of the curvature, and start."""
        layout = problem.smooth.layout
        if not problem.smooth.by_nodes:
            return self.newton_for(problem).init(problem, theta, here, tol, memory)
        needed = 8.0 * float((_contrasts(layout) ** 2.0).sum())
        small = (
            needed <= self.limit_bytes
            and (layout.sizes**3.0).sum() <= min(self.limit_cubes, self._cost_of_passes(problem))
            and int(layout.nodes.n_biases.max(initial=1)) <= self.limit_levels
            and self._passes_for_curvature(problem) <= self.limit_passes
        )
        if small:
            return self.newton.init(problem, theta, here, tol, memory)
        return self.spectral.init(problem, theta, here, tol)

    def _cost_of_passes(self, problem: Problem) -> float:
        """The cubes that take as long as the passes that one decomposition saves, 30 or so."""
        layout, smooth = problem.smooth.layout, problem.smooth
        target = layout.softmax_nodes
        predictors = 1 + np.diff(layout.incidence.target_ptr)[target]
        cells = float((layout.width[target] * predictors).sum())
        return 30.0 * (_CUBES_OF_A_STEP + cells * smooth.n_rows)

    def _passes_for_curvature(self, problem: Problem) -> float:
        """About how many passes over the rows take as long as curvature does.

        Curvature visits every pair of predictors for every pair of levels of a column.
        """
        layout, smooth = problem.smooth.layout, problem.smooth
        target = layout.softmax_nodes
        levels = layout.width[target]
        pairs = np.maximum(levels * (levels - 1) / 2, 1)
        predictors = 1 + np.diff(layout.incidence.target_ptr)[target]
        share = min(1.0, self.newton.sample_rows / max(1, smooth.n_rows))
        curvature = 0.3 * share * (pairs * predictors**2 / 2).sum()
        return float(curvature / max(1.0, 0.5 * (levels * predictors).sum()))

    def newton_for(self, problem: Problem) -> ProximalNewton:
        """Which curvature Newton steps take."""
        layout = problem.smooth.layout
        if problem.smooth.by_nodes:
            return self.newton
        inside = Layout(layout.nodes.contrasts, layout.pairs)
        small = inside.n_theta <= self.limit_whole and problem.smooth.curvature_rows > 0
        return self.newton if small else self.memory

    def step(
        self, problem: Problem, state: NewtonState | SpectralState
    ) -> NewtonState | SpectralState:
        """Go on with the solver that made the state."""
        if isinstance(state, NewtonState):
            return self.newton_for(problem).step(problem, state)
        return self.spectral.step(problem, state)


def _contrasts(layout: Layout) -> Ints:
    """How many contrasts the conditional of every node has, edges only."""
    incidence, narrow = layout.incidence, layout.nodes.freedom
    before = offsets(narrow[incidence.predictor])[incidence.target_ptr]
    return np.asarray(narrow * np.diff(before))


def solver_for(solver: object) -> Solver:
    """The solver that a name stands for, or the given object if it has the solver's methods."""
    named: dict[str, type] = {
        "auto": Auto,
        "proximal-newton": ProximalNewton,
        "proximal-gradient": ProximalGradient,
    }
    if isinstance(solver, str) and solver in named:
        return cast(Solver, named[solver]())
    if not isinstance(solver, (str, type)) and hasattr(solver, "init") and hasattr(solver, "step"):
        return cast(Solver, solver)
    raise ParameterError.must_be(
        "solver",
        f"one of {', '.join(map(repr, named))}, a ProximalNewton or a ProximalGradient",
        solver,
    )

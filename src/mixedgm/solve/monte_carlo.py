"""Options -> the solver for losses whose gradient is sampled."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats
from mixedgm.objective.contract import Evaluation
from mixedgm.parameters import HasParams
from mixedgm.solve.problem import Problem
from mixedgm.solve.working_set import Solution, Start

STANDARD_ERRORS = 4.0
"""Up to so many a violated condition may be chance."""


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
        if not (isinstance(self.accuracy, numbers.Real) and 0.0 < self.accuracy < 1.0):
            raise ParameterError.must_be("accuracy", "a number in (0, 1)", self.accuracy)
        whole = isinstance(self.n_chains, numbers.Integral) and self.n_chains >= 64
        if not whole or self.n_chains % 64:
            raise ParameterError.must_be("n_chains", "a positive multiple of 64", self.n_chains)
        if not (isinstance(self.max_sweeps, numbers.Integral) and self.max_sweeps >= 1):
            raise ParameterError.must_be("max_sweeps", "a positive integer", self.max_sweeps)

    def solve(self, problem: Problem, start: Start, *, tol: float, max_iter: int) -> Solution:
        """Solve until the conditions hold within sampling errors of `accuracy`."""
        from mixedgm.solve.sampled_steps import solve_sampled

        return solve_sampled(problem, self, start, tol=tol, max_iter=max_iter)

    def init(
        self, problem: Problem, theta: Floats, here: Evaluation, tol: float, memory: Any = None
    ) -> Any:
        """Not available: it does not step by exact evaluations."""
        raise ParameterError("solver=MonteCarlo(...) is for loss='likelihood-mc' only.")

    def step(self, problem: Problem, state: Any) -> Any:
        """Not available."""
        raise NotImplementedError

"""Moments and a layout -> the mean negative log likelihood, its gradient and its curvature.

All in standardised units.  The rows enter through their first and second moments only: the value
is log Z(theta) less the inner product of theta with the mean of the sufficient statistics, and the
gradient is the difference of the model's and the rows' expectations of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Self

import numpy as np

from mixedgm.base.errors import DistributionError, TooLargeError
from mixedgm.families.gaussian import LOG_TWO_PI
from mixedgm.joint.covariance import Covariance, CovarianceCost, distinct
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.model.params import from_theta
from mixedgm.objective.contract import Evaluation
from mixedgm.rows.contract import Moments

if TYPE_CHECKING:
    from mixedgm.joint.exact import Exact

# States of y up to which curvature is summed over all of them, and draws of y beyond.
_MOST_STATES = 2**16


@dataclass(frozen=True, eq=False)
class WholeLikelihood:
    """Base class of likelihoods: one term with all edges in it, and one matrix of curvature."""

    layout: Layout
    moments: Moments
    """Moments of the standardised rows."""
    effort: CovarianceCost = field(default_factory=CovarianceCost, kw_only=True)
    """Cost of evaluations, shared by all restrictions."""

    terms_per_edge = 1
    by_nodes = False

    @property
    def part_seconds(self) -> tuple[float, float]:
        """Wall time so far in evaluations, and in curvature."""
        return self.effort.seconds, self.effort.curvature_seconds

    def restrict(self, groups: Ints) -> Self:
        """Return the function with all other groups zero."""
        return replace(self, layout=self.layout.restrict(groups))

    def null(self) -> Floats:
        """Closed form: mean 0, precision 1, log frequencies."""
        return self.layout.independent(self.moments.shares)

    @cached_property
    def observed(self) -> Floats:
        """(n_theta,) mean of the sufficient statistics over the rows."""
        mean = self.layout.nodes.statistics.means(self.moments.mean, self.moments.shares)
        return self.layout.statistics(mean, self.moments.second)

    def is_candidate(self, theta: Floats) -> bool:
        """Whether theta is finite with a positive diagonal, as one with a distribution must be."""
        return bool((theta[self.layout.diagonal] > 0.0).all() and np.isfinite(theta).all())


@dataclass(frozen=True, eq=False)
class Likelihood(WholeLikelihood):
    """-log p(row), averaged over rows, by exact elimination of the discrete columns."""

    n_rows: int

    passes = 0.0  # the rows are not needed again
    curvature_passes = 0.0

    # -- value and gradient ------------------------------------------------------------------------

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient; +inf where the precision is not positive definite."""
        clock = time.perf_counter()
        model = self._exact(theta)
        if model is None:
            return Evaluation(np.inf)
        constant = 0.5 * np.count_nonzero(self.layout.nodes.gaussian_nodes) * LOG_TWO_PI
        constant += self.layout.nodes.statistics.base_mean(self.moments.shares)
        value = float(model.log_partition - constant - theta @ self.observed)
        grad = None
        if gradient:
            grad = self.layout.statistics(*self._expected(model)) - self.observed
        self.effort.seconds += time.perf_counter() - clock
        return Evaluation(value, grad)

    def _exact(self, theta: Floats) -> Exact | None:
        from mixedgm.joint.exact import exact

        if not self.is_candidate(theta):
            return None
        density = from_theta(self.layout, theta).joint
        try:
            return exact(density)
        except TooLargeError as error:
            if density.seen is not None:
                raise TooLargeError(
                    f"loss='likelihood' needs tables of pairs of the {sum(density.n_levels):,} "
                    "values of the discrete columns, most of which {columns} has. To fix: "
                    "loss='likelihood-mc', which samples; loss='pseudolikelihood'; or a smaller "
                    "largest count",
                    error.columns,
                ) from None
            raise TooLargeError(
                "the likelihood of a graph as dense as this cannot be computed exactly: {columns} "
                "would have to be kept in one table (columns that share continuous neighbours "
                "count as neighbours). To fix: loss='likelihood-mc', which samples; a larger "
                "lam; or forbid=[...] some of the edges between them",
                error.columns,
            ) from None
        except DistributionError:
            return None

    def _expected(self, model: Exact) -> tuple[Floats, Floats]:
        """Means and second moments of the columns that make the statistics."""
        from mixedgm.joint.exact import moments_from

        expected = moments_from(model.given_y, model.tree.pairs[0])
        nodes = self.layout.nodes
        return nodes.statistics.moments(expected.column_mean, expected.column_second)

    # -- curvature ---------------------------------------------------------------------------------

    @cached_property
    def _n_states(self) -> int:
        return prod(self.layout.n_levels)

    @property
    def curvature_rows(self) -> int:
        """States of y, or, where they are too many, draws."""
        return min(self._n_states, _MOST_STATES)

    @property
    def exact_curvature(self) -> bool:
        """Whether all states of y can be visited."""
        return self._n_states <= _MOST_STATES

    def curvature(self, theta: Floats, stride: int = 1, nodes: Ints | None = None) -> Covariance:
        """Covariance of the statistics, over all states of y or ``curvature_rows / stride`` draws.

        The draws are the same at every call, so that solvers are deterministic.
        """
        from mixedgm.joint.exact import all_states

        if nodes is not None:
            raise ValueError("the curvature of the likelihood is not a sum over nodes")
        clock = time.perf_counter()
        model = self._exact(theta)
        if model is None:
            raise ValueError("there is no curvature outside the domain")
        n_draws = 0
        if stride <= 1 and self.exact_curvature:
            states = all_states(model)
        else:
            n_draws = max(1, self.curvature_rows // stride)
            draws = model.tree.draw(n_draws, np.random.default_rng(n_draws))
            states = distinct(draws, model.params.n_levels)
        expected = self._expected(model)
        out = Covariance.of(
            self.layout, states, model.given_y, expected, n_draws=n_draws, effort=self.effort
        )
        self.effort.curvature_seconds += time.perf_counter() - clock
        return out

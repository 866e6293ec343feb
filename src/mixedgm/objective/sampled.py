"""Moments and Gibbs chains -> estimates of the likelihood's gradient, with their errors."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import logsumexp

from mixedgm.base.errors import DistributionError
from mixedgm.joint.covariance import Covariance, distinct
from mixedgm.joint.field import Gaussian, gaussian
from mixedgm.joint.gibbs import BATCHES, KEPT, GradientChains
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import from_theta
from mixedgm.objective.contract import Evaluation, WholeCurvature
from mixedgm.objective.likelihood import Likelihood, WholeLikelihood
from mixedgm.objective.ridge import Ridged, RidgedWhole


class StateCurvature(WholeCurvature, Protocol):
    """A Hessian from states of the model."""

    def variance_of(self, delta: Floats) -> float:
        """Quadratic form of the Hessian: the variance of the statistics that `delta` weighs."""


@dataclass(frozen=True, eq=False)
class GradientEstimate:
    """Estimates by chains at one theta: gradient, standard errors, curvature at states visited."""

    grad: Floats
    error: Floats
    batches: Floats
    """(64, n_theta) the gradient by each batch of chains."""
    curvature: StateCurvature

    def variance_along(self, direction: Floats) -> float:
        """Sampling variance of the product of the gradient with a direction."""
        return float(np.var(self.batches @ direction, ddof=1) / len(self.batches))


@dataclass(frozen=True, eq=False)
class SampledLikelihood(WholeLikelihood):
    """-log p(row), averaged over rows; only its derivatives are known, up to sampling error."""

    n_rows: int
    chains: GradientChains
    """Chains, shared by all restrictions."""

    passes = 0.0
    curvature_passes = 0.0
    curvature_rows = KEPT
    exact_curvature = False

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Exactly where there is no edge; else an estimate of the gradient, the value unknown."""
        if not self.layout.group_norms(theta).any():
            return self._without_edges(theta)
        estimated = self.estimate(theta, KEPT // (BATCHES * self.chains.per_batch))
        return Evaluation(np.inf) if estimated is None else Evaluation(np.nan, estimated.grad)

    def curvature(
        self, theta: Floats, stride: int = 1, nodes: Ints | None = None
    ) -> StateCurvature:
        """Curvature from states that the chains visit."""
        estimated = self.estimate(theta, KEPT // (BATCHES * self.chains.per_batch))
        if estimated is None:
            raise ValueError("there is no curvature outside the domain")
        return estimated.curvature

    def estimate(self, theta: Floats, sweeps: int) -> GradientEstimate | None:
        """Let the chains go on at theta; None where the precision is not positive definite."""
        clock = time.perf_counter()
        params, given_y = self._model(theta)
        if params is None or given_y is None:
            return None
        moments = self.chains.moments(self.layout.nodes, params, given_y, sweeps)
        by_batch, expected, states = moments
        batches = np.array([self.layout.statistics(*one) for one in by_batch])
        batches -= self.observed
        error = np.zeros(self.layout.n_theta)
        if self.layout.n_levels:  # else nothing was sampled, and there is only rounding
            error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        self.effort.seconds += time.perf_counter() - clock
        curvature = Covariance.of(
            self.layout,
            distinct(states, params.n_levels),
            given_y,
            expected,
            n_draws=len(states),
            effort=self.effort,
        )
        return GradientEstimate(batches.mean(axis=0), error, batches, curvature)

    def valid(self, theta: Floats) -> bool:
        """Whether theta has a distribution."""
        return self._model(theta)[0] is not None

    def _model(self, theta: Floats) -> tuple[ConditionalGaussian | None, Gaussian | None]:
        if not self.is_candidate(theta):
            return None, None
        params = from_theta(self.layout, theta).joint
        try:
            return params, gaussian(params)
        except DistributionError:
            return None, None

    def _without_edges(self, theta: Floats) -> Evaluation:
        layout, nodes, shares = self.layout, self.layout.nodes, self.moments.shares
        if not nodes.n_scored:
            return Likelihood(layout, self.moments, self.n_rows).evaluate(theta)
        # Column by column: values may be too many for tables of pairs of them.
        if not self.is_candidate(theta):
            return Evaluation(np.inf)
        linear, diagonal = theta[layout.linear], theta[layout.diagonal]
        logits = np.split(nodes.own_logits(theta[layout.biases]), nodes.level_start[1:-1])
        log_z = [float(logsumexp(part)) for part in logits]
        chance = [np.exp(part - each) for part, each in zip(logits, log_z, strict=True)]
        mean, _ = nodes.statistics.column_moments(
            linear / diagonal, 1.0 / diagonal, np.concatenate(chance)
        )
        second, numbers = np.outer(mean, mean), np.flatnonzero(nodes.gaussian_nodes)
        second[numbers, numbers] += 1.0 / diagonal
        means = nodes.statistics.means(mean, np.concatenate(chance))
        value = sum(log_z) + 0.5 * float((linear**2 / diagonal - np.log(diagonal)).sum())
        value -= nodes.statistics.base_mean(shares) + float(theta @ self.observed)
        return Evaluation(value, layout.statistics(means, second) - self.observed)


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgedSample(SampledLikelihood):
    """The sum of a sampled likelihood and a ridge, which is known without error."""

    ridge: Ridged
    """Ridge, whose smooth function is the likelihood without it."""

    @classmethod
    def of(cls, smooth: SampledLikelihood, edges: Floats, numbers: Floats) -> RidgedSample:
        """The likelihood with a ridge, and the same chains."""
        parts = {each.name: getattr(smooth, each.name) for each in fields(SampledLikelihood)}
        return cls(**parts, ridge=Ridged(smooth, edges, numbers))

    def restrict(self, groups: Ints) -> Self:
        """Return the function with all other groups zero."""
        return replace(super().restrict(groups), ridge=self.ridge.restrict(groups))

    def null(self) -> Floats:
        """The minimiser over the node terms with all edges zero."""
        return self.ridge.null()

    def estimate(self, theta: Floats, sweeps: int) -> GradientEstimate | None:
        """Estimates by the chains, with the ridge's part in derivatives."""
        plain = super().estimate(theta, sweeps)
        if plain is None:
            return None
        push = self.ridge.push(theta)
        return replace(
            plain,
            grad=plain.grad + push,
            batches=plain.batches + push,
            curvature=_RidgedStates(plain.curvature, self.layout, self.ridge.edges),
        )

    def _without_edges(self, theta: Floats) -> Evaluation:
        plain, ridge = super()._without_edges(theta), self.ridge
        if plain.grad is None:  # outside the domain
            return plain
        return Evaluation(plain.value + ridge.added(theta), plain.grad + ridge.push(theta))


@dataclass(frozen=True, eq=False)
class _RidgedStates(RidgedWhole):
    """A Hessian from states of the model plus the ridge."""

    whole: StateCurvature

    def variance_of(self, delta: Floats) -> float:
        """The quadratic form."""
        norms = self.layout.group_norms(delta)
        return self.whole.variance_of(delta) + float(self.edges @ norms**2)

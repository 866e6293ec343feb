"""A sampled likelihood and a ridge -> estimates of the gradient of their sum, with their errors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mixedgm.model.layout import Floats, Ints
from mixedgm.objective.contract import Evaluation
from mixedgm.objective.ridge import Ridged, RidgedWhole
from mixedgm.objective.sampled import GradientEstimate, SampledLikelihood, StateCurvature

__all__ = ["RidgedSample"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgedSample(SampledLikelihood):
    """The sum of a sampled likelihood and a ridge, which is known without error.

    Parameters
    ----------
    ridge : Ridged
        The ridge; its smooth function is the likelihood without it.
    """

    ridge: Ridged

    @classmethod
    def of(cls, smooth: SampledLikelihood, edges: Floats, numbers: Floats) -> RidgedSample:
        """The likelihood with a ridge, and the same chains."""
        own = {each.name: getattr(smooth, each.name) for each in fields(SampledLikelihood)}
        return cls(**own, ridge=Ridged(smooth, edges, numbers))

    def restrict(self, groups: Ints) -> RidgedSample:
        """The same function with all other groups zero."""
        small, ridge = super().restrict(groups), self.ridge
        return RidgedSample.of(small, ridge.edges[groups], ridge.numbers)

    def null(self) -> Floats:
        """The minimiser over the node terms with all edges zero."""
        return self.ridge.null()

    def estimate(self, theta: Floats, sweeps: int) -> GradientEstimate | None:
        """What the chains say, with what the ridge adds to derivatives."""
        found = super().estimate(theta, sweeps)
        if found is None:
            return None
        push = self.ridge.push(theta)
        return replace(
            found,
            grad=found.grad + push,
            batches=found.batches + push,
            curvature=_RidgedStates(found.curvature, self.layout, self.ridge.edges),
        )

    def _without_edges(self, theta: Floats) -> Evaluation:
        found, ridge = super()._without_edges(theta), self.ridge
        if found.grad is None:  # outside the domain
            return found
        return Evaluation(found.value + ridge.added(theta), found.grad + ridge.push(theta))


@dataclass(frozen=True, eq=False)
class _RidgedStates(RidgedWhole):
    """A Hessian from states of the model plus the ridge."""

    whole: StateCurvature

    def variance_of(self, delta: Floats) -> float:
        """The quadratic form."""
        norms = self.layout.group_norms(delta)
        return self.whole.variance_of(delta) + float(self.edges @ norms**2)

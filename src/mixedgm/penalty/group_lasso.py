"""Edge weights on a layout -> the group lasso: what problems and solvers ask of the penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.compiled import kernel
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.threads import over_range


@dataclass(frozen=True, eq=False)
class GroupLasso:
    """The penalty lam * sum over groups of w_g * norm(theta_g).

    Node terms and groups of weight zero are free.
    """

    layout: Layout
    weights: Floats
    """(n_groups,) w_g >= 0, in the units of theta."""

    @classmethod
    def none(cls, layout: Layout) -> GroupLasso:
        """All groups free."""
        return cls(layout, np.zeros(layout.n_groups))

    @property
    def penalised(self) -> NDArray[np.bool_]:
        """(n_groups,) whether a group has a penalty at all."""
        return self.weights > 0.0

    @cached_property
    def free(self) -> Ints:
        """Groups without penalty, whatever lam is."""
        return np.flatnonzero(self.weights == 0.0)

    def value(self, theta: Floats, lam: float) -> float:
        """The penalty at theta: lam * sum_g w_g norm(theta_g)."""
        return lam * float(self.weights @ self.layout.group_norms(theta))

    def prox(self, theta: Floats, lam: float, step: float) -> Floats:
        """argmin_u  norm(u - theta)^2 / 2 + step * value(u, lam)."""
        layout = self.layout
        norms = layout.group_norms(theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(norms > 0.0, 1.0 - step * lam * self.weights / norms, 0.0)
        out = theta.copy()
        out[layout.edges] *= layout.spread(np.maximum(keep, 0.0))
        return out

    def bound(self, lam: float) -> Floats:
        """Per group: lam * w_g, the slope of the penalty in the norm.

        A group whose gradient has a larger norm cannot be zero.
        """
        return lam * self.weights

    def entry(self, grad: Floats) -> Floats:
        """Per group: the smallest lam at which it can be zero; inf for groups without penalty."""
        out = np.full(len(self.weights), np.inf)
        np.divide(self.layout.group_norms(grad), self.weights, out=out, where=self.penalised)
        return out

    def lam_max(self, grad: Floats) -> float:
        """Smallest lam at which every penalised group can be zero, from the gradient there."""
        return float(self.entry(grad)[self.penalised].max(initial=0.0))

    def subgradient_distance(self, theta: Floats, grad: Floats, lam: float) -> Floats:
        """Per group: distance from -grad_g to the subdifferential of the penalty at theta_g."""
        out, starts, bound = np.empty(self.layout.n_groups), self.layout.starts, self.bound(lam)

        def distances(first: int, last: int) -> None:
            _distances(starts, theta, grad, bound, first, last, out)

        over_range(distances, len(out), 8 * len(theta))
        return out

    def restrict(self, groups: Ints, layout: Layout | None = None) -> GroupLasso:
        """The penalty on these groups only, of another `layout` of the same groups if given."""
        layout = (layout or self.layout).restrict(groups)
        return replace(self, layout=layout, weights=self.weights[groups])

    def with_factors(self, factors: Floats) -> GroupLasso:
        """The penalty with lam multiplied by a factor per group."""
        return replace(self, weights=self.weights * factors)


# -- kernels ---------------------------------------------------------------------------------------


@kernel(fastmath={"reassoc", "contract"})
def _distances(starts, theta, grad, pull, first, last, out):  # type: ignore[no-untyped-def]
    """out[g] = distance from -grad_g to pull[g] times the subdifferential of the norm.

    For the groups first:last.
    """
    for g in range(first, last):
        square, slope = 0.0, 0.0
        for k in range(starts[g], starts[g + 1]):
            square += theta[k] * theta[k]
            slope += grad[k] * grad[k]
        if square == 0.0:
            beyond = np.sqrt(slope) - pull[g]
            out[g] = 0.0 if beyond <= 0.0 else beyond  # NaN stays NaN
            continue
        factor, total = pull[g] / np.sqrt(square), 0.0
        for k in range(starts[g], starts[g + 1]):
            x = grad[k] + factor * theta[k]
            total += x * x
        out[g] = np.sqrt(total)

"""Edge weights on a layout -> the group MCP, a concave penalty that shrinks no large group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats
from mixedgm.penalty.group_lasso import GroupLasso


@dataclass(frozen=True, eq=False)
class GroupMCP(GroupLasso):
    """The penalty sum over groups of p_g(norm(theta_g)), minimax concave (Zhang 2010).

    p_g(t) = a t - t^2 / (2 gamma) up to t = gamma a, and constant from there on; a = lam * w_g.
    Groups enter as with the group lasso.  Solvers find stationary points, which need not be minima;
    the two accelerated gradient methods that add up gradients need a convex penalty and find none.
    """

    gamma: float = 3.0
    """The larger, the closer to the group lasso."""

    def value(self, theta: Floats, lam: float) -> float:
        """The penalty at theta."""
        knee = self.gamma * self.bound(lam)
        t = np.minimum(self.layout.group_norms(theta), knee)
        return float((self.bound(lam) * t - t**2 / (2.0 * self.gamma)).sum())

    def prox(self, theta: Floats, lam: float, step: float) -> Floats:
        """argmin_u  norm(u - theta)^2 / 2 + step * value(u, lam)."""
        layout, a = self.layout, self.bound(lam)
        norms = layout.group_norms(theta)
        if step < self.gamma:
            shrunk = np.maximum(norms - step * a, 0.0) / (1.0 - step / self.gamma)
            new = np.where(norms > self.gamma * a, norms, shrunk)
        else:  # concave up to the knee: there or nowhere
            new = np.where(norms > np.sqrt(step * self.gamma) * a, norms, 0.0)
        out = theta.copy()
        out[layout.edges] *= layout.spread(new / np.where(norms > 0.0, norms, 1.0))
        return out

    def pull(self, norms: Floats, lam: float) -> Floats:
        """Per group: the derivative of the penalty in the norm, a - t / gamma or zero."""
        return np.maximum(self.bound(lam) - norms / self.gamma, 0.0)

    def bend(self, norms: Floats, lam: float) -> Floats:
        """Per group: the second derivative of the penalty in the norm, -1 / gamma or zero."""
        return np.where(norms < self.gamma * self.bound(lam), -1.0 / self.gamma, 0.0)

    def subgradient_distance(self, theta: Floats, grad: Floats, lam: float) -> Floats:
        """Per group: distance from -grad_g to the subdifferential of the penalty at theta_g."""
        return self._distance(theta, grad, self.pull(self.layout.group_norms(theta), lam))

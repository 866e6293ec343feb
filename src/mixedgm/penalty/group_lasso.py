"""Edge weights on a layout -> value, proximal map, distance to the subgradient, lam_max."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout


@dataclass(frozen=True, eq=False)
class GroupLasso:
    """The penalty sum over groups of w_g * norm(theta_g), to be multiplied by lam.

    Node terms and groups of weight zero are free.

    Parameters
    ----------
    layout : Layout
    weights : ndarray (n_groups,)
        w_g >= 0, in the units of theta.
    """

    layout: Layout
    weights: Floats

    @property
    def free(self) -> Ints:
        """Groups without penalty."""
        return np.flatnonzero(self.weights == 0.0)

    def value(self, theta: Floats) -> float:
        """sum_g w_g norm(theta_g)."""
        return float(self.weights @ self.layout.group_norms(theta))

    def prox(self, theta: Floats, step: float) -> Floats:
        """argmin_u  norm(u - theta)^2 / 2 + step * sum_g w_g norm(u_g)."""
        layout = self.layout
        norms = layout.group_norms(theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(norms > 0.0, 1.0 - step * self.weights / norms, 0.0)
        out = theta.copy()
        out[layout.edges] *= layout.spread(np.maximum(keep, 0.0))
        return out

    def subgradient_distance(self, theta: Floats, grad: Floats, lam: float) -> Floats:
        """Per group: distance from -grad_g to lam * w_g * subdifferential of norm at theta_g."""
        from mixedgm.penalty.kernels import subgradient_distances

        out = np.empty(self.layout.n_groups)
        subgradient_distances(self.layout.starts, theta, grad, lam * self.weights, out)
        return out

    def lam_max(self, grad: Floats) -> float:
        """Smallest lam at which every penalised group stays zero, from the gradient there."""
        penalised = self.weights > 0.0
        if not penalised.any():
            return 0.0
        return float((self.layout.group_norms(grad)[penalised] / self.weights[penalised]).max())

    def restrict(self, groups: Ints) -> GroupLasso:
        """The penalty on these groups only."""
        return GroupLasso(self.layout.restrict(groups), self.weights[groups])

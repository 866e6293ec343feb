"""A layout and lam -> what a penalty offers to problems and solvers.

A penalty is a sum over edge groups of p_g(norm(theta_g)), with the Euclidean norm.  Every p_g rises
from zero with a kink there, and is linear or concave.  Solvers minimise models in which p_g is
replaced by its tangent at the norm of the moment, pull_g * norm(theta_g): the penalty itself where
it is linear, an upper bound where it is concave.  So kernels see one number per group.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats, Ints, Layout


class Penalty(Protocol):
    """The sum over groups of p_g(norm(theta_g)) at lam; node terms are free."""

    @property
    def layout(self) -> Layout:
        """Which groups there are."""

    @property
    def penalised(self) -> NDArray[np.bool_]:
        """(n_groups,) whether a group has a penalty at all."""

    @property
    def free(self) -> Ints:
        """Groups without penalty, whatever lam is."""

    def value(self, theta: Floats, lam: float) -> float:
        """The penalty at theta."""

    def prox(self, theta: Floats, lam: float, step: float) -> Floats:
        """argmin_u  norm(u - theta)^2 / 2 + step * value(u, lam)."""

    def bound(self, lam: float) -> Floats:
        """Per group: the norm of the gradient above which a group cannot be zero, p_g'(0)."""

    def entry(self, grad: Floats) -> Floats:
        """Per group: the smallest lam at which it can be zero; inf for groups without penalty."""

    def lam_max(self, grad: Floats) -> float:
        """Smallest lam at which every penalised group can be zero, from the gradient there."""

    def pull(self, norms: Floats, lam: float) -> Floats:
        """Per group: p_g' at this norm; `bound` at zero."""

    def bend(self, norms: Floats, lam: float) -> Floats:
        """Per group: p_g'' at this norm; zero or less."""

    def subgradient_distance(self, theta: Floats, grad: Floats, lam: float) -> Floats:
        """Per group: distance from -grad_g to the subdifferential of the penalty at theta_g."""

    def restrict(self, groups: Ints, layout: Layout | None = None) -> Penalty:
        """The penalty on these groups only, of another `layout` of the same groups if given."""

    def with_factors(self, factors: Floats) -> Penalty:
        """The penalty with lam multiplied by a factor per group."""

"""Edge weights on a layout -> the group lasso: what problems ask of it, and its block steps.

Pull of a penalty, a diagonal metric and a point -> the block step of a group, or of all at once.

Nothing else of a penalty is known here than that it pulls along theta_g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.compiled import inner, kernel
from mixedgm.base.threads import over_range
from mixedgm.model.layout import Floats, Ints, Layout


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
def _distances(starts, theta, grad, pull, first, last, out):
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


# -- block steps -----------------------------------------------------------------------------------


def scaled_prox(pull: Floats, metric: Floats, point: Floats, starts: Ints) -> Floats:
    """argmin_x  sum_i metric_i (x_i - point_i)^2 / 2 + sum_g pull_g norm(x_g).

    A group is x_i = d_i y_i / (d_i + m) with metric d, point y and m = pull / |x|.  The root in m
    of 1 / |x| = m / pull is found by Newton's method: both sides are almost straight lines.
    Coordinates of one group follow those of another; `starts` says where each begins, and the end.
    """
    if not pull.any():
        return point
    d, y, size = metric, point, np.diff(starts)

    def sums(values: Floats) -> Floats:
        return np.add.reduceat(values, starts[:-1])

    penalised = pull > 0.0
    divisor = np.where(penalised, pull, 1.0)
    there = np.sqrt(sums(np.square(d * y))) > pull
    norm = np.sqrt(sums(np.square(y)))
    m = np.where(there & penalised, pull / np.where(norm > 0.0, norm, 1.0), 0.0)
    for _ in range(50):
        spread = np.repeat(m, size)
        x = d * y / (d + spread)
        square = sums(np.square(x))
        length = np.sqrt(np.where(square > 0.0, square, 1.0))
        off = 1.0 / length - m / divisor
        active = there & penalised & (np.abs(off) * length > 1e-12)
        if not active.any():
            break
        slope = sums(np.square(x) / (d + spread)) / length**3 - 1.0 / divisor
        falls = slope < 0.0
        step = np.where(falls, m - off / np.where(falls, slope, 1.0), 2.0 * m)
        m = np.where(active, np.maximum(step, 0.5 * m), m)
    return np.where(np.repeat(there, size), d * y / (d + np.repeat(m, size)), 0.0)


@inner
def block_step(c, pull, values, first, m, out):
    """argmin_v  v'Dv/2 - c'v + pull |v|  for diagonal D, in place of `out`."""
    norm = 0.0
    for i in range(m):
        norm += c[i] * c[i]
    if pull > 0.0 and norm <= pull * pull:
        for i in range(m):
            out[i] = 0.0
        return
    if pull == 0.0:
        for i in range(m):
            out[i] = c[i] / values[first + i]
        return
    if m == 1:
        out[0] = (c[0] - pull if c[0] > 0.0 else c[0] + pull) / values[first]
        return
    # Secular equation sum_i (c_i / (D_i t + pull))^2 = 1 for the norm t, by Newton on
    # 1 / sqrt(sum) - 1, which is nearly linear in t and is approached from one side.
    t = 0.0
    for _ in range(100):
        total, slope = 0.0, 0.0
        for i in range(m):
            denominator = values[first + i] * t + pull
            ratio = c[i] / denominator
            total += ratio * ratio
            slope += ratio * ratio * values[first + i] / denominator
        root = np.sqrt(total)
        change = (root - 1.0) * total / slope
        t += change
        if abs(change) <= 1e-14 * t:
            break
    for i in range(m):
        out[i] = c[i] * t / (values[first + i] * t + pull)


@inner
def block_distance(g, theta, first, m, pull):
    """Distance of -g to the subdifferential of pull |.| at the block (largest entry if free)."""
    norm, size = 0.0, 0.0
    for i in range(m):
        norm += theta[first + i] * theta[first + i]
        size += g[i] * g[i]
    norm, size = np.sqrt(norm), np.sqrt(size)
    if norm == 0.0:
        return max(0.0, size - pull)
    total = 0.0
    for i in range(m):
        x = g[i] + pull * theta[first + i] / norm
        total += x * x
    return np.sqrt(total)

"""Smooth function + penalty + lam -> objective and the KKT certificate at a given theta.

The certificate knows nothing of any solver: it takes the gradient over all groups at the point it
is given and measures, in standardised coordinates, how far the optimality conditions are from
holding.  The model that is returned is certified once more, apart from all this: certificate.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Evaluation, Smooth
from mixedgm.penalty.group_lasso import GroupLasso


def _same(one: Floats, other: Floats) -> bool:
    """Whether two thetas, which nobody changes, are equal."""
    return one is other or np.array_equal(one, other)


@dataclass(frozen=True, eq=False)
class Optimality:
    """Optimality of one point.

    `kkt` is the largest of: over edges, the distance from minus the gradient to the penalty's
    subdifferential, divided by the calibrated weight of the edge; over node terms, the absolute
    gradient.
    """

    kkt: float
    objective: float
    evaluation: Evaluation
    edge_distance: Floats
    """(n_groups,) the first kind, per edge."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """The penalty's side of optimality: what is asked of a gradient, of whatever function."""

    penalty: GroupLasso
    lam: float
    yardstick: Floats
    """(n_groups,) calibrated weight c_g of every edge, whatever the penalty is."""

    def edge_distance(self, theta: Floats, grad: Floats) -> Floats:
        """Violation of the optimality condition per edge, on the calibrated scale."""
        return self.penalty.subgradient_distance(theta, grad, self.lam) / self.yardstick

    def measure(self, theta: Floats, grad: Floats) -> float:
        """The KKT number for a gradient that the caller claims to be that at theta."""
        return self.worst(self.edge_distance(theta, grad), grad)

    def worst(self, edge_distance: Floats, grad: Floats) -> float:
        """The KKT number, where the violations of the edges are known."""
        nodes = np.abs(grad[: self.penalty.layout.n_node_terms]).max(initial=0.0)
        # NaN must not pass for a small number, and Python's max may drop it.
        return float(np.maximum(edge_distance.max(initial=0.0), nodes))

    def on(self, layout: Layout, groups: Ints) -> Conditions:
        """Conditions of some groups of a layout (of theta or of contrasts) that has all of them."""
        return Conditions(self.penalty.restrict(groups, layout), self.lam, self.yardstick[groups])


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise smooth(theta) + penalty(theta) at lam."""

    smooth: Smooth
    penalty: GroupLasso
    lam: float
    yardstick: Floats
    """Divisors of the violations of edges, as in `Conditions`."""
    whole: Problem | None = None
    """The problem that this one is a restriction of, to `groups` at the theta positions `index`."""
    index: Ints | None = None
    groups: Ints | None = None
    _last: list[tuple[Floats, Evaluation]] = field(default_factory=list, init=False, repr=False)
    _lifted: list[tuple[Floats, Floats]] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def unpenalised(cls, smooth: Smooth, yardstick: Floats) -> Problem:
        """Minimise a smooth function alone: all groups are free."""
        return cls(smooth, GroupLasso.none(smooth.layout), 0.0, yardstick)

    def evaluate(self, theta: Floats, *, final: bool = False) -> Evaluation:
        """Value and gradient of the smooth part.

        With `final`, of a point that is expected to be the solution: a restriction then asks the
        whole problem, whose certificate needs the gradient there in any case.
        """
        if not final or self.whole is None:
            return self.smooth.evaluate(theta)
        there = self.whole._evaluated(self.lifted(theta), self.groups)
        if there.grad is None:
            return there
        return Evaluation(there.value, there.grad[self.index], there.slopes)

    def _evaluated(self, theta: Floats, groups: Ints | None = None) -> Evaluation:
        """The evaluation at theta, zero but for `groups`; the last is kept for a second call."""
        if not (self._last and _same(self._last[0][0], theta)):
            self._last[:] = [(theta, self.smooth.evaluate(theta, groups=groups))]
        return self._last[0][1]

    def embedded(self, index: Ints, small: Floats) -> Floats:
        """Theta of a restriction as one of this problem, centred where no penalty does it."""
        layout = self.smooth.layout
        theta = np.zeros(layout.n_theta)
        theta[index] = small
        layout.centre(theta, self.penalty.free)
        return theta

    def lifted(self, theta: Floats) -> Floats:
        """Theta of this restriction as one of the whole problem; the last is kept."""
        assert self.whole is not None
        assert self.index is not None
        if not (self._lifted and np.array_equal(self._lifted[0][0], theta)):
            self._lifted[:] = [(theta.copy(), self.whole.embedded(self.index, theta))]
        return self._lifted[0][1]

    def objective(self, evaluation: Evaluation, theta: Floats) -> float:
        """Value of the smooth part (already known) plus the penalty."""
        return evaluation.value + self.penalty.value(theta, self.lam)

    @cached_property
    def conditions(self) -> Conditions:
        """Conditions that a gradient fulfils at the optimum."""
        return Conditions(self.penalty, self.lam, self.yardstick)

    def measure(self, theta: Floats, grad: Floats) -> float:
        """The KKT number for a gradient that the caller claims to be that at theta."""
        return self.conditions.measure(theta, grad)

    def optimality(self, theta: Floats, groups: Ints | None = None) -> Optimality:
        """How optimal theta, zero but for `groups`, is by the whole gradient there."""
        evaluation = self._evaluated(theta, groups)
        distance = self.conditions.edge_distance(theta, evaluation.gradient)
        penalty, active = self.penalty, theta
        if groups is not None and self.smooth.layout.has_many_groups:
            penalty, active = penalty.restrict(groups), theta[self.smooth.layout.positions(groups)]
        return Optimality(
            self.conditions.worst(distance, evaluation.gradient),
            evaluation.value + penalty.value(active, self.lam),
            evaluation,
            distance,
        )

    def restrict(self, groups: Ints) -> Problem:
        """The problem with all other groups held at zero."""
        return Problem(
            self.smooth.restrict(groups),
            self.penalty.restrict(groups),
            self.lam,
            self.yardstick[groups],
            self,
            self.smooth.layout.positions(groups),
            groups,
        )

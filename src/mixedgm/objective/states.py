"""A layout with covariates -> roles of its design columns, the targets' states, and one softmax.

Theta on such a layout -> the softmax over joint states and the Gaussian given them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.covariance import with_own_terms
from mixedgm.rows.contract import Moments

if TYPE_CHECKING:
    from mixedgm.joint.validity import TriangularFactor


@dataclass(frozen=True, eq=False)
class Softmax:
    """The regression of the joint state on some covariates."""

    layout: Layout
    """Layout of a table of all covariates and the joint state, which is the only target."""
    columns: Ints
    """Design columns of the covariates that are in use, in the numbers of the whole model."""


@dataclass(frozen=True, eq=False)
class States:
    """Which design columns are what, and every joint state of the discrete targets.

    The layout is that of the whole model; which edges it has does not matter.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> states = States(Layout.complete(Nodes.mixed(2, (2, 3)), covariates=(0, 2)))
    >>> states.numbers, states.columns, states.covariates, states.n_states
    (array([1]), array([4, 5, 6]), array([0, 2, 3]), 3)
    """

    layout: Layout

    @cached_property
    def numbers(self) -> Ints:
        """Design columns of the Gaussian targets, each of which has one."""
        return self.layout.gaussian_targets

    @cached_property
    def others(self) -> Ints:
        """All other design columns."""
        return np.setdiff1d(np.arange(self.layout.n_columns), self.numbers)

    @cached_property
    def columns(self) -> Ints:
        """Design columns of the discrete targets."""
        return np.flatnonzero(np.isin(self.layout.column_node, self.layout.softmax_nodes))

    @cached_property
    def values(self) -> Ints:
        """Values of the discrete targets among those of all discrete nodes."""
        node = np.repeat(np.arange(len(self.layout.n_levels)), self.layout.n_levels)
        return np.flatnonzero(np.isin(node, self.layout.softmax_targets))

    @cached_property
    def covariates(self) -> Ints:
        """Design columns of the covariates."""
        return np.flatnonzero(~self.layout.is_target[self.layout.column_node])

    @property
    def nodes(self) -> tuple[int, ...]:
        """The discrete targets, as nodes."""
        return tuple(self.layout.softmax_nodes.tolist())

    @property
    def _n_levels(self) -> tuple[int, ...]:
        return tuple(self.layout.n_levels[j] for j in self.layout.softmax_targets)

    @property
    def n_states(self) -> int:
        """Number of joint states of the discrete targets."""
        return prod(self._n_levels)

    @cached_property
    def indicators(self) -> Floats:
        """(n_states, target values) indicators of a state's values; the last column is fastest."""
        codes = np.indices(self._n_levels).reshape(len(self._n_levels), self.n_states)
        hot = [np.eye(n)[code] for n, code in zip(self._n_levels, codes, strict=True)]
        return np.hstack([np.zeros((self.n_states, 0)), *hot])

    @cached_property
    def seen(self) -> Floats:
        """(n_states, design columns of discrete targets) design columns in every state."""
        nodes, p = self.layout.nodes, self.layout.n_gaussian
        if not nodes.n_scored:
            return self.indicators
        table = nodes.statistics.expansion[p + self.values][:, self.columns]
        return np.asarray((table.T @ self.indicators.T).T)

    def own_terms(self, layout: Layout) -> Floats:
        """(n_states, own terms of scored nodes) statistics of these terms; zero for covariates.

        They are in the coordinates of `layout`, which may be contrasts.
        """
        nodes, p = self.layout.nodes, self.layout.n_gaussian
        if not nodes.n_scored:
            return np.zeros((self.n_states, 0))
        change = with_own_terms(nodes, layout.nodes, np.zeros((nodes.n_columns, 0)))
        table = nodes.statistics.columns[p + self.values] @ change
        return np.asarray(self.indicators @ table)

    def softmax(self, layout: Layout) -> Softmax:
        """The regression on those covariates that have an edge in `layout`."""
        nodes = np.flatnonzero(~self.layout.is_target)
        used = np.isin(nodes, layout.pairs)
        known = layout.nodes.take(nodes)
        predictors = np.flatnonzero(used)
        pairs = np.column_stack([predictors, np.full(len(predictors), len(nodes))])
        small = Layout(known.with_state(self.n_states), pairs, tuple(range(len(nodes))))
        inside = np.isin(layout.column_node, nodes[used])
        return Softmax(small, np.flatnonzero(inside))


@dataclass(frozen=True, eq=False)
class StatesPoint:
    """The model at one theta: a softmax over states, and x given state and covariates."""

    states: States
    factor: TriangularFactor
    """Factor of the targets' precision."""
    linear: Floats
    """(p',) linear terms of the Gaussian targets."""
    pull: Floats
    """(d, p') coefficients of design columns in these terms; for the targets, minus the
    precision."""
    bias: Floats
    slope: Floats
    """(n_states,), (covariate columns, n_states): the states have logits bias + f @ slope."""

    @classmethod
    def of(cls, layout: Layout, states: States, theta: Floats) -> StatesPoint:
        """Integrate the Gaussian targets out; DistributionError where that is not possible."""
        from mixedgm.joint.validity import factor

        inside, columns, covariates = states.numbers, states.columns, states.covariates
        matrix = layout.to_matrix(theta)
        pull = matrix[:, inside]
        pull[inside, np.arange(len(inside))] = -theta[layout.diagonal][inside]
        made = factor(-pull[inside])
        linear, seen = theta[layout.linear][inside], states.seen
        between = matrix[np.ix_(columns, columns)]
        rooted = (linear + seen @ pull[columns]) @ made.root.T
        bias = states.indicators @ layout.nodes.own_logits(theta[layout.biases])[states.values]
        bias += 0.5 * ((seen @ between) * seen).sum(axis=1) + 0.5 * (rooted**2).sum(axis=1)
        into = matrix[np.ix_(covariates, columns)]
        into += (pull[covariates] @ made.root.T) @ (pull[columns] @ made.root.T).T
        return cls(states, made, linear, pull, bias, into @ seen.T)

    @cached_property
    def spread(self) -> Floats:
        """(p', p') covariance of the Gaussian targets given everything else."""
        return self.factor.inverse

    @property
    def start(self) -> Floats:
        """(p',) mean of the Gaussian targets where all other design columns are zero."""
        return self.spread @ self.linear

    @cached_property
    def lean(self) -> Floats:
        """(d, p') slopes of this mean on the other design columns; zero for the targets' own."""
        lean = self.pull @ self.spread
        lean[self.states.numbers] = 0.0
        return np.asarray(lean)

    def gaussian_loss(self, moments: Moments) -> float:
        """Mean of -log p(x | y, f), the constant left out."""
        mean = moments.mean @ self.pull + 0.5 * self.linear
        square = self.pull.T @ moments.second @ self.pull + 2.0 * np.outer(mean, self.linear)
        return 0.5 * float(np.sum(self.spread * square) - self.factor.log_det)

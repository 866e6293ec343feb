"""Rows, moments and a layout with covariates -> the mean negative log likelihood given these.

All in standardised units.  With the Gaussian targets integrated out, log Z(f) is a quadratic
form in the covariates f plus the logarithm of a sum over the K joint states of the discrete
targets, whose logits are linear in f:

    log p(x, y | f) = log p(y | f) + log p(x | y, f)

The first is a softmax over one column of K levels, the second a Gaussian that needs moments only.
The gradient is E[T | f] less T, averaged over rows, where E takes the softmax pass and moments.

A layout with covariates -> roles of its design columns, the targets' states, and one softmax.

Theta on such a layout -> the softmax over joint states and the Gaussian given them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mixedgm.base.errors import DistributionError, TooLargeError
from mixedgm.joint.covariance import (
    CovarianceCost,
    Whole,
    covariance_given_y,
    factors,
    with_one,
    with_own_terms,
)
from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.contract import Evaluation, RowsCounted
from mixedgm.objective.likelihood import WholeLikelihood
from mixedgm.rows.contract import Coefficients, Moments, Rows
from mixedgm.rows.memory import MemoryRows

if TYPE_CHECKING:
    from mixedgm.joint.validity import TriangularFactor


MOST_STATES = 4096
"""Joint states of the discrete targets up to which all are summed over in every row."""

# Rows and columns of the softmax's curvature, which has one for every state and covariate column.
_LARGEST = 4096


@dataclass(frozen=True, eq=False)
class ConditionalLikelihood(RowsCounted, WholeLikelihood):
    """-log p(targets of a row | its covariates), averaged over rows; the layout has covariates."""

    states: JointStates
    """Roles of the design columns, and the joint states of the discrete targets."""
    rows: Rows
    """The covariates, and the joint state as their last discrete column."""
    _kept: dict[bytes, _Sums] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, layout: Layout, moments: Moments, rows: MemoryRows) -> ConditionalLikelihood:
        """Make it from rows with all columns; TooLargeError where there are too many states."""
        states = JointStates(layout)
        if states.n_states > MOST_STATES:
            raise TooLargeError(
                f"{{columns}} have {states.n_states:,} joint states, and loss='likelihood' with "
                f"covariates adds up at most {MOST_STATES:,} of them in every row. To fix: "
                "loss='pseudolikelihood', which needs none; or fewer columns, or levels, to be "
                "modelled given the covariates",
                states.nodes,
            )
        numbers, discrete = (
            np.array(part, dtype=np.int64) for part in layout.nodes.places(layout.covariates)
        )
        kept = rows.with_joint_state(numbers, discrete, layout.softmax_targets)
        return cls(layout, moments, states, kept)

    @cached_property
    def softmax(self) -> Softmax:
        """The regression of the joint state on the covariates that have an edge here."""
        return self.states.softmax(self.layout)

    # -- value and gradient ------------------------------------------------------------------------

    def evaluate(
        self, theta: Floats, gradient: bool = True, groups: Ints | None = None
    ) -> Evaluation:
        """Value and, if asked, gradient; +inf where the precision is not positive definite."""
        clock = time.perf_counter()
        point = self._at(theta)
        if point is None:
            return Evaluation(np.inf)
        sums = self._sums(point, gradient)
        value = sums.loss + point.gaussian_loss(self.moments)
        grad = None
        if gradient:
            self._kept.clear()
            self._kept[theta.tobytes()] = sums
            expected = self._expected(point, sums)
            mean = self.layout.nodes.statistics.means(expected.mean, expected.shares)
            grad = self.layout.statistics(mean, expected.second) - self.observed
        self.effort.seconds += time.perf_counter() - clock
        return Evaluation(value, grad)

    def _at(self, theta: Floats) -> StatesPoint | None:
        if not self.is_candidate(theta):
            return None
        try:
            return StatesPoint.of(self.layout, self.states, theta)
        except DistributionError:
            return None

    def _sums(self, point: StatesPoint, gradient: bool) -> _Sums:
        """The softmax pass; without discrete targets there is one state and nothing to do."""
        used = self.softmax.columns
        if self.states.n_states == 1:
            return _Sums(0.0, np.ones(1), self.moments.mean[used][:, None])
        sums = self.rows.softmax(self._coefficients(point), "support" if gradient else "none")
        loss = float(sums.loss[-1])
        if sums.mean_terms is None or sums.support is None:
            return _Sums(loss, np.zeros(0), np.zeros((0, 0)))
        between = sums.support.reshape(len(used), self.states.n_states)
        return _Sums(loss, sums.mean_terms[-self.states.n_states :], between)

    def _coefficients(self, point: StatesPoint) -> Coefficients:
        softmax = self.softmax
        bias = np.zeros(sum(softmax.layout.n_levels))
        bias[-self.states.n_states :] = point.bias
        slope = point.slope[np.searchsorted(self.states.covariates, softmax.columns)]
        nodes = np.array([len(softmax.layout.n_levels) - 1])
        return Coefficients(softmax.layout.incidence, slope.ravel(), bias, nodes)

    def _expected(self, point: StatesPoint, sums: _Sums) -> Moments:
        """Moments of the design columns when the targets are the model's, given the covariates."""
        states, used = self.states, self.softmax.columns
        inside, columns, others, seen = states.numbers, states.columns, states.others, states.seen
        mean, second = self.moments.mean.copy(), self.moments.second.copy()
        shares = self.moments.shares.copy()
        shares[states.values] = sums.prob @ states.indicators
        mean[columns] = sums.prob @ seen
        second[np.ix_(columns, columns)] = seen.T @ (sums.prob[:, None] * seen)
        between = sums.between @ seen
        second[np.ix_(used, columns)] = between
        second[np.ix_(columns, used)] = between.T
        # x given the others is start + lean'z, with the covariance `spread`.
        lean = point.lean[others]
        cross = np.outer(mean[others], point.start) + second[np.ix_(others, others)] @ lean
        mean[inside] = point.start + mean[others] @ lean
        second[np.ix_(others, inside)] = cross
        second[np.ix_(inside, others)] = cross.T
        square = point.spread + np.outer(point.start, mean[inside]) + lean.T @ cross
        second[np.ix_(inside, inside)] = 0.5 * (square + square.T)
        return Moments(self.moments.total_weight, mean, second, shares)

    # -- curvature ---------------------------------------------------------------------------------

    @property
    def _curvature_size(self) -> int:
        return self.states.n_states * (1 + len(self.softmax.columns))

    @property
    def curvature_rows(self) -> int:
        """All rows; none where the matrix over states and covariate columns would be too large."""
        return self.n_rows if self.exact_curvature else 0

    @property
    def exact_curvature(self) -> bool:
        """Whether there is a curvature: from all rows it is exact."""
        return self.states.n_states == 1 or self._curvature_size <= _LARGEST

    def curvature(
        self, theta: Floats, stride: int = 1, nodes: Ints | None = None
    ) -> ConditionalCovariance:
        """Mean over rows of the covariance of the statistics given the row's covariates."""
        if nodes is not None:
            raise ValueError("the curvature of the likelihood is not a sum over nodes")
        if not self.exact_curvature:
            raise TooLargeError(
                f"the curvature has {self._curvature_size} rows, {self.states.n_states} joint "
                f"states of {{columns}} times covariates, and at most {_LARGEST} are allowed. To "
                "fix: solver='auto', or ProximalNewton('limited-memory')",
                self.states.nodes,
            )
        clock = time.perf_counter()
        point = self._at(theta)
        if point is None:
            raise ValueError("there is no curvature outside the domain")
        sums = self._kept.get(theta.tobytes()) or self._sums(point, gradient=True)
        matrix = None
        if self.states.n_states > 1:
            coef = self._coefficients(point)
            (matrix,) = self.rows.softmax_curvature(coef, coef.nodes, max(1, stride))
        out = ConditionalCovariance(
            self.layout,
            self.states,
            point,
            self._expected(point, sums),
            self.softmax.columns,
            matrix,
            self.effort,
        )
        self.effort.curvature_seconds += time.perf_counter() - clock
        return out


@dataclass(frozen=True, eq=False)
class _Sums:
    """Loss and means from the softmax pass over the rows.

    `prob` are the mean probabilities of the states, `between` the means of covariate column times
    probability, for the covariate columns in use.
    """

    loss: float
    prob: Floats
    between: Floats


@dataclass(frozen=True, eq=False)
class ConditionalCovariance(Whole):
    """Second derivative of the mean log partition function given covariates, at one point.

    Given the state k of the discrete targets and the covariates f, the design columns have the mean
    m = c(k) + h f with an h that is the same for all states.  So a product of two of them is

        m_a m_b = c_a c_b + (c_a h_b + c_b h_a) f + (h_a f)(h_b f),

    of which the last term does not depend on the state and has no covariance given f.  The rest is
    linear in (1, f), with coefficients for every state, so its covariance follows from the
    curvature of the softmax over states.  What x adds given state and covariates is as in the
    likelihood without covariates.
    """

    states: JointStates
    point: StatesPoint
    expected: Moments
    """Moments of all design columns; those of the targets as the model expects them given the
    covariates."""
    used: Ints
    """Design columns of the covariates that have an edge."""
    softmax: Floats | None
    """Curvature of the softmax over states: rows and columns are a state, for the constant and
    then for every used covariate column.  None where there is one state only."""
    effort: CovarianceCost = field(default_factory=CovarianceCost)

    def on(self, layout: Layout, columns: Floats) -> Floats:
        """The matrix for other design columns, ``z @ columns``, laid out as `layout`."""
        clock = time.perf_counter()
        first, second, factor = factors(layout)
        p, inside = layout.n_gaussian, np.ix_(self.states.numbers, self.states.numbers)
        spread = np.zeros((p, p))
        spread[inside] = self.point.spread
        square = self.expected.second.copy()
        square[inside] -= self.point.spread
        moments = with_one(self.expected.mean @ columns, columns.T @ square @ columns)
        out = covariance_given_y(moments, first, second, spread)
        if self.softmax is not None:
            parts = self._by_state(first, second, columns, self.states.own_terms(layout))
            out += parts.T @ (self.softmax @ parts)
        out *= factor
        out *= factor[:, None]
        self.effort.curvature_seconds += time.perf_counter() - clock
        return out

    def _by_state(self, first: Ints, second: Ints, columns: Floats, terms: Floats) -> Floats:
        """Coefficients of (1, f) in every product, state by state; zero where no state matters."""
        states, point = self.states, self.point
        seen, n_states = states.seen, states.n_states
        base = np.zeros((n_states, len(columns)))
        base[:, states.columns] = seen
        base[:, states.numbers] = point.start + seen @ point.lean[states.columns]
        tilt = np.zeros((len(self.used), len(columns)))
        tilt[:, states.numbers] = point.lean[self.used]
        tilt[np.arange(len(self.used)), self.used] = 1.0
        c = np.hstack([np.ones((n_states, 1)), base @ columns, terms])
        h = np.hstack([np.zeros((len(self.used), 1)), tilt @ columns])
        h = np.hstack([h, np.zeros((len(h), terms.shape[1]))])
        out = np.empty((1 + len(self.used), n_states, len(first)))
        out[0] = c[:, first] * c[:, second]
        out[1:] = c[:, first] * h[:, None, second]
        out[1:] += c[:, second] * h[:, None, first]
        moves = np.ptp(c, axis=0) > 0.0
        out[:, :, ~(moves[first] | moves[second])] = 0.0
        return out.reshape(-1, len(first))


# -- states of the targets -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Softmax:
    """The regression of the joint state on some covariates."""

    layout: Layout
    """Layout of a table of all covariates and the joint state, which is the only target."""
    columns: Ints
    """Design columns of the covariates that are in use, in the numbers of the whole model."""


@dataclass(frozen=True, eq=False)
class JointStates:
    """Which design columns are what, and every joint state of the discrete targets.

    The layout is that of the whole model; which edges it has does not matter.

    Examples
    --------
    >>> from mixedgm.model.nodes import Nodes
    >>> states = JointStates(Layout.complete(Nodes.mixed(2, (2, 3)), covariates=(0, 2)))
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

    states: JointStates
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
    def of(cls, layout: Layout, states: JointStates, theta: Floats) -> StatesPoint:
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

"""The model given covariates, and its softmax's curvature -> the mean covariance of all statistics.

Given the state k of the categorical targets and the covariates f, the design columns have the mean
m = c(k) + h f with an h that is the same for all states.  So a product of two of them is

    m_a m_b = c_a c_b + (c_a h_b + c_b h_a) f + (h_a f)(h_b f),

of which the last term does not depend on the state and has no covariance given f.  The rest is
linear in (1, f), with coefficients for every state: what is known about the curvature of a softmax
over states, (1, f) times state, says everything.  What x adds given state and covariates is as in
the likelihood without covariates.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from mixedgm.model.layout import Floats, Ints, Layout
from mixedgm.objective.covariance import (
    CovarianceCost,
    Whole,
    covariance_given_y,
    factors,
    with_one,
)
from mixedgm.objective.states import States, StatesPoint
from mixedgm.rows.contract import Moments


@dataclass(frozen=True, eq=False)
class ConditionalCovariance(Whole):
    """Second derivative of the mean log partition function given covariates, at one point.

    Parameters
    ----------
    layout : Layout
        Of the parameters.
    states : States
        Roles of the columns.
    point : StatesPoint
        The model.
    expected : Moments
        Of all design columns, the targets being the model's given the covariates.
    used : ndarray of int
        Design columns of the covariates that have an edge.
    softmax : ndarray or None
        Curvature of the softmax over states: rows and columns are a state, for the constant and
        then for every used covariate column.  None where there is one state only.
    effort : CovarianceCost
        Counters.
    """

    states: States
    point: StatesPoint
    expected: Moments
    used: Ints
    softmax: Floats | None
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
            parts = self._by_state(first, second, columns)
            out += parts.T @ (self.softmax @ parts)
        out *= factor
        out *= factor[:, None]
        self.effort.curvature_seconds += time.perf_counter() - clock
        return out

    def _by_state(self, first: Ints, second: Ints, columns: Floats) -> Floats:
        """What multiplies (1, f) in every product, state by state; zero where no state matters."""
        states, point = self.states, self.point
        hot, n_states = states.indicators, states.n_states
        base = np.zeros((n_states, len(columns)))
        base[:, states.levels] = hot
        base[:, states.numbers] = point.start + hot @ point.lean[states.levels]
        tilt = np.zeros((len(self.used), len(columns)))
        tilt[:, states.numbers] = point.lean[self.used]
        tilt[np.arange(len(self.used)), self.used] = 1.0
        c = np.hstack([np.ones((n_states, 1)), base @ columns])
        h = np.hstack([np.zeros((len(self.used), 1)), tilt @ columns])
        out = np.empty((1 + len(self.used), n_states, len(first)))
        out[0] = c[:, first] * c[:, second]
        out[1:] = c[:, first] * h[:, None, second]
        out[1:] += c[:, second] * h[:, None, first]
        moves = np.ptp(c, axis=0) > 0.0
        out[:, :, ~(moves[first] | moves[second])] = 0.0
        return out.reshape(-1, len(first))

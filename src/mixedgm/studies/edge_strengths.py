"""Tests of all pairs and rows -> the strength of every pair, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixedgm.inference.pairs import PairEstimates
from mixedgm.inference.strength import ConditionalInformation, RestRows, strength
from mixedgm.inference.strength_intervals import (
    PairUncertainty,
    excess,
    interval,
    interval_of_numbers,
)
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.moderation import level_basis
from mixedgm.model.params import Params
from mixedgm.path.task import Task

_STEP = 0.01
"""Relative step along an estimate by which the slope of its information is measured."""


@dataclass(frozen=True, eq=False)
class PairStrengths:
    """Strengths of all pairs, each given the edges of a graph.

    Parameters
    ----------
    task : Task
        The rows that were tested.
    theta : ndarray
        The refit of the graph.
    estimates : PairEstimates
        All pairs given the graph, and their covariances.
    rows : RestRows
        Rows of the table, at which information is computed.
    """

    task: Task
    theta: Floats
    estimates: PairEstimates
    rows: RestRows

    def columns(self, level: float) -> dict[str, Floats]:
        """Strength, lower and upper of every group; not a number for deviations of edges."""
        out = np.full((3, self.task.layout.n_groups), np.nan)
        for groups, values, covariances in self.estimates.by_size():
            for at, group in enumerate(groups.tolist()):
                if self.task.layout.moderator[group] < 0:
                    out[:, group] = self._of(group, values[at], covariances[at], level)
        return dict(zip(("strength", "lower", "upper"), out, strict=True))

    def _of(
        self, group: int, eta: Floats, covariance: Floats, level: float
    ) -> tuple[float, float, float]:
        u, v = self.task.layout.pairs[group].tolist()
        n, turn, inside = self.estimates.n, self._turn(u, v), self._inside
        own, spread = turn @ eta, n * turn @ covariance @ turn.T
        block = own.reshape(-1, int(self.task.layout.nodes.width[v]))
        block = self._over_declared(u, v, block)
        nats = inside.of_block(u, v, block)
        if not np.isfinite(nats):
            return 1.0, np.nan, np.nan
        fixed = inside.covariates
        if self._is_number(u) and self._is_number(v) and not {u, v} & set(fixed):
            diagonal = self._params.diagonal
            unit = diagonal[u] * diagonal[v]
            scale = float(spread[0, 0] / (unit + own[0] ** 2))
            low, high = interval_of_numbers(np.sqrt(-np.expm1(-2.0 * nats)), scale, n, level)
            return float(strength(np.array(nats), excess(scale, n))), low, high
        freedom = len(eta)
        trace, stretch = float(freedom), 1.0
        if not {u, v} & set(fixed):
            information = self._under_observed(u, v, inside.curvature(u, v))
            trace = float(np.sum(information * spread))
            stretch = self._stretch(u, v, block, nats, information, own, spread)
        pair = PairUncertainty(nats, freedom, trace, stretch)
        low, high = interval(pair, n, level)
        return float(strength(np.array(nats), excess(trace, n))), low, high

    def _stretch(
        self,
        u: int,
        v: int,
        block: Floats,
        nats: float,
        information: Floats,
        own: Floats,
        spread: Floats,
    ) -> float:
        """How much wider the root of the information is spread than if it were quadratic."""
        pull = information @ own
        square = float(own @ pull)
        if not (square > 0.0 and nats > 0.0):
            return 1.0
        more = self._inside.of_block(u, v, (1.0 + _STEP) * block)
        slope = (more - nats) / _STEP  # twice the information, if it is quadratic
        variance = (slope / square) ** 2 * float(pull @ spread @ pull)
        plain = float(pull @ spread @ pull) / square * 2.0 * nats
        return float(np.sqrt(variance / plain)) if plain > 0.0 else 1.0

    # -- levels and units --------------------------------------------------------------------------

    @cached_property
    def _params(self) -> Params:
        return self.task.params(self.theta)

    @cached_property
    def _inside(self) -> ConditionalInformation:
        return ConditionalInformation(self._params, self.rows, self.task.schema.covariates)

    def _is_number(self, node: int) -> bool:
        return bool(self.task.layout.nodes.gaussian_nodes[node])

    def _turn(self, u: int, v: int) -> Floats:
        """What takes contrasts of a pair to its parameters in the data's own units.

        Estimates are less by the share of the rows that predictors take, because precisions are too
        large by it.  The precisions here are, so that of numbers the root of it is given back.
        """
        nodes, left = self.task.layout.nodes, self.estimates.left
        units, bases = self.task.units.of_columns(nodes), []
        for node in (u, v):
            width = int(nodes.width[node])
            basis = np.eye(width) if nodes.numeric_nodes[node] else level_basis(width)
            unit = units[nodes.columns_of(node)]
            if left is not None and nodes.is_real(node) and self.task.layout.is_target[node]:
                unit[-1] *= np.sqrt(left[node])
            bases.append(basis / unit[:, None])
        return np.asarray(np.kron(*bases))

    def _observed(self, node: int) -> Ints:
        """Design columns of a node that have rows, among all that are declared."""
        nodes, declared = self.task.layout.nodes, self.task.schema.spans
        if nodes.numeric_nodes[node]:
            return np.arange(int(nodes.width[node]))
        return np.flatnonzero(self.task.observed[declared.levels_of(declared.place(node))])

    def _over_declared(self, u: int, v: int, block: Floats) -> Floats:
        width = self.task.schema.spans.width
        out = np.zeros((int(width[u]), int(width[v])))
        out[np.ix_(self._observed(u), self._observed(v))] = block
        return out

    def _under_observed(self, u: int, v: int, matrix: Floats) -> Floats:
        """A matrix over parameters of declared levels -> over those that have rows."""
        width = int(self.task.schema.spans.width[v])
        at = (self._observed(u)[:, None] * width + self._observed(v)).ravel()
        return np.asarray(matrix[np.ix_(at, at)])

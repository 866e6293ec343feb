"""A truth and a loss -> the loss's expected curvature on contrasts, as the penalty sees them.

Coordinates: contrasts over levels (orthonormal vectors that sum to zero), node terms of
standardised columns, and edges times their penalty weight, so that the penalty is the plain sum of
norms.  M is the model subspace: node terms and the edges of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.diagnostics.states import StateRows
from mixedgm.diagnostics.truth import Truth
from mixedgm.model.layout import Floats, Ints, Layout, spans
from mixedgm.objective.contract import Smooth
from mixedgm.objective.covariance import Covariance, distinct
from mixedgm.objective.likelihood import Likelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.contract import Rows
from mixedgm.rows.memory import MemoryRows
from mixedgm.solve.contrasts import Contrasts

__all__ = ["ContrastCoordinates", "expected_curvature", "smooth_of", "statistics_covariance"]


@dataclass(frozen=True, eq=False)
class ContrastCoordinates:
    """Contrasts of theta, edges times their weight."""

    truth: Truth

    @cached_property
    def contrasts(self) -> Contrasts:
        """The change from theta to contrasts."""
        return Contrasts(self.truth.layout)

    @property
    def layout(self) -> Layout:
        """Where contrasts are: one level fewer everywhere."""
        return self.contrasts.reduced

    @cached_property
    def scale(self) -> Floats:
        """Factors that contrasts are multiplied by: 1 for node terms, the weight for edges."""
        nodes = np.ones(self.layout.n_node_terms)
        return np.concatenate([nodes, self.layout.spread(self.truth.weights)])

    @cached_property
    def active(self) -> Ints:
        """Edges of the truth."""
        return np.flatnonzero(self.truth.layout.group_norms(self.truth.theta))

    @cached_property
    def inactive(self) -> Ints:
        """Pairs without an edge."""
        return np.setdiff1d(np.arange(self.layout.n_groups), self.active)

    @cached_property
    def model(self) -> Ints:
        """Positions of M: node terms, then edges of the truth."""
        return self.layout.positions(self.active)

    @cached_property
    def directions(self) -> Floats:
        """The edges of the truth, each as a vector of length 1, in a row."""
        edges = self.contrasts.down(self.truth.theta)[self.model][self.layout.n_node_terms :]
        small = self.layout.restrict(self.active)
        return edges / small.spread(np.sqrt(small.group_sums(edges**2)))

    def up(self, delta: Floats) -> Floats:
        """A step in these coordinates -> a step of theta."""
        return self.contrasts.up(delta / self.scale)

    def down(self, grad: Floats) -> Floats:
        """A gradient by theta -> the gradient by these coordinates."""
        return self.contrasts.down(grad) / self.scale


def smooth_of(truth: Truth, loss: str, rows: Rows | None = None) -> Smooth:
    """The expected loss as a function of theta, over all rows of the truth or some draws."""
    if loss == "likelihood":
        return Likelihood(truth.layout, truth.moments, truth.rows.n_rows)
    return Pseudolikelihood(truth.rows if rows is None else rows, truth.layout, truth.moments)


def expected_curvature(
    coordinates: ContrastCoordinates, loss: str, rows: Rows | None = None
) -> Floats:
    """(n, |M|) the columns of the expected curvature that belong to M.

    `rows` is a part of the truth's draws; by default all rows of the truth.
    """
    truth, model = coordinates.truth, coordinates.model
    if loss == "likelihood":
        return statistics_covariance(coordinates, rows)[:, model]
    contrasts, theta = coordinates.contrasts, truth.theta
    size, start, packed = contrasts.curvature(smooth_of(truth, loss, rows), theta, 1)
    at = np.full(coordinates.layout.n_theta, -1)
    at[model] = np.arange(len(model))
    out = np.zeros((coordinates.layout.n_theta, len(model)))
    runs = contrasts.runs
    for v in range(truth.layout.n_nodes):
        run = slice(runs.ptr[v], runs.ptr[v + 1])
        index = spans(runs.position[run], runs.length[run])
        matrix = packed[start[v] : start[v + 1]].reshape(size[v], size[v])
        inside = at[index] >= 0
        out[np.ix_(index, at[index][inside])] += matrix[:, inside]
    out /= coordinates.scale[:, None]
    return out / coordinates.scale[model]


def statistics_covariance(coordinates: ContrastCoordinates, rows: Rows | None = None) -> Floats:
    """(n, n) covariance of the sufficient statistics: curvature of the log partition function."""
    truth = coordinates.truth
    codes, probability = _states_of(truth.rows if rows is None else rows, truth.params.n_levels)
    moments, nodes = truth.moments, truth.layout.nodes
    mean = nodes.statistics.means(moments.mean, moments.shares)
    second = np.zeros((len(mean), len(mean)))  # no statistic is a product with an own term
    second[: nodes.n_columns, : nodes.n_columns] = moments.second
    states = codes, probability
    covariance = Covariance.of(truth.layout, states, truth.given_y, (mean, second))
    out = covariance.on(coordinates.layout, coordinates.contrasts.columns)
    out /= coordinates.scale
    return out / coordinates.scale[:, None]


def _states_of(rows: Rows, n_levels: tuple[int, ...]) -> tuple[NDArray[np.integer], Floats]:
    """States of y and what each counts."""
    if isinstance(rows, StateRows):
        return rows.codes, rows.probability
    assert isinstance(rows, MemoryRows)
    return distinct(rows.codes, n_levels)

"""Moments and the user's wishes -> one penalty weight per edge.

Calibrated weights make the expected squared gradient of every group equal under independence:
w_uv = (m_uv / m) sqrt(tr cov(z_u)) * sqrt(tr cov(z_v)), population moments, where the objective
has m_uv terms that contain the edge, at most m: two conditionals, or one with a covariate; in a
likelihood every edge is in its one term.  Adaptive weights divide these by the size that the edge
has in a pilot fit.
"""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.model.nodes import Nodes


def node_scales(nodes: Nodes, column_mean: Floats, varies: Floats) -> Floats:
    """sqrt(tr cov(z_v)) of every node: a standard deviation, or sqrt(sum p (1 - p)).

    `varies` is 1 for a number that varies and 0 for a constant.
    """
    variance = nodes.column_variance(column_mean, varies)
    return np.sqrt(np.add.reduceat(variance, nodes.column_start[:-1]))


def calibrated(layout: Layout, scales: Floats, *, one_term: bool = False) -> Floats:
    """c_g = (m_g / m) * scale_u * scale_v; m_g = m = 1 for objectives of `one_term`."""
    u, v = layout.pairs[:, 0], layout.pairs[:, 1]
    share = 1.0 if one_term else layout.conditionals / layout.conditionals_at_most
    return np.asarray(share * scales[u] * scales[v])


def uniform(layout: Layout, unit: Floats) -> Floats:
    """Weight 1 in the data's own units, as seen by standardised theta: 1 / (unit_u * unit_v).

    `unit` holds the standard deviation of every design column that is a number.  A hurdle column
    has the unit of how much it is.
    """
    return np.asarray(1.0 / _units(layout.nodes, unit)[layout.pairs].prod(axis=1))


def uniform_scales(nodes: Nodes, unit: Floats) -> Floats:
    """Factors of the weights of `uniform`, which are products over both ends: 1 / unit."""
    return 1.0 / _units(nodes, unit)


def _units(nodes: Nodes, unit: Floats) -> Floats:
    by_column = np.ones(nodes.n_columns)
    by_column[nodes.numeric] = unit
    return np.asarray(by_column[nodes.last_column])


def adaptive(sizes: Floats, total_weight: float) -> Floats:
    """1 / (size_g + 1/n), by which the weights are multiplied: n where the pilot has no edge.

    `sizes` are those of the edges in the pilot, on the calibrated scale: near the size of a partial
    correlation for two continuous columns.
    """
    return np.asarray(1.0 / (sizes + 1.0 / total_weight))

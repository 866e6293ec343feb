"""Moments of the rows -> the best model without edges, and the mean sufficient statistics."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.rows.contract import Moments


def independent(layout: Layout, moments: Moments) -> Floats:
    """The best node terms without edges for standardised rows: mean 0, precision 1, log shares."""
    theta = np.zeros(layout.n_theta)
    theta[layout.diagonal] = 1.0
    theta[layout.biases] = np.log(moments.mean[layout.nodes.indicators])
    return layout.centred(theta, np.zeros(0, dtype=np.int64))


def statistics(layout: Layout, mean: Floats, second: Floats) -> Floats:
    """(n_theta,) mean of what multiplies every parameter in the log density.

    `mean` and `second` are those of the design columns z and of zz'.
    """
    out = np.empty(layout.n_theta)
    out[layout.column_term] = mean
    out[layout.diagonal] = -0.5 * np.diagonal(second)[layout.nodes.gaussian]
    out[layout.edges] = layout.from_matrix(second)
    return out

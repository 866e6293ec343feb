"""Moments of the rows -> the best model without edges, and the mean sufficient statistics."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.rows.contract import Moments


def independent(layout: Layout, moments: Moments) -> Floats:
    """The best node terms without edges for standardised rows: mean 0, precision 1, log shares."""
    theta = np.zeros(layout.n_theta)
    theta[layout.diagonal] = 1.0
    theta[layout.biases] = np.log(moments.mean[layout.n_numeric : layout.n_columns])
    return layout.centred(theta, np.zeros(0, dtype=np.int64))


def statistics(layout: Layout, mean: Floats, second: Floats) -> Floats:
    """(n_theta,) mean of what multiplies every parameter in the log density.

    `mean` and `second` are those of the design columns z and of zz'.
    """
    p = layout.n_gaussian
    return np.concatenate(
        [mean[:p], -0.5 * np.diagonal(second)[:p], mean[p:], layout.from_matrix(second)]
    )

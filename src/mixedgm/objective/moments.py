"""Moments of the rows -> the best model without edges, and the mean sufficient statistics."""

from __future__ import annotations

import numpy as np

from mixedgm.model.layout import Floats, Layout
from mixedgm.rows.contract import Moments


def independent(layout: Layout, moments: Moments) -> Floats:
    """The best node terms without edges for standardised rows: mean 0, precision 1, log shares."""
    theta = np.zeros(layout.n_theta)
    theta[layout.diagonal] = 1.0
    theta[layout.cat_bias] = np.log(moments.mean[layout.n_gaussian : layout.n_columns])
    return layout.centred(theta, np.zeros(0, dtype=np.int64))


def statistics(layout: Layout, moments: Moments) -> Floats:
    """(n_theta,) mean of what multiplies every parameter in the log density."""
    p = layout.n_gaussian
    own = np.arange(p)
    return np.concatenate(
        [
            moments.mean[:p],
            -0.5 * moments.second[own, own],
            moments.mean[p:],
            layout.from_matrix(moments.second),
        ]
    )

"""Moments of a table -> its margins; node terms -> Params that have them in place of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, Units

MOST_COLUMNS = 200
"""Design columns up to which the moments of pairs of columns are kept: 320 kB."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Means and variances of a table's columns and, where it is small, covariances."""

    mean: Floats
    """(d,) means of the design columns: the numbers (normal scores where a column has a transform;
    scores of ordinal columns and counts), then all declared levels of categories, whose means are
    their shares of the rows."""
    variance: Floats
    """Variances of the numbers, scores included, with divisor n.  A constant column has that of its
    node term, as in the fit."""
    covariance: Floats | None = None
    """(d, d) covariance of the design columns; None for more than `MOST_COLUMNS` of them."""
    shares: Floats | None = None
    """(sum of values,) shares of the values of all discrete columns; None where these are the
    design columns that are not numbers."""

    @classmethod
    def of(
        cls,
        moments: tuple[Floats, Floats | None, Floats],
        units: Units,
        observed: NDArray[np.bool_],
        nodes: Nodes,
    ) -> Margins:
        """Compute margins from means of z (c,) and z z' (c, c), and shares, of standardised rows.

        The means of z z' may be left out where d is more than `MOST_COLUMNS`.

        The shares are of the observed values; `observed` says for all values of `nodes` which they
        are.
        """
        (mean, second, observed_shares), d = moments, nodes.n_columns
        kept, scale = nodes.columns_kept(observed), units.of_columns(nodes.kept(observed))
        columns, covariance, shares = np.zeros(d), None, None
        columns[kept] = scale * mean
        columns[nodes.numeric] += units.centre
        if d <= MOST_COLUMNS and second is not None:
            covariance = np.zeros((d, d))
            spread = (second - np.outer(mean, mean)) * np.outer(scale, scale)
            covariance[np.ix_(kept, kept)] = spread
        if nodes.first_indicator:
            there = columns[nodes.spiked_terms[1]]
            of_spiked = np.column_stack([1.0 - there, there]).ravel()
            shares = np.zeros(len(observed))
            shares[observed] = np.concatenate([of_spiked, observed_shares[3 * nodes.n_spiked :]])
        return cls(columns, units.scale**2, covariance, shares)

    @property
    def units(self) -> Units:
        """Units in which numbers and scores have mean 0 and variance 1."""
        return Units(self.mean[: len(self.variance)], np.sqrt(self.variance))

    @property
    def share(self) -> Floats:
        """(sum of values,) shares of the values of discrete columns."""
        return self.mean[len(self.variance) :] if self.shares is None else self.shares


@dataclass(frozen=True, eq=False)
class NodeTerms:
    """Node terms with which a joint distribution has the margins of a table."""

    bias: Floats
    """Linear terms and biases of levels, in place of those fitted."""
    diagonal: Floats
    """(p,) diagonal of the precision, in place of the one fitted."""
    error: float
    """Largest difference left between the margins: of probabilities, and of means and variances of
    standardised columns.  Sampled ones: the largest that is likely."""
    sampled: bool = False
    """Whether expectations came from Gibbs chains."""
    covariance: Floats | None = None
    """(d, d) covariance of the design columns under the joint distribution; None for more than
    `MOST_COLUMNS`."""

    def put_into(self, params: Params) -> Params:
        """Return parameters with these node terms and unchanged edges."""
        return replace(params, bias=self.bias, diagonal=self.diagonal)

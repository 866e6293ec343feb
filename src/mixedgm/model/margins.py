"""Moments of a table -> its margins; node terms -> Params that have them in place of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.model.layout import Floats
from mixedgm.model.params import Params, Units

MOST_COLUMNS = 200
"""Design columns up to which the moments of pairs of columns are kept: 320 kB."""


@dataclass(frozen=True, eq=False)
class Margins:
    """What a table says about its columns one by one and, where it is small, two by two.

    Parameters
    ----------
    mean : ndarray (d,)
        Means of the design columns: the continuous ones (normal scores where a column has a
        transform), then all declared levels, whose means are their shares of the rows.
    variance : ndarray (p,)
        Variances of the continuous columns, with divisor n.  A constant column has that of its
        node term, as in the fit.
    covariance : ndarray (d, d) or None
        Of the design columns; None for more than `MOST_COLUMNS` of them.
    """

    mean: Floats
    variance: Floats
    covariance: Floats | None = None

    @classmethod
    def of(cls, mean: Floats, second: Floats, units: Units, observed: NDArray[np.bool_]) -> Margins:
        """From the moments of standardised rows over the observed levels.

        Parameters
        ----------
        mean, second : ndarray (c,), (c, c)
            Mean of the design columns z, and of z z'.
        units : Units
            Of the continuous columns.
        observed : bool array (sum of declared levels,)
            Which levels the moments are over.
        """
        p = len(units.centre)
        d = p + len(observed)
        kept = np.concatenate([np.arange(p), p + np.flatnonzero(observed)])
        scale = np.concatenate([units.scale, np.ones(len(kept) - p)])
        columns, covariance = np.zeros(d), None
        columns[kept] = scale * mean
        columns[:p] += units.centre
        if d <= MOST_COLUMNS:
            covariance = np.zeros((d, d))
            spread = (second - np.outer(mean, mean)) * np.outer(scale, scale)
            covariance[np.ix_(kept, kept)] = spread
        return cls(columns, units.scale**2, covariance)

    @property
    def units(self) -> Units:
        """Units in which the continuous columns have mean 0 and variance 1."""
        return Units(self.mean[: len(self.variance)], np.sqrt(self.variance))

    @property
    def share(self) -> Floats:
        """(sum of levels,) shares of the levels."""
        return self.mean[len(self.variance) :]


@dataclass(frozen=True, eq=False)
class NodeTerms:
    """Node terms with which a joint distribution has the margins of a table.

    Parameters
    ----------
    bias : ndarray
        In place of the linear terms and the biases of levels.
    diagonal : ndarray (p,)
        In place of the diagonal of the precision.
    error : float
        Largest difference left between the margins: of probabilities, and of means and variances
        of standardised columns.  Sampled ones: the largest that is likely.
    sampled : bool
        Whether expectations came from Gibbs chains.
    covariance : ndarray (d, d) or None
        Of the design columns under the joint distribution; None for more than `MOST_COLUMNS`.
    """

    bias: Floats
    diagonal: Floats
    error: float
    sampled: bool = False
    covariance: Floats | None = None

    def put_into(self, params: Params) -> Params:
        """The same edges with these node terms."""
        return replace(params, bias=self.bias, diagonal=self.diagonal)

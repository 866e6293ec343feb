"""lam_max and options -> a decreasing grid of lam."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.errors import ParameterError
from mixedgm.model.layout import Floats


def geometric(lam_max: float, n_lams: int, min_ratio: float) -> Floats:
    """`n_lams` values from lam_max down to ``min_ratio * lam_max``, equal ratios.

    Without any penalised edge lam_max is 0, and that is the only value.

    Examples
    --------
    >>> geometric(1.0, 3, 0.01).round(3).tolist()
    [1.0, 0.1, 0.01]
    """
    if lam_max <= 0.0:
        return np.zeros(1)
    if n_lams == 1:
        return np.array([lam_max])
    return np.geomspace(lam_max, lam_max * min_ratio, n_lams)


def continued(lams: Floats, floor: float) -> Floats:
    """A geometric grid, and more values at its ratio, none of them below `floor`.

    Examples
    --------
    >>> continued(np.array([1.0, 0.1]), floor=1e-3).round(5).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    if len(lams) < 2 or lams[-1] <= floor:
        return lams
    ratio = (lams[-1] / lams[0]) ** (1.0 / (len(lams) - 1))
    n_more = int(np.log(floor / lams[-1]) / np.log(ratio) + 1e-9)
    return np.concatenate([lams, lams[-1] * ratio ** np.arange(1, n_more + 1)])


def given(lams: ArrayLike) -> Floats:
    """The user's values, checked, unique, largest first."""
    try:
        values = np.unique(np.asarray(lams, dtype=np.float64).ravel())[::-1]
    except (TypeError, ValueError):
        raise ParameterError.must_be("lams", "a list of numbers in [0, inf)", lams) from None
    if len(values) == 0 or not np.all(np.isfinite(values)) or values[-1] < 0.0:
        raise ParameterError.must_be("lams", "a non-empty list of numbers in [0, inf)", lams)
    return values

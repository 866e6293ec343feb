"""How many numbers are missing -> points with weights that stand for a normal distribution.

One number has Gauss and Hermite's points.  Several have random points in antithetic pairs: their
mean is zero, and their covariance the identity, in every set of at least twice as many points as
numbers, or else in all sets together.  There are several sets, so that rows do not share an error.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mixedgm.model.layout import Floats

N_SETS = 64


@lru_cache(maxsize=256)
def normal_points(n_numbers: int, n_points: int, seed: int = 0) -> tuple[Floats, Floats]:
    """(sets, points, numbers) points, and (points,) weights that add up to one.

    Examples
    --------
    >>> points, weights = normal_points(3, 8)
    >>> points.shape, np.allclose(np.einsum("spj,spk,p->sjk", points, points, weights), np.eye(3))
    ((64, 8, 3), True)
    """
    if n_numbers == 0:
        return np.zeros((N_SETS, 1, 0)), np.ones(1)
    if n_numbers == 1:
        at, weights = np.polynomial.hermite_e.hermegauss(n_points)
        return np.tile(at[:, None], (N_SETS, 1, 1)), weights / weights.sum()
    half = n_points // 2
    assert 2 * half == n_points, "points come in pairs"
    rng = np.random.default_rng([seed, n_numbers, n_points])
    draws = rng.standard_normal((N_SETS, half, n_numbers))
    if half >= n_numbers:
        draws = np.array([_whitened(each) for each in draws])
    else:
        draws = _whitened(draws.reshape(-1, n_numbers)).reshape(draws.shape)
    return np.concatenate([draws, -draws], axis=1), np.full(n_points, 1.0 / n_points)


def _whitened(points: Floats) -> Floats:
    """The nearest points with mean square one, and uncorrelated."""
    left, _, right = np.linalg.svd(points, full_matrices=False)
    return np.asarray(np.sqrt(len(points)) * (left @ right))

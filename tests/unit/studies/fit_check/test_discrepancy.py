"""Statistics of a table under a model."""

import numpy as np
from scipy.stats import kurtosis, skew

from mixedgm.studies.fit_check.discrepancy import _moments


def test_moments_of_residuals_and_of_those_that_do_not_vary():
    rng = np.random.default_rng(0)
    residuals = np.column_stack([rng.exponential(size=50), np.full(50, 0.3), np.zeros(50)])
    powers = np.array([(residuals**k).mean(axis=0) for k in (1, 2, 3, 4)])
    found = _moments(np.zeros(3), np.ones(3), powers)[:, 2:]
    expected = [residuals[:, 0].mean(), residuals[:, 0].std()]
    expected += [skew(residuals[:, 0]), kurtosis(residuals[:, 0])]
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1:], [[0.3, 0.0, 0.0, 0.0], [0.0] * 4], atol=1e-7)

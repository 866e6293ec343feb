"""Sampled answers against exact ones: right within their errors, and the errors are honest.

A check at four and a half standard errors raises a false alarm with probability 7e-6 per number,
below 1e-3 per test; the seeds are fixed, so a test that passes once passes always.
"""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError, SamplingWarning, TooLargeError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.marginals import marginal
from mixedgm.joint.posteriors import posterior, posterior_draw
from mixedgm.joint.sampled import SamplingEffort
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from tests.unit.joint import brute

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(("numbers", "discrete"), [([1, 0], [2, 0]), ([0], []), ([], [1])])
def test_marginals_and_their_errors(numbers, discrete):
    params = brute.random_params(4, 2, (3, 2, 4, 3, 3), strength=0.3)
    truth = marginal(params, numbers, discrete)
    found = marginal(params, numbers, discrete, limit=12, rng=np.random.default_rng(3))
    assert truth.exact
    assert not found.exact
    assert found.note.startswith("sampled: R-hat at most 1.0")
    assert (np.abs(found.prob - truth.prob) <= 4.5 * found.prob_error + 1e-12).all()
    assert (np.abs(found.mean - truth.mean) <= 4.5 * found.mean_error + 1e-9).all()
    assert found.prob_error.max() < 0.02
    np.testing.assert_allclose(found.covariance, truth.covariance, rtol=0.2, atol=0.03)


def test_the_method_is_obeyed():
    params = brute.random_params(4, 2, (3, 2, 4, 3, 3), strength=0.3)
    assert not marginal(params, [0], [0], method="gibbs").exact
    with pytest.raises(TooLargeError):
        marginal(params, [0], [0], method="exact", limit=12)
    with pytest.raises(TooLargeError, match=r"table over columns 2, 4 has 12 entries"):
        marginal(params, discrete=[0, 2], limit=11)
    with pytest.raises(ParameterError, match="method must be"):
        marginal(params, method="best")  # type: ignore[arg-type]
    with pytest.raises(TooLargeError):
        posterior(params, KnownColumns.none(), method="exact", limit=5)


def test_unknown_columns_of_rows():
    params = brute.random_params(9, 3, (3, 2, 4, 2), strength=0.4, dead_level=True)
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 1)), rng.integers(0, 2, size=(40, 1))
    known = KnownColumns([1], [3], x, y)
    truth = posterior(params, known)
    found = posterior(params, known, limit=5, rng=rng)
    assert truth.exact
    assert not found.exact
    # The errors come from 16 chains each: at 3,600 numbers, Student's t with 15 degrees exceeds
    # 7 with probability 1.6e-2 in all.
    assert (np.abs(found.levels - truth.levels) <= 7 * found.levels_error + 3e-3).all()
    spread = np.sqrt(truth.variance)
    assert (np.abs(found.mean - truth.mean) < 0.15 * spread).all()
    np.testing.assert_allclose(found.variance, truth.variance, rtol=0.15)
    assert np.isnan(found.log_weight).all()


def test_draws_of_unknown_columns():
    params = brute.random_params(9, 3, (3, 2, 4, 2), strength=0.4, dead_level=True)
    n = 5_000
    x, y = np.tile([[0.3], [-0.8]], (n // 2, 1)), np.tile([[0], [1]], (n // 2, 1))
    truth = posterior(params, KnownColumns([1], [3], x[:2], y[:2]))
    known = KnownColumns([1], [3], x, y)
    numbers, codes = posterior_draw(params, known, limit=5, sweeps=50, rng=np.random.default_rng(2))
    start = np.array([0, 3, 5])
    for row in range(2):
        share = np.zeros(9)
        for j in range(3):
            share += np.bincount(start[j] + codes[row::2, j], minlength=9) / (n / 2)
        error = np.sqrt(truth.levels[row] * (1 - truth.levels[row]) / (n / 2))
        assert (np.abs(share - truth.levels[row]) <= 4.5 * error).all()
        error = np.sqrt(truth.variance[row] / (n / 2))
        assert (np.abs(numbers[row::2].mean(axis=0) - truth.mean[row]) <= 4.5 * error).all()


def test_chains_that_do_not_mix_are_reported():
    params = ConditionalGaussian.independent(0, (2, 2))
    params.interaction[0, 2] = params.interaction[2, 0] = 12.0
    params.interaction[1, 3] = params.interaction[3, 1] = 12.0
    with pytest.warns(SamplingWarning, match="not mixed well"):
        SamplingEffort(n_keep=50).run(params, np.random.default_rng(0))

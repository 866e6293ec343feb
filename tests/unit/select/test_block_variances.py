"""Variances of edges' coefficients: against integrals, known truth, and what changes nothing."""

import numpy as np
import pytest
from scipy import integrate, stats

from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.select.error_rates import block_variances
from mixedgm.solve.contrasts import Contrasts


def estimates_of(blocks, covariances, n_levels):
    """Estimates of all pairs of as many columns as there are levels given."""
    layout = Contrasts(Layout.complete(Nodes.mixed(0, n_levels))).reduced
    flat = np.concatenate([np.ravel(each) for each in covariances])
    return PairEstimates(layout, np.concatenate(blocks), flat, 500.0)


def test_one_edge_has_the_posterior_mean_of_its_precision():
    """Given the scale with the largest evidence; both by numerical integration."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    covariance, block = root @ root.T / 20, rng.normal(size=4)
    found = block_variances(estimates_of([block], [covariance], (3, 3)), np.array([0]))

    def likelihood(variance):
        normal = stats.multivariate_normal(np.zeros(4), covariance + variance * np.eye(4))
        return normal.pdf(block)

    def mean(scale, power):
        def integrand(log_variance):
            variance = np.exp(log_variance)
            prior = stats.invgamma.pdf(variance, 1.0, scale=scale) * variance
            return likelihood(variance) * prior * variance**-power

        return integrate.quad(integrand, np.log(1e-4), np.log(100), limit=200)[0]

    scales = np.exp(np.linspace(np.log(1e-4), np.log(100), 120))
    best = scales[np.argmax([mean(scale, 0) for scale in scales])]
    assert found[0] == pytest.approx(mean(best, 0) / mean(best, 1), rel=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.05, 1.0])
def test_many_edges_tell_the_variance_of_all(variance):
    """The errors of a mean of 45 edges by four coefficients; fails in one of 1,000 runs."""
    rng = np.random.default_rng(3)
    levels = (3,) * 10
    covariance = np.diag([0.01, 0.01, 0.02, 4.0])
    blocks = [
        rng.multivariate_normal(np.zeros(4), covariance + variance * np.eye(4)) for _ in range(45)
    ]
    estimates = estimates_of(blocks, [covariance] * 45, levels)
    found = block_variances(estimates, np.arange(45))
    assert np.median(found) == pytest.approx(variance, rel=0.5)


def test_only_edges_of_the_graph_with_several_parameters_are_shrunken():
    blocks = [np.ones(1), np.ones(2), np.ones(2)]  # two, two and three levels
    covariances = [0.1 * np.eye(len(block)) for block in blocks]
    estimates = estimates_of(blocks, covariances, (2, 2, 3))
    found = block_variances(estimates, np.array([0, 2]))
    assert np.isinf(found[:2]).all()
    assert 0.1 < found[2] < 10.0
    assert np.isinf(block_variances(estimates, np.zeros(0, dtype=np.int64))).all()

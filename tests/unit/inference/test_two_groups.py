"""The two groups of pairs: none in noise, and known mixtures."""

import numpy as np
import pytest
from scipy.stats import norm

from mixedgm.inference.two_groups import TwoGroups


def mixture(n, share, spread, seed):
    rng = np.random.default_rng(seed)
    is_edge = rng.random(n) < share
    return np.abs(rng.normal(size=n) * np.where(is_edge, np.sqrt(1 + spread), 1.0)), is_edge


@pytest.mark.statistical
@pytest.mark.parametrize("n", [45, 190, 5000])
def test_noise_has_next_to_no_edges(n):
    """Fails in about one of a hundred runs by chance."""
    groups = [TwoGroups(mixture(n, 0.0, 1.0, seed)[0]) for seed in range(10)]
    assert np.mean([each.share for each in groups]) < 2.0 / n + 0.03
    assert np.sum([(each.no_edge < 0.3).sum() for each in groups]) <= 1


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "spread"), [(0.05, 100.0), (0.3, 20.0), (0.8, 50.0)])
def test_known_mixtures_are_recovered(share, spread):
    """Fails in about one of a hundred runs by chance."""
    z, is_edge = mixture(20_000, share, spread, seed=1)
    groups = TwoGroups(z)
    assert groups.share == pytest.approx(share, rel=0.1)
    assert groups.spread == pytest.approx(spread, rel=0.15)
    # Probabilities mean what they say: the mixture's own, and in each class the share of edges.
    with_edge = share * norm.pdf(z, scale=np.sqrt(1 + spread))
    expected = (1 - share) * norm.pdf(z) / ((1 - share) * norm.pdf(z) + with_edge)
    np.testing.assert_allclose(groups.no_edge, expected, atol=0.05)
    for low in (0.0, 0.2, 0.4):
        some = (groups.no_edge >= low) & (groups.no_edge < low + 0.2)
        assert some.sum() > 20
        error = 4 * 0.5 / np.sqrt(some.sum()) + 0.02
        assert np.mean(~is_edge[some]) == pytest.approx(groups.no_edge[some].mean(), abs=error)


def test_all_pairs_can_have_edges():
    groups = TwoGroups(np.linspace(6.0, 30.0, 40))
    assert groups.share > 0.85
    assert groups.no_edge.max() < 1e-3


def test_a_larger_z_never_makes_an_edge_less_probable():
    z = np.sort(np.concatenate([mixture(300, 0.2, 40.0, seed=2)[0], [49.0, 51.0, 400.0, 1e5]]))
    groups = TwoGroups(z)
    assert (np.diff(groups.no_edge) <= 1e-12).all()
    assert (np.diff(groups.log_bayes_factor(z)) >= 0.0).all()
    assert groups.no_edge[-1] < 1e-200


def test_bayes_factors_are_ratios_of_normal_densities():
    groups = TwoGroups(mixture(500, 0.2, 40.0, seed=3)[0])
    z = np.array([0.0, 1.0, 3.0, 5.0])
    wide = norm.logpdf(z, scale=np.sqrt(1 + groups.spread))
    np.testing.assert_allclose(groups.log_bayes_factor(z), wide - norm.logpdf(z))


def test_very_strong_edges_have_their_spread():
    """Where densities overflow, and behind the grid of z."""
    rng = np.random.default_rng(4)
    z = np.abs(np.concatenate([rng.normal(size=40), 100.0 * rng.normal(size=40)]))
    assert z.max() > 150
    groups = TwoGroups(z)
    assert groups.spread == pytest.approx(1e4, rel=0.4)
    assert groups.share == pytest.approx(0.5, abs=0.12)


def test_one_pair_and_none():
    assert 0.0 < TwoGroups(np.array([0.5])).no_edge[0] < 1.0
    assert TwoGroups(np.zeros(0)).no_edge.shape == (0,)

"""The two groups of pairs: none in noise, and known mixtures."""

import numpy as np
import pytest

from mixedgm.inference.two_groups import TwoGroups


def mixture(n, share, between, seed):
    """z of pairs, of which a share have a noncentrality between two numbers."""
    rng = np.random.default_rng(seed)
    is_edge = rng.random(n) < share
    return np.abs(rng.normal(size=n) + np.where(is_edge, rng.uniform(*between, n), 0.0)), is_edge


@pytest.mark.statistical
@pytest.mark.parametrize("n", [45, 190, 5000])
def test_noise_has_next_to_no_edges(n):
    """Fails in about one of a hundred runs by chance."""
    groups = [TwoGroups(mixture(n, 0.0, (1, 2), seed)[0]) for seed in range(10)]
    assert np.mean([each.share for each in groups]) < 2.0 / n + 0.03
    assert np.sum([(each.no_edge < 0.45).sum() for each in groups]) <= 1


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("share", "between"), [(0.05, (1.0, 9.0)), (0.3, (2.0, 7.0)), (0.8, (1.0, 11.0))]
)
def test_known_mixtures_are_recovered(share, between):
    """Fails in about one of a hundred runs by chance."""
    z, is_edge = mixture(20_000, share, between, seed=1)
    groups = TwoGroups(z)
    assert groups.share == pytest.approx(share, rel=0.15)
    # Probabilities mean what they say: in each class the share of pairs without an edge.
    for low in (0.0, 0.2, 0.4, 0.6):
        some = (groups.no_edge >= low) & (groups.no_edge < low + 0.2)
        assert some.sum() > 20
        error = 4 * 0.5 / np.sqrt(some.sum()) + 0.03
        assert np.mean(~is_edge[some]) == pytest.approx(groups.no_edge[some].mean(), abs=error)
    kept = groups.no_edge <= 0.45
    said = groups.no_edge[kept].sum()
    assert np.sum(~is_edge[kept]) == pytest.approx(said, abs=0.1 * said + 2.5 * np.sqrt(said))


def test_all_pairs_can_have_edges():
    groups = TwoGroups(np.linspace(6.0, 30.0, 40))
    assert groups.share > 0.85
    assert groups.no_edge.max() < 1e-3


def test_a_larger_z_never_makes_an_edge_less_probable():
    z = np.sort(np.concatenate([mixture(300, 0.2, (2, 8), seed=2)[0], [49.0, 51.0, 400.0, 1e5]]))
    groups = TwoGroups(z)
    assert (np.diff(groups.no_edge) <= 1e-12).all()
    assert (np.diff(groups.log_bayes_factor(z)) >= 0.0).all()
    assert groups.no_edge[-1] < 1e-200


def test_least_z_is_where_the_limit_is_met():
    z = mixture(500, 0.2, (2, 6), seed=5)[0]
    groups, limit = TwoGroups(z), 0.45
    passes = groups.no_edge <= limit
    assert z[passes].min() >= groups.least_z(limit) - 0.01
    assert z[~passes].max() <= groups.least_z(limit)


def test_one_pair_and_none():
    assert 0.0 < TwoGroups(np.array([0.5])).no_edge[0] < 1.0
    assert TwoGroups(np.zeros(0)).no_edge.shape == (0,)

"""Patterns of groups: known mixtures, calibration, symmetry, tables without differences."""

import numpy as np
import pytest

from mixedgm.inference.two_groups import GroupPatterns, balanced_limit, sets_of


def drawn(
    n: int, shares: tuple[float, ...], seed: int, size: float = 4.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patterns (none, both, first, second, different), and z of both, of each, of the difference.

    Both groups have the same errors, so that sums and differences of estimates are independent.
    """
    rng = np.random.default_rng(seed)
    pattern = rng.choice(5, n, p=shares)
    edge = size * rng.uniform(0.7, 1.3, n) * rng.choice([-1, 1], n)
    other = np.where(pattern == 4, edge + size * np.sqrt(2) * rng.choice([-1, 1], n), edge)
    first = rng.normal(size=n) + edge * np.isin(pattern, (1, 2, 4))
    second = rng.normal(size=n) + np.where(np.isin(pattern, (1, 3, 4)), other, 0.0)
    together = np.stack([(first + second) / np.sqrt(2), first, second])
    return pattern, together, (first - second) / np.sqrt(2)


SHARES = (0.6, 0.2, 0.05, 0.1, 0.05)


@pytest.mark.statistical
def test_known_mixtures_are_recovered_and_probabilities_mean_what_they_say() -> None:
    """4,000 pairs; a share of pairs in a class of probabilities is off by four errors in 10^4.

    Edges of one error look much like none, so that shares themselves are known less well.
    """
    pattern, together, apart = drawn(4000, SHARES, seed=1)
    found = GroupPatterns(together, apart)
    np.testing.assert_allclose(found.shares, SHARES, atol=0.06)
    differs = pattern >= 2
    for low in (0.0, 0.1, 0.5, 0.9):
        some = (found.same >= low) & (found.same < low + 0.4)
        error = 4 * 0.5 / np.sqrt(some.sum()) + 0.02
        assert found.same[some].mean() == pytest.approx(1 - differs[some].mean(), abs=error)
    verdicts = found.same <= 0.45
    assert (verdicts & ~differs).sum() == pytest.approx(found.same[verdicts].sum(), rel=0.4)


@pytest.mark.statistical
def test_an_edge_that_one_group_lacks_is_found_by_its_size() -> None:
    """Edges of three errors: a difference alone has z = 2.1, and the edge itself 3."""
    pattern, together, apart = drawn(2000, (0.8, 0.0, 0.0, 0.2, 0.0), seed=2, size=3.0)
    found = GroupPatterns(together, apart).same
    best_by_difference = np.sort(np.abs(apart))[::-1][int((pattern == 3).sum())]
    there = pattern == 3
    by_pattern = found <= np.sort(found)[int(there.sum())]
    assert (by_pattern & there).sum() > 1.1 * ((np.abs(apart) > best_by_difference) & there).sum()


def test_noise_and_equal_edges_have_few_verdicts() -> None:
    """20 tables of 100 pairs; stated and actual are a fraction of a pair in each."""
    found = []
    for seed in range(20):
        _, together, apart = drawn(100, (0.7, 0.3, 0.0, 0.0, 0.0), seed)
        found.append((GroupPatterns(together, apart).same <= 0.45).sum())
    assert np.mean(found) < 1.0


def test_order_of_groups_and_signs_change_nothing() -> None:
    _, together, apart = drawn(300, SHARES, seed=3)
    here = GroupPatterns(together, apart).same
    np.testing.assert_allclose(GroupPatterns(together[[0, 2, 1]], -apart).same, here, atol=1e-6)
    np.testing.assert_allclose(GroupPatterns(np.abs(together), np.abs(apart)).same, here)


def test_sets_of_groups() -> None:
    assert sets_of(3) == ((0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,))
    assert len(sets_of(6)) == 13
    assert sets_of(6)[1] == (0, 1, 2, 3, 4)


def test_no_pairs() -> None:
    assert GroupPatterns(np.zeros((3, 0)), np.zeros(0)).same.shape == (0,)


def test_the_limit_is_where_verdicts_are_expected_to_be_best() -> None:
    """F1 as a mean over 20,000 draws of which pairs truly differ, for every number of verdicts."""
    same = np.array([0.02, 0.1, 0.3, 0.45, 0.55, 0.62, 0.7, 0.85, 0.9, *np.full(40, 0.98)])
    truth = np.random.default_rng(0).random((20_000, len(same))) < 1.0 - same
    found, true = np.arange(1, len(same) + 1), truth.sum(axis=1)
    f1 = (2.0 * truth.cumsum(axis=1) / (found + true[:, None])).mean(axis=0)
    limit = balanced_limit(same)
    assert (same <= limit).sum() == found[f1.argmax()]
    assert limit == pytest.approx(1.0 - f1.max() / 2.0, abs=0.02)


def test_without_a_pair_that_is_likely_to_differ_the_limit_is_half() -> None:
    assert balanced_limit(np.full(30, 0.8)) == 0.5
    assert balanced_limit(np.zeros(0)) == 0.5

"""How odd a table is among simulated ones: exact shares, F tails, chunks, far-off tables."""

import numpy as np
import pytest

from mixedgm.studies.fit_check.adequacy import adjusted, oddities

GROUP = np.repeat(np.arange(6), [1, 2, 1, 3, 1, 4])
TABLES = {
    "normal": lambda rng: rng.normal(size=(40, 12)) @ rng.normal(size=(12, 12)),
    "heavy tails": lambda rng: rng.standard_t(2, size=(40, 12)),
    "mostly zero": lambda rng: rng.poisson(0.05, size=(40, 12)).astype(float),
    "single precision": lambda rng: rng.gamma(0.3, size=(40, 12)).astype(np.float32),
    "never varies": lambda rng: np.zeros((40, 12)),
}


def one(observed, simulated, floor):
    group = np.zeros(len(observed), dtype=np.int64)
    return oddities(observed, simulated, group, floor)


@pytest.mark.parametrize("tables", TABLES)
def test_whichever_table_is_the_observed_one_no_more_than_alpha_are_flagged(tables):
    """Exactly: each of 40 tables is the observed one in turn, and k of 40 at most have p <= k / 40.

    Without ties they are as many as that.
    """
    drawn = TABLES[tables](np.random.default_rng(3))
    n, p = len(drawn), []
    for at in range(n):
        odd = oddities(drawn[at].astype(float), np.delete(drawn, at, axis=0), GROUP, 1e-12)
        p.append(adjusted(odd.tail, odd.least).min())
    ranks = np.arange(1, n + 1)
    found = np.searchsorted(np.sort(p), ranks / n + 1e-9, side="right")
    assert (found <= ranks).all()
    if tables in ("normal", "heavy tails", "single precision"):
        np.testing.assert_array_equal(found, ranks)


def test_p_values_are_uniform_under_the_null():
    """2,000 draws of correlated normals: the share below q is within four standard errors."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(4, 6))  # six statistics of rank four
    p = []
    for _ in range(2000):
        drawn = rng.normal(size=(101, 4)) @ mix
        p.append(one(drawn[0], drawn[1:], 1e-12).p[0])
    for q in (0.5, 0.1, 0.01):
        assert abs(np.mean(np.array(p) <= q) - q) < 4 * np.sqrt(q * (1 - q) / 2000) + 0.2 * q


def test_one_statistic_is_measured_as_a_prediction_is():
    """By Student's t of a new value among n old ones, as every textbook has it."""
    drawn = np.random.default_rng(4).normal(size=(30, 1))
    for gap in (0.5, 2.0, -3.5):
        odd = one(drawn.mean(axis=0) + gap * drawn.std(axis=0, ddof=1), drawn, 1e-12)
        assert odd.scaled[0] == pytest.approx(gap / np.sqrt(1 + 1 / 30))
        assert odd.distance[0] == pytest.approx(abs(gap) / np.sqrt(1 + 1 / 30))


def test_groups_are_judged_alone_and_in_chunks():
    rng, group = np.random.default_rng(2), np.repeat(np.arange(5), [1, 3, 1, 2, 4])
    drawn = rng.normal(size=(31, len(group)))
    whole = oddities(drawn[0], drawn[1:], group, 1e-12)
    alone = [one(drawn[0, group == g], drawn[1:, group == g], 1e-12) for g in range(5)]
    chunks = oddities(drawn[0], drawn[1:], group, 1e-12, cells_at_once=31 * 3)
    for name in ("distance", "p", "tail"):
        expected = np.concatenate([getattr(odd, name) for odd in alone])
        np.testing.assert_allclose(getattr(whole, name), expected)
        np.testing.assert_allclose(getattr(chunks, name), expected)
    np.testing.assert_allclose(whole.least, np.min([odd.least for odd in alone], axis=0))
    np.testing.assert_allclose(chunks.least, whole.least)


def test_the_distance_is_one_where_nothing_is_odd_and_grows():
    rng = np.random.default_rng(1)
    simulated = rng.normal(size=(500, 3))
    near = one(np.array([1.0, -1.0, 1.0]), simulated, 1e-12)
    far = one(np.array([10.0, -10.0, 10.0]), simulated, 1e-12)
    assert near.distance[0] == pytest.approx(1.0, abs=0.1)
    assert far.distance[0] == pytest.approx(10.0, rel=0.1)
    assert far.p[0] < 1e-20 < near.p[0]
    np.testing.assert_allclose(far.scaled, [10, -10, 10], rtol=0.15)


@pytest.mark.parametrize("size", [1e6, 1e12])
def test_a_table_that_is_far_off_is_measured_and_hides_nothing(size):
    """Its distance has all digits, and the other group is as odd as it would be alone."""
    rng = np.random.default_rng(5)
    simulated = rng.normal(size=(100, 2))
    observed, group = np.array([size, 4.5]), np.arange(2)
    odd = oddities(observed, simulated, group, 1e-12)
    spread = simulated.std(axis=0, ddof=1) * np.sqrt(1.01)
    np.testing.assert_allclose(odd.scaled, (observed - simulated.mean(axis=0)) / spread)
    alone = one(observed[1:], simulated[:, 1:], 1e-12)
    assert odd.tail[1] == pytest.approx(alone.tail[0])
    assert (adjusted(odd.tail, odd.least) <= 1 / 101).all()


def test_a_statistic_that_never_varies_is_odd_only_where_it_differs():
    simulated = np.zeros((50, 2))
    assert one(np.zeros(2), simulated, 0.001).p[0] == 1.0
    assert one(np.array([0.0, 0.5]), simulated, 0.001).p[0] < 1e-20
    assert one(np.array([0.0, 1e-4]), simulated, 0.001).p[0] > 0.5

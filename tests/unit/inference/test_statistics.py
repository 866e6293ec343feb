"""P-values of pairs: tails of chi-squares, and the combination of two tests."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from mixedgm.inference.statistics import (
    _solved,
    combined,
    equivalent_z,
    holm,
    log_tail,
    pair_statistics,
)
from mixedgm.select.pair_tests import pairs_given
from tests.support.problems import SCORED, draw

DRAWS = 400_000


@pytest.mark.parametrize("df", [1, 2, 3, 16, 64, 300, 1000])
def test_log_tails_are_those_of_chi_squares(df):
    x = np.array([0.0, 1e-6, 0.3, 1.0, 8.0, 60.0, 300.0, 590.0, 610.0, 900.0, 1300.0])
    np.testing.assert_allclose(log_tail(x, df), stats.chi2.logsf(x, df), rtol=1e-10, atol=1e-12)


def test_log_tails_go_on_where_probabilities_underflow():
    x = np.array([1500.0, 1e4, 1e6])
    np.testing.assert_allclose(log_tail(x, 2), -x / 2, rtol=1e-12)  # exponential
    expected = np.log(2) + stats.norm.logsf(np.sqrt(x))
    np.testing.assert_allclose(log_tail(x, 1), expected, rtol=1e-12)
    # Erlang: a sum of three terms, of which the largest is taken out.
    half = x / 2
    erlang = -half + 2 * np.log(half) - np.log(2) + np.log1p(2 / half + 2 / half**2)
    np.testing.assert_allclose(log_tail(x, 6), erlang, rtol=1e-12)


def test_an_equivalent_z_has_the_same_two_sided_p_value():
    z = np.array([0.0, 0.5, 1.96, 6.0, 50.0])
    np.testing.assert_allclose(equivalent_z(log_tail(z**2, 1)), z, atol=1e-9)
    assert equivalent_z(np.zeros(1)) == 0.0


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("df", "df_along"), [(2, 1), (3, 1), (4, 1), (8, 1), (16, 1), (64, 1), (9, 4)]
)
def test_combined_p_values_are_uniform_without_an_edge(df, df_along):
    """Fails in about one of a thousand runs by chance."""
    rng = np.random.default_rng(df)
    along, rest = rng.chisquare(df_along, DRAWS), rng.chisquare(df - df_along, DRAWS)
    both = log_tail(along + rest, df), log_tail(along, df_along)
    p = np.exp(combined(*both, df, df_along))
    for level in (0.001, 0.01, 0.05, 0.2, 0.5, 0.9):
        error = 4 * np.sqrt(level * (1 - level) / DRAWS) + 0.005 * level  # of the integral
        assert np.mean(p < level) == pytest.approx(level, abs=error)


def test_combining_costs_little_where_one_test_sees_everything():
    strong, weak = np.log(1e-6), np.log(0.7)
    for pair in ((strong, weak), (weak, strong)):
        p = np.exp(combined(*map(np.atleast_1d, pair), 9))
        assert 1e-6 < p[0] < 2.2e-6
    far = combined(np.array([-5000.0]), np.array([-0.1]), 9)
    assert -5000.0 < far[0] <= -5000.0 + np.log(2)


@pytest.mark.parametrize("df", [2, 9, 36])
def test_combining_at_most_doubles_the_smaller_p_value(df):
    small = np.log(np.array([1e-9, 1e-3, 0.05, 0.13, 0.3]))
    for other in (np.log(0.5), -1e-12):
        for pair in ((small, np.full(5, other)), (np.full(5, other), small)):
            assert (combined(*pair, df) <= small + np.log(2.0) + 1e-12).all()


def test_the_ordered_test_finds_a_trend_that_all_directions_miss():
    rng = np.random.default_rng(3)
    n, levels = 600, 6
    table = draw(3, n, 1, (levels, levels))
    common = rng.normal(size=n)
    for r in range(2):
        noisy = 0.55 * common + rng.normal(size=n)
        table.Y[:, r] = np.searchsorted(np.quantile(noisy, np.arange(1, levels) / levels), noisy)
    task = table.task()
    tests = pairs_given(task, np.arange(task.layout.n_groups))
    at = task.layout.pairs.tolist().index([1, 2])
    found = tests.statistics
    assert found.df[at] == 25
    omnibus = stats.chi2.sf(found.statistic[at], 25)
    assert found.p[at] < 0.1 * omnibus < 0.1
    assert found.direction[at] ** 2 < found.statistic[at]


def test_w_of_one_parameter_is_the_square_of_its_z():
    table = draw(2, 300, 2, (4, 2), scored=SCORED[:1])
    task = table.task()
    tests = pairs_given(task, np.arange(task.layout.n_groups))
    one = tests.statistics.df == 1
    assert one.any()
    np.testing.assert_allclose(
        tests.statistics.direction[one] ** 2, tests.statistics.statistic[one]
    )
    expected = stats.chi2.sf(tests.statistics.statistic[one], 1)
    np.testing.assert_allclose(tests.statistics.p[one], expected, rtol=1e-9)


def test_statistics_do_not_depend_on_the_order_of_columns():
    table = draw(4, 200, 2, (3, 4))
    swapped = type(table)(table.X[:, ::-1], table.Y[:, ::-1], table.n_levels[::-1])
    both = []
    for each in (table, swapped):
        task = each.task()
        tests = pairs_given(task, np.arange(task.layout.n_groups))
        both.append((task.layout.pairs.tolist(), tests.statistics))
    place = {0: 1, 1: 0, 2: 3, 3: 2}
    for g, pair in enumerate(both[0][0]):
        other = both[1][0].index(sorted(place[k] for k in pair))
        assert both[0][1].statistic[g] == pytest.approx(both[1][1].statistic[other], rel=1e-3)
        assert both[0][1].log_p[g] == pytest.approx(both[1][1].log_p[other], rel=1e-3, abs=1e-3)


def test_pair_statistics_of_an_empty_layout():
    table = draw(0, 50, 1, ())
    task = table.task()
    tests = pairs_given(task, np.zeros(0, dtype=np.int64))
    assert pair_statistics(tests.estimates, task.layout.nodes).p.shape == (0,)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_ordered_test_of_a_hurdle_column_is_for_both_parts_moving_alike(sign):
    """Where one part rises and the other falls, it finds little of what all directions find."""
    rng, n = np.random.default_rng(8), 800
    table = draw(8, n, 1, (), n_spiked=1)
    x = table.X[:, 0] / table.X[:, 0].std()
    there = rng.random(n) < 1.0 / (1.0 + np.exp(-0.4 * x))
    amount = 5.0 + 0.25 * sign * x + rng.normal(size=n)
    table.X[:, 1], table.Y[:, 0] = np.where(there, amount, 0.0), there
    found = pairs_given(table.task(), np.arange(1)).statistics
    share = found.direction[0] ** 2 / found.statistic[0]
    assert found.statistic[0] > 30.0
    assert share > 0.8 if sign > 0.0 else share < 0.2


def test_covariances_that_are_indefinite_by_rounding_give_tests_as_well():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 3))
    outside = np.linalg.svd(root)[0][:, 4]
    inside = root @ rng.normal(size=3)
    low = root @ root.T - 1e-14 * np.outer(outside, outside)  # rank 3 of 5, up to rounding
    beyond = inside + 1e-3 * outside
    assert beyond @ np.linalg.solve(low, beyond) < 0.0
    covariance = np.stack([low, np.eye(5)])
    vectors = np.stack([np.stack([beyond, beyond], axis=1), rng.normal(size=(5, 2))])
    found = _solved(covariance, vectors)
    np.testing.assert_allclose(found[1], vectors[1])
    expected = inside @ np.linalg.pinv(root @ root.T, rcond=1e-9, hermitian=True) @ inside
    squares = np.einsum("gak,gak->gk", vectors, found)
    np.testing.assert_allclose(squares[0], expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_closed_testing_with_bonferroni(seed):
    p = np.random.default_rng(seed).uniform(0, 0.2, size=5)
    expected = [
        max(
            min(1.0, len(group) * min(p[list(group)]))
            for size in range(1, 6)
            for group in combinations(range(5), size)
            if at in group
        )
        for at in range(5)
    ]
    np.testing.assert_allclose(holm(p), expected)

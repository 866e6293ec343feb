"""Intervals of noncentralities and strengths: how often they hold what is true, by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mixedgm as mg
from mixedgm.inference.strength import (
    PairUncertainty,
    interval,
    interval_of_numbers,
    noncentralities,
)


@pytest.mark.parametrize("freedom", [1, 4, 12])
def test_intervals_of_noncentralities_hold_the_truth_as_often_as_they_say(freedom):
    grid = np.linspace(0.0, 12.0, 120) ** 2
    low, high = np.array([noncentralities(s, freedom, 0.95) for s in grid]).T
    assert (np.diff(low) >= -1e-9).all()
    assert (np.diff(high) >= -1e-9).all()
    rng = np.random.default_rng(freedom)
    for size in (0.0, 0.7, 1.5, 2.0, 2.5, 3.5, 6.0):
        z = rng.normal(size=(40_000, freedom))
        z[:, 0] += size
        drawn = (z**2).sum(axis=1)
        held = np.interp(drawn, grid, low) <= size**2
        held &= size**2 <= np.interp(drawn, grid, high) + 1e-9
        # A standard error is 0.0011; the grid is coarse where intervals begin to leave zero.
        assert held.mean() == pytest.approx(0.95, abs=0.008)


@pytest.mark.parametrize("freedom", [1, 4, 12])
def test_an_interval_leaves_zero_where_the_test_rejects(freedom):
    limit = stats.chi2.ppf(0.95, freedom)
    for statistic, leaves in ((0.99 * limit, False), (1.01 * limit, True)):
        assert (noncentralities(statistic, freedom, 0.95)[0] > 0.0) == leaves
        nats = statistic / 2_000.0
        pair = PairUncertainty(nats, freedom, float(freedom), 2.0 * nats)
        low, high = interval(pair, 1_000.0, 0.95)
        assert (low > 0.0) == leaves
        assert high > 0.05
    nothing = interval(PairUncertainty(0.0, freedom, float(freedom), 0.0), 1_000.0, 0.95)
    assert nothing[0] == 0.0
    assert nothing[1] > 1.6 / np.sqrt(1_000.0)


def test_the_interval_of_two_numbers_is_fishers_far_from_zero_and_one_sided_at_zero():
    middle, step = np.arctanh(0.6), 1.96 / np.sqrt(400.0)
    found = interval_of_numbers(0.6, 1.0, 400.0, 0.95)
    assert found == pytest.approx((np.tanh(middle - step), np.tanh(middle + step)), abs=1e-3)
    assert interval_of_numbers(0.0, 1.0, 400.0, 0.95) == pytest.approx(
        (0.0, np.tanh(1.645 / np.sqrt(400.0))), abs=1e-4
    )
    low, high = interval_of_numbers(0.3, 1.0, 400.0, 0.1)
    assert 0.29 < low < 0.3 < high < 0.31


@pytest.mark.parametrize(
    ("nats", "trace", "variance"),
    [(1e-16, 4e-154, 1e-41), (0.12, 0.0, 1e282), (0.2, 5e-11, 0.4), (1e-248, 1e-7, 3e-18)],
)
def test_nearly_determined_columns_have_an_interval_that_holds_the_strength(nats, trace, variance):
    low, high = interval(PairUncertainty(nats, 1, trace, variance), 40.0, 0.95)
    strength = np.sqrt(-np.expm1(-2.0 * max(nats - 0.5 * trace / 40.0, 0.0)))
    assert 0.0 <= low <= strength <= high <= 1.0
    assert high > 0.02


def test_a_cell_without_rows_does_not_take_the_strength_away():
    counts = np.array([[700, 100, 40, 35], [80, 35, 10, 0]])
    u, v = np.divmod(np.repeat(np.arange(8), counts.ravel()), 4)
    table = pd.DataFrame({"u": np.array(["i", "j"])[u], "v": np.array(["a", "b", "c", "d"])[v]})
    model = mg.MixedGraphicalModel(lam=0.05).fit(table)
    found = mg.edge_tests(model, table).edges().iloc[0]
    share = counts / counts.sum()
    apart = np.outer(share.sum(axis=1), share.sum(axis=0))
    nats = np.sum(share * np.log(np.maximum(share, 1e-300) / apart))
    without_noise = np.sqrt(-np.expm1(-2.0 * (nats - 3.0 / (2.0 * counts.sum()))))
    assert found["p"] < 0.001
    assert found["strength"] == pytest.approx(without_noise, rel=0.05)
    assert 0.0 < found["lower"] < without_noise < found["upper"]

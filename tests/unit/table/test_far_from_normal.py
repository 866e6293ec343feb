"""Which columns get normal scores: calibration, invariance, columns that others explain."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mixedgm.table.checks.check import check_table
from mixedgm.table.transform import LEAST, Predictor, departure, far_from_normal

SHAPES = {
    "exponential": stats.expon(),
    "log-normal": stats.lognorm(0.5),
    "uniform": stats.uniform(),
    "t3": stats.t(3),
    "laplace": stats.laplace(),
    "beta": stats.beta(0.5, 0.5),
}


def chosen(frame, **options):
    checked = check_table(frame, **options)
    return [name for name in frame if checked.options.transformed(name)]


@pytest.mark.parametrize("n", [50, 99, 1000])
def test_departure_is_that_of_a_probability_plot(n):
    """scipy draws such a plot against the same quantiles when it is given them."""
    values = np.random.default_rng(n).gamma(2.0, size=n)
    scores = stats.norm.ppf((stats.rankdata(values) - 0.5) / n)
    assert departure(values) == pytest.approx(1 - stats.pearsonr(values, scores)[0] ** 2, abs=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_columns_of_other_shapes_are_far_from_normal(name):
    """At their quantiles, so that nothing is by chance."""
    values = SHAPES[name].ppf((np.arange(500) + 0.5) / 500)
    assert departure(values) > LEAST
    assert far_from_normal(values)


@pytest.mark.parametrize(("n", "tables"), [(20, 4000), (50, 4000), (200, 4000), (1000, 2000)])
def test_at_most_one_normal_column_in_a_hundred_is_far(n, tables):
    """Fails for a rule that is right with a chance below 1e-4 (binomial, at a rate of 0.7 %)."""
    rng = np.random.default_rng(n)
    share = np.mean([far_from_normal(rng.standard_normal(n)) for _ in range(tables)])
    assert share < 0.007 + 4 * np.sqrt(0.007 / tables)


def test_a_large_normal_column_is_not_far_nor_are_rounded_ones():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(100_000)
    assert not far_from_normal(values)
    assert not far_from_normal(values.round())
    assert not far_from_normal(np.where(values > 0, 0.5, 1.5))


@pytest.mark.parametrize("shape", ["exponential", "uniform"])
def test_units_order_and_weights_change_nothing(shape):
    rng = np.random.default_rng(1)
    values = SHAPES[shape].rvs(60, random_state=rng).round(1)
    least = departure(values)
    assert departure(rng.permutation(values)) == pytest.approx(least, abs=1e-12)
    assert departure(-1e9 * values + 5.0) == pytest.approx(least, abs=1e-9)
    assert departure(1e60 * values) == pytest.approx(least, abs=1e-12)
    counts = rng.integers(1, 4, 60)
    repeated = departure(np.repeat(values, counts))
    assert departure(values, counts.astype(float)) == pytest.approx(repeated, abs=1e-12)


def groups_apart(rng, n=1000):
    groups = rng.integers(0, 3, n)
    return groups, rng.standard_normal((n, 2)) + 6.0 * np.equal.outer(groups, [0, 2])


def test_normal_columns_in_groups_stay_as_they_are():
    groups, numbers = groups_apart(np.random.default_rng(2))
    frame = pd.DataFrame({"x": numbers[:, 0], "y": numbers[:, 1]})
    assert chosen(frame) == ["x", "y"]
    assert chosen(frame.assign(group=np.array(["a", "b", "c"])[groups])) == []
    assert chosen(frame.assign(group=groups), types={"group": "ordinal"}) == []
    # Most values of the group may be missing: such rows have a mean of their own.
    gappy = pd.Series(np.array(["a", "b", "c"])[groups]).mask(groups == 1)
    assert chosen(frame.assign(group=gappy), missing="model") == []


def test_an_amount_a_count_and_a_covariate_explain_a_shape():
    rng = np.random.default_rng(3)
    amount = np.where(rng.random(1000) < 0.7, 0.0, 10.0 + rng.standard_normal(1000))
    visits = rng.negative_binomial(0.5, 0.02, 1000)
    past = rng.exponential(size=1000)
    noise = rng.standard_normal((1000, 3))
    frame = pd.DataFrame({"amount": amount, "visits": visits, "past": past})
    frame["x"], frame["y"], frame["z"] = (
        amount + noise[:, 0],
        3.0 * np.sqrt(visits) + noise[:, 1],
        3.0 * past + noise[:, 2],
    )
    types = {"amount": "hurdle", "visits": "count"}
    assert chosen(frame[["x", "y", "z"]]) == ["x", "y", "z"]
    assert chosen(frame, types=types, covariates=["past"]) == []


def test_skewed_columns_in_groups_get_scores():
    groups, numbers = groups_apart(np.random.default_rng(4))
    frame = pd.DataFrame({"x": np.exp(0.4 * numbers[:, 0]), "group": groups}).astype(
        {"group": "category"}
    )
    assert chosen(frame) == ["x"]


def test_covariates_and_short_columns_stay():
    skewed = np.exp(np.random.default_rng(5).standard_normal(100))
    frame = pd.DataFrame({"x": skewed, "y": skewed[::-1] ** 1.5})
    assert chosen(frame, covariates=["x"]) == ["y"]
    assert chosen(frame.iloc[:19]) == []


def test_as_many_terms_as_the_rows_allow():
    """40 groups of 60 rows explain nothing: they are more than one term for every ten rows."""
    rng = np.random.default_rng(6)
    values = np.exp(rng.standard_normal(60))
    assert far_from_normal(values, [Predictor(np.arange(60) % 40)])


def test_rows_of_weight_zero_do_not_count():
    values = np.r_[np.random.default_rng(7).standard_normal(200), 1e3]
    frame = pd.DataFrame({"x": values, "y": values[::-1]})
    assert chosen(frame) == ["x", "y"]
    weights = np.r_[0.0, np.ones(199), 0.0]
    assert chosen(frame, sample_weight=weights) == []

"""Intervals of all pairs: against plain formulas and separate fits of the same resamples."""

import importlib.util
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import mixedgm as mg
from tests.support.people import people

STUDIES = Path(__file__).resolve().parents[4] / "docs" / "studies"
N_BOOT = 30


def resamples(n_rows: int, seed: int, n: int = N_BOOT):
    for own in np.random.SeedSequence(seed).spawn(n):
        yield np.random.default_rng(own).integers(n_rows, size=n_rows)


def half_of_the_middle(values: np.ndarray) -> np.ndarray:
    low, high = np.quantile(values, [norm.cdf(-1.0), norm.cdf(1.0)], axis=0)
    return (high - low) / 2


# -- numbers: plain formulas -----------------------------------------------------------------------


def pseudolikelihood(table: np.ndarray) -> np.ndarray:
    """Minus the precisions of all pairs, by a minimiser that knows nothing of the package."""
    scale = table.std(axis=0)
    covariance, p = np.cov(table / scale, rowvar=False, bias=True), table.shape[1]
    upper = np.triu_indices(p, 1)

    def loss(theta):
        precision = np.zeros((p, p))
        precision[upper] = theta[p:]
        precision += precision.T
        own = np.exp(theta[:p])
        total = 0.0
        for j in range(p):
            coefficient = precision[j] / own[j]
            coefficient[j] = 1.0
            left = coefficient @ covariance @ coefficient
            total += 0.5 * own[j] * left - 0.5 * np.log(own[j])
        return total

    start = np.zeros(p + len(upper[0]))
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-8})
    return -found.x[p:] / (scale[upper[0]] * scale[upper[1]])


@pytest.fixture(scope="module")
def numbers():
    """A table of numbers, a model of it, and a bootstrap."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=200)
    table = pd.DataFrame(
        {
            "a": first,
            "b": 5.0 * first + 4.0 * rng.normal(size=200),
            "c": rng.normal(size=200),
            "d": 0.3 * first + rng.standard_t(5, size=200),
        }
    )
    model = mg.MixedGraphicalModel(lam=0.5).fit(table)
    return table, model, mg.bootstrap(model, table, N_BOOT, random_state=3, n_jobs=1)


def test_numbers_are_estimated_as_by_a_plain_minimiser(numbers):
    table, model, found = numbers
    drawn = [pseudolikelihood(table.to_numpy()[rows]) for rows in resamples(200, 3)]
    # Three predictors and a mean in 200 rows: estimates are too large by 200 / 196.
    drawn = 196 / 200 * np.array(drawn)
    here, se = 196 / 200 * pseudolikelihood(table.to_numpy()), half_of_the_middle(drawn)
    told = found.parameters(level=0.9).query("parameter == 'interaction'")
    told = told.set_index(["source", "target"])
    assert len(told) == 6 > len(model.edges_), "pairs that are not found as well"
    for k, pair in enumerate(combinations("abcd", 2)):
        row = told.loc[pair]
        assert row["estimate"] == pytest.approx(here[k], abs=0.001 * se[k])
        assert row["se"] == pytest.approx(se[k], rel=0.02)
        assert row["upper"] == pytest.approx(here[k] + norm.isf(0.05) * se[k], abs=0.05 * se[k])
        assert row["lower"] == pytest.approx(here[k] - norm.isf(0.05) * se[k], abs=0.05 * se[k])
    sizes = found.intervals().set_index(["source", "target"])
    scale = table.std(ddof=0)
    for pair in combinations("abcd", 2):
        expected = told.loc[pair, "estimate"] * scale[pair[0]] * scale[pair[1]]
        assert sizes.loc[pair, "estimate"] == pytest.approx(expected)


def test_strengths_of_numbers_are_partial_correlations_with_fishers_interval(numbers):
    table, _, found = numbers
    strengths = found.strengths().set_index(["source", "target"])
    assert strengths["strength"].is_monotonic_decreasing
    inverse, n = np.linalg.inv(table.corr().to_numpy()), len(table)
    scale = np.sqrt(np.diag(inverse))
    partial = pd.DataFrame(-inverse / np.outer(scale, scale), table.columns, table.columns)
    for source, target in combinations("abcd", 2):
        row = strengths.loc[(source, target)]
        square = partial.loc[source, target] ** 2
        assert row["strength"] == pytest.approx(
            np.sqrt(max(1.0 - (1.0 - square) * np.exp(1.0 / n), 0.0)), abs=0.01
        )
        middle, step = np.arctanh(np.sqrt(square)), 1.96 / np.sqrt(n)
        # The error of a standard error of so few resamples is a tenth of it.
        assert row["upper"] == pytest.approx(np.tanh(middle + step), abs=0.5 * step)
        assert row["lower"] == pytest.approx(np.tanh(max(middle - step, 0.0)), abs=0.5 * step)


def test_strengths_of_all_kinds_are_near_those_of_tests(model, table, found):
    pairs = ["source", "target"]
    strengths = found.strengths().set_index(pairs)
    tested = mg.edge_tests(model, table, method="free").edges().set_index(pairs)
    tested = tested.loc[strengths.index]
    step = tested["upper"] - tested["lower"]
    assert (strengths["strength"] - tested["strength"]).abs().le(0.1 * step).all()
    known = strengths["upper"].notna()
    assert known.sum() > 5
    for end in ("lower", "upper"):
        apart = (strengths[end] - tested[end])[known].abs() / step[known]
        assert apart.mean() < 0.3


# -- all kinds: fits through the front door --------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    return people(300, seed=2)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=0.12).fit(table)


@pytest.fixture(scope="module")
def found(model, table):
    return mg.bootstrap(model, table, N_BOOT, random_state=5, n_jobs=1)


def free_fit(table) -> mg.MixedGraphicalModel:
    """Every edge is required, so that none is shrunken."""
    pairs = list(combinations(table.columns, 2))
    return mg.MixedGraphicalModel(lam=1.0, require=pairs, tol=1e-8).fit(table)


def entry(model, row) -> float:
    block = model.interaction(row.source, row.target)
    source = row.source if pd.isna(row.source_level) else row.source_level
    target = row.target if pd.isna(row.target_level) else row.target_level
    return float(block.loc[source, target])


FREE = {"height": 1, "weight": 1, "group": 2, "smoker": 1, "colour": 1}


def left(row, n):
    """What the mean and all other columns leave of n rows, on average of both ends."""
    used = [1 + sum(FREE.values()) - FREE[end] for end in (row.source, row.target)]
    return 1 - np.mean(used) / n


def test_every_parameter_is_that_of_fits_without_penalty(found, table):
    alone = [free_fit(table.iloc[rows]) for rows in resamples(300, 5)]
    whole, told = free_fit(table), found.parameters()
    for row in told[told["parameter"] == "interaction"].itertuples():
        values = left(row, 300) * np.array([entry(fit, row) for fit in alone])
        assert row.estimate == pytest.approx(left(row, 300) * entry(whole, row), abs=0.01 * row.se)
        assert row.se == pytest.approx(half_of_the_middle(values), rel=0.03)
    precision = told[told["parameter"] == "precision"].set_index("source")["estimate"]
    s = whole.schema_.node_index("weight")
    assert precision["weight"] == pytest.approx(whole.params_.precision[s, s], rel=1e-3)
    bias = told[(told["parameter"] == "bias") & (told["source"] == "group")]
    assert bias["source_level"].tolist() == ["a", "b", "c"]
    assert bias["se"].gt(0.0).all()


def test_two_levels_are_compared_and_many_are_listed(found):
    sizes = found.intervals().set_index(["source", "target"])
    told = found.parameters().set_index(["source", "target"])
    assert len(found.intervals().groupby(["source", "target"])) == 10
    (odds,) = sizes.loc[[("smoker", "colour")]].to_dict("records")
    assert (odds["source_level"], odds["target_level"]) == ("True", "red")
    a, b, c, d = told.loc[[("smoker", "colour")], "estimate"]
    assert odds["estimate"] == pytest.approx(a - b - c + d)
    of_group = sizes[["group" in pair for pair in sizes.index]]
    levels = of_group[["source_level", "target_level"]].to_numpy().ravel()
    assert {"a", "b", "c"} <= set(levels)


def test_the_most_certain_pair_comes_first(found):
    sizes = found.intervals()
    sizes["z"] = (sizes["estimate"] / sizes["se"]).abs()
    largest = sizes.groupby(["source", "target"], sort=False)["z"].max()
    assert (largest.diff().dropna() <= 1e-12).all()


@pytest.mark.parametrize("loss", ["nodewise", "likelihood"])
def test_the_loss_of_the_model_plays_no_part(table, found, loss):
    other = mg.MixedGraphicalModel(lam=0.12, loss=loss).fit(table)
    again = mg.bootstrap(other, table, N_BOOT, random_state=5, n_jobs=1)
    columns = ["source", "target", "source_level", "target_level"]
    one, two = (f.parameters().set_index(columns)["estimate"] for f in (found, again))
    pd.testing.assert_series_equal(one.sort_index(), two.sort_index(), atol=1e-3)


def test_selection_plays_no_part_either(table, found):
    other = mg.MixedGraphicalModel(n_lams=10).fit(table)
    again = mg.bootstrap(other, table, 10, select="again", random_state=5, n_jobs=1)
    np.testing.assert_allclose(
        again.pair_replicates.values, found.pair_replicates.values[:10], rtol=1e-6, atol=1e-9
    )


def test_with_few_rows_pairs_are_given_the_edges_that_pass():
    table = people(70, seed=3)
    rng = np.random.default_rng(1)
    for k in range(6):
        table[f"z{k}"] = rng.normal(size=70)
    model = mg.MixedGraphicalModel(lam=0.2).fit(table)
    found = mg.bootstrap(model, table, 10, random_state=0, n_jobs=1)
    assert found.pair_replicates.method == "graph"
    assert "given the edges that pass a test" in found.summary()
    tests = mg.edge_tests(model, table)
    assert tests.method == "graph"
    columns = ["source", "target", "source_level", "target_level"]
    told = found.parameters().query("parameter == 'interaction'").set_index(columns)
    expected = tests.parameters().set_index(columns)
    assert len(told) == len(expected)
    np.testing.assert_allclose(
        told["estimate"].reindex(expected.index), expected["estimate"], atol=2e-3
    )


def test_covariates_and_forbidden_pairs(table):
    options = {"covariates": ["group", "colour"], "forbid": [("height", "weight")]}
    model = mg.MixedGraphicalModel(lam=0.12, **options).fit(table)
    sizes = mg.bootstrap(model, table, 5, random_state=0, n_jobs=1).intervals()
    pairs = {tuple(pair) for pair in sizes[["source", "target"]].to_numpy()}
    assert ("group", "colour") not in pairs
    assert ("colour", "group") not in pairs
    assert ("height", "weight") not in pairs
    assert ("group", "height") in pairs
    assert ("colour", "height") in pairs
    assert not pairs & {("height", "colour"), ("height", "group")}
    of_group = sizes[(sizes["source"] == "group") & (sizes["target"] == "height")]
    assert of_group["source_level"].tolist() == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_weights_of_rows_count(table):
    weights = np.arange(300) % 3 + 1.0
    model = mg.MixedGraphicalModel(lam=0.12).fit(table, sample_weight=weights)
    found = mg.bootstrap(model, table, 5, sample_weight=weights, random_state=0, n_jobs=1)
    whole = free_fit(table.loc[np.repeat(np.arange(300), weights.astype(int))])
    for row in found.parameters().query("parameter == 'interaction'").itertuples():
        expected = left(row, weights.sum()) * entry(whole, row)
        assert row.estimate == pytest.approx(expected, abs=2e-3)


# -- without them ----------------------------------------------------------------------------------


def test_they_can_be_left_out(table, model, found):
    plain = mg.bootstrap(model, table, N_BOOT, random_state=5, n_jobs=1, intervals=False)
    np.testing.assert_array_equal(plain.replicates.values, found.replicates.values)
    for name in ("strengths", "intervals", "parameters", "plot_intervals"):
        with pytest.raises(mg.ParameterError, match=rf"no {name}\(\): intervals=False"):
            getattr(plain, name)()
    assert "no intervals of all pairs: intervals=False" in plain.summary()
    assert "How large" not in plain.summary()
    with pytest.raises(mg.ParameterError, match="intervals must be True or False"):
        mg.bootstrap(model, table, 2, intervals="yes")


def test_too_few_rows_have_none_and_say_why():
    table = people(25)
    model = mg.MixedGraphicalModel(lam=0.3).fit(table)
    found = mg.bootstrap(model, table, 5, random_state=0, n_jobs=1)
    with pytest.raises(mg.ParameterError, match="25 rows are too few"):
        found.intervals()
    assert len(found.selection()) > 0


def test_text_and_notebooks_keep_the_two_questions_apart(found):
    for text in (found.summary(), found._repr_html_()):
        first, second = text.index("How large are edges?"), text.index("Are they found again?")
        assert first < second
        assert "Without shrinkage, given all others; 95 % intervals" in text


# -- coverage --------------------------------------------------------------------------------------


def study():
    sys.path.insert(0, str(STUDIES))
    try:
        spec = importlib.util.spec_from_file_location("intervals", STUDIES / "intervals.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(STUDIES))
    return module


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_intervals_of_all_pairs_cover():
    """About 360 pairs of nominal level 0.95, which are not independent within a table.

    Coverage of a table has a standard deviation of 0.04, so that of eight has a standard error of
    0.015; the limits are three of them away.
    """
    counts = pd.DataFrame([study().covered("ladder", 300, 1000 + k, 50) for k in range(8)])
    total = counts[["true", "true_covered", "absent", "absent_covered"]].sum()
    assert (total["true_covered"] + total["absent_covered"]) / (
        total["true"] + total["absent"]
    ) >= 0.905
    assert total["true_covered"] / total["true"] >= 0.87

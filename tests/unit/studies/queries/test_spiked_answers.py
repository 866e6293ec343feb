"""Questions to models with hurdle columns: answers by name against sums over all patterns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.base.errors import DistributionError, MixedGMError, ParameterError, SamplingWarning
from tests.support.spiked_world import LOCATION, SCORES, Enumerated, spiked_model

LEVELS = ("low", "middle", "high")
GROUPS = ("a", "b", "c")
TYPES = {"debt": "hurdle", "rain": "hurdle"}


@pytest.fixture(scope="module")
def model() -> mg.MixedGraphicalModel:
    columns = (
        mg.Column("pain", "ordinal", levels=LEVELS, scores=SCORES),
        mg.Column("debt", "hurdle", location=LOCATION),
        mg.Column("age", "continuous"),
        mg.Column("group", "categorical", levels=GROUPS),
        mg.Column("rain", "hurdle"),
    )
    return mg.from_params(mg.Schema(columns), spiked_model())


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(150, 3))
    debt = np.where(z[:, 0] > 0.3, 5.0 + z[:, 1], 0.0)
    rain = np.where(z[:, 1] > 0.0, 8.0 + z[:, 0] + z[:, 2], 0.0)
    return pd.DataFrame({"age": z[:, 2] + z[:, 0], "debt": debt, "rain": rain})


def near(value: float, expected: float, error: float) -> bool:
    return abs(value - expected) < 4.0 * error


def test_means_have_the_share_of_zeros(model: mg.MixedGraphicalModel) -> None:
    for given, known in (
        ({}, {}),
        ({"debt": 0}, {1: 0.0}),
        ({"debt": 1.5, "pain": "low"}, {1: 1.5, 3: 0}),
    ):
        truth, means = Enumerated(model.params_, known), model.mean(given or None)
        rows = means.frame().set_index(["column", "level"], drop=False)
        assert not means.exact
        error = rows["error"].tolist()[[*rows["column"]].index("rain")]
        assert near(means["rain"], truth.mean[2], error)
        zero = rows[(rows["column"] == "rain") & (rows["level"] == "zero")].iloc[0]
        assert near(zero["mean"], truth.table().sum(axis=(0, 2, 3))[0], zero["error"])
        group = rows[(rows["column"] == "group") & (rows["level"] == "b")].iloc[0]
        assert near(group["mean"], truth.table().sum(axis=(0, 1, 2))[1], group["error"])
        assert ("debt" in rows["column"].tolist()) == (not given)


def test_marginals_have_a_state_for_zero(model: mg.MixedGraphicalModel) -> None:
    found = model.conditional(["rain", "age"], {"group": "c"})
    truth = Enumerated(model.params_, {4: 2})
    frame = found.frame()
    assert frame["rain != 0"].tolist() == [False, True]
    assert frame["rain_mean"][0] == frame["rain_sd"][0] == 0.0
    share = truth.table().sum(axis=(0, 2, 3))
    for at in (0, 1):
        assert near(frame["probability"][at], share[at], frame["probability_error"][at])
    assert near(frame["rain_mean"][1], truth.mean[2] / share[1], frame["rain_error"][1])
    covariance = truth.second - np.outer(truth.mean, truth.mean)
    np.testing.assert_allclose(found.covariance().loc["age", "rain"], covariance[0, 2], atol=0.03)
    assert found.covariance({"rain": 0}).loc["rain", "rain"] == 0.0
    assert found.covariance({"rain": 3.2}).loc["rain", "rain"] > 0.0
    assert list(found.mean) == ["rain", "age"]
    assert "rain != 0" in repr(found)


def test_samples_hold_what_is_given(model: mg.MixedGraphicalModel) -> None:
    rows, report = model.sample(5000, {"debt": 0.0}, random_state=0, report=True)
    truth = Enumerated(model.params_, {1: 0.0})
    assert (rows["debt"] == 0.0).all()
    assert list(rows.columns) == ["pain", "debt", "age", "group", "rain"]
    error = rows["rain"].std() / np.sqrt(5000)
    assert near(rows["rain"].mean(), truth.mean[2], error)
    names = report.frame()[["column", "level"]].to_numpy().tolist()
    assert ["rain", "zero"] in names
    share = model.expectation(lambda rows: rows["rain"] > 0, {"debt": 0.0}, n=5000)
    assert 0.0 < share.value < 1.0


def test_given_all_hurdle_columns_answers_are_exact(model: mg.MixedGraphicalModel) -> None:
    truth = Enumerated(model.params_, {1: 1.1, 2: 0.0})
    rest = model.condition({"debt": 1.1, "rain": 0.0})
    assert rest.mean().exact
    assert rest.mean()["age"] == pytest.approx(truth.mean[0], abs=1e-10)
    shares = truth.table().sum(axis=(0, 1, 2))
    assert list(rest.mean()["group"].values()) == pytest.approx(shares, abs=1e-10)


def test_rows_with_gaps(model: mg.MixedGraphicalModel) -> None:
    n = 100
    known = {1: 1.4, 3: 2}
    one = {"pain": "high", "debt": 1.4, "age": None, "group": None, "rain": None}
    gaps = pd.DataFrame([one] * n).astype({"age": float, "rain": float})
    truth = Enumerated(model.params_, known)
    with pytest.warns(SamplingWarning, match="with hurdle columns there is no exact answer"):
        filled = model.impute(gaps)
    share = truth.table().sum(axis=(0, 2, 3))[1]
    middle = truth.mean[2] / share if share > 0.5 else 0.0
    assert filled["rain"].mean() == pytest.approx(middle, abs=0.02)
    assert (filled["debt"] == 1.4).all()
    drawn = pd.concat(model.impute(gaps, n_draws=20, random_state=0))
    error = drawn["rain"].std() / np.sqrt(len(drawn))
    assert near(drawn["rain"].mean(), truth.mean[2], error)
    assert near((drawn["rain"] != 0).mean(), share, np.sqrt(share * (1 - share) / len(drawn)))
    with pytest.warns(SamplingWarning, match="no exact answer"):
        predicted = model.predict(gaps)
    assert predicted["rain"].mean() == pytest.approx(truth.mean[2], abs=0.01)
    assert predicted["age"].mean() == pytest.approx(truth.mean[0], abs=0.01)
    with pytest.warns(SamplingWarning, match="no exact answer"):
        chance = model.predict_proba(gaps, "rain")
    assert chance.to_numpy()[:, 1].mean() == pytest.approx(share, abs=0.01)


def test_scores_of_rows_with_gaps(model: mg.MixedGraphicalModel) -> None:
    """The observed cells given each other: what is missing is summed and integrated out."""
    params = model.params_
    row = {"pain": "low", "debt": 0.9, "age": np.nan, "group": "b", "rain": 0.0}
    rows = pd.DataFrame([row] * 150)
    known = {1: 0.9, 2: 0.0, 3: 0, 4: 1}
    whole = Enumerated(params, known).log_z
    expected = sum(
        whole - Enumerated(params, {v: x for v, x in known.items() if v != node}).log_z
        for node in known
    )
    with pytest.warns(SamplingWarning, match="no exact answer"):
        score = model.score(rows)
    assert score == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.log_partition(),
        lambda m: m.log_density(m.sample(3, random_state=0)),
        lambda m: m.log_likelihood(m.sample(3, random_state=0)),
        lambda m: m.entropy(),
        lambda m: m.mutual_information("age", "group"),
        lambda m: m.mean(method="exact"),
        lambda m: m.sample(3, method="exact"),
        lambda m: m.marginal("age", method="exact"),
        lambda m: m.marginal("age").density({"age": 0.0}),
        lambda m: m.impute(m.sample(3, random_state=0).assign(age=np.nan), method="exact"),
        lambda m: m.fitted_.joint_density,
    ],
)  # fmt: skip
def test_what_needs_an_exact_form_is_refused(
    model: mg.MixedGraphicalModel, ask: Callable[[mg.MixedGraphicalModel], Any]
) -> None:
    with pytest.raises(
        DistributionError, match=r"'debt', 'rain' may be zero or any number.*To fix"
    ):
        ask(model)


@pytest.mark.parametrize(
    "ask", [lambda m: m.joint_discrepancy(), mg.diagnostics.consistency]
)  # fmt: skip
def test_comparisons_are_refused_with_a_remedy(
    model: mg.MixedGraphicalModel, ask: Callable[[Any], Any]
) -> None:
    with pytest.raises(MixedGMError, match=r"hurdle columns.*To fix"):
        ask(model)


@pytest.mark.parametrize("loss", ["likelihood", "likelihood-mc"])
def test_likelihoods_are_refused_before_the_fit(table: pd.DataFrame, loss: str) -> None:
    with pytest.raises(ParameterError, match=r"'debt', 'rain'.*use loss='pseudolikelihood'"):
        mg.MixedGraphicalModel(loss=loss, types=TYPES).fit(table)
    with pytest.raises(ParameterError, match="no exact form with hurdle columns"):
        mg.fit_path(table, loss=loss, types=TYPES)


def test_answers_have_the_margins_of_the_table(table: pd.DataFrame) -> None:
    fit = mg.MixedGraphicalModel(lam=0.2, types=TYPES).fit(table)
    assert "the table's margins were sampled: off by up to 0.0" in " ".join(
        repr(fit.mean()).split()
    )
    rows = fit.sample(4000, random_state=0)
    assert (rows["debt"] == 0).mean() == pytest.approx((table["debt"] == 0).mean(), abs=0.03)


def test_repair_reaches_hurdle_columns(table: pd.DataFrame) -> None:
    """Both hurdle columns are certain of each other where they are not zero."""
    fitted = mg.MixedGraphicalModel(lam=0.2, types=TYPES).fit(table)
    params = fitted.params_
    first, second = params.nodes.spiked_terms[1] + 1
    size = 1.5 * np.sqrt(params.precisions[1] * params.precisions[2])
    params.coef[first, second] = params.coef[second, first] = size
    with pytest.raises(DistributionError, match="not positive definite"):
        fitted.sample(2)
    valid = fitted.repaired()
    with pytest.warns(SamplingWarning) as caught:
        assert len(valid.sample(2, random_state=0)) == 2
    texts = [str(each.message) for each in caught]
    assert any("not mixed well" in text and text.endswith("are sampled)") for text in texts)
    assert "debt - rain" in str(valid.summary())

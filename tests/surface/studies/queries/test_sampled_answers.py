"""Answers that do not fit the limit: sampled, with errors, and warnings that name columns."""

import warnings

import numpy as np
import pytest

import mixedgm as mg
from tests.support.enumerated import COLUMNS, known_model

pytestmark = pytest.mark.statistical


def stuck_model():
    """Two columns that agree so strongly that no chain gets from one state to the other."""
    phi = np.zeros((4, 4))
    phi[:2, 2:] = [[8.0, -8.0], [-8.0, 8.0]]
    return mg.from_params(
        {"x": "continuous", "left": ["no", "yes"], "right": ["no", "yes"]},
        {"cat_interaction": phi + phi.T},
    )


def test_distributions_by_chains_are_within_their_errors():
    """About 20 numbers within six standard errors (64 chains): a false alarm in 1e-5 at most."""
    model, world = known_model(1)
    found = model.conditional(["city", "age"], {"sex": "Male"}, method="gibbs", random_state=3)
    world = world.given(sex="Male")
    assert not found.exact
    frame = found.frame()
    wanted = ["city", "probability", "probability_error", "age_mean", "age_sd", "age_error"]
    assert list(frame.columns) == wanted
    assert "sampled: R-hat" in repr(found)
    for _, row in frame.iterrows():
        off = row["probability"] - world.chance(city=row["city"])
        assert 0 < abs(off) < 6 * row["probability_error"] < 0.1
        off = row["age_mean"] - world.moments("age", city=row["city"])[0][0]
        assert abs(off) < 6 * row["age_error"]


def test_means_by_chains_are_within_their_errors():
    model, world = known_model(2)
    found = model.mean({"age": 0.2}, method="gibbs", random_state=0)
    world = world.given(age=0.2)
    assert not found.exact
    frame = found.frame()
    assert list(frame.columns) == ["column", "level", "mean", "error"]
    for _, row in frame.iterrows():
        if row["column"] in world.continuous:
            truth = world.moments(row["column"])[0][0]
        else:
            level = {str(x): x for x in COLUMNS[row["column"]]}[row["level"]]
            truth = world.chance(**{row["column"]: level})
        assert abs(row["mean"] - truth) < 6 * row["error"] < 0.2


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.sample(100, method="gibbs", random_state=0),
        lambda m: m.marginal("left", method="gibbs"),
        lambda m: m.mean(method="gibbs"),
    ],
)
def test_chains_that_are_stuck_are_reported_by_name(ask):
    with pytest.warns(mg.SamplingWarning, match=r"worst: '(left|right)' = (no|yes), '") as caught:
        ask(stuck_model())
    assert caught[0].filename == __file__


def test_a_report_has_names():
    model, _ = known_model(1)
    given = {"sex": "Male"}
    rows, report = model.sample(40, given, method="gibbs", random_state=0, report=True)
    assert rows.equals(model.sample(40, given, method="gibbs", random_state=0))
    assert (report.method, report.good) == ("gibbs", True)
    frame = report.frame()
    assert frame["column"].tolist() == ["age", "wage", "height", *["city"] * 3, *["smoker"] * 2]
    assert frame["level"].iloc[3:6].tolist() == COLUMNS["city"]
    assert frame["r_hat"].between(0.99, 1.01).all()
    assert (frame["ess"] > 400).all()
    assert "64 chains" in repr(report)
    assert "&lt;b&gt;Rome" in report._repr_html_()
    _, exact = model.sample(4, random_state=0, report=True)
    assert (exact.method, exact.good, len(exact.frame())) == ("exact", True, 0)
    assert repr(exact) == "Exact draws\n(independent rows)"


def test_more_sweeps_can_be_asked_for():
    model, _ = known_model(1)
    short = model.sample(50, method="gibbs", random_state=0)
    longer = model.sample(50, method="gibbs", random_state=0, burn_in=600)
    assert not short.equals(longer)
    with pytest.raises(mg.ParameterError, match="thin must be an integer of at least 1"):
        model.sample(5, method="gibbs", thin=0)


def test_too_large_for_the_limit_names_the_columns():
    model, _ = known_model(1)
    ask = {"limit": 3}
    for question in (
        lambda: model.log_partition(**ask),
        lambda: model.marginal("sex", method="exact", **ask),
        lambda: model.mean({"age": 1.0}, method="exact", **ask),
        lambda: model.sample(3, {"age": 1.0}, method="exact", **ask),
        lambda: model.entropy(**ask),
    ):
        with pytest.raises(mg.TooLargeError, match=r"limit of 3: .*'(sex|city|smoker)'.*limit="):
            question()


def test_what_does_not_fit_is_sampled():
    model, world = known_model(1)
    found = model.mean({"age": 0.5}, limit=3)
    assert not found.exact
    truth = world.given(age=0.5).chance(sex="Male")
    assert found["sex"]["Male"] == pytest.approx(truth, abs=0.02)
    assert not model.marginal("sex", limit=3).exact
    assert len(model.sample(3, limit=3, random_state=0)) == 3


def test_imputation_from_chains_says_so_and_is_close():
    model, world = known_model(1)
    rows = model.sample(40, random_state=0).assign(city=None, sex=None, wage=np.nan)
    with pytest.warns(mg.SamplingWarning, match="40 rows were imputed from Gibbs chains") as caught:
        sampled = model.impute(rows, limit=3)
    assert caught[0].filename == __file__
    exact = model.impute(rows)
    np.testing.assert_allclose(sampled["wage"], exact["wage"], atol=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.impute(rows, method="gibbs")  # asked for, so nothing to say
    assert model.impute(rows, 2, limit=3, random_state=0)[1].shape == rows.shape

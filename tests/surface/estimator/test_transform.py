"""Skewed columns: graphs that do not see a monotone change, predictions in the column's units."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import assert_same_params, people


@pytest.fixture(scope="module")
def table():
    return people(200, seed=31)


@pytest.fixture(scope="module")
def skewed(table):
    return table.assign(height=np.exp(2 * table["height"]), weight=table["weight"] ** 3)


def graph(model):
    return [(edge.source, edge.target, edge.sign) for edge in model.edges_]


def test_a_monotone_change_of_a_column_changes_nothing(table, skewed):
    one = mg.MixedGraphicalModel(transforms="nonparanormal").fit(table)
    two = mg.MixedGraphicalModel(transforms="nonparanormal").fit(skewed)
    assert one.edges_
    assert two.edges_ == one.edges_
    assert_same_params(two.params_, one.params_)
    assert two.score(skewed) == pytest.approx(one.score(table), abs=1e-9)


def test_without_it_the_change_is_seen(table, skewed):
    one = mg.MixedGraphicalModel(lam=0.1, transforms=None).fit(table)
    with pytest.warns(mg.TableWarning, match=r"'height' \(skewness 1\d"):
        two = mg.MixedGraphicalModel(lam=0.1, transforms=None).fit(skewed)
    assert one.objective_ != pytest.approx(two.objective_, rel=1e-3)


def test_the_fit_is_that_of_the_normal_scores(table, skewed):
    """Mid-ranks through the normal quantile, worked out here."""
    from scipy.stats import norm, rankdata

    scores = table.copy()
    for name in ("height", "weight"):
        scores[name] = norm.ppf((rankdata(table[name]) - 0.5) / len(table))
    by_hand = mg.MixedGraphicalModel(lam=0.1, tol=1e-9).fit(scores)
    model = mg.MixedGraphicalModel(lam=0.1, tol=1e-9, transforms="nonparanormal").fit(skewed)
    assert_same_params(model.params_, by_hand.params_, atol=1e-7)
    assert model.score(skewed) == pytest.approx(by_hand.score(scores), abs=1e-9)


def test_predictions_are_in_the_columns_own_units(table, skewed):
    transform = "nonparanormal"
    model = mg.MixedGraphicalModel(lam=0.1, transforms=transform).fit(skewed)
    predicted = model.predict(skewed)["height"]
    assert (predicted > 0).all()
    assert predicted.between(skewed["height"].min(), skewed["height"].max()).mean() > 0.95
    # A median goes through a monotone change: the same rows are predicted before and after it.
    before = mg.MixedGraphicalModel(lam=0.1, transforms=transform).fit(table).predict(table)
    ranks = np.searchsorted(np.sort(skewed["height"]), predicted)
    expected = np.searchsorted(np.sort(table["height"]), before["height"])
    np.testing.assert_array_equal(ranks, expected)


def test_one_column_can_be_chosen(skewed):
    chosen = {"height": "nonparanormal", "weight": None}
    model = mg.MixedGraphicalModel(lam=0.1, transforms=chosen).fit(skewed)
    by_name = {column.name: column for column in model.schema_.columns}
    assert by_name["height"].transform is not None
    assert by_name["weight"].transform is None
    both = mg.MixedGraphicalModel(lam=0.1, transforms={"height": None, "weight": None}).fit(skewed)
    assert all(column.transform is None for column in both.schema_.columns)
    # The other column stays in its own units: its residual variance is of the size of its own.
    assert 1 / model.params_.precision[1, 1] > 100


def test_probabilities_use_the_transform(table, skewed):
    one = mg.MixedGraphicalModel(lam=0.1, transforms="nonparanormal").fit(table)
    two = mg.MixedGraphicalModel(lam=0.1, transforms="nonparanormal").fit(skewed)
    np.testing.assert_allclose(
        one.predict_proba(table, "group"), two.predict_proba(skewed, "group"), rtol=1e-9
    )


def test_a_saved_model_keeps_it(skewed, tmp_path):
    model = mg.MixedGraphicalModel(lam=0.1, transforms={"height": "nonparanormal"}).fit(skewed)
    model.save(tmp_path / "skewed.mgm")
    twin = mg.load(tmp_path / "skewed.mgm")
    assert twin.get_params()["transforms"] == {"height": "nonparanormal"}
    assert twin.schema_ == model.schema_
    assert twin.predict(skewed).equals(model.predict(skewed))
    assert twin.score(skewed) == model.score(skewed)


def test_values_outside_the_training_range_are_taken(skewed):
    model = mg.MixedGraphicalModel(lam=0.1, transforms="nonparanormal").fit(skewed)
    rows = skewed.iloc[:2].assign(height=[skewed["height"].max() * 3, -5.0])
    assert np.isfinite(model.score(rows))
    assert model.predict(rows).notna().all(axis=None)


def test_weights_are_frequencies_in_the_ranks(skewed):
    weights = np.random.default_rng(0).integers(1, 3, len(skewed))
    options = {"lam": 0.1, "transforms": "nonparanormal", "tol": 1e-8}
    one = mg.MixedGraphicalModel(**options).fit(skewed, sample_weight=weights)
    repeated = skewed.loc[skewed.index.repeat(weights)]
    two = mg.MixedGraphicalModel(**options).fit(repeated)
    assert_same_params(one.params_, two.params_, atol=1e-6)


# -- by default ------------------------------------------------------------------------------------


def transformed(model):
    return [column.name for column in model.schema_.columns if column.transform is not None]


def test_by_default_the_values_decide(table, skewed):
    assert transformed(mg.MixedGraphicalModel(lam=0.1).fit(table)) == []
    model = mg.MixedGraphicalModel(lam=0.1).fit(skewed)
    by_name = mg.MixedGraphicalModel(
        lam=0.1, transforms={"height": "nonparanormal", "weight": "nonparanormal"}
    ).fit(skewed)
    assert transformed(model) == ["height", "weight"]
    assert_same_params(model.params_, by_name.params_, atol=0)
    assert model.predict(skewed).equals(by_name.predict(skewed))


def test_columns_that_a_mapping_does_not_name_are_decided_by_their_values(skewed):
    model = mg.MixedGraphicalModel(lam=0.1, transforms={"height": None}).fit(skewed)
    assert transformed(model) == ["weight"]
    model = mg.MixedGraphicalModel(lam=0.1, transforms={"height": "auto"}).fit(skewed)
    assert transformed(model) == ["height", "weight"]


def test_without_transforms_the_numbers_are_those_of_the_table(skewed):
    with pytest.warns(mg.TableWarning, match="skewness"):
        model = mg.MixedGraphicalModel(lam=0.1, tol=1e-9, transforms=None).fit(skewed)
    assert transformed(model) == []
    each = dict.fromkeys(skewed)
    by_name = mg.MixedGraphicalModel(lam=0.1, tol=1e-9, transforms=each).fit(skewed)
    assert_same_params(model.params_, by_name.params_, atol=0)
    # Another unit is another coefficient, which ranks would not show.
    larger = skewed.assign(weight=skewed["weight"] * 8.0)
    model_of_larger = mg.MixedGraphicalModel(lam=0.1, tol=1e-9, transforms=each).fit(larger)
    ratio = model.params_.precision[1, 1] / model_of_larger.params_.precision[1, 1]
    assert ratio == pytest.approx(64.0, rel=1e-6)


def test_what_comes_back_is_in_units_of_the_data(skewed):
    model = mg.MixedGraphicalModel(lam=0.05).fit(skewed)
    low, high = skewed["height"].min(), skewed["height"].max()
    for values in (
        model.predict(skewed)["height"],
        model.sample(200, random_state=0)["height"],
        model.conditional("height", given={"smoker": True}).frame()["height_centre"],
    ):
        assert ((values >= low) & (values <= high)).all()
    # Half of the draws lie below the median of the table, up to 4 standard errors of 200.
    drawn = model.sample(200, random_state=1)["height"]
    assert abs((drawn < skewed["height"].median()).mean() - 0.5) < 4 * np.sqrt(0.5 / 200)


def test_the_choice_is_shown_and_stored(skewed, tmp_path):
    model = mg.MixedGraphicalModel(lam=0.1).fit(skewed)
    assert "nonparanormal" in str(model.schema_)
    assert "transformed  height, weight (normal scores of ranks)" in str(model.summary())
    model.save(tmp_path / "skewed.mgm")
    twin = mg.load(tmp_path / "skewed.mgm")
    assert twin.get_params()["transforms"] == "auto"
    assert twin.schema_ == model.schema_
    assert twin.predict(skewed).equals(model.predict(skewed))
    page = tmp_path / "report.html"
    model.report(page, skewed, check=False)
    text = page.read_text(encoding="utf-8")
    assert "Normal scores of ranks (nonparanormal) were used for height, weight because" in text


def test_resamples_keep_the_choice_of_the_whole_table(skewed):
    model = mg.MixedGraphicalModel(lam=0.1).fit(skewed)
    boot = mg.bootstrap(model, skewed, n_boot=3, random_state=0, n_jobs=1)
    assert boot.n_boot == 3
    fitted = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(
        skewed.mask(np.random.default_rng(0).random(skewed.shape) < 0.05)
    )
    assert transformed(fitted) == ["height", "weight"]

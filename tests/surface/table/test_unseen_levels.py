"""Levels that the fit did not have, and scikit-learn's searches over such rows and over gaps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import mixedgm as mg
from tests.reference import plain


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bath", "Oslo", "Rome"], n)
    size = rng.choice(["L", "S"], n)
    age = rng.normal(40, 10, n) + 8 * (city == "Rome") + 4 * (size == "S")
    return pd.DataFrame({"age": age, "city": city, "size": size})


def in_library(frame, library):
    return {
        "str": lambda: frame,
        "category": lambda: frame.astype({"city": "category"}),
        "polars": lambda: pl.DataFrame(frame),
        "polars.Categorical": lambda: pl.DataFrame(frame).with_columns(
            pl.col("city").cast(pl.Categorical)
        ),
    }[library]()


@pytest.fixture(scope="module")
def model():
    return mg.MixedGraphicalModel(lam=0.02).fit(table())


def test_an_unseen_level_is_an_error_of_predictions_that_names_the_way_out(model):
    rows = table(5, seed=1).assign(city=["Bath", "Bonn", "Rome", "Bonn", "Oslo"])
    for ask in (
        model.predict,
        model.predict_proba,
        model.impute,
        lambda X: model.score(X, unseen="error"),
        lambda X: model.node_scores(X, unseen="error"),
    ):
        with pytest.raises(mg.TableError, match=r"in 2 rows: 'Bonn'.*unseen=\"ignore\""):
            ask(rows)
    with pytest.raises(mg.ParameterError, match="unseen must be 'error' or 'ignore'"):
        model.predict(rows, unseen="missing")
    with pytest.raises(mg.TableError) as said:
        model.log_likelihood(rows)
    assert "unseen=" not in str(said.value)  # it has no such option


def test_an_unseen_level_has_no_terms_and_the_probability_of_half_a_row(model):
    """By hand: node terms and the terms of the cells that are known, nothing else."""
    params, n = model.params_, 200
    rows = pd.DataFrame({"age": [35.0, 50.0], "city": ["Bonn", "Bonn"], "size": ["L", "S"]})
    found = model.predict(rows, unseen="ignore")
    chances = model.predict_proba(rows, "size", unseen="ignore").to_numpy()
    losses = []
    for at, (age, size) in enumerate([(35.0, 0), (50.0, 1)]):
        mean = (params.cont_bias[0] + params.category_shift[0, 3 + size]) / params.precision[0, 0]
        assert found["age"].iloc[at] == pytest.approx(mean, rel=1e-12)
        logits = params.cat_bias[3:] + params.category_shift[0, 3:] * age
        prob = np.exp(logits - logits.max())
        np.testing.assert_allclose(chances[at], prob / prob.sum(), rtol=1e-12)
        variance = 1 / params.precision[0, 0]
        losses.append(
            [
                0.5 * ((age - mean) ** 2 / variance + np.log(2 * np.pi * variance)),
                -np.log(0.5 / (n + 0.5)),
                -np.log(prob[size] / prob.sum()),
            ]
        )
    expected = np.mean(losses, axis=0)
    np.testing.assert_allclose(list(model.node_scores(rows).values()), expected, rtol=1e-12)
    assert model.score(rows) == pytest.approx(-expected.sum(), rel=1e-12)
    # Its own column is predicted from the others, as if it were absent.
    pd.testing.assert_frame_equal(
        model.predict_proba(rows, "city"), model.predict_proba(rows.drop(columns="city"), "city")
    )


def test_rows_without_it_score_as_ever(model):
    rows = table(50, seed=2)
    odd = rows.iloc[:5].assign(city="Bonn")
    both = pd.concat([rows, odd])
    expected = (50 * model.score(rows) + 5 * model.score(odd)) / 55
    assert model.score(both) == pytest.approx(expected, rel=1e-12)


def test_a_row_scores_as_if_the_level_had_been_declared(model):
    levels = ["Bath", "Oslo", "Rome", "Bonn"]
    train = table()
    train["city"] = pd.Categorical(train["city"], levels)
    with pytest.warns(mg.TableWarning, match="level without rows: 'Bonn'"):
        declared = mg.MixedGraphicalModel(lam=0.02, tol=1e-8).fit(train)
    exact = mg.MixedGraphicalModel(lam=0.02, tol=1e-8).fit(table())
    rows = table(6, seed=3).assign(city="Bonn")
    for name, loss in exact.node_scores(rows).items():
        assert loss == pytest.approx(declared.node_scores(rows)[name], rel=1e-6)


def test_an_unseen_level_beside_a_gap_is_conditioned_on_without_terms():
    """Against the sum over the states of the missing column."""
    rng = np.random.default_rng(4)
    frame = table().assign(shape=rng.choice(["o", "x"], 200))
    model = mg.MixedGraphicalModel(lam=0.0).fit(frame)
    params = model.fitted_.joint_params
    rows = pd.DataFrame({"age": [45.0], "city": ["Bonn"], "size": [None], "shape": ["x"]})
    weights = []
    for size in range(2):  # columns: city 0-2, size 3-4, shape 5-6
        log = params.cat_bias[3 + size] + params.cat_interaction[3 + size, 6]
        linear = params.cont_bias[0] + params.category_shift[0, [3 + size, 6]].sum()
        log += 0.5 * linear**2 / params.precision[0, 0]  # age integrated out
        weights.append(log)
    prob = np.exp(weights - np.max(weights))
    prob /= prob.sum()
    mean = sum(
        prob[size]
        * (params.cont_bias[0] + params.category_shift[0, [3 + size, 6]].sum())
        / params.precision[0, 0]
        for size in range(2)
    )
    assert model.predict(rows, "age", unseen="ignore")[0] == pytest.approx(mean, rel=1e-9)
    both = rows.assign(age=np.nan)
    assert model.impute(both, unseen="ignore")["age"][0] == pytest.approx(mean, rel=1e-9)
    assert model.impute(both, unseen="ignore")["city"][0] == "Bonn"
    drawn = model.impute(both, 3, random_state=0, unseen="ignore")
    assert all(each["city"][0] == "Bonn" for each in drawn)


@pytest.mark.parametrize("library", ["str", "category", "polars", "polars.Categorical"])
@pytest.mark.filterwarnings("ignore:.*level without rows")
def test_a_level_in_one_fold_only_leaves_every_fold_finite(library):
    frame = table()
    frame.loc[3, "city"] = "Bonn"
    found = cross_val_score(mg.MixedGraphicalModel(lam=0.1), in_library(frame, library), cv=5)
    assert np.isfinite(found).all()
    train, test = frame.iloc[40:], frame.iloc[:40]
    alone = mg.MixedGraphicalModel(lam=0.1).fit(train)
    if library != "category":  # which declares the level
        assert found[0] == alone.score(test)


@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
def test_moderated_and_separate_models_score_unseen_levels_too(loss):
    frame = table().assign(wave=np.tile(["w1", "w2"], 100))
    model = mg.MixedGraphicalModel(lam=0.05, loss=loss, moderators=["wave"]).fit(frame)
    rows = table(5, seed=7).assign(wave="w3", city="Bonn")
    assert np.isfinite(model.score(rows))


def gappy(library):
    frame = table(300)
    frame["visits"] = np.random.default_rng(0).integers(0, 2, 300)
    frame.loc[[0, 1], "visits"] = 2  # in the first fold only
    frame = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.08)
    frame.loc[[0, 1], "visits"] = 2.0
    return frame if library == "pandas" else pl.from_pandas(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_grid_search_takes_a_table_with_gaps_and_keeps_its_kinds(library):
    frame = gappy(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.TableWarning)
        schema = mg.check_table(frame, missing="drop").schema
        assert {c.name: c.kind for c in schema.columns}["visits"] == "continuous"
        search = GridSearchCV(
            mg.MixedGraphicalModel(missing="drop", types=schema),
            {"lam": [0.05, 0.2, 1.0]},
            cv=KFold(3),
        ).fit(frame)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        first = frame[100:] if library == "pandas" else frame[100:]
        inferred = mg.MixedGraphicalModel(lam=0.2, missing="drop").fit(first).schema_
        fixed = mg.MixedGraphicalModel(lam=0.2, missing="drop", types=schema).fit(first).schema_
    assert inferred.columns[3].kind == "categorical"  # two whole numbers are left
    assert fixed.columns[3].kind == "continuous"
    assert [c.levels for c in fixed.columns] == [c.levels for c in schema.columns]
    assert search.best_estimator_.predict(frame).shape == frame.shape


def test_a_schema_keeps_levels_that_a_fold_lacks_and_refuses_others():
    frame = table()
    schema = mg.check_table(frame).schema
    part = frame[frame["city"] != "Oslo"]
    model = mg.MixedGraphicalModel(lam=0.1, types=schema).fit(part)  # without a warning
    assert model.schema_.columns[1].levels == ("Bath", "Oslo", "Rome")
    assert model.predict_proba(part, "city").columns.tolist() == ["Bath", "Oslo", "Rome"]
    with pytest.raises(mg.TableError, match=r"'city': levels that the sch.*: 'Bonn' \(2 rows\)"):
        mg.MixedGraphicalModel(types=schema).fit(frame.replace({"city": {"Oslo": "Bonn"}}).iloc[:9])
    same = part[part["city"] == "Rome"]
    with pytest.warns(mg.TableWarning, match="it is constant: 'Rome'"):
        alone = mg.MixedGraphicalModel(lam=0.1, types=schema).fit(same)
    assert np.isfinite(alone.score(frame))
    assert not any("city" in edge[:2] for edge in alone.edges_)


def test_a_rare_level_of_two_leaves_every_fold_finite_under_a_schema():
    frame = table().assign(rare="no")
    frame.loc[:2, "rare"] = "yes"
    schema = mg.check_table(frame).schema
    with pytest.warns(mg.TableWarning, match="'rare': it is constant"):
        found = cross_val_score(mg.MixedGraphicalModel(lam=0.1, types=schema), frame, cv=4)
    assert np.isfinite(found).all()


def test_a_schema_is_kept_by_clones_and_model_files(tmp_path):
    from sklearn.base import clone

    schema = mg.check_table(table()).schema
    model = mg.MixedGraphicalModel(lam=0.1, types=schema)
    assert clone(model).get_params()["types"] == schema
    model.fit(table()).save(tmp_path / "model.mgm")
    assert mg.load(tmp_path / "model.mgm").get_params()["types"] == schema


def test_both_predictions_take_columns(model):
    rows = table(4, seed=9)
    new = model.predict_proba(rows, columns="city")
    pd.testing.assert_frame_equal(model.predict_proba(rows, "city"), new)
    several = model.predict_proba(rows, columns=["size", "city"])
    assert list(several) == ["size", "city"]
    pd.testing.assert_frame_equal(several["city"], new)


@pytest.mark.filterwarnings("ignore:the choice lies near the end")
def test_the_package_cross_validates_by_the_same_rule():
    """The loss of a fold whose level the other rows lack: half a row, and no terms."""
    frame = table(60)
    frame.loc[0, "city"] = "Bonn"
    folds = [(np.arange(20, 60), np.arange(20))]
    chosen = mg.MixedGraphicalModel(lams=[0.3, 0.1], select=mg.CV(folds, one_se=False)).fit(frame)
    schema = mg.check_table(frame).schema
    for k, lam in enumerate([0.3, 0.1]):
        alone = mg.MixedGraphicalModel(lam=lam, types=schema, tol=1e-7).fit(frame.iloc[20:])
        loss = -alone.score(frame.iloc[:20])
        assert chosen.fitted_.scores["cv"][k] == pytest.approx(loss, abs=1e-4)
        bare = mg.MixedGraphicalModel(lam=lam, tol=1e-7).fit(frame.iloc[20:])
        # Not declared, the level takes nothing from the others: 19 cells count n / (n + 1/2) more.
        assert bare.score(frame.iloc[:20]) == pytest.approx(
            -loss + 19 / 20 * np.log((40 + 0.5) / 40), abs=1e-6
        )


def test_plain_conditionals_agree(model):
    """Rows without gaps or unseen levels, against the formula of the conditional."""
    rows = table(5, seed=11)
    found = model.predict(rows)
    for at, row in rows.iterrows():
        y = [["Bath", "Oslo", "Rome"].index(row["city"]), ["L", "S"].index(row["size"])]
        mean = plain.conditional_mean(model.params_, 0, np.array([row["age"]]), np.array(y))
        assert found["age"][at] == pytest.approx(mean, rel=1e-10)

"""`loss="likelihood"` with covariates, through the estimator, the path and the command line."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.command_line import mixedgm
from tests.support.people import assert_same_params, people

COVARIATES = ["weight", "smoker"]
Model = partial(mg.MixedGraphicalModel, loss="likelihood", covariates=COVARIATES, n_jobs=1)


@pytest.fixture(scope="module")
def table():
    return people(150)


@pytest.fixture(scope="module")
def chosen(table):
    return Model(select="ebic").fit(table)


def test_every_point_of_the_default_path_is_certified(chosen):
    path = chosen.path_
    assert path.converged.all()
    assert (path.kkt <= 1e-5).all()
    assert path.loss == "likelihood"
    assert (path.passes > 0.0).any()
    assert chosen.converged_


def test_edges_of_covariates_are_directed_and_summed_up(chosen):
    directed = [edge for edge in chosen.edges_ if edge.directed]
    assert directed
    assert all(edge.source in COVARIATES and edge.target not in COVARIATES for edge in directed)
    assert "covariates   weight, smoker" in str(chosen.summary())


def test_every_edge_is_priced_once(table, chosen):
    scores, n = chosen.fitted_.scores, len(table)
    price = scores["degrees_of_freedom"] * np.log(n)
    price = price + 4 * 0.5 * chosen.path_.n_edges * np.log(5)
    np.testing.assert_allclose(scores["ebic"], 2 * n * scores["refit_loss"] + price)


def test_a_row_twice_is_a_row_of_weight_two(table):
    weights = np.random.default_rng(0).integers(1, 3, len(table))
    twice = table.iloc[np.repeat(np.arange(len(table)), weights)]
    one = Model(lam=0.05, tol=1e-8).fit(twice)
    other = Model(lam=0.05, tol=1e-8).fit(table, sample_weight=weights)
    assert_same_params(one.params_, other.params_, atol=1e-6)


def test_units_do_not_matter(table):
    one = Model(lam=0.05, tol=1e-8).fit(table)
    moved = table.assign(weight=1000 * table["weight"] + 5, height=table["height"] / 10 - 3)
    other = Model(lam=0.05, tol=1e-8).fit(moved)
    assert one.objective_ - np.log(10) == pytest.approx(other.objective_, abs=1e-8)
    norms = [{(e.source, e.target): e.norm for e in model.edges_} for model in (one, other)]
    assert norms[0] == pytest.approx(norms[1], abs=1e-6)


@pytest.mark.parametrize("column", ["group", "smoker"])
def test_a_level_without_rows_has_no_part(table, column):
    """In a target and in a covariate."""
    table = table.assign(smoker=pd.Categorical(table["smoker"]))
    frame = table.assign(**{column: table[column].cat.add_categories("other")})
    with pytest.warns(mg.TableWarning, match="'other'"):
        model = Model(lam=0.05, tol=1e-8).fit(frame)
    plain = Model(lam=0.05, tol=1e-8).fit(table)
    assert model.objective_ == pytest.approx(plain.objective_, abs=1e-10)
    assert model.log_likelihood(frame) == pytest.approx(plain.log_likelihood(table), abs=1e-8)
    row = frame.iloc[[0]].assign(
        **{column: pd.Categorical(["other"], frame[column].cat.categories)}
    )
    if column == "group":
        assert model.log_density(row)[0] == -np.inf
        assert np.isfinite(model.path_.log_likelihood(row)[0])
    else:  # says nothing, and is no target
        assert np.isfinite(model.log_density(row)[0])


@pytest.mark.parametrize("select", ["bic", "aic", "stars", "holdout", "cv"])
def test_other_criteria_choose(table, select):
    criterion = {"cv": mg.CV(cv=3)}.get(select, select)
    model = Model(select=criterion, random_state=0, n_lams=8, lam_min_ratio=0.1).fit(table)
    assert model.converged_


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_rows_held_out_are_scored_by_their_likelihood_given_covariates(table):
    for name in ("smoker", "colour"):
        table = table.assign(**{name: pd.Categorical(table[name])})
    rows, lams = np.arange(0, 150, 5), [0.3, 0.1, 0.03]
    rest = np.setdiff1d(np.arange(150), rows)
    model = Model(select=mg.Holdout(rows=rows), lams=lams, tol=1e-8).fit(table)
    path = mg.fit_path(
        table.iloc[rest], lams, loss="likelihood", covariates=COVARIATES, tol=1e-8, n_jobs=1
    )
    by_path = path.log_likelihood(table.iloc[rows])
    expected = [
        Model(lam=lam, tol=1e-8).fit(table.iloc[rest]).log_likelihood(table.iloc[rows])
        for lam in lams
    ]
    np.testing.assert_allclose(by_path, expected, atol=1e-6)
    np.testing.assert_allclose(model.fitted_.scores["holdout"], -by_path, atol=1e-6)


def test_paths_of_either_loss_have_both_scores(table):
    for loss in ("likelihood", "pseudolikelihood"):
        path = mg.fit_path(table, loss=loss, covariates=COVARIATES, n_lams=4, n_jobs=1)
        model = mg.MixedGraphicalModel(lam=path.lams[2], loss=loss, covariates=COVARIATES)
        model.fit(table)
        assert path.log_likelihood(table)[2] == pytest.approx(model.log_likelihood(table), abs=1e-4)
        assert path.score(table)[2] == pytest.approx(model.score(table), abs=1e-4)
        assert path.log_likelihood(table)[0] == pytest.approx(path.score(table)[0], abs=1e-9)


def test_a_path_point_without_distribution_has_no_likelihood():
    x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    path = mg.fit_path(x, lams=[2.0, 0.02])
    wrong = replace(path.points[1], values=np.array([5.0]))
    path = replace(path, points=(path.points[0], wrong))
    assert np.linalg.eigvalsh(path.params(1).precision)[0] < 0.0
    assert np.isnan(path.log_likelihood(x)).tolist() == [False, True]


def test_separate_regressions_have_no_likelihood(table):
    path = mg.fit_path(table, lams=[0.2], loss="nodewise")
    with pytest.raises(mg.DistributionError, match="separate regressions.*score"):
        path.log_likelihood(table)


def test_questions_and_draws_given_covariates(table, chosen):
    given = {"weight": 70.0, "smoker": table["smoker"].iloc[0]}
    drawn = chosen.sample(20, given, random_state=0)
    assert (drawn["weight"] == 70.0).all()
    assert len(chosen.predict(table).columns) == 3
    assert set(chosen.node_scores(table)) == {"height", "group", "colour"}
    with pytest.raises(mg.ParameterError, match="no distribution of its covariates"):
        chosen.sample(5)


def test_too_many_joint_states_are_an_error_with_columns_and_remedy():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 5, (80, 6)), columns=list("abcdef")).astype("category")
    frame["x"] = rng.normal(size=80)
    with pytest.raises(mg.TooLargeError, match=r"'a', 'b'.*15,625.*loss='pseudolikelihood'"):
        mg.MixedGraphicalModel(loss="likelihood", covariates=["x"]).fit(frame)


def test_a_saved_model_is_the_same(table, chosen, tmp_path):
    chosen.save(tmp_path / "model.mgm")
    loaded = mg.load(tmp_path / "model.mgm")
    assert str(loaded.summary()) == str(chosen.summary())
    assert loaded.path_.layout.covariates == chosen.path_.layout.covariates
    assert loaded.log_likelihood(table) == chosen.log_likelihood(table)
    np.testing.assert_array_equal(
        loaded.path_.log_likelihood(table), chosen.path_.log_likelihood(table)
    )


def test_the_command_line_takes_covariates_with_the_likelihood(table, tmp_path):
    table.to_csv(tmp_path / "people.csv", index=False)
    words = ("fit", "people.csv", "-o", "m.mgm", "--loss", "likelihood", "--lam", "0.05")
    done = mixedgm(*words, "--covariates", ",".join(COVARIATES), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = mg.load(tmp_path / "m.mgm")
    assert model.loss == "likelihood"
    assert model.covariates == COVARIATES


def test_the_bootstrap_fits_likelihoods_given_covariates(table):
    model = Model(lam=0.05).fit(table)
    found = mg.bootstrap(model, table, n_boot=5, random_state=0, n_jobs=1)
    assert found.n_failed == 0

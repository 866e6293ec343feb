"""A fitted estimator -> a file -> the same estimator; whole paths and their held-out scores."""

import numpy as np
import pytest

import mixedgm as mg
from tests.reference import plain
from tests.support.people import as_library, assert_same_params, numbers, people
from tests.support.solvers import interrupted_at

NODES = ["height", "weight", "group", "smoker", "colour"]

SETTINGS = {
    "default-path": {"n_lams": 5, "lam_min_ratio": 0.2},
    "given-lam": {"lam": 0.2},
    "numpy-numbers": {"lam": np.float64(0.2), "max_iter": np.int64(500)},
    "given-lams": {"lams": [0.4, 0.2]},
    "criterion-object": {"select": mg.EBIC(gamma=0.25), "n_lams": 4},
    "criterion-without-options": {"select": mg.AIC(), "n_lams": 4},
    "newton-object": {"lam": 0.2, "solver": mg.ProximalNewton(hessian="exact", memory=7)},
    "gradient-object": {"lam": 0.2, "solver": mg.ProximalGradient("tseng", restart=False)},
    "factors": {
        "lam": 0.2,
        "penalty_factors": {("height", "weight"): 0.5, "categorical-categorical": np.inf},
    },
    "types-and-transform": {
        "lam": 0.2,
        "types": {"smoker": "categorical"},
        "transforms": {"height": "nonparanormal", "weight": None},
    },
    "adaptive": {"lam": 0.2, "penalty_weights": "adaptive"},
    "lists-of-lists": {
        "lam": 0.2,
        "require": [["height", "weight"]],
        "forbid": [["group", "colour"]],
    },
    "pairs-as-tuples": {
        "lam": 0.2,
        "require": [("height", "weight")],
        "forbid": [("group", "colour")],
    },
    "everything-else": {
        "lam": 0.2,
        "penalty_weights": "uniform",
        "refit": True,
        "tol": 1e-7,
        "n_jobs": 1,
        "random_state": 3,
        "rule": "and",
        "penalize_covariates": True,
        "missing": "drop",
        "lam_min_ratio": 0.05,
    },
}


@pytest.mark.filterwarnings("ignore:the choice lies near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_loaded_model_is_the_saved_one(name, tmp_path):
    frame = people()
    model = mg.MixedGraphicalModel(**SETTINGS[name]).fit(frame)
    model.save(tmp_path / "people.mgm")
    twin = mg.load(tmp_path / "people.mgm")
    assert type(twin) is mg.MixedGraphicalModel
    assert twin.get_params() == model.get_params()
    assert vars(twin).keys() == vars(model).keys()
    assert_same_params(twin.params_, model.params_)
    assert twin.edges_ == model.edges_
    assert twin.schema_ == model.schema_
    assert twin.fitted_.report == model.fitted_.report
    assert twin.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert (twin.lam_, twin.kkt_, twin.n_iter_) == (model.lam_, model.kkt_, model.n_iter_)
    assert twin.predict(frame).equals(model.predict(frame))
    assert twin.predict_proba(frame, "group").equals(model.predict_proba(frame, "group"))
    assert twin.score(frame) == model.score(frame)
    assert twin.edges().equals(model.edges())
    np.testing.assert_array_equal(twin.path_.lams, model.path_.lams)
    for label, scores in model.fitted_.scores.items():
        np.testing.assert_array_equal(twin.fitted_.scores[label], scores)


@pytest.mark.filterwarnings("ignore:the choice lies near the end:mixedgm.SelectionWarning")
def test_an_array_of_lams_comes_back_with_the_same_values(tmp_path):
    model = mg.MixedGraphicalModel(lams=np.array([0.4, 0.2])).fit(people())
    model.save(tmp_path / "people.mgm")
    assert list(mg.load(tmp_path / "people.mgm").get_params()["lams"]) == [0.4, 0.2]


@pytest.mark.parametrize("name", ["default-path", "factors", "types-and-transform"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    model = mg.MixedGraphicalModel(**SETTINGS[name]).fit(people())
    model.save(tmp_path / "people.mgm")
    twin = mg.load(tmp_path / "people.mgm")
    other = people(seed=9)
    assert_same_params(twin.fit(other).params_, model.fit(other).params_)


@pytest.mark.parametrize("library", ["polars", "pyarrow", "codes"])
def test_the_library_of_the_frames_is_kept(library, tmp_path):
    table = as_library(people(), library)
    types = {1: "categorical"} if library == "codes" else None
    model = mg.MixedGraphicalModel(lam=0.2, types=types).fit(table)
    model.save(tmp_path / "people.mgm")
    twin = mg.load(tmp_path / "people.mgm")
    assert type(twin.edges()) is type(model.edges())
    assert type(twin.predict(table)) is type(model.predict(table))
    assert hasattr(twin, "feature_names_in_") == (library != "codes")
    assert twin.n_features_in_ == 5
    assert twin.get_params() == model.get_params()


def test_saving_needs_a_fit(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        mg.MixedGraphicalModel().save(tmp_path / "nothing.mgm")
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "people.mgm"
    path.write_text("height,weight\n1,2\n")
    with pytest.raises(mg.ModelFileError, match=r"people\.mgm"):
        mg.load(path)


# -- paths -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path():
    return mg.fit_path(people(), n_lams=6, lam_min_ratio=0.05, tol=1e-7)


def test_a_path_is_a_fit_per_lam(path):
    for k in (1, 3, 5):
        model = mg.MixedGraphicalModel(lam=path.lams[k], tol=1e-7).fit(people())
        assert_same_params(path.params(k), model.params_, atol=1e-4)
        assert path.objective[k] == pytest.approx(model.objective_, abs=1e-9)
        assert set(path.edges(k)) == {(e.source, e.target) for e in model.edges_}


def test_a_path_starts_empty_and_its_objective_falls(path):
    assert path.n_edges[0] == 0
    assert path.edges(0) == ()
    assert (np.diff(path.lams) < 0).all()
    assert (np.diff(path.objective) <= 0).all()
    assert path.n_edges.tolist() == [len(path.edges(k)) for k in range(len(path))]


def test_edges_of_a_path_are_the_nonzero_blocks(path):
    for k in range(len(path)):
        params = path.params(k)
        present = {
            (NODES[u], NODES[v]) for u, v in plain.pairs(2, 3) if np.any(plain.block(params, u, v))
        }
        assert set(path.edges(k)) == present


def test_held_out_rows_are_scored_at_every_lam(path):
    rows = people(60, seed=8)
    X, Y = numbers(rows)
    expected = [-plain.smooth(path.params(k), X, Y) - np.log(2 * np.pi) for k in range(len(path))]
    np.testing.assert_allclose(path.score(rows), expected, rtol=1e-10)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    expected = [
        -plain.smooth(path.params(k), X, Y, weights) - np.log(2 * np.pi) for k in range(len(path))
    ]
    np.testing.assert_allclose(path.score(rows, sample_weight=weights), expected, rtol=1e-10)


@pytest.mark.parametrize("options", [{}, {"covariates": ["weight", "group"]}, {"loss": "nodewise"}])
def test_scores_by_column_are_those_of_the_models_on_the_path(options):
    table, rows = people(), people(60, seed=8)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    lams = [0.3, 0.05]
    found = mg.fit_path(table, lams, tol=1e-7, **options).node_scores(rows, weights)
    for k, lam in enumerate(lams):
        model = mg.MixedGraphicalModel(lam, tol=1e-7, **options).fit(table)
        expected = model.node_scores(rows, weights)
        assert {name: at[k] for name, at in found.items()} == pytest.approx(expected, rel=1e-5)


def test_the_path_of_a_model_is_the_same_path(path):
    model = mg.MixedGraphicalModel(n_lams=6, lam_min_ratio=0.05, tol=1e-7).fit(people())
    np.testing.assert_array_equal(model.path_.lams, path.lams)
    np.testing.assert_array_equal(model.path_.objective, path.objective)
    assert_same_params(model.path_.params(3), path.params(3))


def test_a_path_takes_lams_weights_and_options():
    weights = np.random.default_rng(0).integers(1, 3, 150)
    path = mg.fit_path(people(), [0.2, 0.5], sample_weight=weights, forbid=[("height", "weight")])
    assert path.lams.tolist() == [0.5, 0.2]
    assert path.total_weight == weights.sum()
    model = mg.MixedGraphicalModel(lam=0.2, forbid=[("height", "weight")])
    model.fit(people(), sample_weight=weights)
    assert path.objective[1] == pytest.approx(model.objective_, abs=1e-8)


def test_an_interrupted_path_keeps_what_is_solved():
    options = {"select": "ebic", "n_lams": 6, "solver": interrupted_at(4)}
    with (
        pytest.warns(RuntimeWarning, match="interrupted: .* 3 of 6 values solved"),
        pytest.warns(mg.SelectionWarning, match="near the end .* no smaller value was tried"),
    ):
        model = mg.MixedGraphicalModel(**options).fit(people())
    assert len(model.path_) == 3
    assert model.lam_ in model.path_.lams
    assert np.isfinite(model.score(people()))

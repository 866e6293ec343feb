"""scikit-learn's own checks and conventions: parameters, cloning, pickling, search, pipelines."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixedgm as mg
from tests.support.people import as_library, assert_same_params, people

MODELS = [
    mg.MixedGraphicalModel(),
    mg.MixedGraphicalModel(lam=0.1),
    mg.MixedGraphicalModel(lam=0.1, missing="drop"),
]

# Name of a check -> why it cannot hold for this estimator.
EXPECTED_FAILURES = {
    "check_estimators_nan_inf": "fit refuses missing values, but predict answers rows with gaps"
}


def test_what_that_check_asks_for_besides_gaps():
    """Neither fit nor predict takes infinite values, and fit takes no missing ones."""
    rows = np.random.default_rng(0).normal(size=(30, 3))
    model = mg.MixedGraphicalModel(lam=0.1).fit(rows)
    for bad in (np.inf, -np.inf, np.nan):
        spoilt = rows.copy()
        spoilt[0, 0] = bad
        with pytest.raises(ValueError, match="infinite value|missing value"):
            mg.MixedGraphicalModel(lam=0.1).fit(spoilt)
        if np.isinf(bad):
            with pytest.raises(ValueError, match="infinite value"):
                model.predict(spoilt)
        else:
            assert np.isfinite(model.predict(spoilt)).all()


# The checks fit tables of a few rows with whole numbers, about which the table room warns.
@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(MODELS, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_parameters_are_those_of_the_constructor_in_keyword_only_form():
    model = mg.MixedGraphicalModel(0.3, n_lams=7, transforms="nonparanormal")
    params = model.get_params()
    assert (params["lam"], params["n_lams"], params["transforms"]) == (0.3, 7, "nonparanormal")
    assert len(params) == 25
    with pytest.raises(TypeError, match="positional"):
        mg.MixedGraphicalModel(0.3, "bic")


def test_set_params_reaches_the_fit_and_refuses_unknown_names():
    model = mg.MixedGraphicalModel(lam=0.2).set_params(lam=0.4, forbid=[("height", "weight")])
    assert model.fit(people()).lam_ == 0.4
    assert ("height", "weight") not in {(e.source, e.target) for e in model.edges_}
    with pytest.raises(ValueError, match="Invalid parameter 'lamda'"):
        model.set_params(lamda=1.0)


def test_clone_copies_parameters_and_forgets_the_fit():
    factors = {("height", "weight"): 0.5}
    model = mg.MixedGraphicalModel(
        lam=0.2, penalty_factors=factors, transforms="nonparanormal", solver=mg.ProximalGradient()
    ).fit(people())
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "fitted_")
    assert_same_params(twin.fit(people()).params_, model.params_)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_fit_leaves_parameters_alone():
    given = {
        "lams": [0.1, 0.4, 0.2],
        "penalty_factors": {("height", "weight"): 0.5},
        "require": [("group", "smoker")],
        "forbid": [("height", "colour")],
        "types": {"smoker": "categorical"},
        "transforms": {"height": "nonparanormal"},
        "select": mg.BIC(),
    }
    model = mg.MixedGraphicalModel(**given)
    before = {name: (id(value), repr(value)) for name, value in model.get_params().items()}
    model.fit(people())
    after = {name: (id(value), repr(value)) for name, value in model.get_params().items()}
    assert after == before


@pytest.mark.parametrize("method", ["edges", "nodes", "summary", "to_networkx", "to_adjacency"])
def test_asking_before_fitting_says_so(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(mg.MixedGraphicalModel(), method)()


@pytest.mark.parametrize("method", ["predict", "score", "node_scores"])
def test_new_data_before_fitting_says_so(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(mg.MixedGraphicalModel(), method)(people())


def test_pickle_keeps_everything():
    frame = people()
    model = mg.MixedGraphicalModel(n_lams=5, lam_min_ratio=0.2).fit(frame)
    twin = pickle.loads(pickle.dumps(model))
    assert twin.get_params() == model.get_params()
    assert_same_params(twin.params_, model.params_)
    assert twin.edges_ == model.edges_
    assert twin.score(frame) == model.score(frame)
    assert twin.predict(frame).equals(model.predict(frame))
    np.testing.assert_array_equal(twin.path_.kkt, model.path_.kkt)


def test_an_unfitted_model_with_a_transform_survives_pickling():
    twin = pickle.loads(pickle.dumps(mg.MixedGraphicalModel(transforms="nonparanormal")))
    assert twin.get_params()["transforms"] == "nonparanormal"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_names_of_a_frame_are_kept(library):
    model = mg.MixedGraphicalModel(lam=0.3).fit(as_library(people(), library))
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.dtype == object
    assert model.feature_names_in_.tolist() == ["height", "group", "weight", "smoker", "colour"]


def test_an_array_has_no_feature_names_and_a_refit_resets_them():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.3).fit(frame)
    assert hasattr(model, "feature_names_in_")
    model.fit(frame[["height", "weight"]].to_numpy())
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


def test_fitting_again_resets_every_attribute():
    frame = people()
    once = mg.MixedGraphicalModel(lam=0.2).fit(frame[["height", "weight", "group"]])
    again = mg.MixedGraphicalModel(lam=0.2).fit(frame).fit(frame[["height", "weight", "group"]])
    assert vars(again).keys() == vars(once).keys()
    assert_same_params(again.params_, once.params_)
    assert again.schema_ == once.schema_
    assert again.edges_ == once.edges_
    assert (again.n_features_in_, again.kkt_, again.objective_) == (3, once.kkt_, once.objective_)


def test_predict_proba_exists_only_with_a_categorical_column():
    frame = people()
    model = mg.MixedGraphicalModel(lam=0.3)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(frame[["height", "weight"]]), "predict_proba")
    assert hasattr(model.fit(frame), "predict_proba")


def test_grid_search_over_lam_uses_the_score():
    frame, lams = people(), [0.01, 0.2, 1.5]
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(mg.MixedGraphicalModel(), {"lam": lams}, cv=folds).fit(frame)
    by_hand = []
    for lam in lams:
        scores = [
            mg.MixedGraphicalModel(lam=lam).fit(frame.iloc[a]).score(frame.iloc[b])
            for a, b in folds.split(frame)
        ]
        by_hand.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-12)
    assert search.best_params_["lam"] == lams[int(np.argmax(by_hand))]
    assert search.best_estimator_.lam_ == search.best_params_["lam"]


@pytest.mark.parametrize("derive", ["at", "condition", "repaired"])
def test_derived_models_carry_the_parameters_also_through_a_file(derive, tmp_path):
    given = {"moderators": ["smoker"], "forbid": [("height", "colour", "smoker")]}
    if derive != "at":
        given = {"covariates": ["smoker"], "forbid": [("smoker", "colour")]}
    model = mg.MixedGraphicalModel(0.1, select=mg.EBIC(0.25), tol=1e-4, **given)
    before = model.fit(people()).get_params()
    value = () if derive == "repaired" else ({"smoker": True},)
    derived = getattr(model, derive)(*value)
    assert derived.get_params() == before
    assert derived is not model
    derived.save(tmp_path / "derived.mgm")
    assert mg.load(tmp_path / "derived.mgm").get_params() == before
    assert_same_params(clone(derived).fit(people()).params_, model.params_)


OBJECTS = {
    "select": [
        *(mg.EBIC(0.25), mg.BIC(), mg.AIC(), mg.CV(3, one_se=False), mg.Holdout(0.3)),
        *(mg.StARS(0.1), mg.StabilitySelection(0.8)),
    ],
    "solver": [mg.ProximalGradient(restart=False), mg.ProximalNewton(), mg.MonteCarlo(0.01)],
}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(name, value) for name, values in OBJECTS.items() for value in values],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_options_of_criteria_and_solvers_are_parameters(parameter, value):
    model = mg.MixedGraphicalModel(**{parameter: value})
    options = value.get_params()
    assert list(options) == list(inspect.signature(type(value)).parameters)
    deep = model.get_params()
    assert {name: deep[f"{parameter}__{name}"] for name in options} == options
    assert not any("__" in name for name in model.get_params(deep=False))
    twin = clone(model)
    assert twin.get_params() == deep
    shown = f"MixedGraphicalModel({parameter}={value!r})"
    assert "".join(repr(twin).split()) == "".join(shown.split())


def test_nested_options_replace_the_object_of_one_model_only():
    shared = mg.EBIC()
    models = [mg.MixedGraphicalModel(select=shared, solver=mg.ProximalNewton()) for _ in range(2)]
    changed = models[0].set_params(select__gamma=0.25, solver__memory=7, tol=1e-6)
    assert changed is models[0]
    assert (changed.select, changed.solver.memory, changed.tol) == (mg.EBIC(0.25), 7, 1e-6)
    assert models[1].select is shared
    assert shared == mg.EBIC()
    assert changed.set_params(select=mg.CV(), select__cv=3).select == mg.CV(3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"select__gama": 0.1}, "EBIC has no option 'gama': did you mean 'gamma'"),
        ({"select__gamma": 2.0}, r"gamma must be a number in \[0, 1\]"),
        ({"solver__memory": 7}, "solver is 'auto'; give an object first"),
        ({"sellect__gamma": 0.1}, "Invalid parameter 'sellect'"),
    ],
)
def test_nested_options_that_do_not_exist(given, message):
    with pytest.raises(ValueError, match=message):
        mg.MixedGraphicalModel(select=mg.EBIC()).set_params(**given)


def test_grid_search_over_an_option_of_the_criterion():
    """In a pipeline, too; every gamma gives the graph that it gives by hand."""
    frame, gammas = people(80), [0.0, 1.0]
    folds = KFold(2, shuffle=True, random_state=0)
    pipe = Pipeline([("model", mg.MixedGraphicalModel(select=mg.EBIC(), n_lams=20))])
    search = GridSearchCV(pipe, {"model__select__gamma": gammas}, cv=folds).fit(frame)
    by_hand = [
        np.mean(
            [
                mg.MixedGraphicalModel(select=mg.EBIC(gamma), n_lams=20)
                .fit(frame.iloc[a])
                .score(frame.iloc[b])
                for a, b in folds.split(frame)
            ]
        )
        for gamma in gammas
    ]
    assert by_hand[0] != by_hand[1]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-12)
    best = search.best_estimator_["model"]
    assert best.select == mg.EBIC(gammas[int(np.argmax(by_hand))])


def test_cross_val_score_prefers_the_related_model_to_the_empty_one():
    frame = people(300)
    related = cross_val_score(mg.MixedGraphicalModel(lam=0.05), frame, cv=3)
    empty = cross_val_score(mg.MixedGraphicalModel(lam=2.0), frame, cv=3)
    assert related.mean() > empty.mean() + 0.1


def test_last_step_of_a_pipeline():
    frame = people()
    keep = FunctionTransformer(lambda table: table[["height", "weight", "group"]])
    pipe = Pipeline([("keep", keep), ("model", mg.MixedGraphicalModel(lam=0.2))]).fit(frame)
    alone = mg.MixedGraphicalModel(lam=0.2).fit(frame[["height", "weight", "group"]])
    assert_same_params(pipe.named_steps["model"].params_, alone.params_)
    assert pipe.score(frame) == alone.score(frame)
    assert pipe.predict(frame).equals(alone.predict(frame))
    pipe.set_params(model__lam=2.0).fit(frame)
    assert pipe.named_steps["model"].edges_ == ()

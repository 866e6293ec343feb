"""MixedImputer: scikit-learn's checks, pipelines, set_output."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixedgm as mg
from tests.support.people import people

COLUMNS = ["height", "weight", "group"]


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1))])
def test_estimator_checks(estimator, check):
    check(estimator)


def gappy(n_rows=150, share=0.15):
    frame = people(n_rows)[COLUMNS]
    return frame.mask(np.random.default_rng(0).random(frame.shape) < share)


def imputer(**options):
    return mg.MixedImputer(mg.MixedGraphicalModel(lam=0.1), **options)


def test_the_fit_is_that_of_all_rows():
    frame = gappy()
    fitted = imputer().fit(frame)
    alone = mg.MixedGraphicalModel(lam=0.1, missing="model").fit(frame)
    np.testing.assert_array_equal(fitted.model_.params_.precision, alone.params_.precision)
    assert fitted.model_.fitted_.report.n_rows == len(frame)
    assert fitted.transform(frame).equals(alone.impute(frame))
    assert fitted.get_feature_names_out().tolist() == COLUMNS
    assert fitted.n_features_in_ == 3


def test_rows_with_gaps_are_dropped_where_that_is_asked_for():
    frame = gappy()
    n_incomplete = int(frame.isna().any(axis=1).sum())
    model = mg.MixedGraphicalModel(lam=0.1, missing="drop")
    with pytest.warns(mg.TableWarning, match=f"{n_incomplete} rows dropped"):
        fitted = mg.MixedImputer(model).fit(frame)
    alone = mg.MixedGraphicalModel(lam=0.1).fit(frame.dropna())
    np.testing.assert_array_equal(fitted.model_.params_.precision, alone.params_.precision)
    varying = mg.MixedGraphicalModel(lam=0.5, moderators=["group"])
    table = frame.assign(group=people(150)["group"])
    with pytest.warns(mg.TableWarning, match="rows dropped"):
        assert mg.MixedImputer(varying).fit(table).model_.missing == "drop"


def test_sampled_likelihoods_are_fitted_to_complete_rows():
    frame = gappy()[["height", "weight"]]
    model = mg.MixedGraphicalModel(lam=0.5, loss="likelihood-mc", random_state=0)
    with pytest.warns(mg.TableWarning, match="rows dropped"):
        assert mg.MixedImputer(model).fit(frame).model_.missing == "drop"


def test_no_row_needs_to_be_complete():
    full = people(300)[COLUMNS]
    lacking = np.arange(300)[:, None] % 3 == np.arange(3)
    frame = full.mask(lacking)
    assert len(frame.dropna()) == 0
    done = imputer().fit(frame).transform(frame)
    assert not done.isna().any(axis=None)
    assert done.where(~lacking).equals(frame)
    hidden = lacking[:, 0]
    found = np.corrcoef(done["height"][hidden].astype(float), full["height"][hidden])[0, 1]
    assert found > 0.3


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_draws_repeat_with_a_seed():
    frame = gappy()
    fitted = imputer(strategy="draw", random_state=3).fit(frame)
    once, again = fitted.transform(frame), fitted.transform(frame)
    assert once.equals(again)
    assert not once.equals(fitted.set_params(random_state=4).transform(frame))
    assert not once.equals(fitted.set_params(strategy="mean").transform(frame))


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_a_pipeline_with_missing_cells():
    frame, colour = gappy(300), people(300)["colour"]
    encode = make_column_transformer(
        (OneHotEncoder(), ["group"]),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    pipe = make_pipeline(imputer(), encode, LogisticRegression())
    assert clone(pipe).fit(frame, colour).score(frame, colour) > 0.5
    pipe.set_params(mixedimputer__estimator__lam=2.0).fit(frame, colour)
    assert pipe[0].model_.edges_ == ()


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(library):
    frame = gappy()
    done = imputer().set_output(transform=library).fit(frame).transform(frame)
    assert type(done).__module__.partition(".")[0] == library
    assert list(done.columns) == COLUMNS
    expected = imputer().fit(frame).transform(frame)
    for name in COLUMNS:
        assert list(done[name]) == expected[name].tolist()
    array = frame[["height", "weight"]].to_numpy()
    made = imputer().set_output(transform=library).fit(array).transform(array)
    assert list(made.columns) == ["x0", "x1"]


@pytest.mark.filterwarnings("ignore::mixedgm.base.errors.TableWarning")
def test_only_the_columns_of_the_fit_in_its_order():
    frame = gappy()
    fitted = imputer().fit(frame)
    wider = frame.assign(extra=1.0)[["extra", "group", "weight", "height"]]
    assert fitted.transform(wider).equals(fitted.transform(frame))


def test_bad_parameters_are_named():
    frame = people()[COLUMNS]
    with pytest.raises(mg.ParameterError, match="strategy must be 'mean' or 'draw'"):
        mg.MixedImputer(strategy="median").fit(frame)
    with pytest.raises(mg.ParameterError, match="estimator must be a MixedGraphicalModel"):
        mg.MixedImputer(LogisticRegression()).fit(frame)
    with pytest.raises(NotFittedError):
        mg.MixedImputer().transform(frame)
    with pytest.raises(mg.TableError, match="no row is left"):
        mg.MixedImputer(mg.MixedGraphicalModel(missing="drop")).fit(
            frame.mask(np.eye(150, 3, dtype=bool) | (np.arange(150) > 2)[:, None])
        )

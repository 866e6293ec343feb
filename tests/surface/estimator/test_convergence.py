"""Certificates recomputed by loops over rows, warnings that explain themselves, determinism."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import mixedgm as mg
from tests.reference import optimality, plain
from tests.support.dense import kkt
from tests.support.people import assert_same_params, numbers, people

LEVELS = (3, 2, 2)


@pytest.fixture(scope="module")
def table():
    return people(60, seed=21)


@pytest.mark.parametrize("solver", ["auto", "proximal-newton", "proximal-gradient"])
@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
def test_the_certificate_is_what_loops_over_rows_find(table, solver, weights):
    model = mg.MixedGraphicalModel(lam=0.15, solver=solver, penalty_weights=weights).fit(table)
    X, Y = numbers(table)
    edge_weights = plain.edge_weights(weights, X, Y, LEVELS)
    found = optimality.certificate(model.params_, X, Y, 0.15, edge_weights)
    assert model.kkt_ <= 1e-5
    assert model.converged_ is True
    assert found.kkt == pytest.approx(model.kkt_, abs=1e-9)
    objective = plain.objective(model.params_, X, Y, 0.15, edge_weights)
    assert model.objective_ == pytest.approx(objective, rel=1e-10)
    assert model.edges_


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_tol_is_the_largest_certificate_of_a_converged_fit(table, tol):
    model = mg.MixedGraphicalModel(lam=0.1, tol=tol).fit(table)
    assert model.converged_
    assert model.kkt_ <= tol
    X, Y = numbers(table)
    assert kkt(model.params_, X, Y, 0.1) <= tol * (1 + 1e-4) + 1e-13


def test_every_point_of_a_path_has_its_certificate(table):
    model = mg.MixedGraphicalModel(n_lams=6, lam_min_ratio=0.05).fit(table)
    X, Y = numbers(table)
    path = model.path_
    for k, lam in enumerate(path.lams):
        assert kkt(path.params(k), X, Y, lam) == pytest.approx(path.kkt[k], abs=1e-9)
    np.testing.assert_allclose(path.kkt_relative, path.kkt / path.lams)
    assert path.converged.all()


def test_a_good_fit_issues_no_warning(table):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mg.MixedGraphicalModel().fit(table)
        mg.MixedGraphicalModel(lam=0.05, refit=True).fit(table)
        mg.fit_path(table)
    assert caught == []


@pytest.mark.parametrize("solver", ["proximal-gradient", "proximal-newton"])
def test_too_few_steps_warn_and_do_not_raise(table, solver):
    model = mg.MixedGraphicalModel(lam=0.05, max_iter=1, tol=1e-10, solver=solver)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(table)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert re.match(r"at lam = 0\.05: stopped at max_iter", message)
    assert "raise max_iter, raise tol" in message
    assert re.search(r"KKT \d\.\de[-+]\d\d, tol 1e-10", message)
    assert model.converged_ is False
    assert model.kkt_ > 1e-10
    assert "max_iter" in model.fitted_.report.message
    # What was returned is a model, with its own honest certificate.
    X, Y = numbers(table)
    assert kkt(model.params_, X, Y, 0.05) == pytest.approx(model.kkt_, rel=1e-6)
    assert np.isfinite(model.score(table))


def test_the_warning_points_at_the_users_line(table):
    with pytest.warns(ConvergenceWarning) as caught:
        mg.MixedGraphicalModel(lam=0.05, max_iter=1, tol=1e-10).fit(table)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        mg.fit_path(table, [0.05], max_iter=1, tol=1e-10)
    assert caught[0].filename == __file__


def test_a_path_warns_once_with_the_count_and_the_worst(table):
    with pytest.warns(ConvergenceWarning) as caught:
        path = mg.fit_path(table, n_lams=5, max_iter=1, tol=1e-9)
    assert len(caught) == 1
    n_bad = int((~path.converged).sum())
    worst = path.lams[int(np.argmax(np.where(path.converged, 0, path.kkt)))]
    start = f"at {n_bad} of 5 values of lam, worst at lam = {worst:.4g}: "
    assert str(caught[0].message).startswith(start)


def test_only_the_chosen_fit_decides_converged(table):
    with pytest.warns(ConvergenceWarning):
        model = mg.MixedGraphicalModel(n_lams=8, max_iter=1, tol=1e-9).fit(table)
    k = int(np.flatnonzero(model.path_.lams == model.lam_)[0])
    assert model.converged_ == model.path_.points[k].converged
    assert (model.kkt_ <= 1e-9) == model.converged_


@pytest.mark.parametrize("options", [{"lam": 0.1}, {"n_lams": 10}, {"lam": 0.1, "refit": True}])
def test_fitting_twice_gives_the_same_bits(options):
    frame = people(400, seed=4)
    one = mg.MixedGraphicalModel(**options).fit(frame)
    two = mg.MixedGraphicalModel(**options).fit(frame)
    assert_same_params(one.params_, two.params_)
    assert (one.kkt_, one.objective_, one.n_iter_) == (two.kkt_, two.objective_, two.n_iter_)


@pytest.fixture(scope="module")
def wide():
    """Enough rows and levels for several chunks of rows, so that threads have work to share."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 1))
    codes = np.clip(np.round(x + rng.normal(size=(8000, 4)) + 4), 0, 8).astype(int)
    return pd.DataFrame(
        {"x": x[:, 0], **{f"k{r}": pd.Categorical(y) for r, y in enumerate(codes.T)}}
    )


@pytest.mark.parametrize("solver", ["auto", "proximal-gradient"])
def test_the_number_of_threads_changes_no_bit(wide, solver):
    one = mg.MixedGraphicalModel(lam=0.05, n_jobs=1, solver=solver).fit(wide)
    for n_jobs in (2, 3, -1, None):
        more = mg.MixedGraphicalModel(lam=0.05, n_jobs=n_jobs, solver=solver).fit(wide)
        assert_same_params(one.params_, more.params_)
        assert one.kkt_ == more.kkt_


def test_random_state_and_the_global_seed_change_no_bit(table):
    np.random.seed(1)  # noqa: NPY002
    one = mg.MixedGraphicalModel(lam=0.1, random_state=1).fit(table)
    np.random.seed(2)  # noqa: NPY002
    two = mg.MixedGraphicalModel(lam=0.1, random_state=2).fit(table)
    assert_same_params(one.params_, two.params_)


def test_counters_are_plain_numbers(table):
    model = mg.MixedGraphicalModel(lam=0.1).fit(table)
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1
    assert isinstance(model.converged_, bool)
    for value in (model.kkt_, model.objective_, model.lam_, model.score(table)):
        assert isinstance(value, float)


def hurdles_with_gaps(n_rows=80):
    """A hurdle column and two that follow it, with missing cells in all of them."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=n_rows)
    there = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-x))
    h = np.where(there, np.exp(0.5 * x + 0.3 * rng.normal(size=n_rows)), 0.0)
    frame = pd.DataFrame({"x": x, "h": h, "y": x + rng.normal(size=n_rows)})
    return frame.mask(rng.random(frame.shape) < 0.15)


@pytest.fixture(scope="module")
def drawn():
    """A fit of it, which draws what is missing; a warning would be an error."""
    model = mg.MixedGraphicalModel(lam=0.2, types={"h": "hurdle"}, missing="model")
    return model.fit(hurdles_with_gaps())


def test_a_fit_is_not_called_converged_beyond_the_error_of_its_draws(drawn):
    report = drawn.fitted_.report
    assert drawn.kkt_ <= 1e-5 < report.kkt_error
    assert drawn.converged_ is False
    assert report.solved
    assert report.message.startswith("solved up to the Monte Carlo error of the completions")


@pytest.mark.parametrize("as_html", [False, True])
def test_the_summary_states_the_error_of_draws(drawn, as_html):
    summary = drawn.summary()
    text = " ".join((summary._repr_html_() if as_html else str(summary)).split())
    error = f"{drawn.fitted_.report.kkt_error:.1g}"
    assert f"at most tol 1e-05: solved up to their Monte Carlo error, {error}" in text
    assert "NOT converged" not in text
    assert ": converged" not in text


def test_the_state_of_a_fit_with_draws_is_kept_in_its_file(drawn, tmp_path):
    drawn.save(tmp_path / "model.mgm")
    report = mg.load(tmp_path / "model.mgm").fitted_.report
    assert report.certificate == drawn.fitted_.report.certificate
    assert report.solved
    assert not report.converged


def test_a_tolerance_above_the_error_of_draws_can_be_reached(drawn):
    tol = 10.0 * drawn.fitted_.report.kkt_error
    model = mg.MixedGraphicalModel(lam=0.2, types={"h": "hurdle"}, missing="model", tol=tol)
    assert model.fit(hurdles_with_gaps()).converged_ is True


@pytest.mark.filterwarnings("ignore:.*follows from:mixedgm.TableWarning")
def test_a_small_certificate_does_not_bound_how_far_the_optimum_is():
    """The example of the guide: one column nearly copies another."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    x[:, 1] = x[:, 0] + 1e-3 * x[:, 1]
    rough, fine = (mg.MixedGraphicalModel(lam=0.0003, tol=tol).fit(x) for tol in (1e-5, 1e-11))
    assert rough.converged_
    assert rough.objective_ - fine.objective_ > 10.0 * rough.kkt_


def test_the_report_states_the_error_of_draws(drawn, tmp_path):
    drawn.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    error = f"{drawn.fitted_.report.kkt_error:.1g}"
    assert "Yes, up to the draws of the missing cells." in page
    assert f"Monte Carlo error of the completions {error}" in page
    assert "Not quite" not in page

"""Tasks of resamples: node terms of the whole table, absent edges, warm starts, and fit_design."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

import mixedgm as mg
from mixedgm.fit.fitting import encode, fit_design
from mixedgm.fit.options import Options
from mixedgm.path.task import Reference, prepare
from tests.reference import plain, scored
from tests.support.people import people
from tests.support.problems import SCORED, draw, edges_of, solved
from tests.support.solvers import Faulty

TABLE = draw(31, 120, 3, (2, 4))
ALL_KINDS = draw(31, 120, 2, (4, 5, 12, 12, 3), scored=SCORED)
both_tables = pytest.mark.parametrize("table", [TABLE, ALL_KINDS], ids=["plain", "all-kinds"])


def reference(table=TABLE):
    return Reference.of(table.design)


def test_the_reference_holds_population_moments_and_levels():
    table = draw(32, 50, 2, (3,), weighted=True)
    table.Y[table.Y[:, 0] == 2, 0] = 0
    found = Reference.of(table.design)
    mean = np.average(table.X, axis=0, weights=table.row_weights)
    variance = np.average((table.X - mean) ** 2, axis=0, weights=table.row_weights)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-12)
    assert found.observed.tolist() == [True, True, False]


@pytest.mark.parametrize("value", [0.0, 7.1])
def test_a_constant_column_keeps_the_mean_and_variance_of_the_whole_table(value):
    part = TABLE.take(np.arange(40))
    part.X[:, 1] = value
    task = prepare(part.design, reference=reference())
    assert task.degenerate == ("c1",)
    solution = solved(task, 0.2 * task.lam_max)
    params = task.params(solution.theta)
    assert len(edges_of(task, solution.theta)) > 0
    assert not any(1 in edge for edge in edges_of(task, solution.theta))
    variance = 1.0 / params.precision[1, 1]
    assert variance == pytest.approx(TABLE.X[:, 1].var(), rel=1e-6)
    assert params.cont_bias[1] * variance == pytest.approx(TABLE.X[:, 1].mean(), rel=1e-6)


def test_the_other_columns_do_not_notice_a_constant_one():
    part = TABLE.take(np.arange(40))
    part.X[:, 1] = 3.0
    narrow = replace(part, X=np.delete(part.X, 1, axis=1))
    task, other = prepare(part.design, reference=reference()), narrow.task()
    assert task.lam_max == pytest.approx(other.lam_max, rel=1e-12)
    lam = 0.1 * task.lam_max
    here = task.params(solved(task, lam).theta)
    there = other.params(solved(other, lam).theta)
    np.testing.assert_allclose(here.cat_interaction, there.cat_interaction, atol=1e-6)
    np.testing.assert_allclose(here.category_shift[[0, 2]], there.category_shift, atol=1e-6)


def test_missing_levels_are_named_and_scored_as_half_a_row():
    part = TABLE.take(np.flatnonzero((TABLE.Y[:, 0] == 1) & (TABLE.Y[:, 1] != 3)))
    task = prepare(part.design, reference=reference())
    assert task.degenerate == ("k0", "k1")
    fitted = fit_design(part.design, Options(lam=0.1), reference=reference())
    assert np.isneginf(fitted.params.cat_bias).tolist() == [1, 0, 0, 0, 0, 1]
    assert not any("k0" in edge[:2] for edge in fitted.edges)
    assert "constant in these rows, so without edges: 'k0'" in fitted.report.notes
    n = part.design.n_rows
    absent = fitted.predict_proba(part.design, "k0")[:, 0]
    np.testing.assert_allclose(absent, 0.5 / (n + 0.5), rtol=1e-12)


def test_a_level_that_the_whole_table_lacks_is_not_missed():
    table = replace(TABLE, n_levels=(2, 5))
    whole = Reference.of(table.design)
    assert prepare(table.design, reference=whole).degenerate == ()
    assert prepare(table.design).degenerate == ("k1",)


def test_only_constant_columns_can_be_fitted():
    one = TABLE.take(np.array([0]))
    fitted = fit_design(one.design, Options(n_lams=3), reference=reference())
    assert fitted.edges == ()
    assert fitted.report.converged
    np.testing.assert_allclose(1.0 / np.diag(fitted.params.precision), TABLE.X.var(axis=0))


def test_a_scored_column_that_is_constant_has_no_edges():
    part = ALL_KINDS.take(np.arange(60))
    part.Y[:, [0, 2]] = [1, 3]
    fitted = fit_design(part.design, Options(lam=0.1), reference=reference(ALL_KINDS))
    assert fitted.report.converged
    assert not any({"k0", "k2"} & set(edge[:2]) for edge in fitted.edges)
    assert fitted.edges
    ordinal, count = (fitted.predict_proba(part.design, name) for name in ("k0", "k2"))
    assert ordinal[:, 1].min() > 0.95
    assert count[:, 3].min() > 0.95


# -- warm starts -----------------------------------------------------------------------------------


@both_tables
def test_theta_of_undoes_params(table):
    task = table.task()
    theta = solved(task, 0.1 * task.lam_max).theta
    np.testing.assert_allclose(task.theta_of(task.params(theta)), theta, atol=1e-10)


@both_tables
def test_theta_of_between_units_is_the_same_distribution(table):
    """The smooth loss in own units is the same from both tasks' coordinates."""
    part = table.take(np.arange(0, 120, 2))
    whole, task = table.task(), part.task()
    params = whole.params(solved(whole, 0.1 * whole.lam_max).theta)
    here = task.smooth.evaluate(task.theta_of(params)).value + task.log_jacobian
    if table is TABLE:
        expected = plain.smooth(params, part.X, part.Y)
    else:
        problem = scored.Problem(part, 0.0)
        expected = scored.objective(params, problem, 0.0, np.zeros((7, 7)))
    assert here == pytest.approx(expected, rel=1e-9)


@both_tables
def test_theta_of_with_other_levels_is_a_valid_start(table):
    """A level that is gone here is dropped, one that is new here starts at its marginal."""
    part = table.take(np.flatnonzero(table.Y[:, table.n_levels.index(4)] != 3))
    whole, task = table.task(), prepare(part.design, reference=reference(table))
    for there, here in ((whole, task), (task, whole)):
        params = there.params(solved(there, 0.1 * there.lam_max).theta)
        theta = here.theta_of(params)
        assert np.isfinite(theta).all()
        assert np.isfinite(here.smooth.evaluate(theta).value)
        assert edges_of(here, theta) == edges_of(there, there.theta_of(params))


@both_tables
def test_a_warm_start_changes_the_steps_and_not_the_optimum(table):
    options = Options(lam=0.15, tol=1e-8)
    full = fit_design(table.design, options)
    part = table.take(np.arange(100)).design
    cold = fit_design(part, options, reference=reference(table))
    warm = fit_design(part, options, reference=reference(table), start=full.params)
    again = fit_design(part, options, reference=reference(table), start=cold.params)
    assert warm.report.objective == pytest.approx(cold.report.objective, abs=1e-9)
    assert [e[:2] for e in warm.edges] == [e[:2] for e in cold.edges]
    assert again.report.n_iter <= 1


@both_tables
def test_repeated_rows_are_weights(table):
    rows = np.random.default_rng(3).integers(0, 120, 120)
    unique, counts = np.unique(rows, return_counts=True)
    options = Options(lam=0.15, tol=1e-9)
    repeated = fit_design(table.design.take(rows), options)
    weighted = fit_design(replace(table.design.take(unique), weights=counts.astype(float)), options)
    assert weighted.report.total_weight == repeated.report.total_weight == 120
    np.testing.assert_allclose(weighted.params.coef, repeated.params.coef, atol=1e-6)


def test_ctrl_c_within_a_resample_is_passed_on():
    """Whoever runs many fits must not take half a choice for a whole one."""
    folds = mg.CV([(rows[k:], test) for k, (rows, test) in enumerate(KFold(4).split(range(120)))])
    solver = Faulty(lambda problem: problem.smooth.n_rows == 87, KeyboardInterrupt)
    options = Options(select=folds, solver=solver, lams=[0.6, 0.3, 0.15, 0.08], tol=1e-8)
    design = encode(people(120, seed=5), options)
    with pytest.raises(KeyboardInterrupt), pytest.warns(RuntimeWarning, match="interrupted"):
        fit_design(design, options)

"""Hurdle columns: their density against integrals, and what is known in closed form."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize, special, stats

import mixedgm as mg
from mixedgm.fit import certificate
from mixedgm.fit.fitting import encode
from mixedgm.fit.options import Options
from mixedgm.model.density import conditionals, losses
from mixedgm.model.moderation import at_values
from mixedgm.path.path import geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.refits import degrees_of_freedom, noise_worth_one_row, unshrunken
from mixedgm.path.task import Reference, prepare
from mixedgm.select.criteria import EBIC
from mixedgm.select.crossval import CV
from mixedgm.select.stability import StARS
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, Table, draw, evidence_of, solved

MIXED = (5, 150, 2, (4, 8, 3), True, (SCORED[0], SCORED[3]), 2)


@cache
def fitted(loss="pseudolikelihood", moderator=None):
    """A table with every kind, its task, and parameters at a small lam."""
    table = draw(*MIXED)
    if moderator is None:
        task = table.task(loss=loss)
    else:
        task = moderated_task(table, (moderator,), loss=loss)
    found = solved(task, 0.05 * task.lam_max, tol=1e-9)
    assert found.converged
    return table, task, task.params(found.theta)


# --- the density ----------------------------------------------------------------------------------


@pytest.mark.parametrize("moderator", [None, 0, 3, 6])
@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
def test_a_conditional_integrates_to_one(loss, moderator):
    table, _, params = fitted(loss, moderator)
    codes = table.design.codes.astype(np.int64)
    for v in (2, 3):
        if v == moderator:
            continue
        for row in (0, 7):

            def density(x, v=v, row=row):
                numbers, here = table.X[[row]].copy(), codes[[row]].copy()
                numbers[0, v], here[0, v - 2] = x, x != 0.0
                return np.exp(-losses(params, numbers, here)[0, v])

            given = conditionals(params, table.X[[row]], codes[[row]])
            mean, sd = given.mean[0, v], np.sqrt(given.variance[v])
            span = (mean - 12 * sd, mean + 12 * sd)
            moments = [
                integrate.quad(lambda x, k=k: x**k * density(x), *span, epsabs=1e-12, limit=200)[0]
                for k in range(3)
            ]
            chance = np.exp(given.log_prob[0, 2 * (v - 2) + 1])
            assert density(0.0) + moments[0] == pytest.approx(1.0, abs=1e-9)
            assert moments[0] == pytest.approx(chance, abs=1e-9)
            assert moments[1] == pytest.approx(chance * mean, rel=1e-8)
            assert moments[2] == pytest.approx(chance * (mean**2 + sd**2), rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_without_neighbours_has_its_shares_mean_and_variance(weighted):
    table = draw(3, 80, 1, (), weighted, (), 2)
    task = table.task()
    params = task.params(task.null.theta)
    given = conditionals(params, table.X, table.design.codes.astype(np.int64))
    share = np.ones(80) if table.row_weights is None else table.row_weights
    total = 0.0
    for v in (1, 2):
        x, w = table.X[:, v], share
        there = x != 0.0
        mean = np.average(x[there], weights=w[there])
        variance = np.average((x[there] - mean) ** 2, weights=w[there])
        chance = w[there].sum() / w.sum()
        np.testing.assert_allclose(given.mean[:, v], mean, rtol=1e-10)
        assert given.variance[v] == pytest.approx(variance, rel=1e-10)
        np.testing.assert_allclose(np.exp(given.log_prob[:, 2 * v - 1]), chance, rtol=1e-10)
        logs = np.where(there, stats.norm.logpdf(x, mean, np.sqrt(variance)), 0.0)
        total -= np.average(logs + stats.bernoulli.logpmf(there, chance), weights=w)
    number = (
        np.average(table.X[:, 0], weights=share),
        np.sqrt(
            np.average(
                (table.X[:, 0] - np.average(table.X[:, 0], weights=share)) ** 2, weights=share
            )
        ),
    )
    total -= np.average(stats.norm.logpdf(table.X[:, 0], *number), weights=share)
    value = task.null.evaluation.value + task.log_jacobian + 0.5 * np.log(2 * np.pi)
    assert value == pytest.approx(total, abs=1e-12)


def test_one_column_given_all_others_is_a_regression_of_two_parts():
    """Whether is a logistic regression with a quadratic term, how much a linear one."""
    table = draw(8, 300, 2, (2,), True, (), 1)
    table = replace(table, covariates=(0, 1, 3))
    task = table.task()
    found = solved(task, 0.0, tol=1e-10)
    assert found.converged
    Z = np.column_stack([np.ones(300), table.X[:, :2], table.Y[:, 1]])
    x, w = table.X[:, 2], table.row_weights / table.row_weights.sum()
    there = x != 0.0

    def loss(at):
        height, slope, precision = Z @ at[:4], Z @ at[4:8], np.exp(at[8])
        area = height + slope**2 / (2 * precision) + 0.5 * np.log(2 * np.pi / precision)
        seen = height + slope * x - 0.5 * precision * x**2
        return w @ (np.logaddexp(0.0, area) - np.where(there, seen, 0.0))

    unit = x[there].std()
    start = np.concatenate([np.zeros(8), [-2 * np.log(unit)]])
    known = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    assert found.objective + task.log_jacobian == pytest.approx(known.fun, abs=1e-9)
    given = conditionals(task.params(found.theta), table.X, table.design.codes.astype(np.int64))
    slope, precision = Z @ known.x[4:8], np.exp(known.x[8])
    np.testing.assert_allclose(given.mean[:, 2], slope / precision, rtol=1e-3, atol=1e-3 * unit)
    odds = Z @ known.x[:4] + slope**2 / (2 * precision) + 0.5 * np.log(2 * np.pi / precision)
    np.testing.assert_allclose(np.exp(given.log_prob[:, 1]), special.expit(odds), atol=1e-4)


@pytest.mark.parametrize("fraction", [0.3, 0.03])
def test_what_amounts_are_counted_from_changes_no_unpenalised_fit_and_no_round_trip(fraction):
    """Units and location are those of the description, not of the distribution."""
    table, task, _ = fitted()
    found = solved(task, fraction * task.lam_max, tol=1e-9)
    params = task.params(found.theta)
    np.testing.assert_allclose(task.theta_of(params), found.theta, atol=1e-10)
    codes = table.design.codes.astype(np.int64)
    rows = losses(params, table.X, codes)
    rows_plain = losses(params.unlocated, table.X, codes)
    np.testing.assert_allclose(rows, rows_plain, rtol=1e-9, atol=1e-9)
    scaled = replace(table, X=table.X * np.array([1.0, 1.0, 1e3, 1e-2]))
    other = scaled.task()
    again = solved(other, fraction * other.lam_max, tol=1e-9)
    assert other.lam_max == pytest.approx(task.lam_max, rel=1e-9)
    assert again.objective == pytest.approx(found.objective, abs=1e-9)
    np.testing.assert_allclose(again.theta, found.theta, atol=1e-5)


def test_a_precision_may_be_far_from_one():
    """Amounts that hardly vary, far from zero: a year, or none."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=300)
    year = np.where(z + rng.normal(size=300) > 0, np.round(2000 + 3 * z + rng.normal(size=300)), 0)
    table = Table(
        np.column_stack([z, year]), (year != 0)[:, None].astype(np.int64), (2,), n_spiked=1
    )
    task = table.task()
    for fraction in (0.5, 0.05, 0.0):
        found = solved(task, fraction * task.lam_max, tol=1e-8, max_iter=300)
        assert found.converged
        assert found.kkt <= 1e-8


# --- criteria -------------------------------------------------------------------------------------


def test_an_edge_has_a_parameter_for_every_two_directions():
    task = draw(*MIXED).task()
    pairs = task.layout.pairs.tolist()
    free = (1, 1, 2, 2, 1, 1, 2)
    for g, (u, v) in enumerate(pairs):
        assert degrees_of_freedom(task, np.array([g])) == free[u] * free[v]
    np.testing.assert_array_equal(task.layout.nodes.n_biases[2:4], 3)


@pytest.mark.parametrize("criterion", [EBIC(), CV(cv=3), StARS(n_subsamples=5)], ids=repr)
@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
def test_every_criterion_chooses_from_a_path(criterion, loss):
    table = draw(*MIXED)
    task = table.task(loss=loss)
    lams = geometric_lams(task.lam_max, 6, 0.1)
    path = solve_path(task, lams, Recipe(ProximalNewton(), 1e-7, 500, loss=loss))
    evidence = evidence_of(table, path, task)
    evidence = replace(evidence, recipe=replace(evidence.recipe, loss=loss))
    choice = criterion.choose(evidence)
    assert 0 <= choice.index < 6
    for scores in choice.scores.values():
        assert np.isfinite(scores).all()


# --- refits ---------------------------------------------------------------------------------------


def refitted(X, Y, n_levels, n_spiked=1, covariates=()):
    table = Table(X, Y, n_levels, n_spiked=n_spiked, covariates=covariates)
    task = table.task()
    groups = np.arange(task.layout.n_groups)
    start = Start(task.null.theta, task.null.evaluation)
    refit = unshrunken(task, groups, start, tol=1e-8)
    assert refit.solution.converged
    assert np.isfinite(refit.solution.theta).all()
    noise = np.zeros(task.layout.nodes.n_real)
    noise[refit.noisy] = noise_worth_one_row(task)[refit.noisy]
    return table, task, refit, noise


def test_a_category_that_tells_whether_gets_a_ridge():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    x = np.where(y == 1, 0.0, np.exp(rng.normal(size=200)))
    x[(y == 2) & (rng.random(200) < 0.5)] = 0.0
    _, task, refit, _ = refitted(x[:, None], np.column_stack([x != 0, y]), (2, 3))
    assert refit.ridge.tolist() == [0]
    assert len(refit.noisy) == 0


def test_an_amount_that_a_category_determines_gets_a_ridge():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 200)
    x = np.where(rng.random(200) < 0.6, np.array([5.0, 6.0, 8.5])[level], 0.0)
    *_, refit, _ = refitted(x[:, None], np.column_stack([x != 0, level]), (2, 3))
    assert refit.ridge.tolist() == [0]


def test_a_copy_of_a_column_as_a_number_gets_noise_as_it_does_itself():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(200) < 0.6, 3.0 + rng.normal(size=200), 0.0)
    columns = np.column_stack([2.0 * x + 1.0, x])
    table, task, refit, noise = refitted(columns, (x != 0)[:, None], (2,))
    assert refit.noisy.tolist() == [0, 1]
    precision = refit.solution.theta[task.layout.positive]
    assert (precision < 2000.0).all()
    claim = certificate.Claim(
        task.layout,
        refit.solution.theta,
        np.zeros(task.layout.n_groups),
        task.yardstick,
        noise=noise,
    )
    rows = certificate.Standardised(task.units.centre, task.units.scale, task.observed)
    assert certificate.kkt(table.design, rows, claim) == pytest.approx(
        refit.solution.kkt, abs=1e-10
    )


def test_an_ordinary_graph_needs_neither():
    table = draw(5, 400, 2, (3,), False, (), 2)
    *_, refit, _ = refitted(table.X, table.Y, table.n_levels, n_spiked=2)
    assert len(refit.ridge) == len(refit.noisy) == 0


# --- resamples that lack something ----------------------------------------------------------------

LACKING = {
    "no zeros": lambda x: np.flatnonzero(x != 0.0),
    "zeros only": lambda x: np.flatnonzero(x == 0.0),
    "one other value": lambda x: np.append(np.flatnonzero(x == 0.0), np.flatnonzero(x)[0]),
}


@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
@pytest.mark.parametrize("lacking", LACKING)
def test_a_resample_that_lacks_zeros_or_amounts_keeps_the_terms_of_the_table(lacking, loss):
    table = draw(*MIXED)
    rows = LACKING[lacking](table.X[:, 2])
    part = table.take(rows)
    design = replace(table.design, numbers=part.X, codes=part.Y.astype(np.uint8))
    design = replace(design, weights=part.row_weights)
    task = prepare(design, Recipe(loss=loss), Reference.of(table.design))
    assert "k0" in task.degenerate
    assert not (task.layout.pairs == 2).any()
    found = solved(task, 0.1 * task.lam_max)
    assert found.converged
    params = task.params(found.theta)
    whole = table.task()
    alone = whole.params(whole.null.theta)
    codes = table.design.codes.astype(np.int64)
    np.testing.assert_allclose(
        losses(params, table.X, codes)[:, 2], losses(alone, table.X, codes)[:, 2], rtol=1e-9
    )
    assert np.isfinite(losses(params, table.X, codes)).all()
    np.testing.assert_allclose(task.theta_of(params), found.theta, atol=1e-9)


def test_a_fold_without_zeros_is_scored():
    """Two zeros in a column of 120: some fold's training rows have none of them."""
    table = draw(2, 120, 2, (3,), False, (), 1)
    x = table.X[:, 2]
    x[x == 0.0] = x[x != 0.0].mean()
    x[:1] = 0.0
    table = replace(table, Y=np.column_stack([x != 0.0, table.Y[:, 1]]).astype(np.int64))
    task = table.task()
    path = solve_path(
        task, geometric_lams(task.lam_max, 4, 0.1), Recipe(ProximalNewton(), 1e-6, 300)
    )
    choice = CV(cv=4).choose(evidence_of(table, path, task))
    for scores in choice.scores.values():
        assert np.isfinite(scores).all()


# --- studies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("moderator", [0, 3, 6])
def test_the_model_at_a_value_of_a_moderator_has_the_conditionals_of_its_rows(moderator):
    table, task, params = fitted(moderator=moderator)
    assert (task.layout.group_norms(task.theta_of(params))[task.layout.moderator >= 0] > 0).any()
    codes = table.design.codes.astype(np.int64)
    for row in (0, 7, 20):
        value = table.X[row, moderator] if moderator < 4 else codes[row, moderator - 2]
        here = at_values(params, [value])
        assert here.moderation is None
        np.testing.assert_allclose(
            np.delete(losses(here, table.X[[row]], codes[[row]]), moderator, axis=1),
            np.delete(losses(params, table.X[[row]], codes[[row]]), moderator, axis=1),
            rtol=1e-9,
            atol=1e-9,
        )


def test_norms_of_edges_do_not_depend_on_units_and_are_those_of_resamples():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    debt = np.where(z[:, 0] + z[:, 1] > 0, np.exp(3 + z[:, 1]), 0.0)
    frame = pd.DataFrame({"z": z[:, 1], "debt": debt, "g": np.where(z[:, 0] > 0, "a", "b")})
    types = {"debt": "hurdle"}
    model = mg.MixedGraphicalModel(lam=0.05, types=types, tol=1e-9).fit(frame)
    cents = frame.assign(debt=100 * debt)
    other = mg.MixedGraphicalModel(lam=0.05, types=types, tol=1e-9).fit(cents)
    norms = model.edges().set_index(["source", "target"])["norm"]
    np.testing.assert_allclose(other.edges()["norm"], norms, rtol=1e-6)
    task = prepare(encode(frame, Options(types=types)), Recipe())
    by_norm = task.layout.group_norms(solved(task, 0.05, tol=1e-9).theta) * task.yardstick
    nodes = [node.name for node in task.schema.nodes]
    for (u, v), norm in zip(task.layout.pairs.tolist(), by_norm, strict=True):
        assert norms.get((nodes[u], nodes[v]), 0.0) == pytest.approx(norm, abs=1e-6)
    resampled = mg.bootstrap(model, frame, 3, random_state=0, n_jobs=1)
    strengths = model.edges().set_index(["source", "target"])["strength"]
    again = resampled.selection().set_index(["source", "target"])["strength"]
    np.testing.assert_allclose(again[strengths.index], strengths, rtol=1e-5)

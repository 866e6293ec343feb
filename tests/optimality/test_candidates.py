"""Wide tables, whose layout holds candidates only: the same solutions as with all pairs."""

from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit import estimates
from mixedgm.fit.certificate import Claim, kkt
from mixedgm.fit.fitting import encode, fit_design
from mixedgm.fit.options import Options
from mixedgm.model.pair_weights import PairWeights
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.store import model_file
from mixedgm.studies.resampling.bootstrap import plan_of
from mixedgm.studies.resampling.resamples import resample
from tests.support.people import people
from tests.support.problems import SCORED, draw, factors_of

TABLES = {
    "mixed": draw(0, 300, 9, (2, 3, 4, 3)),
    "weighted": draw(1, 200, 8, (3, 2, 3), True),
    "continuous": draw(2, 60, 20, ()),
    "categorical": draw(3, 300, 0, (2, 3, 4, 3, 2, 2)),
    "scored": draw(4, 300, 4, (4, 5, 14, 18, 3), False, SCORED),
    "spiked": draw(5, 300, 4, (4, 9, 3), True, (SCORED[0], SCORED[3]), 2),
    "given": replace(draw(6, 300, 7, (2, 3, 4, 3)), covariates=(0, 3, 9)),
}
OPTIONS = ("calibrated", "uniform", "factors", "required")


def options_of(table, name):
    if name in ("calibrated", "uniform"):
        return {"weights": name}
    n = len(table.schema.nodes)
    matrix, rng = np.ones((n, n)), np.random.default_rng(0)
    for factor in (0.4, 3.0, np.inf) if name == "factors" else (0.0, 0.0, np.inf):
        u, v = rng.permutation(n)[:2]
        matrix[u, v] = matrix[v, u] = factor
    return {"factors": factors_of(matrix)}


def tasks_of(table, **options):
    recipe = Recipe(tol=1e-9, **options)
    return prepare(table.design, recipe), prepare(table.design, replace(recipe, most_parameters=0))


def assert_same_paths(whole, wide, smallest=0.05):
    assert wide.layout.n_groups <= whole.layout.n_groups
    assert wide.lam_max == pytest.approx(whole.lam_max, rel=1e-8)
    lams = whole.lam_max * np.geomspace(1.1, smallest, 8)
    every, some = (solve_path(task, lams, Recipe(tol=1e-9)) for task in (whole, wide))
    assert some.converged.all()
    assert some.kkt.max() <= 1e-9
    np.testing.assert_allclose(some.objective, every.objective, rtol=1e-10)
    for k in range(len(lams)):
        assert set(some.edges(k)) == set(every.edges(k))
        np.testing.assert_allclose(some.params(k).coef, every.params(k).coef, atol=1e-6)
    return some


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("table", TABLES)
def test_paths_are_those_of_all_pairs(table, options):
    table = TABLES[table]
    assert_same_paths(*tasks_of(table, **options_of(table, options)))


@pytest.mark.parametrize("table", ["mixed", "scored", "given"])
def test_adaptive_weights_are_those_of_all_pairs(table):
    whole, wide = tasks_of(TABLES[table], weights="adaptive")
    lams = whole.lam_max * np.array([0.7, 0.4])
    every, some = (solve_path(task, lams, Recipe(tol=1e-9)) for task in (whole, wide))
    np.testing.assert_allclose(some.objective, every.objective, rtol=1e-8)  # as far as the pilots
    assert [set(some.edges(k)) for k in (0, 1)] == [set(every.edges(k)) for k in (0, 1)]


def test_only_some_pairs_become_candidates():
    whole, wide = tasks_of(TABLES["continuous"])
    path = assert_same_paths(whole, wide, smallest=0.6)
    assert wide.layout.n_groups == 0
    assert len(path.points[-1].groups) <= path.layout.n_groups < 0.7 * whole.layout.n_groups


def test_free_pairs_are_candidates_from_the_start():
    n = len(TABLES["given"].schema.nodes)
    matrix = np.ones((n, n))
    matrix[0, 4] = matrix[4, 0] = 0.0
    _, wide = tasks_of(TABLES["given"], factors=factors_of(matrix))
    assert wide.layout.pairs.tolist() == [[0, 4]]
    assert wide.penalty.free.tolist() == [0]


def test_constant_columns_have_no_edges():
    table = draw(7, 100, 5, (2, 3, 3))
    table.X[:, 1] = 4.0
    table.Y[:, 1] = 2
    path = assert_same_paths(*tasks_of(table))
    assert not np.isin(path.layout.pairs, [1, 6]).any()


def test_pairs_with_too_many_parameters_are_left_out():
    table = draw(8, 60, 3, (9, 12, 2, 40))
    whole, wide = tasks_of(table, refits=True)
    assert len(whole.too_large)
    np.testing.assert_array_equal(whole.too_large, wide.too_large)
    assert_same_paths(whole, wide)


def test_a_table_of_few_permitted_pairs_has_all_of_them():
    table = TABLES["mixed"]
    pairs = np.array([[0, 1], [0, 10], [3, 4], [9, 12]])
    only = PairWeights.only(13, pairs)
    whole = prepare(table.design, Recipe(tol=1e-9, factors=only))
    some = prepare(table.design, Recipe(tol=1e-9, factors=only, most_parameters=30))
    assert some.beyond is None
    np.testing.assert_array_equal(some.layout.pairs, pairs)
    assert_same_paths(whole, some)


def test_one_small_lam_at_once():
    whole, wide = tasks_of(TABLES["mixed"])
    lams = np.array([0.02 * whole.lam_max])
    every, some = (solve_path(task, lams, Recipe(tol=1e-9)) for task in (whole, wide))
    assert some.kkt[0] <= 1e-9
    np.testing.assert_allclose(some.objective, every.objective, rtol=1e-10)
    assert set(some.edges(0)) == set(every.edges(0))


def test_a_path_goes_on_from_its_end_or_from_parameters():
    whole, wide = tasks_of(TABLES["mixed"])
    lams = whole.lam_max * np.geomspace(1.0, 0.05, 8)
    every, recipe = solve_path(whole, lams, Recipe(tol=1e-9)), Recipe(tol=1e-9)
    begun = solve_path(wide, lams[:4], recipe)
    for start in (begun, replace(begun, end=None)):
        again = solve_path(wide, lams[4:], recipe, start=start)
        np.testing.assert_allclose(again.objective, every.objective, rtol=1e-10)
        assert [again.n_edges[k] for k in range(8)] == every.n_edges.tolist()
    fresh = solve_path(wide, lams[4:], recipe, start=begun.params(3))
    np.testing.assert_allclose(fresh.objective, every.objective[4:], rtol=1e-10)


def test_steps_that_run_out_are_not_certified():
    _, wide = tasks_of(TABLES["mixed"])
    path = solve_path(wide, np.array([0.05 * wide.lam_max]), Recipe(tol=1e-9, max_iter=2))
    assert not path.converged[0]
    assert path.kkt[0] > 1e-9


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("table", TABLES)
def test_the_certificate_looks_at_all_pairs(table, options):
    """At a point that is no optimum: the worst pair need not be a candidate."""
    table, rng = TABLES[table], np.random.default_rng(3)
    whole, wide = tasks_of(table, **options_of(table, options))
    wide = solve_path(wide, np.array([0.5 * wide.lam_max]), Recipe()).grown
    theta = wide.null.theta.copy()
    theta[wide.layout.edges] += 0.1 * rng.normal(size=theta[wide.layout.edges].shape)
    rows = estimates._standardised(table.design, wide)
    numbers = []
    for task in (whole, wide):
        here = task.theta_of(wide.params(theta))
        for lam in (0.1 * whole.lam_max, 0.4 * whole.lam_max):
            pull = lam * task.penalty.weights
            beyond = None if task.beyond is None else task.beyond.bounds(lam)
            claim = Claim(task.layout, here, pull, task.yardstick, beyond=beyond)
            numbers += [kkt(table.design, rows, claim), kkt(table.design, rows, claim, columns=4)]
    np.testing.assert_allclose(numbers[4:], numbers[:4], rtol=1e-9)
    assert min(numbers) > 0.0


class Wide(Options):
    """Options with which every table counts as wide."""

    def recipe(self, schema):
        recipe = super().recipe(schema)
        wants_all = np.isinf(recipe.most_parameters)
        return recipe if wants_all else replace(recipe, most_parameters=0)


def fitted(kind, **options):
    chosen = kind(**options)
    design = encode(people(250, seed=3), chosen)
    return fit_design(design, chosen, certify=True)


FITS = {
    "ebic": {"select": "ebic"},
    "lam": {"lam": 0.2},
    "cv": {"select": mg.CV(3), "n_lams": 10, "lam_min_ratio": 0.05},
    "given": {"select": "ebic", "covariates": ["height", "group"]},
    "covariates-free": {"lam": 0.2, "covariates": ["height"], "penalize_covariates": False},
    "required": {
        "select": "ebic",
        "require": [("height", "smoker")],
        "forbid": [("weight", "colour")],
        "penalty_factors": {"continuous-categorical": 1.3, ("weight", "group"): 0.5},
    },
    "stars": {"select": mg.StARS(n_subsamples=3), "n_lams": 10},
    "refit": {"lam": 0.2, "refit": True},
    "adaptive": {"select": "bic", "penalty_weights": "adaptive"},
}


@pytest.mark.parametrize("fit", FITS)
def test_fitted_models_are_those_of_all_pairs(fit, tmp_path):
    whole, wide = (
        fitted(kind, tol=1e-9, random_state=0, n_jobs=1, **FITS[fit]) for kind in (Options, Wide)
    )
    assert whole.path.grown is None
    assert (wide.path.grown is None) == (fit == "stars")  # which needs all pairs
    assert wide.report.kkt <= 1e-9 + 1e-12
    assert wide.report.converged
    assert wide.report.lam == pytest.approx(whole.report.lam, rel=1e-9)
    one, other = ({(e.source, e.target) for e in model.edges} for model in (whole, wide))
    assert one == other
    np.testing.assert_allclose(wide.params.coef, whole.params.coef, atol=1e-5)
    model_file.save(wide, tmp_path / "wide.mgm")
    loaded = model_file.load(tmp_path / "wide.mgm")[0].path
    assert loaded.n_possible == wide.path.n_possible == whole.path.n_possible
    for k in range(len(wide.path)):
        assert set(loaded.edges(k)) == set(wide.path.edges(k))
        np.testing.assert_allclose(loaded.params(k).coef, wide.path.params(k).coef)


def test_tests_of_all_pairs_give_way_to_ebic():
    notes = fitted(Wide).report.notes
    assert any("chosen by EBIC: the table is so wide" in note for note in notes)


@pytest.mark.parametrize("options", [{"lam": 0.2}, {"select": "ebic"}, {"lam": 0.2, "refit": True}])
@pytest.mark.parametrize("select", ["fixed", "again"])
def test_resamples_are_those_of_all_pairs(options, select):
    options = {"tol": 1e-9, "n_jobs": 1, **options}
    model, design = fitted(Options, **options), encode(people(250, seed=3), Options())
    plan = plan_of(model, Options(**options), design, select)
    given = {name: getattr(plan.options, name) for name in Options.__dataclass_fields__}
    wide = replace(plan, key="wide", options=Wide(**given))
    assert wide.whole.beyond is not None
    for seed in (1, 2):
        one, other = (resample(each, (np.random.SeedSequence(seed), 0.0)) for each in (plan, wide))
        np.testing.assert_array_equal(one["pairs"], other["pairs"])
        np.testing.assert_allclose(one["values"], other["values"], atol=1e-5)
        assert other["account"][2] == 1.0


def test_pair_weights_of_exceptions():
    weights = PairWeights.only(4, np.array([[0, 3], [1, 2]]))
    u, v = np.triu_indices(4, 1)
    assert weights.of(u, v).tolist() == [np.inf, np.inf, 1.0, 1.0, np.inf, np.inf]
    twice = weights.excepting(np.array([[1, 2], [0, 1]]), np.array([5.0, 6.0]))
    assert twice.of(u, v).tolist() == [6.0, np.inf, 1.0, 5.0, np.inf, np.inf]
    np.testing.assert_array_equal(twice.matrix()[u, v], twice.of(u, v))

"""The KKT number of a returned model is computed apart from the solvers, and they agree."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.fit import estimates
from mixedgm.fit.certificate import Claim, kkt
from mixedgm.fit.estimates import Optimum, certified
from mixedgm.fit.fitting import encode, fit_design
from mixedgm.fit.options import Options
from mixedgm.path.task import prepare
from tests.reference import optimality, plain
from tests.support.people import numbers, people

KINDS = {
    "pseudolikelihood": {},
    "a number given": {"covariates": ["height"]},
    "nodewise": {"loss": "nodewise"},
    "nodewise, given": {"loss": "nodewise", "covariates": ["colour"]},
    "moderated by a number": {"moderators": ["height"]},
    "moderated by levels": {"moderators": ["group"]},
    "nodewise, moderated": {"loss": "nodewise", "moderators": ["group"]},
    "uniform weights": {"penalty_weights": "uniform"},
    "adaptive, moderated": {"penalty_weights": "adaptive", "moderators": ["group"]},
    "required and forbidden": {
        "require": [("height", "smoker")],
        "forbid": [("weight", "colour")],
    },
}


def somewhere(options, seed=0, weighted=False):
    """A task, and a point of it at which a quarter of the edges are there."""
    table, rng = people(200, seed=4), np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(table)) * 0.7 if weighted else None
    chosen = Options(**options)
    design = encode(table, chosen, weights)
    task = prepare(design, chosen.recipe(design.schema))
    layout, theta = task.layout, task.null.theta.copy()
    some = np.sort(rng.permutation(layout.n_groups)[: max(1, layout.n_groups // 4)])
    at = layout.positions(some)[layout.n_node_terms :]
    theta[at] += 0.1 * rng.normal(size=len(at))
    theta[layout.diagonal] *= 1.3
    return design, task, theta


def number(design, task, theta, lam, **blocks):
    problem = task.problem(lam)
    pull = problem.lam * problem.penalty.weights
    claim = Claim(task.layout, theta, pull, task.yardstick)
    return kkt(design, estimates._standardised(design, task), claim, **blocks)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_solvers_own(kind, weighted):
    for lam in (0.0, 0.1):
        design, task, theta = somewhere(KINDS[kind], weighted=weighted)
        own = task.problem(lam).optimality(theta).kkt
        assert own > 1e-3
        assert number(design, task, theta, lam) == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_rows_and_columns_change_nothing(kind):
    design, task, theta = somewhere(KINDS[kind])
    whole = number(design, task, theta, 0.1)
    for blocks in ({"columns": 1}, {"columns": 4}, {"cells": 50}, {"columns": 3, "cells": 1}):
        assert number(design, task, theta, 0.1, **blocks) == pytest.approx(whole, rel=1e-12)


def test_it_agrees_with_loops_over_rows():
    table = people(80, seed=2)
    model = mg.MixedGraphicalModel(lam=0.1, tol=1e-2).fit(table)
    assert model.kkt_ > 1e-8
    X, Y = numbers(table)
    levels = model.params_.n_levels
    weights = plain.calibrated_weights(X, Y, levels)
    loops = optimality.certificate(model.params_, X, Y, 0.1, weights)
    assert model.kkt_ == pytest.approx(loops.kkt, rel=1e-7)


def test_a_refit_is_judged_with_its_ridge_and_without_the_edges_it_lacks():
    """A cell without rows: the refit has a ridge, and solves that problem only."""
    rng = np.random.default_rng(0)
    group = rng.choice(list("abc"), 150)
    answer = np.where((group == "a") | (rng.random(150) < 0.3), "yes", "no")
    table = pd.DataFrame({"group": group, "answer": answer, "z": rng.normal(size=150)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mg.MixedGraphicalModel().fit(table)
        shrunken = mg.MixedGraphicalModel(refit=False).fit(table)
    assert model.fitted_.report.ridge
    assert model.converged_
    assert model.kkt_ <= model.fitted_.report.tol
    assert shrunken.kkt_ <= shrunken.fitted_.report.tol


def test_a_point_that_only_the_solver_finds_good_is_not_converged():
    options = Options(lam=0.1)
    design = encode(people(120, seed=1), options)
    task = prepare(design, options.recipe(design.schema))
    fitted = fit_design(design, options)
    theta = task.theta_of(fitted.params)
    good = certified(design, task, Optimum(theta, fitted.report))
    assert good.converged
    theta = theta.copy()
    theta[0] += 1e-3
    bad = certified(design, task, Optimum(theta, fitted.report))
    assert not bad.converged
    assert bad.kkt > 1e-4
    assert "apart from the solver" in bad.message


def test_what_is_not_a_number_does_not_pass():
    design, task, theta = somewhere({})
    theta[-1] = np.nan
    assert np.isnan(number(design, task, theta, 0.1))
    report = fit_design(design, Options(lam=0.1)).report
    assert report.converged
    assert not certified(design, task, Optimum(theta, report)).converged

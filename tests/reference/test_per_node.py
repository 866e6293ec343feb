"""One lam per column: every regression against other solvers, every choice against other refits."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import mixedgm as mg
from tests.reference import conic
from tests.support.people import LEVELS, numbers, people

CRITERIA = {
    "ebic": (mg.EBIC(per_node=True), lambda n, df, k, p: df * np.log(n) + k * np.log(p)),
    "ebic, gamma": (
        mg.EBIC(0.2, per_node=True),
        lambda n, df, k, p: df * np.log(n) + 0.4 * k * np.log(p),
    ),
    "bic": (mg.BIC(per_node=True), lambda n, df, k, p: df * np.log(n)),
    "aic": (mg.AIC(per_node=True), lambda n, df, k, p: 2 * df),
}
N_LEVELS = tuple(len(levels) for levels in LEVELS.values())


NODES = ["height", "weight", *LEVELS]


@cache
def made():
    """Five columns that are related more or less, and weights of the rows."""
    weights = np.random.default_rng(1).uniform(0.2, 1.8, 250)
    return people(250, seed=5), weights * 250 / weights.sum()


@pytest.fixture(scope="module")
def table():
    return made()


def fit(table, select=None, *, weighted=False, **options):
    frame, weights = table
    model = mg.MixedGraphicalModel(
        loss="nodewise", select=select or mg.EBIC(per_node=True), n_jobs=1, **options
    )
    return model.fit(frame, sample_weight=weights if weighted else None)


# -- other solvers ---------------------------------------------------------------------------------


def test_every_regression_is_the_optimum_of_a_conic_solver_at_its_own_lam(table):
    frame, _ = table
    model = fit(table, mg.AIC(per_node=True), tol=1e-8, n_lams=30, refit=False)
    assert model.converged_
    assert model.kkt_ <= 1e-8
    assert len(set(model.lam_)) > 2, "columns should differ"
    X, Y = numbers(frame)
    params, names, value = model.params_, [node.name for node in model.schema_.nodes], 0.0
    for v, name in enumerate(names):
        lam = model.lam_[list(frame.columns).index(name)]
        optimum = conic.solve(X, Y, N_LEVELS, lam, targets=[v])
        value += optimum.value
        blocks = mg_params(optimum)
        for u in range(len(names)):
            if u != v:
                np.testing.assert_allclose(params.says(u, v), blocks.block(u, v), atol=2e-6)
    assert model.objective_ == pytest.approx(value, abs=1e-7)


def mg_params(optimum):
    from mixedgm.model.params import Params

    names = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")
    return Params.of_blocks(optimum.n_levels, *(getattr(optimum, name) for name in names))


@pytest.mark.parametrize("weighted", [False, True])
def test_every_regression_is_the_conditional_model_of_its_column(table, weighted):
    """One target, all others covariates: half the weight, so twice the lam."""
    frame, weights = table
    model = fit(table, tol=1e-9, weighted=weighted, refit=False)
    loss = 0.0
    for name, lam in zip(frame.columns, model.lam_, strict=True):
        others = [other for other in frame.columns if other != name]
        alone = mg.MixedGraphicalModel(lam=2 * lam, covariates=others, tol=1e-9)
        alone.fit(frame, sample_weight=weights if weighted else None)
        loss += alone.objective_
        v = model.schema_.node_index(name)
        for u in set(range(5)) - {v}:
            np.testing.assert_allclose(
                model.params_.says(u, v), alone.params_.block(u, v), atol=1e-6
            )
    assert model.objective_ == pytest.approx(loss, abs=1e-9)


# -- other refits ----------------------------------------------------------------------------------


@cache
def refit_loss(weighted, target, predictors, rows=1.0):
    """Mean loss of one regression without shrinkage, the constant of the normal left out.

    That of a category has a ridge worth one row on each of its predictors.
    """
    frame, weights = made()
    weights = weights if weighted else np.ones(len(frame))
    Z = np.zeros((len(frame), 0))
    if predictors:
        Z = pd.get_dummies(frame[list(predictors)], drop_first=True).to_numpy(dtype=float)
    y = frame[target]
    if target in ("height", "weight"):
        error = y.to_numpy() - np.average(y, weights=weights)
        if predictors:
            error = y - LinearRegression().fit(Z, y, weights).predict(Z)
        return 0.5 * np.log(np.average(error**2, weights=weights)) + 0.5
    (X, Y), v = numbers(frame), NODES.index(target)
    edges = [tuple(sorted((NODES.index(name), v))) for name in predictors]
    factors = np.full((5, 5), np.inf)
    for a, b in edges:
        factors[a, b] = factors[b, a] = 0.0
    optimum = conic.solve(
        X,
        Y,
        N_LEVELS,
        1.0,
        factors=factors,
        row_weights=weights,
        targets=[v],
        ridge=dict.fromkeys(edges, rows),
    )
    return optimum.value - optimum.added


def free_loss(frame, target, predictors, weights):
    """The same without a ridge, by another solver."""
    levels, code = np.unique(frame[target].astype(str), return_inverse=True)
    Z = pd.get_dummies(frame[list(predictors)], drop_first=True).to_numpy(dtype=float)
    scaled = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        free = LogisticRegression(C=np.inf, tol=1e-10, max_iter=2000).fit(scaled, code, weights)
    chance = free.predict_proba(scaled)[np.arange(len(code)), code]
    return -np.average(np.log(chance), weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_reference_without_a_ridge_is_a_logistic_regression(table, weighted):
    frame, weights = table
    weights = weights if weighted else np.ones(len(frame))
    for target in LEVELS:
        predictors = tuple(name for name in NODES if name != target)
        expected = free_loss(frame, target, predictors, weights)
        assert refit_loss(weighted, target, predictors, 0.0) == pytest.approx(expected, abs=1e-7)
        assert refit_loss(weighted, target, predictors) > expected


def predictors_of(path, k, target):
    pairs = path.layout.pairs[path.points[k].groups]
    nodes = path.schema.nodes
    return tuple(nodes[u].name for u, v in pairs if nodes[v].name == target)


def parameters(frame, target, predictors):
    def own(name):
        return 1 if name in ("height", "weight") else frame[name].nunique() - 1

    return own(target) * sum(map(own, predictors))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CRITERIA)
def test_every_lam_minimises_the_criterion_of_its_own_regression(table, name, weighted):
    frame, weights = table
    criterion, price = CRITERIA[name]
    model = fit(table, criterion, weighted=weighted, n_lams=20)
    weights = weights if weighted else np.ones(len(frame))
    n, path = weights.sum(), model.path_
    score = name.partition(",")[0]
    for at, target in enumerate(frame.columns):
        known = {}
        expected = []
        for k in range(len(path)):
            predictors = predictors_of(path, k, target)
            if predictors not in known:
                loss = refit_loss(weighted, target, predictors)
                df = parameters(frame, target, predictors)
                known[predictors] = 2 * n * loss + price(n, df, len(predictors), 4)
            expected.append(known[predictors])
        np.testing.assert_allclose(model.fitted_.scores[score][:, at], expected, atol=2e-3)
        assert model.lam_[at] == path.lams[int(np.argmin(np.round(expected, 4)))]


def test_refit_takes_the_shrinkage_off_every_regression(table):
    frame, weights = table
    model = fit(table, weighted=True)
    penalised = fit(table, weighted=True, refit=False)
    np.testing.assert_array_equal(model.lam_, penalised.lam_)
    assert model.fitted_.report.refitted
    assert not model.fitted_.report.ridge
    scores = model.node_scores(frame, sample_weight=weights)
    for at, target in enumerate(frame.columns):
        k = model.path_.lams.tolist().index(model.lam_[at])
        loss = refit_loss(True, target, predictors_of(model.path_, k, target), 0.0)
        constant = 0.5 * np.log(2 * np.pi) if target in ("height", "weight") else 0.0
        assert scores[target] == pytest.approx(loss + constant, abs=1e-6)

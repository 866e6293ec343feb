"""Group MCP from the table to the saved model: stationary by loops, and never called optimal."""

from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.estimates import certified, chosen_estimate, refitted
from mixedgm.fitted import FittedModel
from mixedgm.fitting import encode
from mixedgm.options import Options
from mixedgm.path.evidence import Evidence
from mixedgm.path.path import Path, geometric_lams
from mixedgm.path.selection import choose
from mixedgm.path.task import prepare
from mixedgm.penalty.group_mcp import GroupMCP
from mixedgm.solve.loop import Status
from mixedgm.store import load, save
from mixedgm.views.summary import summarise
from tests.reference import optimality, plain
from tests.support.people import numbers, people

GAMMA, TOL = 3.0, 1e-7


@pytest.fixture(scope="module")
def evidence():
    """As a fit begins, but for the penalty."""
    options = Options(refit=False, select="ebic", tol=TOL)
    design = encode(people(120, seed=3), options)
    recipe = options.recipe(design.schema)
    task = prepare(design, recipe)
    task = replace(task, penalty=GroupMCP(task.layout, task.penalty.weights, GAMMA))
    seed = np.random.SeedSequence(0)
    return Evidence(design, recipe, task, Path.of(task), seed), options


@pytest.fixture(scope="module")
def chosen(evidence):
    evidence, options = evidence
    lams = geometric_lams(evidence.task.lam_max, options.n_lams, options.lam_min_ratio)
    return choose(evidence, options.criterion, lams, grows=True)


@pytest.fixture(scope="module", params=["shrunken", "refitted"])
def fitted(request, evidence, chosen):
    (evidence, options), (path, choice) = evidence, chosen
    design, task = evidence.design, evidence.task
    estimate = chosen_estimate(task, path, choice, options)
    if request.param == "refitted":
        estimate = refitted(task, estimate, options, choice)
    return FittedModel(
        schema=design.schema,
        params=task.params(estimate.theta),
        node_scales=task.node_scales,
        report=certified(design, task, estimate),
        library="pandas",
        path=path,
    )


def penalty_and_slopes(params, X, Y, lam):
    """The MCP by its definition, and its slope at every edge in the units of the table."""
    mean, scale = plain.mean_and_scale(X)
    here, unit = optimality.standardised(params, mean, scale), [*scale, 1.0, 1.0, 1.0]
    weights = plain.calibrated_weights(X, Y, params.n_levels)
    value, slopes = 0.0, np.zeros((5, 5))
    for u, v in plain.pairs(2, 3):
        t, a = plain.norm(plain.block(here, u, v)), lam * weights[u][v] / (unit[u] * unit[v])
        value += a * t - t**2 / (2 * GAMMA) if t < GAMMA * a else GAMMA * a**2 / 2
        slopes[u, v] = max(0.0, a - t / GAMMA) * unit[u] * unit[v]
    return value, slopes


def test_every_point_of_the_path_is_stationary(chosen):
    path, X_Y = chosen[0], numbers(people(120, seed=3))
    flat = bent = 0
    for k in range(len(path)):
        params, lam = path.params(k), path.lams[k]
        value, slopes = penalty_and_slopes(params, *X_Y, lam)
        assert optimality.certificate(params, *X_Y, 1.0, slopes.tolist()).kkt <= 1.01 * TOL
        assert path.points[k].objective == pytest.approx(plain.smooth(params, *X_Y) + value)
        there = [pair for pair in plain.pairs(2, 3) if plain.norm(plain.block(params, *pair)) > 0]
        flat += sum(slopes[pair] == 0.0 for pair in there)
        bent += sum(slopes[pair] > 0.0 for pair in there)
    assert flat > 20  # edges beyond the knee
    assert bent > 5


def test_it_is_stationary_and_not_more(fitted, tmp_path):
    report, path = fitted.report, fitted.path
    assert {point.status for point in path.points} == {Status.STATIONARY}
    assert path.converged.all()
    assert report.converged
    assert report.kkt <= TOL
    save(fitted, tmp_path / "people.mgm")
    loaded = load(tmp_path / "people.mgm")[0]
    for model in (fitted, loaded):
        text = str(summarise(model))
        assert "stationary point" in " ".join(text.split())
        assert "optim" not in text + model.report.message
        assert model.path.points[-1].status is Status.STATIONARY
    # A refit has no penalty, and minimises; its graph is that of a stationary point.
    assert ("stationary point" in report.message) == (not report.refitted)


def test_the_group_lasso_is_not_called_stationary():
    model = mg.MixedGraphicalModel(lam=0.1).fit(people(120, seed=3))
    assert "stationary" not in str(model.summary()) + model.fitted_.report.message

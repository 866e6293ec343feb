"""The adaptive group lasso: weights from a conic pilot, its conic optimum, and KKT by loops."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.reference import conic, optimality, plain
from tests.support.people import assert_same_params
from tests.support.problems import draw

# Rows, continuous columns, levels, weighted rows; factors by pair of nodes; covariates; lam.
FREQUENCIES = pytest.mark.filterwarnings(
    "ignore:sample_weight sums:mixedgm.base.errors.TableWarning"
)
CASES = {
    "plain": ((80, 2, (2, 3), False), {}, (), 0.15),
    "weighted": ((80, 2, (2, 3), True), {}, (), 0.15),
    "numbers": ((60, 4, (), False), {}, (), 0.15),
    "factors": ((80, 2, (2, 3), False), {(0, 1): 0.0, (1, 2): 3.0, (0, 3): np.inf}, (), 0.15),
    "covariates": ((80, 2, (2, 3), False), {}, (0, 2), 0.1),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A table, what is asked for, and the weights by nodes that a conic pilot gives."""
    shape, factors, covariates, lam = CASES[request.param]
    table = draw(5, *shape)
    n_nodes = table.n_gaussian + len(table.n_levels)
    given = np.ones((n_nodes, n_nodes))
    for (u, v), factor in factors.items():
        given[u, v] = given[v, u] = factor
    is_given = np.isin(np.arange(n_nodes), covariates)
    share = np.where(np.logical_xor.outer(is_given, is_given), 0.5, 1.0)  # in one conditional
    n = len(table.X) if table.row_weights is None else table.row_weights.sum()
    known = np.where((given == 0.0) | np.isinf(given), given, 1.0)
    targets = np.flatnonzero(~is_given).tolist()
    pilot = solve(table, 2.0 / np.sqrt(n), known * share, targets)
    own = np.array(plain.calibrated_weights(table.X, table.Y, table.n_levels, table.row_weights))
    with np.errstate(invalid="ignore"):
        weights = own / (pilot.strength + 1.0 / n) * given * share
    return table, given, covariates, lam, weights, targets


def solve(table, lam, factors, targets, weights="calibrated"):
    return conic.solve(
        table.X,
        table.Y,
        table.n_levels,
        lam,
        weights,
        factors,
        table.row_weights,
        None if len(targets) == table.n_gaussian + len(table.n_levels) else targets,
    )


def fit(table, given, covariates, **options):
    names = [
        *(f"c{s}" for s in range(table.n_gaussian)),
        *(f"k{r}" for r in range(len(table.n_levels))),
    ]
    data = dict(zip(names, [*table.X.T, *(table.Y.T.astype(str))], strict=True))
    factors = {
        (names[u], names[v]): given[u, v]
        for u, v in plain.pairs(table.n_gaussian, len(table.n_levels))
        if given[u, v] != 1.0
    }
    model = mg.MixedGraphicalModel(
        penalty_weights="adaptive",
        penalty_factors=factors,
        covariates=[names[k] for k in covariates] or None,
        **options,
    )
    return model.fit(pd.DataFrame(data), sample_weight=table.row_weights)


@FREQUENCIES
def test_the_estimate_is_the_conic_optimum_with_weights_of_a_conic_pilot(case):
    table, given, covariates, lam, weights, targets = case
    model = fit(table, given, covariates, lam=lam, tol=1e-9)
    optimum = solve(table, lam, None, targets, weights)
    assert model.converged_
    assert model.objective_ == pytest.approx(optimum.value, abs=1e-6)
    if not covariates:  # whose own terms are not part of the problem
        assert_same_params(model.params_, optimum, atol=1e-4)
    names = [node.name for node in model.schema_.nodes]
    found = {tuple(sorted(map(names.index, edge))) for edge in pairs(model)}
    assert found == optimum.edges
    assert 0 < len(found) < np.isfinite(weights)[np.triu_indices(len(weights), 1)].sum()


def pairs(model):
    return [(edge.source, edge.target) for edge in model.edges_]


@FREQUENCIES
@pytest.mark.parametrize("case", sorted({*CASES} - {"covariates"}), indirect=True)
def test_its_certificate_is_that_of_loops_with_these_weights(case):
    table, given, covariates, lam, weights, _ = case
    model = fit(table, given, covariates, lam=lam, tol=1e-9)
    loops = optimality.certificate(
        model.params_, table.X, table.Y, lam, weights.tolist(), table.row_weights
    )
    assert loops.kkt < 1e-4  # the conic pilot's own precision, times weights of up to n
    calibrated = plain.calibrated_weights(table.X, table.Y, table.n_levels, table.row_weights)
    other = optimality.certificate(
        model.params_, table.X, table.Y, lam, calibrated, table.row_weights
    )
    assert other.kkt > 1e-2


def test_separate_regressions_have_pilots_of_their_own():
    table = draw(5, 80, 2, (2, 3))
    task = table.task(weights="adaptive", loss="nodewise")
    own = np.array(plain.calibrated_weights(table.X, table.Y, table.n_levels))
    unit = np.r_[task.units.scale, 1.0, 1.0]
    for v in range(4):
        pilot = solve(table, 1.0 / np.sqrt(80), None, [v])
        expected = own / np.outer(unit, unit) / (pilot.strength + 1.0 / 80)
        for u, weight in enumerate(task.penalty.weights[task.layout.pairs[:, 1] == v]):
            other = task.layout.pairs[task.layout.pairs[:, 1] == v][u, 0]
            assert weight == pytest.approx(expected[other, v], rel=1e-3)


def test_likelihoods_have_the_weights_of_the_pseudolikelihood():
    """An edge of a covariate is in one conditional of two, but in the likelihood's only term."""
    table = draw(5, 80, 2, (2, 3))
    here = table.task(weights="adaptive")
    for loss in ("likelihood", "likelihood-mc"):
        there = table.task(weights="adaptive", loss=loss)
        np.testing.assert_allclose(there.penalty.weights, here.penalty.weights, rtol=1e-12)
    given = np.ones((4, 4))
    pseudo, exact = (
        fit(table, given, (0,), lam=lam, loss=loss)
        for loss, lam in (("pseudolikelihood", 0.3), ("likelihood", 0.15))
    )
    assert pseudo.converged_
    assert exact.converged_
    assert 0 < len(exact.edges_) < 6


def test_factors_multiply_what_results_and_do_not_change_the_pilot():
    table = draw(5, 80, 2, (2, 3))
    plain_weights = table.task(weights="adaptive").penalty.weights
    factors = np.full((4, 4), 2.5)
    times = table.task(weights="adaptive", factors=factors).penalty.weights
    np.testing.assert_allclose(times, 2.5 * plain_weights, rtol=1e-12)

"""Penalised maximum likelihood: against a conic solver, graphical lasso, and recomputed KKT."""

import numpy as np
import pytest

from mixedgm.model.params import from_theta
from mixedgm.path.path import geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.choose import Auto
from tests.reference import likelihood as reference
from tests.support.problems import draw, solved

# Rows, continuous columns, levels, weighted, fraction of lam_max.
SMALL = {
    "categorical": (60, 0, (2, 3, 2), False, 0.3),
    "categorical-weighted": (50, 0, (3, 2, 2), True, 0.1),
    "mixed": (60, 2, (2, 3), False, 0.3),
    "mixed-weighted": (50, 2, (2, 2), True, 0.1),
    "continuous": (40, 4, (), False, 0.2),
}


@pytest.fixture(params=SMALL)
def small(request):
    n, p, levels, weighted, fraction = SMALL[request.param]
    table = draw(11, n, p, levels, weighted)
    rows = reference.rows_of(table.X, table.Y, levels, table.row_weights)
    return table.task(loss="likelihood"), rows, fraction


def test_optimum_is_that_of_a_conic_solver(small):
    task, rows, fraction = small
    lam = fraction * task.lam_max
    solution = solved(task, lam, tol=1e-9)
    expected = reference.optimum(rows, lam)
    assert solution.converged
    assert solution.objective == pytest.approx(expected.value, abs=2e-8)
    params = from_theta(task.layout, solution.theta)
    for name in ("precision", "category_shift", "cat_interaction"):
        np.testing.assert_allclose(getattr(params, name), getattr(expected, name), atol=2e-4)


def test_objective_and_kkt_recomputed_by_enumeration_along_a_path(small):
    task, rows, _ = small
    path = solve_path(task, geometric_lams(task.lam_max, 8, 0.01), Recipe(Auto(), 1e-5, 200))
    assert path.converged.all()
    scales = rows.scales
    for k, point in enumerate(path.points):
        params = from_theta(task.layout, path.theta(k))
        weights = {(u, v): scales[u] * scales[v] for u, v in task.layout.pairs.tolist()}
        found = reference.kkt(params, rows, point.lam, lambda u, v, w=weights: w[u, v])
        assert found == pytest.approx(point.kkt, abs=1e-9)
        assert found <= 1e-5
        norms = task.layout.group_norms(path.theta(k))
        objective = reference.loss(params, rows) + point.lam * norms @ task.yardstick
        assert objective + task.log_jacobian == pytest.approx(point.objective, abs=1e-9)


@pytest.mark.parametrize("lam", [0.3, 0.1, 0.02])
def test_continuous_columns_alone_are_the_graphical_lasso(lam):
    from sklearn.covariance import graphical_lasso

    table = draw(5, 80, 6, ())
    task = table.task(loss="likelihood", weights="calibrated")
    params = from_theta(task.layout, solved(task, lam, tol=1e-8).theta)
    correlation = np.corrcoef(table.X, rowvar=False)
    _, precision = graphical_lasso(correlation, alpha=lam, tol=1e-10, enet_tol=1e-10, max_iter=500)
    np.testing.assert_allclose(params.precision, precision, atol=1e-5)
    assert np.array_equal(params.precision != 0, np.abs(precision) > 1e-9)
    np.testing.assert_allclose(params.cont_bias, 0.0, atol=1e-7)


def test_lam_max_is_half_of_the_pseudolikelihoods(small):
    task, rows, _ = small
    table = draw(12, 60, 2, (2, 3))
    assert table.task(loss="likelihood").lam_max == pytest.approx(0.5 * table.task().lam_max)
    # In closed form: the largest covariance of two nodes on the calibrated scale.
    Z = np.hstack([rows.X, rows.D])
    covariance = Z.T @ (rows.share[:, None] * Z) - np.outer(rows.share @ Z, rows.share @ Z)
    blocks = task.layout.group_norms(
        np.concatenate([np.zeros(task.layout.n_node_terms), task.layout.from_matrix(covariance)])
    )
    assert task.lam_max == pytest.approx((blocks / task.yardstick).max(), abs=1e-12)


def test_at_lam_max_there_is_no_edge_and_just_below_there_is_one(small):
    task, _, _ = small
    for factor, some in ((1.0, False), (0.98, True)):
        theta = solved(task, factor * task.lam_max, tol=1e-7).theta
        assert task.layout.group_norms(theta).any() == some

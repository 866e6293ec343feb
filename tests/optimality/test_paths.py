"""Every point of a path is certified by loops over rows, not only by the path itself."""

import numpy as np
import pytest

from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from tests.reference import optimality, plain
from tests.support.problems import draw

SHAPES = {
    "mixed": (50, 2, (2, 4), False),
    "mixed-weighted": (50, 2, (2, 4), True),
    "continuous": (40, 4, (), False),
    "categorical": (50, 0, (2, 3, 4), True),
}
SOLVERS = {"newton": ProximalNewton(), "gradient": ProximalGradient()}


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_point_satisfies_the_optimality_conditions(shape, weights, solver):
    table = draw(51, *SHAPES[shape])
    task = table.task(weights=weights)
    lams = np.geomspace(task.lam_max, 0.01 * task.lam_max, 10)
    path = solve_path(task, lams, Recipe(SOLVERS[solver], 1e-6, 20_000))
    own = plain.edge_weights(weights, table.X, table.Y, table.n_levels, table.row_weights)
    for k, lam in enumerate(path.lams):
        found = optimality.certificate(
            path.params(k), table.X, table.Y, lam, own, table.row_weights
        )
        assert found.kkt <= 1.01e-6
        assert found.kkt == pytest.approx(path.kkt[k], abs=1e-9)


def test_few_rows_and_many_columns():
    """Fewer rows than columns: the penalty alone keeps the problem well posed."""
    table = draw(52, 12, 10, (2, 3, 2, 2))
    task = table.task()
    lams = np.geomspace(task.lam_max, 0.05 * task.lam_max, 6)
    path = solve_path(task, lams, Recipe(ProximalNewton(), 1e-6, 2000))
    assert path.converged.all()
    own = plain.calibrated_weights(table.X, table.Y, table.n_levels)
    for k in (2, 5):
        found = optimality.certificate(path.params(k), table.X, table.Y, path.lams[k], own)
        assert found.kkt <= 1.01e-6


def test_columns_in_extreme_units():
    table = draw(53, 60, 3, (3,))
    table.X[:] = table.X * [1e-8, 1e8, 1.0] + [0.0, 0.0, 1e5]
    task = table.task()
    path = solve_path(
        task, task.lam_max * np.array([0.5, 0.1]), Recipe(ProximalNewton(), 1e-8, 200)
    )
    assert path.converged.all()
    own = plain.calibrated_weights(table.X, table.Y, table.n_levels)
    found = optimality.certificate(path.params(1), table.X, table.Y, path.lams[1], own)
    assert found.kkt <= 1e-6


def test_separable_levels_stay_finite():
    """A column that another decides: without shrinkage its parameters would be infinite."""
    table = draw(54, 60, 1, (2, 2))
    table.Y[:, 1] = 1 - table.Y[:, 0]
    table.X[:, 0] = table.Y[:, 0] + 0.1 * table.X[:, 0] / np.abs(table.X).max()
    task = table.task()
    lams = np.geomspace(task.lam_max, 1e-3 * task.lam_max, 8)
    path = solve_path(task, lams, Recipe(ProximalNewton(), 1e-6, 2000))
    assert path.converged.all()
    assert np.all(np.isfinite(path.params(7).coef))
    found = optimality.certificate(
        path.params(7),
        table.X,
        table.Y,
        lams[7],
        plain.calibrated_weights(table.X, table.Y, table.n_levels),
    )
    assert found.kkt <= 1e-5

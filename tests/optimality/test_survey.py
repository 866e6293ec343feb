"""The survey data over the whole grid of the paper: every lam reaches its tolerance.

Recomputed from the parameters in the data's own units, with the indicator matrix formed: by
matrices for all rows, by loops for the smallest table.
"""

import warnings
from functools import cache

import numpy as np
import pytest

from mixedgm.base.errors import TableWarning
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.solve.choose import solver_for
from mixedgm.table.encode import learn
from tests.reference import optimality, plain
from tests.support import dense
from tests.support.shared import shared_data

LAMS = np.geomspace(0.7, 5e-5, 50)
TOL = 1e-5
# Seeds of the samples; of the small one, such that a declared level has no row.
SEEDS = {10_000: 0, 1_000: 0, 100: 8}
SIZES = [pytest.param(10_000, marks=pytest.mark.slow), 1_000, 100]


@cache
def solved(n_rows):
    """The path over a fixed sample of rows, and the sample."""
    import pandas as pd

    frame = pd.read_parquet(shared_data("atus_wage.parquet")).iloc[:, :11]
    rows = np.random.default_rng(SEEDS[n_rows]).choice(len(frame), size=n_rows, replace=False)
    with warnings.catch_warnings():
        # A hundred rows do not hold every declared level, which is remarked upon.
        warnings.simplefilter("ignore", TableWarning)
        design, _ = learn(frame.iloc[np.sort(rows)])
    path = solve_path(prepare(design), LAMS, Recipe(solver_for("auto"), TOL, 1000))
    return path, design


@pytest.mark.parametrize("n_rows", SIZES)
def test_every_lam_of_the_grid_converges(n_rows):
    path, design = solved(n_rows)
    assert design.n_rows == n_rows
    assert len(path) == 50
    worst = int(np.argmax(path.kkt))
    assert path.converged.all(), (path.lams[worst], path.points[worst].status.value)
    assert path.kkt.max() <= TOL


@pytest.mark.parametrize("n_rows", SIZES)
def test_every_point_is_optimal_by_whole_matrices(n_rows):
    path, design = solved(n_rows)
    for k, lam in enumerate(path.lams):
        found = dense.kkt(path.params(k), design.numbers, design.codes, lam)
        assert found <= 1.01 * TOL
        assert found == pytest.approx(path.kkt[k], abs=1e-8)


def test_levels_go_missing_in_a_hundred_rows():
    path, design = solved(100)
    assert not path.observed.all(), "every level is there: nothing is tested"
    for k in (0, 25, 49):
        found = optimality.certificate(
            path.params(k),
            design.numbers,
            design.codes,
            path.lams[k],
            plain.calibrated_weights(design.numbers, design.codes, design.schema.n_levels),
        )
        assert found.kkt <= 1.01 * TOL


@pytest.mark.parametrize("n_rows", [1_000, 100])
def test_diagonals_stay_positive_and_the_graph_grows(n_rows):
    path, _ = solved(n_rows)
    for k in range(len(path)):
        assert np.all(np.diag(path.params(k).precision) > 0)
    assert path.n_edges[0] < 5
    assert path.n_edges[-1] > 50

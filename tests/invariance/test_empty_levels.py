"""A declared level without rows changes nothing for the others."""

from dataclasses import replace

import numpy as np
import pytest

from tests.reference import optimality, plain
from tests.support.problems import draw, edges_of, estimate, solved

TABLES = {
    "mixed": draw(91, 80, 2, (2, 3)),
    "mixed-weighted": draw(92, 80, 2, (2, 3), weighted=True),
    "categorical-weighted": draw(93, 80, 0, (2, 3, 4), weighted=True),
}


def widened(table, column, place):
    """The same rows with one more level of a column, at that place."""
    Y = table.Y.copy()
    Y[:, column] += Y[:, column] >= place
    n_levels = list(table.n_levels)
    n_levels[column] += 1
    first = sum(table.n_levels[:column]) + place
    keep = np.delete(np.arange(sum(n_levels)), first)
    return replace(table, Y=Y, n_levels=tuple(n_levels)), keep, first


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
@pytest.mark.parametrize(("column", "place"), [(0, 0), (0, 1), (1, 1), (1, 3)])
@pytest.mark.parametrize("name", TABLES)
def test_same_optimum_with_and_without_the_empty_level(name, column, place, weights):
    table = TABLES[name]
    wide, keep, empty = widened(table, column, place)
    here, edges, value, lam = estimate(table, 0.1, weights=weights)
    there, other_edges, other_value, other_lam = estimate(wide, 0.1, weights=weights)
    assert (other_edges, other_lam) == (edges, pytest.approx(lam, rel=1e-12))
    assert other_value == pytest.approx(value, abs=1e-11)
    np.testing.assert_allclose(there.precision, here.precision, atol=1e-9)
    np.testing.assert_allclose(there.category_shift[:, keep], here.category_shift, atol=1e-9)
    np.testing.assert_allclose(
        there.cat_interaction[np.ix_(keep, keep)], here.cat_interaction, atol=1e-9
    )
    np.testing.assert_allclose(there.cat_bias[keep], here.cat_bias, atol=1e-9)
    assert np.isneginf(there.cat_bias[empty])
    assert not there.category_shift[:, empty].any()
    assert not there.cat_interaction[empty].any()


def test_objective_and_certificate_hold_with_the_level_in_place():
    table, _, _ = widened(TABLES["mixed"], 1, 1)
    params, _, value, lam = estimate(table, 0.1)
    weights = plain.calibrated_weights(table.X, table.Y, table.n_levels)
    assert plain.objective(params, table.X, table.Y, lam, weights) == pytest.approx(value, abs=1e-9)
    assert optimality.certificate(params, table.X, table.Y, lam, weights).kkt <= 1e-7


def test_several_empty_levels_in_several_columns():
    table = TABLES["mixed"]
    wide, _, _ = widened(table, 1, 0)
    wide, _, _ = widened(wide, 1, 4)
    wide, _, _ = widened(wide, 0, 2)
    assert wide.n_levels == (3, 5)
    here, there = estimate(table, 0.1), estimate(wide, 0.1)
    assert there[2] == pytest.approx(here[2], abs=1e-11)
    np.testing.assert_array_equal(np.isneginf(there[0].cat_bias), [0, 0, 1, 1, 0, 0, 0, 1])


# --- a column without variation, as resamples may hold it --------------------------------------


def without_column(table, node):
    if node < table.n_gaussian:
        return replace(table, X=np.delete(table.X, node, axis=1))
    column = node - table.n_gaussian
    n_levels = tuple(m for r, m in enumerate(table.n_levels) if r != column)
    return replace(table, Y=np.delete(table.Y, column, axis=1), n_levels=n_levels)


def test_a_categorical_column_with_one_observed_level_has_no_edges():
    """Its calibrated weight is zero, which must mean absent and never free of penalty."""
    table = draw(94, 60, 2, (2, 3, 3))
    table.Y[:, 1] = 2
    params, edges, value, lam = estimate(table, 0.2)
    assert not any(3 in edge for edge in edges)
    assert not params.category_shift[:, 2:5].any()
    np.testing.assert_array_equal(np.isneginf(params.cat_bias[2:5]), [True, True, False])
    narrow = estimate(without_column(table, 3), 0.2)
    assert (value, lam) == pytest.approx((narrow[2], narrow[3]), abs=1e-9)


@pytest.mark.parametrize("constant", [7.0, 7.1, 0.0])
def test_a_constant_continuous_column_has_no_edges(constant):
    table = draw(95, 60, 3, (2, 3))
    table.X[:, 1] = constant
    task, narrow = table.task(), without_column(table, 1).task()
    assert task.lam_max == pytest.approx(narrow.lam_max, abs=1e-9)
    solution = solved(task, 0.2 * task.lam_max, tol=1e-6, max_iter=50)
    assert solution.converged
    assert not any(1 in edge for edge in edges_of(task, solution.theta))
    assert np.all(np.isfinite(task.params(solution.theta).coef))

"""Tasks: units, observed levels, free and absent edges."""

import numpy as np
import pytest

from tests.reference import plain
from tests.support.problems import draw

TABLE = draw(21, 60, 2, (2, 3), weighted=True)


def factors(**pairs):
    out = np.ones((4, 4))
    for name, value in pairs.items():
        u, v = int(name[1]), int(name[2])
        out[u, v] = out[v, u] = value
    return out


def test_units_are_weighted_population_moments():
    task = TABLE.task()
    mean, scale = plain.mean_and_scale(TABLE.X, TABLE.row_weights)
    np.testing.assert_allclose(task.units.centre, mean)
    np.testing.assert_allclose(task.units.scale, scale)
    assert task.total_weight == TABLE.row_weights.sum()


def test_the_table_is_not_changed():
    design = TABLE.design
    before = design.numbers.copy(), design.codes.copy()
    from mixedgm.path.task import prepare

    prepare(design)
    np.testing.assert_array_equal(design.numbers, before[0])
    np.testing.assert_array_equal(design.codes, before[1])


def test_null_parameters_are_means_variances_and_frequencies():
    task = TABLE.task()
    params = task.params(task.null.theta)
    mean, scale = plain.mean_and_scale(TABLE.X, TABLE.row_weights)
    np.testing.assert_allclose(np.diag(params.precision), 1 / np.square(scale))
    np.testing.assert_allclose(params.cont_bias, np.array(mean) / np.square(scale))
    for j, shares in enumerate(plain.frequencies(TABLE.Y, (2, 3), TABLE.row_weights)):
        odds = np.exp(params.cat_bias[params.levels_of(j)])
        np.testing.assert_allclose(odds / odds.sum(), shares)
        assert params.cat_bias[params.levels_of(j)].sum() == pytest.approx(0.0, abs=1e-12)


def test_lam_max_is_that_of_the_loops():
    for kind in ("calibrated", "uniform"):
        weights = plain.edge_weights(kind, TABLE.X, TABLE.Y, (2, 3), TABLE.row_weights)
        expected = plain.lam_max(TABLE.X, TABLE.Y, (2, 3), weights, TABLE.row_weights)
        assert TABLE.task(weights=kind).lam_max == pytest.approx(expected, rel=1e-10)


def test_calibrated_lam_max_is_at_most_two():
    for seed in range(20):
        assert draw(seed, 25, 3, (2, 4)).task().lam_max <= 2.0
    x = np.random.default_rng(0).normal(size=30)
    twin = type(TABLE)(np.column_stack([x, 3 - 2 * x]), np.zeros((30, 0), dtype=int), ())
    assert twin.task().lam_max == pytest.approx(2.0)


def test_absent_edges_are_not_in_the_layout():
    task = TABLE.task(factors=factors(f01=np.inf, f23=np.inf))
    assert task.layout.pairs.tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert np.all(np.isfinite(task.penalty.weights))


def test_factors_multiply_weights():
    plain_task, task = TABLE.task(), TABLE.task(factors=factors(f02=2.5))
    np.testing.assert_allclose(task.penalty.weights[1], 2.5 * plain_task.penalty.weights[1])
    np.testing.assert_allclose(task.penalty.weights[2:], plain_task.penalty.weights[2:])
    np.testing.assert_array_equal(task.yardstick, plain_task.yardstick)


def test_with_free_edges_the_null_model_is_the_optimum_over_them():
    task = TABLE.task(factors=factors(f01=0.0, f12=0.0))
    layout, grad = task.layout, task.null.evaluation.gradient
    free = layout.positions(task.penalty.free)
    assert np.abs(grad[free]).max() <= 1e-8
    norms = layout.group_norms(task.null.theta)
    np.testing.assert_array_equal(norms > 0, task.penalty.weights == 0)


def test_all_edges_forbidden_leaves_the_independent_model():
    task = TABLE.task(factors=np.full((4, 4), np.inf))
    assert task.layout.n_groups == 0
    assert task.lam_max == 0.0
    assert np.abs(task.null.evaluation.gradient).max() <= 1e-12


@pytest.mark.parametrize(("n_gaussian", "n_levels"), [(3, ()), (0, (2, 3)), (1, ()), (0, (4,))])
def test_one_kind_and_one_column_alone(n_gaussian, n_levels):
    table = draw(5, 40, n_gaussian, n_levels)
    task = table.task()
    params = task.params(task.null.theta)
    expected = plain.smooth(params, table.X, table.Y)
    assert task.null.evaluation.value + task.log_jacobian == pytest.approx(expected)


def test_unobserved_levels_are_left_out_of_the_layout():
    table = draw(6, 50, 1, (2, 4))
    table.Y[table.Y[:, 1] == 2, 1] = 0
    task = table.task()
    assert task.layout.n_levels == (2, 3)
    assert task.observed.tolist() == [True, True, True, True, False, True]
    params = task.params(task.null.theta)
    assert params.n_levels == (2, 4)
    assert np.isneginf(params.cat_bias[4])

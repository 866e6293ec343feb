"""Calibrated and uniform weights equal the loops; under independence groups pull alike."""

from dataclasses import replace

import numpy as np
import pytest

from tests.reference import plain
from tests.support.problems import draw, random_theta

SHAPES = [(2, (2, 5), False), (2, (2, 5), True), (4, (), True), (1, (3,), False)]


@pytest.mark.parametrize(("n_gaussian", "n_levels", "weighted"), SHAPES)
@pytest.mark.parametrize("kind", ["calibrated", "uniform"])
def test_weights_in_own_units_are_those_of_the_loops(n_gaussian, n_levels, weighted, kind):
    table = draw(1, 50, n_gaussian, n_levels, weighted)
    task = table.task(weights=kind)
    own = plain.edge_weights(kind, table.X, table.Y, n_levels, table.row_weights)
    unit = np.r_[task.units.scale, np.ones(len(n_levels))]
    for g, (u, v) in enumerate(task.layout.pairs):
        assert task.penalty.weights[g] == pytest.approx(own[u][v] / (unit[u] * unit[v]), rel=1e-12)


@pytest.mark.parametrize("kind", ["calibrated", "uniform"])
def test_the_yardstick_is_calibrated_whatever_the_weights(kind):
    table = draw(2, 50, 2, (2, 3))
    task = table.task(weights=kind, factors=np.full((4, 4), 3.0))
    own = plain.calibrated_weights(table.X, table.Y, (2, 3))
    unit = np.r_[task.units.scale, 1, 1]
    expected = [own[u][v] / (unit[u] * unit[v]) for u, v in task.layout.pairs]
    np.testing.assert_allclose(task.yardstick, expected, rtol=1e-12)
    factor = 3.0 * (task.yardstick if kind == "calibrated" else 1 / (unit[0] * unit[1]))
    assert task.penalty.weights[0] == pytest.approx(np.ravel(factor)[0])


def test_node_scales_are_in_own_units():
    table = draw(3, 50, 2, (2, 3))
    own = plain.calibrated_weights(table.X, table.Y, (2, 3))
    scales = table.task().node_scales
    np.testing.assert_allclose(np.outer(scales, scales), own, rtol=1e-12)


def test_calibrated_groups_have_equal_expected_pull_under_independence():
    """Over tables with independent columns, E norm(gradient)^2 / w^2 is one number.

    Means over 400 tables have relative standard errors of 0.04 to 0.07 (measured); the largest and
    the smallest of six differ by a factor of 1.22 with this seed, which is fixed.
    """
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(400):
        table = draw(0, 60, 2, (2, 4))
        mixed = [column[rng.permutation(60)] for column in (*table.X.T, *table.Y.T)]
        shuffled = type(table)(
            np.column_stack(mixed[:2]), np.column_stack(mixed[2:]).astype(int), (2, 4)
        )
        task = shuffled.task()
        norms = task.layout.group_norms(task.null.evaluation.gradient)
        total = total + (norms / task.penalty.weights) ** 2
    assert total.max() / total.min() < 1.5


@pytest.mark.parametrize("kind", ["calibrated", "uniform"])
def test_both_parts_of_a_hurdle_column_are_standardised_before_the_norm(kind):
    """The penalty in the data's own parameters: the formulas of docs/mathematics.md."""
    table = draw(4, 90, 1, (), n_spiked=2)
    task = table.task(weights=kind)
    theta = random_theta(task.layout, 0)
    coef, (x, one, two) = task.params(theta).coef, table.X.T
    parts = [[x]]
    for h, location in zip((one, two), table.locations, strict=True):
        parts.append([h != 0.0, (h != 0.0) * (h - location)])
    spread = [np.array([np.std(part) for part in each]) for each in parts]
    if kind == "calibrated":
        spread = [np.sqrt(len(each)) * each for each in spread]
    else:  # weight 1 for numbers, and for how much a hurdle column is
        spread = [each / each[-1] for each in spread]
    columns, expected = [slice(0, 1), slice(1, 3), slice(3, 5)], 0.0
    for u, v in ((0, 1), (0, 2), (1, 2)):
        block = coef[columns[u], columns[v]]
        expected += np.linalg.norm(spread[u][:, None] * block * spread[v])
    assert task.penalty.value(theta, 0.3) == pytest.approx(0.3 * expected, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "share"), [("pseudolikelihood", 0.5), ("nodewise", 1.0), ("likelihood", 1.0)]
)
def test_edges_of_covariates_have_the_weight_of_the_conditionals_they_are_in(loss, share):
    table = replace(draw(5, 60, 3, ()), covariates=(0,))
    task = table.task(loss=loss)
    given = (task.layout.pairs == 0).any(axis=1)
    np.testing.assert_allclose(task.yardstick[given], share, rtol=1e-12)
    np.testing.assert_allclose(task.yardstick[~given], 1.0, rtol=1e-12)

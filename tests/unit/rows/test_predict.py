"""Predictions over any number of rows equal those row by row."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta
from mixedgm.rows.predict import mean_losses, predictions, probabilities
from tests.reference import plain
from tests.support.problems import draw, random_theta


@pytest.fixture(scope="module")
def case():
    layout = Layout.complete(Nodes.mixed(2, (3, 2)))
    return from_theta(layout, random_theta(layout, 1)), draw(5, 40, 2, (3, 2), weighted=True)


def test_mean_losses_sum_to_the_smooth_value_with_the_constant(case):
    params, table = case
    for weights in (None, table.row_weights):
        found = mean_losses(params, table.X, table.design.codes, weights).sum()
        expected = plain.smooth(params, table.X, table.Y, weights) + np.log(2 * np.pi)
        assert found == pytest.approx(expected, rel=1e-12)


def points(params):
    return {node: kind.point for node, kind in enumerate(params.nodes.kinds)}


def test_predictions_are_conditional_means_and_likeliest_levels(case):
    params, table = case
    found = predictions(params, table.X, table.design.codes, points(params))
    mean, mode = found[1], found[2]
    for i, (x, y) in enumerate(zip(table.X, table.Y, strict=True)):
        assert mean[i] == pytest.approx(plain.conditional_mean(params, 1, x, y))
        assert mode[i] == np.argmax(plain.conditional_probabilities(params, 0, x, y))


def test_probabilities_of_one_column(case):
    params, table = case
    found = probabilities(params, table.X, table.design.codes, 1)
    assert found.shape == (40, 2)
    for i, (x, y) in enumerate(zip(table.X, table.Y, strict=True)):
        np.testing.assert_allclose(found[i], plain.conditional_probabilities(params, 1, x, y))


def test_more_rows_than_one_block_give_the_same_as_few():
    layout = Layout.complete(Nodes.mixed(1, (100, 100)))
    params = from_theta(layout, random_theta(layout, 2))
    table = draw(6, 6000, 1, (100, 100))
    codes = table.design.codes
    found = predictions(params, table.X, codes, points(params))
    chances = probabilities(params, table.X, codes, 1)
    tail = slice(5990, 6000)
    few = predictions(params, table.X[tail], codes[tail], points(params))
    np.testing.assert_allclose(few[0], found[0][tail])
    for node in (1, 2):
        np.testing.assert_array_equal(few[node], found[node][tail])
    np.testing.assert_allclose(
        probabilities(params, table.X[tail], codes[tail], 1), chances[tail], rtol=1e-12
    )
    halves = [mean_losses(params, table.X[s], codes[s]) for s in (slice(3000), slice(3000, None))]
    np.testing.assert_allclose(mean_losses(params, table.X, codes), np.mean(halves, axis=0))

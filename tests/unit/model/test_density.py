"""Conditionals and losses equal the loops and the enumerated joint density."""

import numpy as np
import pytest

from mixedgm.families.gaussian import LOG_TWO_PI
from mixedgm.model.density import conditionals, losses
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params, from_theta, with_all_levels
from tests.reference import joint, plain
from tests.support.problems import draw, random_theta

SHAPES = [(2, (2, 3)), (3, ()), (0, (2, 4)), (1, (9,))]


def random_params(n_gaussian, n_levels, seed=0):
    layout = Layout.complete(Nodes.mixed(n_gaussian, n_levels))
    return from_theta(layout, random_theta(layout, seed))


@pytest.mark.parametrize(("n_gaussian", "n_levels"), SHAPES)
def test_conditionals_equal_the_loops(n_gaussian, n_levels):
    params, table = random_params(n_gaussian, n_levels), draw(1, 15, n_gaussian, n_levels)
    found = conditionals(params, table.X, table.design.codes)
    np.testing.assert_allclose(found.variance, 1 / np.diag(params.precision))
    for i, (x, y) in enumerate(zip(table.X, table.Y, strict=True)):
        for s in range(n_gaussian):
            assert found.mean[i, s] == pytest.approx(plain.conditional_mean(params, s, x, y))
        for r in range(len(n_levels)):
            chances = np.exp(found.log_prob[i, params.levels_of(r)])
            expected = plain.conditional_probabilities(params, r, x, y)
            np.testing.assert_allclose(chances, expected, rtol=1e-10)


def test_conditionals_follow_from_the_joint_density():
    params = random_params(1, (2, 3), seed=3)
    x = np.array([[0.7]])
    for y in joint.states((2, 3)):
        found = conditionals(params, x, np.array([y]))
        mean, variance = joint.moments_from_joint(params, 0, [0.7], y)
        assert found.mean[0, 0] == pytest.approx(mean, abs=1e-9)
        assert found.variance[0] == pytest.approx(variance, abs=1e-9)
        for r in range(2):
            np.testing.assert_allclose(
                np.exp(found.log_prob[0, params.levels_of(r)]),
                joint.levels_from_joint(params, r, [0.7], y),
                rtol=1e-10,
            )


@pytest.mark.parametrize(("n_gaussian", "n_levels"), SHAPES)
def test_losses_are_the_row_losses_with_the_constant(n_gaussian, n_levels):
    params, table = random_params(n_gaussian, n_levels), draw(2, 15, n_gaussian, n_levels)
    found = losses(params, table.X, table.design.codes).sum(axis=1)
    expected = [plain.row_loss(params, x, y) for x, y in zip(table.X, table.Y, strict=True)]
    np.testing.assert_allclose(found, np.array(expected) + n_gaussian * LOG_TWO_PI / 2, rtol=1e-10)


def test_codes_of_one_byte_with_more_levels_than_a_byte_counts():
    """Positions among all levels are sums of two numbers that fit a byte."""
    params = random_params(1, (200, 90, 3))
    x, y = np.array([[0.3], [-1.0]]), np.array([[199, 89, 2], [0, 60, 1]], dtype=np.uint8)
    expected = [plain.row_loss(params, *row) for row in zip(x, y.astype(int), strict=True)]
    found = losses(params, x, y).sum(axis=1) - LOG_TWO_PI / 2
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def unseen_level():
    """Column k0 has a third level without rows, in the middle."""
    params = random_params(1, (2, 2), seed=7)
    observed = np.array([True, False, True, True, True])
    return with_all_levels(params, observed, Nodes.mixed(params.n_cont, (3, 2)))


def test_an_unseen_level_gets_half_a_row():
    params = unseen_level()
    found = conditionals(params, np.array([[0.3]]), np.array([[0, 1]]), n_observed=99.5)
    chances = np.exp(found.log_prob[0, :3])
    assert chances[1] == pytest.approx(0.5 / 100)
    assert chances.sum() == pytest.approx(1.0)
    fitted = np.exp(conditionals(params, np.array([[0.3]]), np.array([[0, 1]])).log_prob[0, :3])
    assert fitted[1] == 0.0
    assert chances[0] / chances[2] == pytest.approx(fitted[0] / fitted[2])


def test_a_row_with_an_unseen_level_has_a_finite_loss():
    found = losses(unseen_level(), np.array([[0.3]]), np.array([[1, 0]]), n_observed=50.0)
    assert np.all(np.isfinite(found))
    assert found[0, 1] == pytest.approx(-np.log(0.5 / 50.5))


def test_extreme_logits_give_finite_log_probabilities():
    params = Params.independent(Nodes.mixed(1, (2,)))
    wild = Params.of_blocks(
        params.n_levels,
        params.precision,
        params.cont_bias,
        np.array([[800.0, -800.0]]),
        params.cat_interaction,
        params.cat_bias,
    )
    found = conditionals(wild, np.array([[1.0]]), np.array([[0]])).log_prob
    np.testing.assert_allclose(found, [[0.0, -1600.0]])

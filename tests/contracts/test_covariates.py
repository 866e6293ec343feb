"""Covariates predict and are not predicted: a function over some conditionals only."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.memory import MemoryRows
from tests.support.problems import draw, random_theta

P, N_LEVELS = 3, (2, 3, 4)
N_NODES = P + len(N_LEVELS)
SETS = {"one of each": (1, 4), "all continuous": (0, 1, 2), "all categorical": (3, 4, 5)}


def smooth_with(covariates, pairs=None, weighted=True):
    table = draw(5, 60, P, N_LEVELS, weighted)
    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    rows = MemoryRows(np.ascontiguousarray(X), table.design.codes, N_LEVELS, table.row_weights)
    layout = Layout.complete(Nodes.mixed(P, N_LEVELS), covariates=tuple(covariates))
    return Pseudolikelihood(rows, layout, rows.moments())


def embedded(theta, small, large):
    """Theta of a layout with fewer pairs, in that of one with more."""
    matrix = small.to_matrix(theta)
    return np.concatenate([theta[: small.n_node_terms], large.from_matrix(matrix)])


@pytest.fixture(params=SETS)
def case(request):
    smooth = smooth_with(SETS[request.param])
    return smooth, random_theta(smooth.layout, 3)


@pytest.mark.parametrize("working", [False, True])
def test_all_conditionals_are_the_sum_of_single_ones(working):
    whole = smooth_with(())
    theta = random_theta(whole.layout, 2)
    if working:
        whole = whole.restrict(np.arange(whole.layout.n_groups))
    value, grad = 0.0, np.zeros(whole.layout.n_theta)
    for node in range(N_NODES):
        one = smooth_with([k for k in range(N_NODES) if k != node])
        assert one.layout.n_groups == N_NODES - 1
        own = np.concatenate(
            [
                theta[: one.layout.n_node_terms],
                one.layout.from_matrix(whole.layout.to_matrix(theta)),
            ]
        )
        if working:
            one = one.restrict(np.arange(one.layout.n_groups))
        found = one.evaluate(own)
        value += found.value
        grad += embedded(found.gradient, one.layout, whole.layout)
    expected = whole.evaluate(theta)
    assert value == pytest.approx(expected.value, abs=1e-12)
    np.testing.assert_allclose(grad, expected.gradient, atol=1e-12)


def test_gradient_equals_central_differences_of_the_value(case):
    smooth, theta = case
    found, step = smooth.evaluate(theta).gradient, 1e-5
    for k, one in enumerate(np.eye(len(theta)) * step):
        up = smooth.evaluate(theta + one, gradient=False).value
        down = smooth.evaluate(theta - one, gradient=False).value
        assert found[k] == pytest.approx((up - down) / (2 * step), abs=1e-7, rel=1e-6)


def test_curvature_equals_central_differences_of_the_gradient(case):
    smooth, theta = case
    found, step = smooth.curvature(theta).dense(), 1e-5
    for k, one in enumerate(np.eye(len(theta)) * step):
        up, down = smooth.evaluate(theta + one).gradient, smooth.evaluate(theta - one).gradient
        np.testing.assert_allclose(found[k], (up - down) / (2 * step), atol=1e-6)


def test_nothing_depends_on_the_own_terms_of_covariates(case):
    smooth, theta = case
    layout, other = smooth.layout, theta.copy()
    for node in layout.covariates:
        other[layout.node_terms_of(node)] += 0.7
    a, b = smooth.evaluate(theta), smooth.evaluate(other)
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    inert = np.concatenate([layout.node_terms_of(node) for node in layout.covariates])
    assert not a.gradient[inert].any()
    assert not smooth.curvature(theta).dense()[inert].any()


def test_a_restriction_is_the_same_function(case):
    smooth, theta = case
    groups = np.arange(smooth.layout.n_groups)[::2]
    small, index = smooth.restrict(groups), smooth.layout.positions(groups)
    full = np.zeros(len(theta))
    full[index] = theta[index]
    a, b = small.evaluate(theta[index]), smooth.evaluate(full)
    assert a.value == pytest.approx(b.value, abs=1e-13)
    np.testing.assert_allclose(a.gradient, b.gradient[index], atol=1e-13)

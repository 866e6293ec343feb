"""The penalty against brute force: prox, entry, slopes, distances, block steps."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.penalty.group_lasso import GroupLasso, block_step, scaled_prox

LAYOUTS = {
    "mixed": Layout.complete(Nodes.mixed(2, (2, 3))),
    "continuous": Layout.complete(Nodes.mixed(3, ())),
    "categorical": Layout.complete(Nodes.mixed(0, (2, 4))),
    "no-groups": Layout(Nodes.mixed(2, (3,)), np.zeros((0, 2), dtype=np.int64)),
}
LAM = 0.7


@pytest.fixture(params=LAYOUTS)
def drawn(request):
    return make(request.param)


def make(layout="mixed"):
    """A penalty with free groups, a point, and more random numbers."""
    layout, rng = LAYOUTS[layout], np.random.default_rng(0)
    weights = rng.uniform(0.2, 2.0, size=layout.n_groups)
    weights[::3] = 0.0
    return GroupLasso(layout, weights), rng.normal(size=layout.n_theta), rng


def blocks(penalty):
    layout = penalty.layout
    return [slice(a, b) for a, b in zip(layout.starts[:-1], layout.starts[1:], strict=True)]


def along(penalty, theta, part, sizes, lam=LAM):
    """The penalty with one group scaled to these norms and all others zero."""
    unit, out = theta[part] / np.linalg.norm(theta[part]), []
    for size in sizes:
        u = np.zeros(len(theta))
        u[part] = size * unit
        out.append(penalty.value(u, lam))
    return np.array(out)


def nearest(penalty, theta, part, step):
    """argmin over the norm of a group of (norm - |theta_g|)^2 / 2 + step * penalty: finer grids."""
    norm = np.linalg.norm(theta[part])
    low, high = 0.0, 1.5 * norm
    for _ in range(5):
        sizes = np.linspace(low, high, 401)
        values = 0.5 * (sizes - norm) ** 2 + step * along(penalty, theta, part, sizes)
        best, width = sizes[np.argmin(values)], sizes[1] - sizes[0]
        low, high = max(0.0, best - 2 * width), best + 2 * width
    return best


@pytest.mark.parametrize("step", [0.05, 0.6, 5.0])
def test_prox_is_the_brute_force_minimum(drawn, step):
    penalty, theta, rng = drawn
    before = theta.copy()
    found = penalty.prox(theta, LAM, step)
    np.testing.assert_array_equal(theta, before)
    for part in blocks(penalty):
        expected = nearest(penalty, theta, part, step) / np.linalg.norm(theta[part]) * theta[part]
        np.testing.assert_allclose(found[part], expected, atol=1e-6)

    def aim(u):
        return 0.5 * np.sum((u - theta) ** 2) + step * penalty.value(u, LAM)

    for size in (1e-4, 1e-2, 1.0):  # in other directions, too
        for _ in range(20):
            assert aim(found + size * rng.normal(size=len(theta))) >= aim(found)


def test_prox_leaves_node_terms_and_free_groups_alone(drawn):
    penalty, theta, _ = drawn
    found = penalty.prox(theta, 1.0, 100.0)
    free = penalty.layout.positions(penalty.free)
    np.testing.assert_array_equal(found[free], theta[free])
    others = np.setdiff1d(np.arange(len(theta)), free)
    np.testing.assert_array_equal(found[others], 0.0)
    np.testing.assert_array_equal(np.flatnonzero(~penalty.penalised), penalty.free)
    theta[penalty.layout.edges] = 0.0
    np.testing.assert_array_equal(penalty.prox(theta, LAM, 0.3), theta)


def test_distance_is_zero_at_a_brute_force_minimum(drawn):
    penalty, theta, _ = drawn
    u = theta.copy()
    for part in blocks(penalty):
        u[part] *= nearest(penalty, theta, part, 0.5) / np.linalg.norm(theta[part])
    found = penalty.subgradient_distance(u, (u - theta) / 0.5, LAM)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)


def test_distance_elsewhere_is_that_to_the_nearest_subgradient(drawn):
    """At zero the subgradients are a ball, elsewhere one point: both by differences."""
    penalty, theta, rng = drawn
    directions = theta.copy()
    for part in blocks(penalty)[::2]:
        theta[part] = 0.0
    grad = rng.normal(size=len(theta))
    found = penalty.subgradient_distance(theta, grad, LAM)
    for group, part in enumerate(blocks(penalty)):
        if np.any(theta[part]):
            pull = []
            for k in range(part.start, part.stop):
                h = 1e-6 * np.eye(len(theta))[k]
                pull.append(penalty.value(theta + h, LAM) - penalty.value(theta - h, LAM))
            expected = np.linalg.norm(grad[part] + np.array(pull) / 2e-6)
        else:
            radius = along(penalty, directions, part, [1e-8])[0] / 1e-8
            expected = max(0.0, np.linalg.norm(grad[part]) - radius)
        assert found[group] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [1e-3, 0.3, 6.0])
def test_the_bound_is_the_slope_in_the_norm(drawn, size):
    penalty, theta, _ = drawn
    bound, h = penalty.bound(LAM), 1e-4 * size
    for group, part in enumerate(blocks(penalty)):
        low, high = along(penalty, theta, part, size + h * np.array([-1, 1]))
        assert bound[group] == pytest.approx((high - low) / (2 * h), abs=1e-8)


def test_groups_enter_where_the_gradient_exceeds_the_bound(drawn):
    penalty, grad, _ = drawn
    entry = penalty.entry(grad)
    assert np.all(np.isinf(entry[penalty.free]))
    for group in np.flatnonzero(penalty.penalised):
        part = blocks(penalty)[group]
        norm, h = np.linalg.norm(grad[part]), 1e-8
        for factor, stays in ((1.001, True), (0.999, False)):
            lam = factor * entry[group]
            change = along(penalty, grad, part, [h], lam)[0] - h * norm  # a step downhill
            assert (change >= 0.0) == stays
            assert (norm <= penalty.bound(lam)[group]) == stays
            distance = penalty.subgradient_distance(np.zeros(len(grad)), grad, lam)[group]
            assert (distance == 0.0) == stays
    assert penalty.lam_max(grad) == max([0.0, *entry[penalty.penalised]])


def test_restriction_keeps_its_groups():
    penalty, theta, _ = make()
    groups = np.array([1, 3, 4])
    index = penalty.layout.positions(groups)
    padded = np.zeros(len(theta))
    padded[index] = theta[index]
    for small in (penalty.restrict(groups), penalty.restrict(groups, penalty.layout)):
        assert small.value(theta[index], LAM) == pytest.approx(penalty.value(padded, LAM))
        expected = penalty.prox(padded, LAM, 0.4)[index]
        np.testing.assert_allclose(small.prox(theta[index], LAM, 0.4), expected)
    # The same pairs on numbers: norms count, not levels.
    numbers = penalty.restrict(groups, Layout.complete(Nodes.mixed(4, ())))
    assert numbers.layout.n_groups == 3
    np.testing.assert_array_equal(numbers.bound(LAM), small.bound(LAM))


def test_factors_multiply_lam():
    penalty, theta, rng = make()
    factors = rng.uniform(0.1, 3.0, penalty.layout.n_groups)
    other = penalty.with_factors(factors)
    for part, factor in zip(blocks(penalty), factors, strict=True):
        sizes = [0.2, 1.0, 4.0]
        expected = along(penalty, theta, part, sizes, LAM * factor)
        np.testing.assert_allclose(along(other, theta, part, sizes), expected)
    assert np.all(penalty.with_factors(0.0 * factors).bound(LAM) == 0.0)


def test_groups_almost_at_the_threshold_do_not_change_sign():
    layout = LAYOUTS["continuous"]
    theta = np.zeros(layout.n_theta)
    theta[layout.edges] = [1e-300, 1.0, -1.0 - 1e-12]
    found = GroupLasso(layout, np.ones(3)).prox(theta, 1.0, 1.0)[layout.edges]
    np.testing.assert_array_equal(found[:2], 0.0)
    assert -2e-12 < found[2] < 0


def test_the_group_lasso_is_a_weighted_sum_of_norms():
    penalty, theta, _ = make()
    norms = [np.linalg.norm(theta[part]) for part in blocks(penalty)]
    assert penalty.value(theta, LAM) == pytest.approx(LAM * (penalty.weights @ norms), rel=1e-13)
    grad = np.ones(len(theta))
    assert GroupLasso.none(penalty.layout).lam_max(grad) == 0.0


# -- block steps ---------------------------------------------------------------------------------


def test_block_steps_are_minima():
    """Both of them: that of the kernels, and that of all groups at once."""
    rng, tight = np.random.default_rng(1), {"xatol": 1e-10, "fatol": 1e-14, "maxfev": 20000}
    starts, pull = np.array([0, 1, 4, 6, 9, 10]), np.array([0.3, 0.8, 0.0, 1.5, 2.0])
    for size in (0.05, 0.5, 5.0):
        metric, point = rng.uniform(0.3, 3.0, 10), size * rng.normal(size=10)
        found = scaled_prox(pull, metric, point, starts)
        for g, weight in enumerate(pull):
            at = slice(starts[g], starts[g + 1])
            d, y = metric[at], point[at]

            def value(x, d=d, y=y, weight=weight):
                return 0.5 * d @ (x - y) ** 2 + weight * np.linalg.norm(x)

            tried = (
                minimize(value, start, method="Nelder-Mead", options=tight).x
                for start in (y, 0.3 * y + 1e-3)
            )
            best = min(value(np.zeros(len(y))), *map(value, tried))
            assert value(found[at]) <= best + 1e-12
            own = np.empty(len(y))
            block_step(d * y, weight, metric, starts[g], len(y), own)
            np.testing.assert_allclose(own, found[at], atol=1e-10)

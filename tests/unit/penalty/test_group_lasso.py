"""The group lasso against its closed form, to rounding; the contract's suite is brute force."""

import numpy as np
import pytest

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.penalty.group_lasso import GroupLasso

LAM = 0.7
LAYOUTS = {
    "mixed": Layout.complete(Nodes.mixed(2, (2, 3))),
    "continuous": Layout.complete(Nodes.mixed(3, ())),
    "categorical": Layout.complete(Nodes.mixed(0, (2, 4))),
    "no-groups": Layout(Nodes.mixed(2, (3,)), np.zeros((0, 2), dtype=np.int64)),
}


@pytest.fixture(params=LAYOUTS)
def drawn(request):
    layout, rng = LAYOUTS[request.param], np.random.default_rng(0)
    weights = rng.uniform(0.2, 2.0, size=layout.n_groups)
    weights[::3] = 0.0
    return GroupLasso(layout, weights), rng.normal(size=layout.n_theta), rng


def blocks(penalty):
    layout = penalty.layout
    return [slice(a, b) for a, b in zip(layout.starts[:-1], layout.starts[1:], strict=True)]


def test_value_is_the_weighted_sum_of_norms(drawn):
    penalty, theta, _ = drawn
    norms = [np.linalg.norm(theta[part]) for part in blocks(penalty)]
    expected = LAM * sum(w * norm for w, norm in zip(penalty.weights, norms, strict=True))
    assert penalty.value(theta, LAM) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_distance_is_zero_at_fixed_points_of_the_prox(drawn, step):
    """u = prox(u + step * (-grad)) exactly where -grad is a subgradient."""
    penalty, theta, _ = drawn
    u = penalty.prox(theta, LAM, step)
    grad = (u - theta) / step
    np.testing.assert_allclose(penalty.subgradient_distance(u, grad, LAM), 0.0, atol=1e-13)
    np.testing.assert_allclose(penalty.prox(u - step * grad, LAM, step), u, atol=1e-13)


def test_distance_elsewhere_is_that_to_the_nearest_subgradient(drawn):
    """At zero the subgradients are a ball, elsewhere one point."""
    penalty, theta, rng = drawn
    for group in range(0, penalty.layout.n_groups, 2):
        theta[blocks(penalty)[group]] = 0.0
    grad = rng.normal(size=len(theta))
    found = penalty.subgradient_distance(theta, grad, LAM)
    for group, part in enumerate(blocks(penalty)):
        radius = LAM * penalty.weights[group]
        if np.any(theta[part]):
            nearest = radius * theta[part] / np.linalg.norm(theta[part])
        else:
            nearest = -grad[part] * min(1.0, radius / np.linalg.norm(grad[part]))
        assert found[group] == pytest.approx(np.linalg.norm(-grad[part] - nearest), abs=1e-12)


def test_the_restriction_has_the_same_value(drawn):
    penalty, theta, _ = drawn
    groups = np.arange(0, penalty.layout.n_groups, 2)
    index = penalty.layout.positions(groups)
    padded = np.zeros(len(theta))
    padded[index] = theta[index]
    small = penalty.restrict(groups)
    assert small.value(theta[index], LAM) == pytest.approx(penalty.value(padded, LAM), abs=1e-14)

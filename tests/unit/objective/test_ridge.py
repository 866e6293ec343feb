"""A ridge on any loss: derivatives by differences, curvature in contrasts, restrictions."""

import numpy as np
import pytest

from mixedgm.objective.ridge import Ridged
from mixedgm.solve.contrasts import Contrasts
from tests.support.problems import Table, draw, random_theta

LOSSES = ("pseudolikelihood", "nodewise", "likelihood")


def ridged(loss: str, covariates: tuple[int, ...] = ()) -> Ridged:
    """Two numbers and three categories; edges and numbers with and without a ridge."""
    table = draw(7, 60, 2, (2, 3, 2))
    smooth = (task_of(table, covariates) if covariates else table.task(loss=loss)).smooth
    edges = np.linspace(0.0, 2.0, smooth.layout.n_groups)
    numbers = np.array([0.7, 0.0])
    numbers[list(covariates)] = 0.0
    return Ridged(smooth, edges, numbers)


def task_of(table: Table, covariates: tuple[int, ...]):
    from dataclasses import replace

    from mixedgm.path.recipe import Recipe
    from mixedgm.path.task import prepare
    from mixedgm.table.schema import Schema

    columns = list(table.schema.columns)
    for node in covariates:
        columns[node] = replace(columns[node], role="covariate")
    design = replace(table.design, schema=Schema(tuple(columns)))
    return prepare(design, Recipe(loss="likelihood"))


CASES = {**{loss: (loss, ()) for loss in LOSSES}, "given a covariate": ("likelihood", (0,))}


@pytest.fixture(params=CASES)
def smooth(request):
    return ridged(*CASES[request.param])


def inside(smooth: Ridged, seed: int) -> np.ndarray:
    theta = random_theta(smooth.layout, seed, 0.2)
    theta[smooth.layout.diagonal] += 1.0
    return theta


def test_value_and_gradient_are_those_of_the_sum(smooth):
    theta, layout = inside(smooth, 1), smooth.layout
    here, alone = smooth.evaluate(theta), smooth.smooth.evaluate(theta)
    added = 0.0
    for g, r in enumerate(smooth.edges):
        added += 0.5 * r * np.sum(theta[layout.starts[g] : layout.starts[g + 1]] ** 2)
    added += 0.5 * smooth.numbers @ theta[layout.diagonal]
    assert added > 0.1
    assert smooth.added(theta) == pytest.approx(added, rel=1e-12)
    assert here.value == pytest.approx(alone.value + added, rel=1e-12)
    assert smooth.evaluate(theta, gradient=False).value == pytest.approx(here.value, rel=1e-12)
    np.testing.assert_array_equal(alone.gradient, smooth.smooth.evaluate(theta).gradient)


def test_derivatives_are_differences(smooth):
    theta, step = inside(smooth, 2), 1e-5
    hessian = smooth.curvature(theta).dense()
    grad = smooth.evaluate(theta).gradient
    for k, one in enumerate(np.eye(len(theta)) * step):
        up, down = smooth.evaluate(theta + one), smooth.evaluate(theta - one)
        assert grad[k] == pytest.approx((up.value - down.value) / (2 * step), abs=1e-7)
        np.testing.assert_allclose(
            hessian[k], (up.gradient - down.gradient) / (2 * step), atol=1e-6
        )
    delta = np.random.default_rng(0).normal(size=len(theta))
    product = smooth.curvature(theta).product(delta)
    np.testing.assert_allclose(product, hessian @ delta, atol=1e-10)


def test_curvature_in_contrasts_is_the_dense_one_turned(smooth):
    theta, contrasts = inside(smooth, 3), Contrasts(smooth.layout)
    size = contrasts.reduced.n_theta
    up = np.column_stack([contrasts.up(one) for one in np.eye(size)])
    expected = up.T @ smooth.curvature(theta).dense() @ up
    if smooth.by_nodes:
        found = assembled(contrasts, smooth, theta)
    else:
        found = contrasts.whole_curvature(smooth, theta, 1)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    plain = up.T @ smooth.smooth.curvature(theta).dense() @ up
    assert np.abs(found - plain).max() > 0.1, "no ridge in it"


def assembled(contrasts: Contrasts, smooth: Ridged, theta: np.ndarray) -> np.ndarray:
    """The matrices of all nodes in one, each in the order of its conditional."""
    widths, start, matrices = contrasts.curvature(smooth, theta, 1)
    begin, positions = contrasts.reduced.conditional
    out = np.zeros((contrasts.reduced.n_theta,) * 2)
    for v, width in enumerate(widths):
        index = positions[begin[v] : begin[v + 1]]
        out[np.ix_(index, index)] += matrices[start[v] : start[v + 1]].reshape(width, width)
    return out


def test_a_restriction_is_the_whole_with_zeros(smooth):
    layout = smooth.layout
    groups = np.arange(0, layout.n_groups, 2)
    index = layout.positions(groups)
    theta = np.zeros(layout.n_theta)
    theta[index] = inside(smooth, 4)[index]
    small = smooth.restrict(groups)
    here, there = small.evaluate(theta[index]), smooth.evaluate(theta)
    assert here.value == pytest.approx(there.value, abs=1e-12)
    np.testing.assert_allclose(here.gradient, there.gradient[index], atol=1e-12)
    wide = smooth.curvature(theta).dense()[np.ix_(index, index)]
    np.testing.assert_allclose(small.curvature(theta[index]).dense(), wide, atol=1e-12)


def test_null_is_the_optimum_without_edges(smooth):
    theta, layout = smooth.null(), smooth.layout
    targets = layout.is_target[: layout.n_gaussian]
    np.testing.assert_allclose(
        theta[layout.diagonal][targets], 1.0 / (1.0 + smooth.numbers[targets]), rtol=1e-12
    )
    grad = smooth.evaluate(theta).gradient[: layout.n_node_terms]
    np.testing.assert_allclose(grad, 0.0, atol=1e-12)


def test_counters_are_those_of_the_function(smooth):
    before = smooth.passes
    smooth.evaluate(smooth.null())
    assert smooth.passes == smooth.smooth.passes >= before
    for name in ("n_rows", "terms_per_edge", "by_nodes", "curvature_rows", "exact_curvature"):
        assert getattr(smooth, name) == getattr(smooth.smooth, name)
    assert smooth.curvature_passes == smooth.smooth.curvature_passes

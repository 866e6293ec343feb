"""Moderated edges: rows at their own moderators, threads, weights, the largest penalty, layouts."""

import numpy as np
import pytest

from mixedgm.rows.predict import mean_losses
from tests.support.moderated import moderated_task
from tests.support.problems import draw, random_theta, solved

# Rows, continuous columns, levels, weighted; moderators.
SHAPES = {
    "continuous": ((80, 3, (2, 3), False), (0,)),
    "continuous-weighted": ((80, 3, (2, 3), True), (1,)),
    "binary": ((80, 2, (2, 3), True), (2,)),
    "many levels": ((90, 2, (3, 8, 4), False), (3,)),
    "both kinds": ((80, 3, (2, 3, 4), True), (0, 5)),
    "all continuous": ((60, 4, (), True), (1,)),
    "all categorical": ((80, 0, (2, 3, 4), True), (2,)),
    "several blocks of rows": ((3000, 2, (2, 3, 7), True), (0, 3)),
}
LOSSES = ("pseudolikelihood", "nodewise")


def make(name, **options):
    shape, moderators = SHAPES[name]
    table = draw(7, *shape)
    return table, moderated_task(table, moderators, **options)


@pytest.fixture(params=SHAPES)
def name(request):
    return request.param


@pytest.fixture(params=[k for k in SHAPES if "several" not in k])
def small(request):
    return request.param


@pytest.mark.parametrize("loss", LOSSES)
def test_the_value_is_that_of_every_row_at_its_own_moderators(name, loss):
    table, task = make(name, loss=loss)
    theta = random_theta(task.layout, 1)
    params = task.params(theta)
    losses = mean_losses(params, table.X, table.Y, table.row_weights)
    losses[list(task.schema.covariates)] = 0.0
    constant = 0.5 * np.log(2 * np.pi) * task.layout.is_target[: table.n_gaussian].sum()
    expected = task.smooth.evaluate(theta, gradient=False).value + task.log_jacobian
    assert losses.sum() - constant == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose(task.theta_of(params), theta, atol=1e-12)


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(threads):
    _, one = make("several blocks of rows")
    _, more = make("several blocks of rows", n_threads=threads)
    theta = random_theta(one.layout, 4)
    a, b = one.smooth.evaluate(theta), more.smooth.evaluate(theta)
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    for x, y in zip(
        one.smooth.curvature(theta).nodes, more.smooth.curvature(theta).nodes, strict=True
    ):
        np.testing.assert_array_equal(x.matrix, y.matrix)


def test_row_weight_two_is_the_row_twice():
    table, task = make("both kinds")
    times = table.row_weights.astype(int)
    rows = np.repeat(np.arange(len(times)), times)
    twice = draw(7, *SHAPES["both kinds"][0][:3]).take(rows)
    twice.X[:], twice.Y[:] = table.X[rows], table.Y[rows]
    other = moderated_task(twice, SHAPES["both kinds"][1])
    theta = random_theta(task.layout, 5)
    a, b = task.smooth.evaluate(theta), other.smooth.evaluate(theta)
    assert a.value == pytest.approx(b.value, abs=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)
    np.testing.assert_allclose(task.penalty.weights, other.penalty.weights, rtol=1e-12)


def test_the_largest_penalty_empties_the_graph_and_less_does_not(small):
    _, task = make(small)
    above, below = (solved(task, share * task.lam_max) for share in (1.0001, 0.99))
    assert not task.layout.group_norms(above.theta).any()
    assert task.layout.group_norms(below.theta).any()


def test_a_restricted_layout_keeps_whole_deviations():
    _, task = make("both kinds")
    layout = task.layout
    groups = np.flatnonzero(layout.moderator == 1)
    part = layout.restrict(groups)
    assert set(part.n_blocks.tolist()) == {3}
    np.testing.assert_array_equal(part.sizes, layout.sizes[groups])
    theta = random_theta(layout, 6)
    matrix = part.to_matrix(theta[layout.positions(groups)])
    every = layout.to_matrix(theta)
    d = layout.n_columns
    np.testing.assert_array_equal(matrix[2 * d :], every[2 * d :])
    assert not matrix[: 2 * d].any()
    np.testing.assert_array_equal(layout.from_matrix(every), theta[layout.edges])


def test_free_deviations_are_centred_without_changing_the_function():
    _, task = make("both kinds")
    theta = random_theta(task.layout, 8)
    groups = np.flatnonzero(task.layout.moderator >= 0)
    centred = task.layout.centred(theta, groups)
    assert task.smooth.evaluate(centred).value == pytest.approx(
        task.smooth.evaluate(theta).value, abs=1e-12
    )
    for g in groups:
        u, v = task.layout.pairs[g]
        shape = (-1, task.layout.width[u], task.layout.width[v])
        blocks = centred[task.layout.starts[g] : task.layout.starts[g + 1]].reshape(shape)
        for axis in (1, 2):
            if blocks.shape[axis] > 1:
                np.testing.assert_allclose(blocks.sum(axis=axis), 0.0, atol=1e-13)

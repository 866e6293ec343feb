"""Moderated edges: products of features with design columns, in sums, derivatives and solvers."""

import numpy as np
import pytest

from mixedgm.rows import curvature
from mixedgm.rows.contract import Coefficients
from mixedgm.rows.predict import mean_losses
from tests.support import dense
from tests.support.moderated import moderated_task, written_out
from tests.support.problems import SOLVERS, draw, random_theta, solved

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
@pytest.mark.parametrize("every", [None, 1, 2, 5])
def test_derivatives_equal_central_differences(small, loss, every):
    _, task = make(small, loss=loss)
    smooth = task.smooth
    if every is not None:
        smooth = smooth.restrict(np.arange(smooth.layout.n_groups)[every - 1 :: every])
    theta, step = random_theta(smooth.layout, 3), 1e-5
    grad, hessian = smooth.evaluate(theta).gradient, smooth.curvature(theta).dense()
    for k, one in enumerate(np.eye(len(theta)) * step):
        up, down = smooth.evaluate(theta + one), smooth.evaluate(theta - one)
        assert grad[k] == pytest.approx((up.value - down.value) / (2 * step), abs=1e-7)
        slope = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(hessian[k], slope, atol=1e-6)


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


def coefficients(task, theta, groups=None):
    layout = task.layout if groups is None else task.layout.restrict(groups)
    here = theta if groups is None else theta[task.layout.positions(groups)]
    values = here[layout.incidence.theta_index]
    nodes = layout.softmax_targets
    return layout, Coefficients(layout.incidence, values, here[layout.biases], nodes)


@pytest.mark.parametrize("some", [None, 3])
def test_sums_are_those_of_the_columns_written_out(name, some):
    table, task = make(name)
    if not table.n_levels:
        pytest.skip("no softmax")
    groups = None if some is None else np.arange(task.layout.n_groups)[::some]
    layout, coef = coefficients(task, random_theta(task.layout, 2), groups)
    C, share, p = (
        written_out(task, table),
        dense.shares(len(table.Y), table.row_weights),
        table.n_gaussian,
    )
    matrix = np.zeros((C.shape[1], layout.n_columns))
    matrix[layout.incidence.entry_column, layout.incidence.entry_target] = coef.values
    prob, logs = dense.probabilities(coef.bias + C @ matrix[:, p:], table.n_levels)
    predicted = np.repeat(layout.is_target[p:], table.n_levels)
    hit = dense.indicators(table.Y, table.n_levels) * logs
    rows = task.smooth.rows
    expected = C.T @ (share[:, None] * prob)
    every = rows.softmax(coef, "all")
    np.testing.assert_allclose(every.loss.sum(), -share @ hit[:, predicted].sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(every.all_pairs[:, predicted], expected[:, predicted], atol=1e-13)
    support = rows.softmax(coef, "support").support
    discrete = layout.incidence.entry_target >= p
    at = layout.incidence.entry_column[discrete], layout.incidence.entry_target[discrete] - p
    np.testing.assert_allclose(support[discrete], expected[at], atol=1e-13)
    moments = rows.moments()
    np.testing.assert_allclose(moments.mean, share @ C, atol=1e-13)
    np.testing.assert_allclose(moments.second, C.T @ (share[:, None] * C), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_curvature_is_the_same_by_blas_and_by_level(name, loss, monkeypatch):
    _, task = make(name, loss=loss)
    theta, found = random_theta(task.layout, 5), []
    for cost in (0.0, 1e9):
        monkeypatch.setattr(curvature, "_BLAS", cost)
        found.append(task.smooth.curvature(theta).dense())
    np.testing.assert_allclose(*found, atol=1e-13)


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


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_solvers_agree(solver, loss):
    _, task = make("both kinds", loss=loss)
    lam = 0.15 * task.lam_max
    reference = solved(task, lam, "newton-exact", tol=1e-9)
    found = solved(task, lam, solver, tol=1e-7)
    assert found.converged
    assert found.objective == pytest.approx(reference.objective, abs=1e-10)
    active = task.layout.group_norms(reference.theta) > 0
    assert (task.layout.moderator[active] >= 0).any()
    np.testing.assert_array_equal(task.layout.group_norms(found.theta) > 0, active)


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

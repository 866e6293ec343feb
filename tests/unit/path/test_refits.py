"""Graphs without shrinkage: optima of a conic solver, and tables that leave edges open."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.families import CountKind, OrdinalKind
from mixedgm.path.refits import (
    ROWS_OF_A_STABLE_EDGE,
    degrees_of_freedom,
    emptied,
    least_curvature,
    open_edges,
    parameters,
    stabilised,
    too_dense,
    unshrunken,
    worth_one_row,
)
from mixedgm.solve.working_set import Start
from tests.reference import conic, likelihood, plain, scored
from tests.support.problems import SCORED, Table, draw, random_theta

BLOCKS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")
NONE = np.zeros(0, dtype=np.int64)


def table_of(columns, levels, weights=None) -> Table:
    """Columns of numbers first, then codes."""
    n_rows, n_gaussian = len(columns[0]), len(columns) - len(levels)
    X, Y = np.zeros((n_rows, n_gaussian)), np.zeros((n_rows, len(levels)), dtype=np.int64)
    for at, column in enumerate(columns):
        if at < n_gaussian:
            X[:, at] = column
        else:
            Y[:, at - n_gaussian] = column
    return Table(X, Y, tuple(levels), weights)


def refit(task, groups=None, *, tol=1e-9, how=unshrunken):
    groups = np.arange(task.layout.n_groups) if groups is None else np.asarray(groups)
    return how(task, groups, Start(task.null.theta, task.null.evaluation), tol=tol)


def pairs(task, groups) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in task.layout.pairs[groups]}


def exact(table: Table, **given):
    """The conic optimum without penalty."""
    return conic.solve(
        table.X, table.Y, table.n_levels, 0.0, row_weights=table.row_weights, **given
    )


def assert_is(task, found, optimum, atol=1e-5) -> None:
    assert found.solution.converged
    assert found.solution.objective + task.log_jacobian == pytest.approx(optimum.value, abs=1e-8)
    assert found.loss + task.log_jacobian == pytest.approx(optimum.value - optimum.added, abs=1e-7)
    params = task.params(found.solution.theta)
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(params, name), getattr(optimum, name), atol=atol)


def separated(n=60, seed=3) -> Table:
    """A number and two categories of two and three levels, with no row in one of their cells."""
    table = draw(seed, n, 1, (2, 3))
    table.Y[(table.Y == 0).all(axis=1), 1] = 1
    return table


# -- optima ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_ridge_is_worth_one_row_on_every_pair_of_categories(weighted):
    table = separated()
    if weighted:
        table = replace(table, row_weights=np.random.default_rng(0).uniform(0.5, 2.0, 60))
    task = table.task()
    found = refit(task, how=stabilised)
    assert pairs(task, found.ridge) == {(1, 2)}
    assert_is(task, found, exact(table, ridge=1.0))


def test_only_what_the_rows_leave_open_has_a_ridge():
    """Four categories: the first two have an empty cell, the others many rows in every one."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 300)
    b = np.where(a == 0, 1, rng.integers(0, 2, 300))
    c = np.where(rng.random(300) < 0.7, a, rng.integers(0, 2, 300))
    d = rng.integers(0, 3, 300)
    table = table_of([rng.normal(size=300) + d, a, b, c, d], (2, 2, 2, 3))
    task = table.task()
    found = refit(task)
    assert pairs(task, found.ridge) == {(1, 2)}
    assert_is(task, found, exact(table, ridge={(1, 2): 1.0}), atol=5e-5)


@pytest.mark.parametrize("shape", [(300, 3, (2, 3)), (300, 0, (2, 3, 2)), (80, 4, ())])
def test_a_healthy_table_has_the_free_optimum(shape):
    table = draw(12, *shape)
    task = table.task()
    found = refit(task)
    assert len(found.ridge) == len(found.noisy) == 0
    assert_is(task, found, exact(table), atol=5e-5)


def test_numbers_alone_are_the_inverse_covariance():
    table = draw(2, 80, 3, ())
    task = table.task()
    inverse = np.linalg.inv(np.cov(table.X.T, ddof=0))
    # Each conditional has a variance and coefficients of its own; together they are the inverse.
    np.testing.assert_allclose(
        task.params(refit(task).solution.theta).precision, inverse, rtol=1e-6
    )


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_two_categories_are_the_table_of_counts(loss):
    table = draw(3, 200, 0, (2, 3))
    task = table.task(loss=loss)
    counts = np.zeros((2, 3))
    np.add.at(counts, (table.Y[:, 0], table.Y[:, 1]), 1)
    assert counts.min() > 3
    found = refit(task)
    assert len(found.ridge) == 0
    logs = np.log(counts)
    centred = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    block = task.params(found.solution.theta).cat_interaction[:2, 2:]
    np.testing.assert_allclose(block, centred, atol=1e-6)
    joint = counts / 200
    given = joint / joint.sum(1, keepdims=True), joint / joint.sum(0)
    expected = -np.sum(joint * (np.log(given[0]) + np.log(given[1])))
    if loss == "likelihood":
        expected = -np.sum(joint * np.log(joint))
    assert found.loss == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("covariates", [(), (0,), (1,)])
def test_covariates_have_a_ridge_where_only_categories_see_them(covariates):
    """Nodes are a number and two categories; a covariate is in the conditionals of the others."""
    table = separated()
    columns = list(table.schema.columns)
    for node in covariates:
        columns[node] = replace(columns[node], role="covariate")
    from mixedgm.path.task import prepare
    from mixedgm.table.schema import Schema

    task = prepare(replace(table.design, schema=Schema(tuple(columns))))
    found = refit(task, how=stabilised)
    of = {(): {(1, 2)}, (0,): {(0, 1), (0, 2), (1, 2)}, (1,): {(1, 2)}}[covariates]
    assert pairs(task, found.ridge) == of
    targets = [node for node in range(3) if node not in covariates]
    optimum = exact(table, targets=targets, ridge=dict.fromkeys(of, 1.0))
    assert found.solution.objective + task.log_jacobian == pytest.approx(optimum.value, abs=1e-8)


def test_separate_regressions_have_a_ridge_in_those_of_categories():
    table = separated()
    task = table.task(loss="nodewise")
    found = refit(task, how=stabilised)
    assert pairs(task, found.ridge) == {(0, 1), (2, 1), (0, 2), (1, 2)}
    value = 0.0
    for v in range(3):
        own = {tuple(sorted((u, v))): 1.0 for u in range(3) if u != v and v > 0}
        value += exact(table, targets=[v], ridge=own).value
    assert found.solution.objective + task.log_jacobian == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("how", [stabilised, unshrunken])
def test_the_likelihood_has_one_term_and_so_half_the_ridge(how):
    """Stationarity by enumeration of all states, the ridge of the separated pair included."""
    table = separated()
    task = table.task(loss="likelihood")
    found = refit(task, how=how)
    assert found.solution.converged
    assert pairs(task, found.ridge) == {(1, 2)}
    params = task.units.to_standard(task.params(found.solution.theta))
    rows = likelihood.rows_of(table.X, table.Y, (2, 3))
    moments, (xx, xd, dd) = likelihood.moments(params), rows.second
    np.testing.assert_allclose(moments.x, 0.0, atol=1e-7)
    np.testing.assert_allclose(moments.xx, xx, atol=1e-7)
    np.testing.assert_allclose(moments.xd, xd, atol=1e-7)
    a, b = rows.scales[1:]
    level = a**2 * b**2 / 2 / 60
    ridge = level * params.cat_interaction[:2, 2:]
    assert np.abs(ridge).max() > 1e-3
    np.testing.assert_allclose(moments.dd[:2, 2:] - dd[:2, 2:] + ridge, 0.0, atol=1e-7)


# -- edges that the data do not determine ----------------------------------------------------------


def nested(rng, n):
    region = rng.integers(0, 3, n)
    return table_of([rng.normal(size=n), region, 2 * region + rng.integers(0, 2, n)], (3, 6))


def duplicate(rng, n):
    a = rng.integers(0, 2, n)
    return table_of([rng.normal(size=n) + a, a, 1 - a], (2, 2))


def few_rows(rng, n):
    """Thirty levels of about n / 30 rows, some of which have but one of two others."""
    a, b = rng.integers(0, 2, n), rng.integers(0, 30, n)
    a[b < 3] = 0
    return table_of([rng.normal(size=n), a, b], (2, 30))


@pytest.mark.parametrize("make", [nested, duplicate, few_rows])
@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise", "likelihood"])
def test_open_edges_are_finite_and_known(make, loss):
    task = make(np.random.default_rng(0), 150).task(loss=loss)
    found = refit(task, tol=1e-7)
    assert found.solution.converged
    assert np.abs(found.solution.theta).max() < 30
    assert len(found.noisy) == 0
    assert (1, 2) in pairs(task, found.ridge)
    if loss != "nodewise":
        assert pairs(task, found.ridge) == {(1, 2)}


@pytest.mark.parametrize("n_rows", [300, 5000])
def test_columns_that_separate_another_together_are_open_together(n_rows):
    """A vote: no cell of two columns is empty, and yet seven of them decide the eighth."""
    votes = np.random.default_rng(0).integers(0, 2, (n_rows, 7))
    outcome = (votes.sum(axis=1) > 3).astype(int)
    task = table_of([*votes.T, outcome], (2,) * 8).task(loss="nodewise")
    groups = np.flatnonzero(task.layout.pairs[:, 1] == 7)
    with_ridge = refit(task, groups, how=stabilised).solution.theta
    hidden = open_edges(task, groups, with_ridge, rows=ROWS_OF_A_STABLE_EDGE)
    assert len(hidden) < len(groups), "their ridges should add up to more than ten rows"
    found = refit(task, groups, tol=1e-5)
    assert found.solution.converged
    assert found.ridge.tolist() == groups.tolist()
    np.testing.assert_allclose(found.solution.theta, with_ridge, atol=5e-3)


def test_three_columns_can_be_open_where_no_two_are():
    """An edge that varies with a moderator, and has no row in one cell at one of its levels."""
    import pandas as pd

    import mixedgm as mg

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(["u", "v"], 400) for name in ("g", "a")})
    empty = (frame["a"] == "u") & (frame["g"] == "u")
    frame["b"] = np.where(empty, "p", rng.choice(["p", "q"], 400))
    model = mg.MixedGraphicalModel(moderators=["g"], select="aic").fit(frame)
    assert model.converged_
    assert {e[:2] for e in model.edges_ if e.ridge} == {("g", "a"), ("g", "b"), ("a", "b")}
    assert all(edge.ridge for edge in model.edges_ if edge.moderator)
    assert max(edge.norm for edge in model.edges_) < 1.5


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood", "nodewise"])
def test_a_number_that_others_determine_gets_noise_of_one_row(loss):
    """x, twice x, and a number of their own."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = table_of([x, 2 * x, rng.normal(size=200) + x], ())
    task = table.task(loss=loss)
    found = refit(task)
    assert found.solution.converged
    assert found.noisy.tolist() == [0, 1]
    beta = found.solution.theta[task.layout.diagonal]
    if loss == "likelihood":  # noise is added to the covariance; that is all
        z = np.cov((table.X / table.X.std(axis=0)).T, ddof=0) + np.diag([1 / 200, 1 / 200, 0])
        np.testing.assert_allclose(beta, np.diag(np.linalg.inv(z)), rtol=1e-6)
    elif loss == "nodewise":
        np.testing.assert_allclose(beta[:2], 200, rtol=1e-6)
    else:
        optimum = exact(table, noise=[1 / 200, 1 / 200, 0.0])
        value = found.solution.objective + task.log_jacobian
        assert value == pytest.approx(optimum.value, abs=1e-8)
        precision = task.params(found.solution.theta).precision
        np.testing.assert_allclose(precision, optimum.precision, rtol=1e-3, atol=1e-3)


def test_a_number_that_a_category_determines_gets_noise_of_one_row():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 3, 200)
    table = table_of([np.array([1.0, 2.0, 5.0])[c], rng.normal(size=200), c], (3,))
    task = table.task()
    found = refit(task)
    assert found.solution.converged
    assert found.noisy.tolist() == [0]
    assert len(found.ridge) == 0
    assert found.solution.theta[task.layout.diagonal][0] == pytest.approx(200, rel=0.05)


def test_a_number_that_is_nearly_determined_is_left_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = table_of([x, x + 0.3 * rng.normal(size=400)], ())
    found = refit(table.task())
    assert len(found.noisy) == 0
    inverse = np.linalg.inv(np.cov(table.X.T, ddof=0))
    precision = table.task().params(found.solution.theta).precision
    np.testing.assert_allclose(precision, inverse, rtol=1e-6)


def test_a_sampled_likelihood_gets_the_ridge_that_its_graph_needs():
    from mixedgm.solve.monte_carlo import MonteCarlo

    table = separated(150)
    task = table.task(loss="likelihood-mc", solver=MonteCarlo(accuracy=0.002))
    found, known = refit(task), refit(table.task(loss="likelihood"))
    assert found.solution.converged
    assert pairs(task, found.ridge) == pairs(task, known.ridge) == {(1, 2)}
    # An error of 0.002 in the gradient, over a curvature of a row or two in 150.
    np.testing.assert_allclose(found.solution.theta, known.solution.theta, atol=0.35)
    small = found.solution.objective - known.solution.objective
    assert abs(small) <= 4 * found.solution.objective_error + 1e-3


# -- ordinal columns and counts --------------------------------------------------------------------


def test_an_edge_of_scores_has_one_parameter():
    """Nodes: two numbers, four scored columns, one of five levels."""
    task = draw(2, 60, 2, (4, 5, 8, 9, 5), scored=SCORED).task()
    count = parameters(task, np.arange(task.layout.n_groups))
    of_levels = task.layout.pairs[:, 1] == 6
    np.testing.assert_array_equal(count, np.where(of_levels, 4, 1))
    assert degrees_of_freedom(task, np.arange(task.layout.n_groups)) == 15 + 6 * 4
    assert too_dense(task, np.arange(task.layout.n_groups)) == ""


def test_a_healthy_table_of_all_kinds_has_the_free_optimum():
    table = draw(12, 300, 2, (4, 5, 9, 9, 3), scored=SCORED)
    task, optimum = table.task(), scored.solve(scored.Problem(table, 0.0))
    found = refit(task)
    assert len(found.ridge) == len(found.noisy) == 0
    assert found.solution.converged
    assert found.loss + task.log_jacobian == pytest.approx(optimum.value, abs=1e-7)
    blocks = np.concatenate([optimum.blocks[u, v].ravel() for u, v in task.layout.pairs.tolist()])
    np.testing.assert_allclose(found.solution.theta[task.layout.edges], blocks, atol=5e-5)


def same_order(rng, n):
    """An ordinal column that another one determines; a number without any part in it."""
    a = rng.integers(0, 4, n)
    return Table(
        rng.normal(size=(n, 1)), np.column_stack([a, a]), (4, 4), scored=(OrdinalKind(),) * 2
    )


def threshold(rng, n):
    """The upper levels of an ordinal column are one category, the lower ones another."""
    a = rng.integers(0, 4, n)
    return Table(
        rng.normal(size=(n, 1)), np.column_stack([a, a > 1]), (4, 2), scored=(OrdinalKind(),)
    )


def known_count(rng, n):
    """A category tells the count."""
    a = rng.integers(0, 3, n)
    y = np.column_stack([np.array([0, 2, 5])[a], a])
    return Table(rng.normal(size=(n, 1)), y, (8, 3), scored=(CountKind(),))


@pytest.mark.parametrize("make", [same_order, threshold, known_count])
@pytest.mark.parametrize("loss", ["pseudolikelihood", "nodewise"])
def test_scores_that_others_tell_are_held_by_a_ridge(make, loss):
    table = make(np.random.default_rng(0), 150)
    task = table.task(loss=loss)
    found = refit(task, tol=1e-7)
    assert found.solution.converged
    assert len(found.noisy) == 0
    assert (1, 2) in pairs(task, found.ridge)
    if loss == "nodewise":
        return
    assert pairs(task, found.ridge) == {(1, 2)}
    optimum = scored.solve(scored.Problem(table, 0.0), {(1, 2): 1.0})
    assert found.solution.objective + task.log_jacobian == pytest.approx(optimum.value, abs=1e-7)


def test_a_number_that_a_count_tells_gets_noise():
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0, 200)
    table = Table(
        np.column_stack([np.sqrt(y), rng.normal(size=200)]),
        y[:, None],
        (30,),
        scored=(CountKind(),),
    )
    task = table.task()
    found = refit(task, tol=1e-7)
    assert found.solution.converged
    assert found.noisy.tolist() == [0]
    assert np.isfinite(found.solution.theta).all()


@pytest.mark.parametrize(
    ("kind", "n_values"),
    [
        (OrdinalKind(thresholds="quadratic"), 3),
        (OrdinalKind(thresholds="quadratic"), 6),
        (CountKind(zero_term=True), 4),
        (CountKind(), 12),
        (CountKind(zero_term=True), 12),
    ],
)
def test_own_terms_that_two_values_leave_open_stay_finite(kind, n_values):
    """Two values of a quadratic function: its terms are not determined, the probabilities are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)[:, None]
    task = Table(x, y, (n_values,), scored=(kind,)).task()
    binary = Table(x, y, (2,)).task()
    found, known = refit(task), refit(binary)
    assert found.solution.converged
    assert found.loss == pytest.approx(known.loss, abs=1e-7)
    assert np.abs(found.solution.theta).max() < 200


# -- curvature -------------------------------------------------------------------------------------


def by_hand(smooth, theta, g, free):
    """Smallest eigenvalue of the Schur complement of a group's contrasts, from dense matrices."""
    layout = smooth.layout
    contrasts = np.eye(layout.n_theta)[:, : layout.n_node_terms]
    rest = [contrasts]
    for k in free:
        if k != g:
            rest.append(np.eye(layout.n_theta)[:, layout.starts[k] : layout.starts[k + 1]])
    u, v = layout.pairs[g]
    bases = [
        np.linalg.svd(np.ones((1, w)))[2][1:].T if w > 1 else np.ones((1, 1))
        for w in (int(layout.width[u]), int(layout.width[v]))
    ]
    own = np.zeros((layout.n_theta, bases[0].shape[1] * bases[1].shape[1]))
    own[layout.starts[g] : layout.starts[g + 1]] = np.kron(*bases)
    rest = np.hstack(rest)

    def complement(hessian):
        inner = rest.T @ hessian @ rest
        cross = own.T @ hessian @ rest
        return own.T @ hessian @ own - cross @ np.linalg.pinv(inner, 1e-10) @ cross.T

    if not smooth.by_nodes:
        return np.linalg.eigvalsh(complement(smooth.curvature(theta).dense()))[0]
    total = 0.0
    for node in smooth.curvature(theta).nodes:
        hessian = np.zeros((layout.n_theta, layout.n_theta))
        hessian[np.ix_(node.index, node.index)] = node.matrix
        total = total + complement(hessian)
    return np.linalg.eigvalsh(total)[0]


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood", "nodewise"])
@pytest.mark.parametrize("free", [None, (4, 5)])
def test_least_curvature_is_that_of_dense_matrices(loss, free):
    task = draw(5, 80, 1, (2, 3, 2)).task(loss=loss)
    theta = random_theta(task.layout, 1, 0.3)
    everything = np.arange(task.layout.n_groups)
    follow = everything if free is None else np.array(free)
    asked = np.array([4, 5])
    found = least_curvature(task.smooth, theta, asked, follow)
    expected = [by_hand(task.smooth, theta, g, follow) for g in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_curvature_by_nodes_is_a_lower_bound():
    task = draw(5, 80, 1, (2, 3, 2)).task()
    theta = random_theta(task.layout, 1, 0.3)
    everything = np.arange(task.layout.n_groups)
    least = least_curvature(task.smooth, theta, everything, everything)
    hessian = task.smooth.curvature(theta).dense()
    for g in everything:
        whole = type("Whole", (), {"layout": task.layout, "by_nodes": False})()
        whole.curvature = lambda _: type("Dense", (), {"dense": lambda self: hessian})()
        assert least[g] <= by_hand(whole, theta, g, everything) + 1e-12


def test_independent_columns_have_the_curvature_of_all_rows():
    """Every cell as often as its margins say: each row is worth one, for two levels exactly."""
    cells = [(a, b) for a in range(2) for b in range(2)] * 25
    task = table_of(np.array(cells).T.tolist(), (2, 2)).task()
    (level,) = worth_one_row(task, np.array([0]))
    least = least_curvature(task.smooth, task.smooth.null(), np.array([0]), np.array([0]))
    assert least[0] == pytest.approx(100 * level, rel=1e-9)
    for rows, open_ones in ((99.9, 0), (100.1, 1)):
        found = open_edges(task, np.array([0]), task.smooth.null(), rows=rows)
        assert len(found) == open_ones


def test_what_has_a_penalty_does_not_follow():
    """Regressions on a and its duplicate: if both can move, neither is certain."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    task = table_of([a, a, b], (2, 2, 2)).task(loss="nodewise")
    groups = np.flatnonzero(task.layout.pairs[:, 1] == 2)
    assert pairs(task, groups) == {(0, 2), (1, 2)}
    given = task, groups, task.smooth.null()
    assert open_edges(*given, rows=1.0).tolist() == groups.tolist()
    assert open_edges(*given, rows=100.0, free=groups[:1]).tolist() == []


def test_edges_of_numbers_are_never_open():
    task = draw(4, 40, 2, (2,)).task()
    assert open_edges(task, np.arange(3), task.smooth.null(), rows=1e9).tolist() == []


def test_an_empty_graph_is_the_null_model():
    task = draw(4, 40, 2, (2, 3)).task()
    found = refit(task, NONE)
    assert found.solution.converged
    np.testing.assert_allclose(found.solution.theta, task.null.theta, atol=1e-9)
    expected = plain.smooth(task.params(task.null.theta), *_own_units(4))
    assert found.loss + task.log_jacobian == pytest.approx(expected, abs=1e-9)


def _own_units(seed):
    table = draw(seed, 40, 2, (2, 3))
    return table.X, table.Y


def test_cells_that_a_resample_has_lost_are_counted_by_level():
    """Against counts of the rows; the resample lacks a level, so its columns stand elsewhere."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 3, 200), rng.integers(0, 4, 200)])
    extra = rng.integers(0, 2, 200)
    table = table_of([*codes.T, extra], (3, 4, 2))
    whole = table.task()
    lost = (codes[:, 0] == 0) | ((codes[:, 0] == 2) & (codes[:, 1] == 1))
    some = table_of([*codes[~lost].T, extra[~lost]], (3, 4, 2))
    task = some.task()
    assert task.observed.tolist()[:3] == [False, True, True]
    found = emptied(task, whole, np.arange(task.layout.n_groups))
    counts = np.array(
        [
            [(~lost & (codes == cell).all(axis=1)).sum() for cell in cells]
            for cells in ([(1, b) for b in range(4)], [(2, b) for b in range(4)])
        ]
    )
    assert (counts == 0).sum() == 1
    assert pairs(task, np.flatnonzero(found)) == {(0, 1)}

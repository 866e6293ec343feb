"""Separate regressions: the joint conditionals, every node with its own coefficients."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from mixedgm.model.density import conditionals
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import from_theta, to_theta
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.penalty import weights
from mixedgm.penalty.group_lasso import GroupLasso
from mixedgm.rows.memory import MemoryRows
from mixedgm.solve.choose import Auto
from mixedgm.solve.problem import Problem
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.working_set import Start, solve
from tests.reference import conic
from tests.support.problems import draw, random_theta

SHAPES = {
    "mixed": (60, 2, (2, 3)),
    "all-continuous": (50, 4, ()),
    "all-categorical": (60, 0, (2, 3, 4)),
}


@pytest.fixture(params=SHAPES)
def case(request):
    table = draw(4, *SHAPES[request.param], False)
    X = np.ascontiguousarray((table.X - table.X.mean(axis=0)) / table.X.std(axis=0))
    nodes = Nodes.mixed(X.shape[1], table.n_levels)
    rows = MemoryRows(X, table.design.codes, nodes)
    layout = Layout.complete(nodes, nodewise=True)
    return table, Pseudolikelihood(rows, layout, rows.moments())


def problem_at(smooth, lam):
    layout = smooth.layout
    scales = weights.node_scales(layout.nodes, smooth.moments.mean, np.ones(layout.n_gaussian))
    calibrated = weights.calibrated(layout, scales)
    return Problem(smooth, GroupLasso(layout, calibrated), lam, calibrated)


def solved(problem, solver):
    theta = problem.smooth.null()
    start = Start(theta, problem.smooth.evaluate(theta))
    return solve(problem, solver, start, tol=1e-9, max_iter=20_000)


def test_equal_copies_give_the_joint_function(case):
    _, smooth = case
    shared = replace(smooth, layout=replace(smooth.layout, nodewise=False))
    complete = Layout.complete(Nodes.mixed(smooth.layout.n_gaussian, smooth.layout.n_levels))
    shared = replace(shared, layout=complete)
    theta = random_theta(complete, 5)
    own = np.concatenate(
        [theta[: complete.n_node_terms], smooth.layout.from_matrix(complete.to_matrix(theta))]
    )
    joint, apart = shared.evaluate(theta), smooth.evaluate(own)
    assert apart.value == pytest.approx(joint.value, abs=1e-12)
    matrix = smooth.layout.to_matrix(apart.gradient)
    summed = complete.from_matrix(matrix + matrix.T)
    np.testing.assert_allclose(summed, joint.gradient[complete.edges], atol=1e-12)


@pytest.mark.parametrize("lam", [0.03, 0.1])
@pytest.mark.parametrize("solver", [Auto(), ProximalGradient()], ids=["newton", "gradient"])
def test_the_optimum_is_that_of_one_conic_problem_per_node(case, lam, solver):
    table, smooth = case
    found = solved(problem_at(smooth, lam), solver)
    assert found.converged
    n_nodes = smooth.layout.n_nodes
    optima = [
        conic.solve(table.X, table.Y, table.n_levels, lam, targets=[v]) for v in range(n_nodes)
    ]
    jacobian = np.log(table.X.std(axis=0)).sum()
    expected = sum(optimum.value for optimum in optima) - jacobian
    assert found.objective == pytest.approx(expected, abs=1e-7)
    active = smooth.layout.pairs[smooth.layout.group_norms(found.theta) > 0]
    edges = {(u, v) for v in range(n_nodes) for u in range(n_nodes) if (u, v) in _ends(optima, v)}
    assert {tuple(pair) for pair in active.tolist()} == edges


def _ends(optima, v):
    """Pairs (predictor, v) of the optimum of node v alone."""
    return {(a if b == v else b, v) for a, b in optima[v].edges}


def test_the_largest_penalty_is_half_that_of_the_joint_problem(case):
    _, smooth = case
    joint = replace(
        smooth,
        layout=Layout.complete(Nodes.mixed(smooth.layout.n_gaussian, smooth.layout.n_levels)),
    )
    largest = []
    for one in (smooth, joint):
        problem = problem_at(one, 1.0)
        largest.append(problem.penalty.lam_max(one.evaluate(one.null()).gradient))
    assert largest[0] == pytest.approx(0.5 * largest[1], rel=1e-12)


def test_gaussian_nodes_are_lasso_regressions():
    """On standardised columns -b_st / b_ss is the lasso's, 1 / b_ss = MSE + 2 lam |coef|_1."""
    table, lam = draw(4, 60, 5, (), False), 0.1
    X = np.ascontiguousarray((table.X - table.X.mean(axis=0)) / table.X.std(axis=0))
    rows = MemoryRows(X, table.design.codes, Nodes.mixed(5, ()))
    smooth = Pseudolikelihood(rows, Layout.complete(rows.nodes, nodewise=True), rows.moments())
    params = from_theta(smooth.layout, solved(problem_at(smooth, lam), Auto()).theta)
    for s in range(5):
        others = np.arange(5) != s
        lasso = Lasso(alpha=lam, tol=1e-12, max_iter=100_000).fit(X[:, others], X[:, s])
        own = params.precision[s, s]
        np.testing.assert_allclose(-params.precision[others, s] / own, lasso.coef_, atol=1e-7)
        mse = np.mean((X[:, s] - lasso.predict(X[:, others])) ** 2)
        assert 1 / own == pytest.approx(mse + 2 * lam * np.abs(lasso.coef_).sum(), abs=1e-7)


def test_parameters_go_to_theta_and_back_and_predict_by_columns(case):
    table, smooth = case
    theta = random_theta(smooth.layout, 8)
    params = from_theta(smooth.layout, theta)
    assert params.nodewise
    np.testing.assert_array_equal(to_theta(smooth.layout, params), theta)
    hot = [np.eye(m)[y] for m, y in zip(table.n_levels, table.Y.T, strict=True)]
    Z = np.hstack([smooth.rows.numbers, *hot])
    found = conditionals(params, smooth.rows.numbers, table.Y)
    linear = Z @ params.coef
    mean = (linear[:, : table.n_gaussian] + params.cont_bias) / np.diagonal(params.precision)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)

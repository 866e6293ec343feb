"""Ordinal and count columns: optima of a conic solver, and the facts that fix the model."""

from functools import cache

import numpy as np
import pytest
from scipy import optimize, special, stats

from mixedgm.families import CountKind, OrdinalKind
from mixedgm.fit import certificate
from mixedgm.path.path import geometric_lams, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.rows.predict import probabilities
from mixedgm.select.criteria import EBIC
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.working_set import Start, solve
from tests.reference import scored
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, Table, draw, edges_of, evidence_of, solved

SOLVERS = {"proximal-newton": ProximalNewton(), "proximal-gradient": ProximalGradient()}
TOL = 1e-8


@cache
def task_of(name):
    problem = scored.PROBLEMS[name]
    return problem.table.task(weights=problem.weights, factors=problem.factors)


@cache
def solution_of(name, solver):
    task, lam = task_of(name), scored.optimum(name).lam
    start = Start(task.null.theta, task.null.evaluation, task.lam_max)
    return solve(task.problem(lam), SOLVERS[solver], start, tol=TOL, max_iter=20_000)


def on_every_problem(test):
    for mark in (
        pytest.mark.parametrize("solver", SOLVERS),
        pytest.mark.parametrize("name", scored.PROBLEMS),
    ):
        test = mark(test)
    return test


@on_every_problem
def test_objective_and_edges_are_those_of_the_conic_optimum(name, solver):
    task, found, optimum = task_of(name), solution_of(name, solver), scored.optimum(name)
    assert found.converged
    value = found.objective + task.log_jacobian
    assert value == pytest.approx(optimum.value, abs=1e-7)
    assert edges_of(task, found.theta) == optimum.edges


@on_every_problem
def test_parameters_are_those_of_the_conic_optimum(name, solver):
    layout, found, optimum = (
        task_of(name).layout,
        solution_of(name, solver).theta,
        scored.optimum(name),
    )
    close = {"atol": 2e-5, "rtol": 1e-5}
    np.testing.assert_allclose(found[layout.diagonal], optimum.diagonal, **close)
    terms = np.concatenate(optimum.linear)
    is_target = np.repeat(layout.is_target, layout.nodes.n_biases)
    np.testing.assert_allclose(found[layout.bias_terms][is_target], terms[is_target], **close)
    for g, (u, v) in enumerate(layout.pairs.tolist()):
        block = found[layout.starts[g] : layout.starts[g + 1]]
        expected = optimum.blocks[u, v] if (u, v) in optimum.edges else 0.0 * block
        np.testing.assert_allclose(block, np.ravel(expected), **close, err_msg=f"{u}, {v}")


@pytest.mark.parametrize("name", scored.PROBLEMS)
def test_the_model_in_own_units_has_the_same_objective_by_loops(name):
    problem, task, found = (
        scored.PROBLEMS[name],
        task_of(name),
        solution_of(name, "proximal-newton"),
    )
    columns = scored.Columns(problem.table)
    weights = np.zeros((columns.n_nodes, columns.n_nodes))
    weights[tuple(task.layout.pairs.T)] = task.penalty.weights
    params, lam = task.params(found.theta), scored.optimum(name).lam
    value = scored.objective(params, problem, lam, weights)
    assert found.objective + task.log_jacobian == pytest.approx(value, abs=1e-9)
    again = task.theta_of(params)
    np.testing.assert_allclose(again, found.theta, atol=1e-9)


@on_every_problem
def test_the_certificate_of_returned_models_agrees_with_the_solvers(name, solver):
    task, found, lam = task_of(name), solution_of(name, solver), scored.optimum(name).lam
    claim = certificate.Claim(task.layout, found.theta, lam * task.penalty.weights, task.yardstick)
    rows = certificate.Standardised(task.units.centre, task.units.scale, task.observed)
    design = scored.PROBLEMS[name].table.design
    assert certificate.kkt(design, rows, claim, cells=700) == pytest.approx(found.kkt, abs=1e-12)
    moved = claim.theta + 1e-3
    problem = task.problem(lam)
    wrong = certificate.Claim(task.layout, moved, claim.pull, claim.yardstick)
    expected = problem.optimality(moved).kkt
    assert certificate.kkt(design, rows, wrong) == pytest.approx(expected, abs=1e-12)


# --- a column with two levels ---------------------------------------------------------------------


def both_ways(ordinal=OrdinalKind(), loss="pseudolikelihood", weighted=True, moderator=None):  # noqa: B008
    """A table whose binary column is ordinal, and the same with it categorical; their tasks."""
    table = draw(5, 150, 2, (2, 4, 9, 3), weighted, (ordinal, *SCORED[1:3]))
    order = [1, 2, 0, 3]  # the binary column behind the scored ones
    other = Table(
        table.X, table.Y[:, order], tuple(table.n_levels[k] for k in order), table.row_weights,
        scored=table.scored[1:],
    )  # fmt: skip
    if moderator is None:
        return (table, table.task(loss=loss)), (other, other.task(loss=loss))
    nodes = (moderator, 2 + order.index(moderator - 2) if moderator >= 2 else moderator)
    tasks = [
        moderated_task(each, (node,), loss=loss)
        for each, node in zip((table, other), nodes, strict=True)
    ]
    return (table, tasks[0]), (other, tasks[1])


# Nodes of the table with the ordinal column -> those of the table with the categorical one.
PLACE = {0: 0, 1: 1, 2: 4, 3: 2, 4: 3, 5: 5}


@pytest.mark.parametrize("fraction", [0.5, 0.1, 0.02])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ordinal": OrdinalKind(level_scores=(3.0, 7.5))},
        {"loss": "nodewise"},
        {"loss": "likelihood"},
        {"moderator": 0},
        {"moderator": 2},
        {"moderator": 5},
    ],
    ids=str,
)
def test_two_ordered_levels_are_two_levels(options, fraction):
    (table, task), (other, categorical) = both_ways(**options)
    assert task.lam_max == pytest.approx(categorical.lam_max, rel=1e-12)
    lam = fraction * task.lam_max
    one, two = (solved(each, lam, tol=1e-11) for each in (task, categorical))
    assert one.objective == pytest.approx(two.objective, abs=1e-10)
    nodewise = options.get("loss") == "nodewise"
    ends = {tuple(PLACE[k] for k in pair) for pair in edges_of(task, one.theta)}
    ends = ends if nodewise else {tuple(sorted(pair)) for pair in ends}
    assert ends == edges_of(categorical, two.theta)
    params = [each.params(found.theta) for each, found in ((task, one), (categorical, two))]
    for j in range(4):
        if 2 + j == options.get("moderator"):
            continue  # it is not predicted
        chance = [
            probabilities(each, rows.X, rows.Y, place)
            for each, rows, place in zip(params, (table, other), (j, PLACE[2 + j] - 2), strict=True)
        ]
        np.testing.assert_allclose(*chance, atol=1e-10)


def test_criteria_and_weights_see_no_difference():
    (table, task), (other, categorical) = both_ways()
    paths, scores = [], []
    for each, rows in ((task, table), (categorical, other)):
        lams = geometric_lams(task.lam_max, 12, 0.02)
        path = solve_path(each, lams, Recipe(ProximalNewton(), 1e-9, 500))
        choice = EBIC().choose(evidence_of(rows, path, each))
        paths.append(path)
        scores.append(choice.scores)
    for name in scores[0]:
        np.testing.assert_allclose(scores[0][name], scores[1][name], rtol=1e-7)
    both = zip(paths, (task, categorical), strict=True)
    norms = [path.group_norms() * each.yardstick for path, each in both]
    columns = {pair: k for k, pair in enumerate(map(tuple, categorical.layout.pairs.tolist()))}
    order = [columns[tuple(sorted(PLACE[k] for k in p))] for p in task.layout.pairs.tolist()]
    np.testing.assert_allclose(norms[0], norms[1][:, order], atol=1e-7)


# --- known models ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OrdinalKind(), OrdinalKind(level_scores=(0.0, 1.0, 1.5, 4.0))])
def test_one_ordinal_column_is_a_regression_by_adjacent_categories(kind):
    table = draw(8, 300, 3, (4, 2), True, (kind,))
    table = Table(table.X, table.Y, table.n_levels, table.row_weights, (0, 1, 2, 4), (kind,))
    task = table.task()
    found = solved(task, 0.0, tol=1e-10)
    assert found.converged
    step = np.diff(kind.level_scores or range(4))
    Z = np.column_stack([table.X, table.Y[:, 1] == 1])

    def loss(at):
        """log p(l) / p(l - 1) = threshold_l + (score_l - score_{l - 1}) z'slope."""
        ratio = at[:3] + np.multiply.outer(Z @ at[3:], step)
        logits = np.cumsum(np.column_stack([np.zeros(len(Z)), ratio]), axis=1)
        lost = special.logsumexp(logits, axis=1) - logits[np.arange(len(Z)), table.Y[:, 0]]
        return np.average(lost, weights=table.row_weights)

    known = optimize.minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-9})
    assert found.objective == pytest.approx(known.fun, abs=1e-10)
    params = task.params(found.theta)
    slope = params.coef[:, 3]
    np.testing.assert_allclose(slope[:3], known.x[3:6], atol=2e-5)
    assert slope[5] - slope[4] == pytest.approx(known.x[6], abs=2e-5)
    thresholds = np.diff(params.bias_of(3)) + step * slope[4]
    np.testing.assert_allclose(thresholds, known.x[:3], atol=2e-5)


@pytest.mark.parametrize("kinds", [(OrdinalKind(), OrdinalKind()), (SCORED[0], OrdinalKind())])
def test_two_ordinal_columns_are_the_linear_by_linear_model(kinds):
    """The likelihood of a table of counts, each Poisson with mean exp(row + column + t s_i s_j)."""
    table = draw(14, 400, 0, (4, 3), True, kinds)
    counts = np.zeros((4, 3))
    np.add.at(counts, tuple(table.Y.T), table.row_weights)
    scores = [
        np.array(kind.level_scores or range(m)) for kind, m in zip(kinds, (4, 3), strict=True)
    ]
    design = np.hstack(
        [
            np.repeat(np.eye(4), 3, axis=0),
            np.tile(np.eye(3)[:, 1:], (4, 1)),
            np.multiply.outer(*scores).reshape(-1, 1),
        ]
    )
    terms = np.linalg.lstsq(design, np.log(counts.ravel() + 0.5), rcond=None)[0]
    for _ in range(50):  # reweighted least squares
        mean = np.exp(design @ terms)
        slope = design.T @ (counts.ravel() - mean)
        terms = terms + np.linalg.solve((design * mean[:, None]).T @ design, slope)
    task = table.task(loss="likelihood")
    found = solved(task, 0.0, tol=1e-11)
    params = task.params(found.theta)
    assert params.coef[0, 1] == pytest.approx(terms[-1], abs=1e-9)
    share = np.exp(design @ terms) / counts.sum()
    expected = -(counts.ravel() / counts.sum()) @ np.log(share)
    assert found.objective == pytest.approx(expected, abs=1e-10)


def counts_of(shares, kind, largest):
    """A row for every count, weighted by its share, and a number that it has nothing to do with."""
    y = np.tile(np.flatnonzero(shares), 2)
    x = np.repeat([-1.0, 1.0], len(y) // 2)
    weights = np.tile(shares[shares > 0], 2)
    return Table(x[:, None], y[:, None], (largest + 1,), weights, scored=(kind,))


@pytest.mark.parametrize("zero_term", [False, True])
@pytest.mark.parametrize("rate", [0.7, 4.0])
def test_a_count_without_neighbours_may_be_a_truncated_poisson(rate, zero_term):
    largest = 25
    shares = stats.poisson.pmf(np.arange(largest + 1), rate)
    task = counts_of(shares / shares.sum(), CountKind(zero_term=zero_term), largest).task()
    root, linear, *zero = task.params(task.null.theta).terms_of(1)
    assert root == pytest.approx(0.0, abs=1e-6)
    assert linear == pytest.approx(np.log(rate), abs=1e-6)
    assert zero == pytest.approx([0.0] * zero_term, abs=1e-6)


@pytest.mark.parametrize("zero_term", [False, True])
def test_a_count_without_neighbours_has_the_most_likely_terms(zero_term):
    rng = np.random.default_rng(1)
    counts = np.bincount(rng.negative_binomial(2, 0.4, 400), minlength=41)[:41].astype(float)
    task = counts_of(counts, CountKind(zero_term=zero_term), 40).task()
    c = np.arange(41)
    features = np.column_stack([np.sqrt(c), c, c == 0])[:, : 2 + zero_term]

    def loss(at):
        logits = features @ at - special.gammaln(c + 1)
        return special.logsumexp(logits) - counts @ logits / counts.sum()

    known = optimize.minimize(loss, np.zeros(2 + zero_term), method="BFGS", options={"gtol": 1e-9})
    params = task.params(task.null.theta)
    np.testing.assert_allclose(params.terms_of(1), known.x, atol=1e-5)
    shares = np.exp(params.bias_of(1) - special.logsumexp(params.bias_of(1)))
    np.testing.assert_allclose(features.T @ shares, features.T @ counts / counts.sum(), atol=1e-10)


@pytest.mark.parametrize("fraction", [0.3, 0.05])
def test_twice_the_largest_count_moves_nothing(fraction):
    table = draw(9, 300, 2, (4, 30, 30, 3), True, (SCORED[0], *SCORED[2:]))
    top = int(table.Y[:, 1:3].max())
    estimates, objectives = [], []
    for largest in (2 * top + 10, 4 * top + 20):
        levels = (4, largest + 1, largest + 1, 3)
        task = Table(table.X, table.Y, levels, table.row_weights, scored=table.scored).task()
        found = solved(task, fraction * task.lam_max, tol=1e-11)
        params = task.params(found.theta)
        estimates.append(np.concatenate([params.bias, params.diagonal, params.coef.ravel()]))
        objectives.append(found.objective)
    assert objectives[0] == pytest.approx(objectives[1], abs=1e-6)
    np.testing.assert_allclose(*estimates, atol=1e-6)

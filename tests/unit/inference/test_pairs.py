"""Estimates of all pairs: the formulas with whole matrices, row by row, and what corrects them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

from mixedgm.inference.pairs import estimated_pairs
from mixedgm.inference.row_scores import Scorer
from mixedgm.objective.ridge import Ridged
from mixedgm.path.refits import worth_one_row
from mixedgm.select.pair_tests import pairs_given, refit
from mixedgm.solve.contrasts import Contrasts
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, Table, draw

N_ROWS = 400
PLAIN = draw(1, N_ROWS, 3, (2, 3), weighted=True)
ALL_KINDS = draw(2, N_ROWS, 2, (4, 5, 3, 2), scored=(SCORED[0], SCORED[2]), n_spiked=1)
TASKS = {
    "plain": PLAIN.task(),
    "all kinds": ALL_KINDS.task(),
    "covariates": replace(ALL_KINDS, covariates=(1, 5)).task(),
    "moderated": moderated_task(PLAIN, (4,)),
}


def hessian(smooth, contrasts, eta):
    """By differences of gradients."""
    out, step = np.empty((len(eta), len(eta))), 1e-6
    for k in range(len(eta)):
        change = np.zeros(len(eta))
        change[k] = step
        ends = [
            contrasts.down(smooth.evaluate(contrasts.up(eta + t * change)).gradient)
            for t in (1, -1)
        ]
        out[k] = (ends[0] - ends[1]) / (2 * step)
    return (out + out.T) / 2


def predictors(layout, graph):
    """Of every node: its contrasts beside its mean, counted one by one."""
    count = np.ones(layout.n_nodes)
    freedom = layout.nodes.freedom
    for g in graph:
        u, v = layout.pairs[g]
        count[v] += freedom[u] * layout.n_blocks[g]
        count[u] += freedom[v] * layout.n_blocks[g]
    return count


def at_least(square, inverse, least):
    """The variance with no direction below `least` times that of curvature alone."""
    values, vectors = linalg.eigh(square, inverse)  # square @ v = value * inverse @ v
    turned = inverse @ vectors
    return turned @ np.diag(np.maximum(values, least)) @ turned.T


def written_out(task, graph, clusters=None, ridge=None, n=None, least=0.75):
    """Estimate and covariance of every group, from whole matrices of what is held and itself."""
    layout = task.layout
    theta = layout.centred(refit(task, graph, task.null.theta).solution.theta, graph)
    contrasts = Contrasts(layout)
    reduced, eta = contrasts.reduced, contrasts.down(theta)
    smooth = task.smooth if ridge is None else Ridged(task.smooth, *ridge)
    H = hessian(smooth, contrasts, eta)
    gradient = contrasts.down(smooth.evaluate(theta).gradient)
    left = 1.0 - predictors(layout, graph) / (n or task.total_weight)
    rows = task.smooth.rows
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    independent = left
    if clusters is not None:  # variances are corrected by the number of clusters, as Kish counts
        of_clusters = np.array([weights[clusters == c].sum() for c in set(clusters)])
        units = of_clusters.sum() ** 2 / (of_clusters**2).sum()
        independent = 1.0 - predictors(layout, graph) / units
    scorer = Scorer(layout, reduced, theta, eta, independent**-0.5)
    scores = scorer.score(rows, slice(None)).all(reduced)
    if clusters is None:
        J = (scores * weights[:, None]).T @ scores / weights.sum()
    else:
        sums = np.array([(scores * weights[:, None])[clusters == c].sum(0) for c in set(clusters)])
        J = len(sums) / (len(sums) - 1) * sums.T @ sums / weights.sum()
    if ridge is not None:
        J += H - hessian(task.smooth, contrasts, eta)
    # Own terms of covariates stand in no conditional.
    idle = [t for v in layout.covariates for t in reduced.node_terms_of(v)]
    out = []
    for g in range(layout.n_groups):
        held = np.setdiff1d(reduced.positions(np.union1d(graph, [g])), idle)
        own = np.flatnonzero((held >= reduced.starts[g]) & (held < reduced.starts[g + 1]))
        inverse = np.linalg.inv(H[np.ix_(held, held)])
        V = (inverse @ J[np.ix_(held, held)] @ inverse)[np.ix_(own, own)]
        times = int(layout.is_target[layout.pairs[g]].sum())
        V = at_least(V, inverse[np.ix_(own, own)], least * times) / task.total_weight
        value = eta[held] - inverse @ gradient[held]
        ends = layout.pairs[g]
        share = left[ends][layout.is_target[ends]].mean()
        out.append((share * value[own], share**2 * V))
    return theta, out


def compare(found, expected, rtol=2e-4):
    starts = found.layout.starts - found.layout.n_node_terms
    for g, (value, covariance) in enumerate(expected):
        k = len(value)
        at = slice(int(starts[g]), int(starts[g]) + k)
        scale = np.sqrt(np.diag(covariance)).max()
        np.testing.assert_allclose(found.eta[at], value, atol=rtol * scale)
        matrix = found.covariance[found.start[g] : found.start[g + 1]].reshape(k, k)
        np.testing.assert_allclose(matrix, covariance, rtol=rtol, atol=rtol * scale**2)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("held", ["nothing", "some", "all"])
def test_estimates_are_those_of_whole_matrices(name, held):
    task = TASKS[name]
    n = task.layout.n_groups
    graph = np.arange(n)[{"nothing": slice(0), "some": slice(0, n, 2), "all": slice(n)}[held]]
    theta, expected = written_out(task, graph)
    found = estimated_pairs(task.smooth, task.smooth.rows, theta, graph)
    compare(found, expected)


def test_clusters_add_up_gradients_before_they_are_squared():
    task = TASKS["plain"]
    clusters = np.random.default_rng(0).permutation(np.repeat(np.arange(80), 5))
    graph, rows = np.arange(0, task.layout.n_groups, 2), task.smooth.rows
    # Weights are those of a design then, which corrections count as Kish does.
    n = rows.total_weight**2 / (rows.weights**2).sum()
    theta, expected = written_out(task, graph, clusters, n=n)
    compare(estimated_pairs(task.smooth, rows, theta, graph, clusters=clusters), expected)


def test_a_ridge_adds_to_the_variance_what_it_adds_to_the_curvature():
    table = draw(3, N_ROWS, 1, (3, 3, 2))
    table.Y[(table.Y[:, 0] == 2) & (table.Y[:, 1] == 2), 1] = 0  # a cell without rows
    task = table.task()
    graph = np.arange(task.layout.n_groups)
    held = refit(task, graph, task.null.theta).ridge
    assert task.layout.pairs[held].tolist() == [[1, 2]]
    level = np.where(np.isin(graph, held), worth_one_row(task, graph), 0.0)
    _, expected = written_out(task, graph, ridge=(level, np.zeros(1)))
    found = pairs_given(task, graph)
    compare(found.estimates, expected)
    # Without it the estimate of the cell would seem far too certain.
    _, expected = written_out(task, graph, ridge=(level, np.zeros(1)), least=0.0)
    _, without = written_out(task, graph, least=0.0)
    assert np.trace(without[held[0]][1]) < 0.6 * np.trace(expected[held[0]][1])


def test_a_cell_without_rows_has_the_variance_of_its_expectation():
    codes = np.random.default_rng(4).integers(0, 2, (N_ROWS, 2))
    codes[:8, 0] = codes[8:16, 1] = 2  # no row has both
    task = Table(np.zeros((N_ROWS, 0)), codes, (3, 3)).task()
    nothing = np.zeros(0, dtype=np.int64)
    found = estimated_pairs(task.smooth, task.smooth.rows, task.null.theta, nothing)
    _, floored = written_out(task, nothing)
    _, plain = written_out(task, nothing, least=0.0)
    compare(found, floored)
    # The score of the cell is less than half a row from its expectation, and can be one row off.
    along = [each[0][1].max() for each in (floored, plain)]
    assert along[0] > 2.0 * along[1]


def test_many_rows_are_taken_block_by_block():
    rng = np.random.default_rng(5)
    n, p, n_clusters = 3000, 60, 300
    cause = rng.normal(size=(n, 1))
    table = Table(cause * 0.2 + rng.normal(size=(n, p)), np.zeros((n, 0), dtype=np.int64), ())
    clusters = rng.permutation(np.repeat(np.arange(n_clusters), n // n_clusters))
    task = table.task()
    theta, nothing = task.null.theta, np.zeros(0, dtype=np.int64)
    assert n * task.layout.n_theta > 2**22
    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    u, v = task.layout.pairs.T
    each = X[:, u] * X[:, v]  # half the derivative of a row's loss where no pair has an edge
    left = 1.0 - 1.0 / n
    plain = estimated_pairs(task.smooth, task.smooth.rows, theta, nothing)
    np.testing.assert_allclose(plain.eta, left * each.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(plain.covariance, left * (each**2).mean(axis=0) / n, rtol=1e-8)
    sums = np.array([each[clusters == c].sum(axis=0) for c in range(n_clusters)])
    # Estimates are corrected by the number of rows, their variances by that of clusters.
    corrected = left**2 / (1.0 - 1.0 / n_clusters)
    expected = corrected * n_clusters / (n_clusters - 1) * (sums**2).sum(axis=0) / n**2
    found = estimated_pairs(task.smooth, task.smooth.rows, theta, nothing, clusters=clusters)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-8)

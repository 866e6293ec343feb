"""What every row adds to the gradient: finite differences of its loss, for all kinds of columns."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.inference.row_scores import Scorer
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.solve.contrasts import Contrasts
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, draw, random_theta

ALL_KINDS = draw(0, 40, 2, (4, 3, 5, 6, 3, 2), scored=SCORED, n_spiked=2)
PLAIN = draw(1, 30, 3, (2, 3, 4), weighted=True)
TASKS = {
    "plain": PLAIN.task(),
    "all kinds": ALL_KINDS.task(),
    "covariates": replace(ALL_KINDS, covariates=(1, 2, 5, 8)).task(),
    "nodewise": PLAIN.task(loss="nodewise"),
    "moderated by a number": moderated_task(PLAIN, (1,)),
    "moderated by levels": moderated_task(ALL_KINDS, (8,), covariates=(2,)),
}


def one_row(task, row):
    """The loss of a single row, with the units and means of all."""
    rows = task.smooth.rows
    products = rows.products
    if products is not None:
        products = replace(products, features=products.features[row : row + 1])
    alone = replace(
        rows,
        numbers=np.ascontiguousarray(rows.numbers[row : row + 1]),
        codes=np.ascontiguousarray(rows.codes[row : row + 1]),
        weights=None,
        products=products,
    )
    return Pseudolikelihood(alone, task.layout, alone.moments())


@pytest.mark.parametrize("name", TASKS)
def test_scores_are_derivatives_of_the_loss_of_a_row(name):
    task = TASKS[name]
    contrasts = Contrasts(task.layout)
    everything = np.arange(task.layout.n_groups)
    theta = task.layout.centred(random_theta(task.layout, 3, size=0.2), everything)
    eta, step = contrasts.down(theta), 1e-5
    scorer = Scorer(task.layout, contrasts.reduced, theta, eta)
    rows = np.array([0, 3, 7])
    found = scorer.score(task.smooth.rows, rows).all(contrasts.reduced)
    for row, scores in zip(rows, found, strict=True):
        loss = one_row(task, int(row))
        slopes = np.empty(len(eta))
        for k in range(len(eta)):
            change = np.zeros(len(eta))
            change[k] = step
            ends = [loss.evaluate(contrasts.up(eta + t * change), False).value for t in (1, -1)]
            slopes[k] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(scores, slopes, atol=2e-7)


@pytest.mark.parametrize("name", TASKS)
def test_scores_add_up_to_the_gradient(name):
    task = TASKS[name]
    contrasts = Contrasts(task.layout)
    everything = np.arange(task.layout.n_groups)
    theta = task.layout.centred(random_theta(task.layout, 4, size=0.2), everything)
    scorer = Scorer(task.layout, contrasts.reduced, theta, contrasts.down(theta))
    rows = task.smooth.rows
    scores = scorer.score(rows, slice(None)).all(contrasts.reduced)
    gradient = contrasts.down(task.smooth.evaluate(theta).gradient)
    np.testing.assert_allclose(
        np.average(scores, axis=0, weights=rows.weights), gradient, atol=1e-10
    )


def test_inflation_multiplies_conditionals():
    task = TASKS["all kinds"]
    contrasts = Contrasts(task.layout)
    theta = task.layout.centred(
        random_theta(task.layout, 5, size=0.2), np.arange(task.layout.n_groups)
    )
    given = (task.layout, contrasts.reduced, theta, contrasts.down(theta))
    times = np.ones(task.layout.n_nodes)
    times[[0, 3, 8]] = 2.0, 3.0, 5.0
    plain = Scorer(*given).score(task.smooth.rows, slice(None))
    more = Scorer(*given, times).score(task.smooth.rows, slice(None))
    nodes = contrasts.reduced.nodes
    np.testing.assert_allclose(more.residuals, plain.residuals * times[nodes.column_node])
    for v in (0, 1, 3, 8):
        at = contrasts.reduced.node_terms_of(v)
        np.testing.assert_allclose(more.node_terms[:, at], plain.node_terms[:, at] * times[v])

"""Rows that are redrawn from an estimate have its distribution, whatever the rows were."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mixedgm.inference.row_scores import Scorer, redrawn
from mixedgm.select.pair_tests import pairs_given
from mixedgm.solve.contrasts import Contrasts
from tests.support.moderated import moderated_task
from tests.support.problems import SCORED, draw


def rows_of(task, theta, seed=0):
    contrasts = Contrasts(task.layout)
    scorer = Scorer(task.layout, contrasts.reduced, theta, contrasts.down(theta))
    return scorer, redrawn(scorer, task.smooth.rows, np.random.default_rng(seed))


def refitted(task):
    return pairs_given(task, np.arange(task.layout.n_groups)).theta


@pytest.mark.statistical
def test_numbers_have_the_covariance_of_the_estimate():
    """Fails in about one of a thousand runs by chance."""
    task = draw(0, 100, 4, ()).task()
    theta = refitted(task)
    _, rows = rows_of(task, theta)
    assert rows.n_rows == 20_000
    precision = np.diag(theta[task.layout.diagonal]) - task.layout.to_matrix(theta)
    covariance = np.linalg.inv(precision)
    found = np.cov(rows.numbers.T)
    # Copies of a row share a start, which four steps do not quite forget.
    np.testing.assert_allclose(found, covariance, atol=0.05 * np.diag(covariance).max())


@pytest.mark.statistical
def test_levels_have_the_shares_of_the_estimate():
    """Fails in about one of a thousand runs by chance."""
    task = draw(1, 200, 0, (2, 3, 2)).task()
    theta = refitted(task)
    _, rows = rows_of(task, theta)
    layout = task.layout
    coef, bias = layout.to_matrix(theta), theta[layout.biases]
    states = list(product(range(2), range(3), range(2)))
    energy = []
    for state in states:
        z = np.concatenate([np.eye(n)[k] for n, k in zip((2, 3, 2), state, strict=True)])
        energy.append(z @ bias + 0.5 * z @ coef @ z)
    expected = np.exp(energy) / np.exp(energy).sum()
    found = [np.mean((rows.codes == state).all(axis=1)) for state in states]
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.statistical
def test_scores_of_redrawn_rows_of_all_kinds_vanish_on_average():
    """At the estimate itself every conditional has its right mean; one of a thousand runs fails."""
    task = draw(2, 500, 2, (4, 3, 5, 6, 3, 2), scored=SCORED, n_spiked=1).task()
    scorer, rows = rows_of(task, refitted(task))
    scores = scorer.score(rows, slice(None)).all(scorer.reduced)
    z = scores.mean(axis=0) / scores.std(axis=0) * np.sqrt(rows.n_rows)
    assert np.abs(z).max() < 6.0
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.5)


def test_covariates_and_moderators_stay_and_their_features_with_them():
    table = draw(3, 150, 2, (2, 3))
    task = moderated_task(table, (3,), covariates=(0,))
    scorer, rows = rows_of(task, refitted(task))
    before = task.smooth.rows
    copies = rows.n_rows // before.n_rows
    np.testing.assert_array_equal(rows.numbers[:, 0], np.tile(before.numbers[:, 0], copies))
    np.testing.assert_array_equal(rows.codes[:, 1], np.tile(before.codes[:, 1], copies))
    assert not np.array_equal(rows.numbers[:, 1], np.tile(before.numbers[:, 1], copies))
    features = np.tile(before.products.features, (copies, 1))
    np.testing.assert_array_equal(rows.products.features, features)
    scores = scorer.score(rows, slice(None)).all(scorer.reduced)
    spread = scores.std(axis=0)
    z = scores.mean(axis=0)[spread > 0] / spread[spread > 0] * np.sqrt(rows.n_rows)
    assert np.abs(z).max() < 6.0


def test_the_rows_themselves_are_not_touched():
    table = draw(4, 100, 1, (2,), weighted=True)
    task = table.task()
    before = replace(task.smooth.rows)
    numbers, codes = before.numbers.copy(), before.codes.copy()
    _, rows = rows_of(task, refitted(task))
    np.testing.assert_array_equal(task.smooth.rows.numbers, numbers)
    np.testing.assert_array_equal(task.smooth.rows.codes, codes)
    np.testing.assert_array_equal(rows.weights, np.tile(before.weights, len(rows.weights) // 100))

"""Rows, columns and levels in another order give the same model in that order."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.problems import draw, estimate

TABLES = {
    "mixed": draw(71, 80, 3, (2, 4, 3)),
    "mixed-weighted": draw(72, 80, 3, (2, 4, 3), weighted=True),
    "categorical-weighted": draw(73, 80, 0, (2, 4, 3), weighted=True),
    "continuous": draw(74, 60, 4, ()),
}
CLOSE = {"atol": 1e-6}


@pytest.fixture(
    params=[(t, w) for t in TABLES for w in ("calibrated", "uniform", "adaptive")], ids="-".join
)
def case(request):
    name, weights = request.param
    return TABLES[name], weights


def level_order(n_levels, order, within=None):
    """Places of the permuted levels: columns in `order`, levels of column r in `within[r]`."""
    starts = np.cumsum([0, *n_levels])
    parts = []
    for r in order:
        inner = np.arange(n_levels[r]) if within is None else within[r]
        parts.append(starts[r] + inner)
    return np.concatenate([np.zeros(0, dtype=int), *parts]).astype(int)


def compare(here, there, numbers, levels):
    """`there` has its continuous columns and levels at these places of `here`."""
    np.testing.assert_allclose(there.precision, here.precision[np.ix_(numbers, numbers)], **CLOSE)
    np.testing.assert_allclose(there.cont_bias, here.cont_bias[numbers], atol=1e-5)
    np.testing.assert_allclose(
        there.category_shift, here.category_shift[np.ix_(numbers, levels)], **CLOSE
    )
    np.testing.assert_allclose(
        there.cat_interaction, here.cat_interaction[np.ix_(levels, levels)], **CLOSE
    )
    np.testing.assert_allclose(there.cat_bias, here.cat_bias[levels], atol=1e-5)


def test_permuted_rows(case):
    table, weights = case
    shuffled = table.take(np.random.default_rng(0).permutation(len(table.X)))
    here, edges, value, _ = estimate(table, 0.15, weights=weights)
    there, other_edges, other_value, _ = estimate(shuffled, 0.15, weights=weights)
    assert other_edges == edges
    assert other_value == pytest.approx(value, abs=1e-9)
    compare(here, there, np.arange(table.n_gaussian), np.arange(sum(table.n_levels)))


def test_permuted_columns(case):
    table, weights = case
    rng = np.random.default_rng(1)
    numbers, discrete = rng.permutation(table.n_gaussian), rng.permutation(len(table.n_levels))
    n_levels = tuple(table.n_levels[r] for r in discrete)
    other = replace(table, X=table.X[:, numbers], Y=table.Y[:, discrete], n_levels=n_levels)
    here, edges, value, _ = estimate(table, 0.15, weights=weights)
    there, other_edges, other_value, _ = estimate(other, 0.15, weights=weights)
    place = np.r_[numbers, table.n_gaussian + discrete].astype(int)
    assert {tuple(sorted((place[u], place[v]))) for u, v in other_edges} == edges
    assert other_value == pytest.approx(value, abs=1e-9)
    compare(here, there, numbers, level_order(table.n_levels, discrete))


def test_permuted_levels(case):
    table, weights = case
    rng = np.random.default_rng(2)
    orders = [rng.permutation(m) for m in table.n_levels]
    Y = table.Y.copy()
    for r, order in enumerate(orders):
        Y[:, r] = np.argsort(order)[Y[:, r]]
    here, edges, value, _ = estimate(table, 0.15, weights=weights)
    there, other_edges, other_value, _ = estimate(replace(table, Y=Y), 0.15, weights=weights)
    assert other_edges == edges
    assert other_value == pytest.approx(value, abs=1e-9)
    levels = level_order(table.n_levels, range(len(orders)), orders)
    compare(here, there, np.arange(table.n_gaussian), levels)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_number_of_threads_changes_no_bit(n_threads):
    table = draw(75, 8000, 2, (7, 2, 5, 4))
    here, edges, value, lam = estimate(table, 0.2, tol=1e-6)
    there, other_edges, other_value, other_lam = estimate(table, 0.2, tol=1e-6, n_threads=n_threads)
    assert (other_edges, other_value, other_lam) == (edges, value, lam)
    np.testing.assert_array_equal(there.coef, here.coef)
    np.testing.assert_array_equal(there.cat_bias, here.cat_bias)

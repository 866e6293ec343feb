"""Rows in memory: levels without rows, columns of one level, and the memory of curvature."""

import tracemalloc

import numpy as np

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.rows.contract import Coefficients
from mixedgm.rows.memory import MemoryRows


def test_a_hub_and_a_column_of_many_levels():
    n_levels, n = (2,) * 60 + (80,), 200
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, k, size=n) for k in n_levels]).astype(np.uint8)
    rows = MemoryRows(np.zeros((n, 0)), codes, Nodes.mixed(0, n_levels))
    pairs = np.column_stack([np.zeros(59, dtype=np.int64), np.arange(1, 60)])
    smooth = Pseudolikelihood(rows, Layout(Nodes.mixed(0, n_levels), pairs), rows.moments())
    theta = np.zeros(smooth.layout.n_theta)
    smooth.curvature(theta)
    tracemalloc.start()
    found = smooth.curvature(theta)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.softmax is not None
    # 60 predictors times 80 * 79 / 2 packed levels for 128 rows alone would be 190 MB.
    assert peak < 30e6


def pass_over(n_levels, codes, bias_of_first=None, seed=0):
    """A pass with all edges; the first level of the first column may have a bias of its own."""
    rng = np.random.default_rng(seed)
    nodes = Nodes.mixed(2, n_levels)
    layout = Layout.complete(nodes)
    values = rng.normal(size=len(layout.incidence.theta_index))
    bias = rng.normal(size=sum(n_levels))
    if bias_of_first is not None:
        bias[0] = bias_of_first
    rows = MemoryRows(rng.normal(size=(len(codes), 2)), codes, nodes)
    return rows.softmax(Coefficients(layout.incidence, values, bias, layout.softmax_targets), "all")


def test_a_first_level_that_no_row_has_may_be_impossible():
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(1, 3, 300), rng.integers(0, 4, 300)]).astype(np.uint8)
    never, almost_never = (pass_over((3, 4), codes, bias) for bias in (-np.inf, -600.0))
    assert np.isfinite(never.loss).all()
    np.testing.assert_allclose(never.loss, almost_never.loss, rtol=1e-13)
    np.testing.assert_allclose(never.all_pairs, almost_never.all_pairs, atol=1e-13)
    assert abs(never.mean_terms[0]) < 1e-100
    seen = np.where(codes[:, [0]] == 1, 0, codes)  # now rows have it
    assert np.isinf(pass_over((3, 4), seen.astype(np.uint8), -np.inf).loss[0])


def test_a_column_of_one_level_is_certain():
    rng = np.random.default_rng(2)
    codes = np.column_stack([np.zeros(200), rng.integers(0, 3, 200), np.zeros(200)])
    found = pass_over((1, 3, 1), codes.astype(np.uint8))
    np.testing.assert_allclose(found.loss[[0, 2]], 0.0, atol=1e-15)
    np.testing.assert_allclose(found.mean_terms[[0, -1]], 1.0)
    np.testing.assert_allclose(found.all_pairs[2], found.mean_terms, atol=1e-15)

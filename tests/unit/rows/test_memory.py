"""Memory of curvature: one node's many predictors do not multiply with another's many levels."""

import tracemalloc

import numpy as np

from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
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

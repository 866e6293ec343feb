"""One unknown column with very many values: without tables of pairs, against trees and sums."""

import numpy as np
import pytest

from mixedgm.families import CATEGORICAL, CONTINUOUS, CountKind, OrdinalKind
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.posteriors import LoneState, UnknownColumns, posterior, posterior_draw
from mixedgm.model.density import conditionals
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params


def model(largest):
    """Two numbers, an ordinal column, a count and a category, all of them related."""
    rng = np.random.default_rng(0)
    kinds = (CONTINUOUS, CONTINUOUS, OrdinalKind(), CountKind(), CATEGORICAL)
    nodes = Nodes(kinds, (0, 0, 3, largest + 1, 2))
    coef = rng.normal(scale=0.15, size=(nodes.n_columns, nodes.n_columns))
    coef += coef.T
    coef[nodes.column_node[:, None] == nodes.column_node] = 0.0
    bias = rng.normal(scale=0.3, size=int(nodes.n_biases.sum()))
    return Params(nodes, bias, np.array([1.5, 2.0]), coef)


def rows(n):
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, 3, n), rng.poisson(3.0, n), rng.integers(0, 2, n)])
    return rng.normal(size=(n, 2)), codes


@pytest.mark.parametrize("largest", [60, 4000])
def test_a_single_count_has_its_conditional(largest):
    params, (numbers, codes) = model(largest), rows(6)
    known = KnownColumns([0, 1], [0, 2], numbers, codes[:, [0, 2]])
    found = posterior(params.joint, known, method="exact")
    expected = conditionals(params, numbers, codes).log_prob[:, params.levels_of(1)]
    np.testing.assert_allclose(found.levels, np.exp(expected), atol=1e-12)
    assert found.exact


def test_draws_of_a_single_count_have_its_mean():
    """Five standard errors, of one mean; the seed is fixed."""
    params, (numbers, codes) = model(4000), rows(1)
    numbers, codes = np.repeat(numbers, 4000, axis=0), np.repeat(codes, 4000, axis=0)
    known = KnownColumns([0, 1], [0, 2], numbers, codes[:, [0, 2]])
    _, drawn = posterior_draw(params.joint, known, rng=np.random.default_rng(2))
    chance = np.exp(conditionals(params, numbers[:1], codes[:1]).log_prob[0, params.levels_of(1)])
    counts = np.arange(4001)
    mean = chance @ counts
    error = np.sqrt((chance @ counts**2 - mean**2) / 4000)
    assert drawn.mean() == pytest.approx(mean, abs=5 * error)


def test_a_lone_state_says_what_a_tree_says():
    """Numbers are unknown, too, so that the states mix them."""
    numbers, codes = rows(5)
    known = KnownColumns([], [0, 2], numbers[:, :0], codes[:, [0, 2]])
    unknown = UnknownColumns.of(model(60).joint, known)
    shift = unknown.given_y.shift
    for block, tree in unknown.trees(2**20):
        alone = LoneState(unknown.unary[block])
        assert not isinstance(tree, LoneState)
        np.testing.assert_allclose(alone.log_z, tree.log_z, rtol=1e-12)
        np.testing.assert_allclose(alone.levels, tree.levels, atol=1e-13)
        for each in ("variance_of", "covariance_of"):
            found, expected = (getattr(one, each)(shift) for one in (alone, tree))
            np.testing.assert_allclose(found, expected, atol=1e-12)

"""Completions of rows: what states weigh does not depend on how the density is written."""

from dataclasses import replace

import numpy as np

from mixedgm.completion.completer import _discrete_terms
from tests.support.problems import SCORED, draw, random_theta


def test_long_counts_weigh_as_if_every_pair_of_values_had_a_term():
    table = draw(0, 40, 1, (4, 5, 6, 7, 3), False, SCORED)
    task = table.task()
    params = task.params(random_theta(task.layout, 1))
    codes = np.ascontiguousarray(table.Y, dtype=np.int64)
    by_pairs = params.joint
    assert by_pairs.seen is None
    discrete = params.nodes.take(range(1, len(params.nodes)))
    by_scores = replace(by_pairs, coupling=params.coef[1:, 1:], seen=discrete)
    one, other = (_discrete_terms(density, codes) for density in (by_pairs, by_scores))
    np.testing.assert_allclose(one, other, atol=1e-12)

"""Completions of rows: what states weigh does not depend on how the density is written."""

import numpy as np

from mixedgm.completion.completer import _discrete_terms
from mixedgm.model import params as params_module
from tests.support.problems import SCORED, draw, random_theta


def test_long_counts_weigh_as_if_every_pair_of_values_had_a_term(monkeypatch):
    table = draw(0, 40, 1, (4, 5, 6, 7, 3), False, SCORED)
    task = table.task()
    theta = random_theta(task.layout, 1)
    codes = np.ascontiguousarray(table.Y, dtype=np.int64)
    by_pairs = task.params(theta).joint
    monkeypatch.setattr(params_module, "MOST_VALUES", 0)
    by_scores = task.params(theta).joint
    assert by_pairs.seen is None
    assert by_scores.seen is not None
    one, other = (_discrete_terms(density, codes) for density in (by_pairs, by_scores))
    np.testing.assert_allclose(one - one[0], other - other[0], atol=1e-12)

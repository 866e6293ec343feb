"""When shares of a table differ from a model's by more than sampling explains."""

import numpy as np
import pytest
from scipy import stats

from mixedgm.studies.queries.observed import mean_comparison, share_comparison
from mixedgm.table.schema import Column


@pytest.mark.parametrize(("n", "p"), [(30, 0.5), (216, 0.593), (50, 1e-4)])
def test_the_chance_of_a_share_is_binomial(n, p):
    for count in {0, 1, n // 2, n}:
        tails = stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p)
        found = share_comparison("", p, count / n, n).chance
        assert found == pytest.approx(min(1.0, 2.0 * min(tails)), rel=1e-9)


def test_a_sampled_probability_counts_its_own_error():
    exact = share_comparison("", 0.62, 0.5, 200).chance
    assert exact < 0.005 < share_comparison("", 0.62, 0.5, 200, error=0.05).chance


@pytest.mark.parametrize(("p", "share"), [(0.0, 0.0), (1.0, 1.0)])
def test_what_cannot_differ_does_not(p, share):
    assert share_comparison("", p, share, 100).chance == 1.0


def test_the_chance_of_a_mean_is_normal():
    age = Column("age", "continuous")
    found = mean_comparison(age, (40.0, 4.0, 0.0), (41.0, 1.0), 100).chance
    assert found == pytest.approx(2 * stats.norm.sf(1.0 / 0.2))
    assert mean_comparison(age, (0.0, 0.0, 0.0), (0.0, 0.0), 50).chance == 1.0
    assert np.isnan(mean_comparison(age, (1.0, 1.0, 0.0), (np.nan, np.nan), 5).chance)

"""Errors of all pairs together, and differences of groups, against plain formulas."""

from itertools import pairwise

import numpy as np
import pytest

from mixedgm.fit.fitting import encode
from mixedgm.fit.options import Options
from mixedgm.inference.statistics import pair_statistics
from mixedgm.path.task import prepare
from mixedgm.select.pair_tests import PairTests, pairs_given
from mixedgm.studies.groups.differences import Differences
from tests.support.people import people

DRAWS = 20_000


def pairs_of(rows: slice, graph: np.ndarray | None = None) -> PairTests:
    options = Options()
    design = encode(people(600), options, None).take(rows)
    task = prepare(design, options.recipe(design.schema))
    held = np.arange(task.layout.n_groups) if graph is None else graph
    return pairs_given(task, held, draws=(DRAWS, np.random.default_rng(0)))


@pytest.mark.parametrize("graph", [None, np.array([0, 3, 4])])
def test_drawn_errors_have_the_covariance_of_the_estimates(graph: np.ndarray | None) -> None:
    """Correlations to 0.04, of 20,000 draws; variances to 6 per cent."""
    found = pairs_of(slice(None), graph)
    layout = found.estimates.layout
    first = layout.starts - layout.n_node_terms
    assert found.errors.shape == (DRAWS, len(found.estimates.eta))
    for pairs, _, covariances in found.estimates.by_size():
        for pair, expected in zip(pairs, covariances, strict=True):
            drawn = found.errors[:, first[pair] : first[pair + 1]]
            unit = np.sqrt(np.diagonal(expected))
            got = np.cov(drawn.T, ddof=0).reshape(expected.shape)
            np.testing.assert_allclose(
                got / np.outer(unit, unit), expected / np.outer(unit, unit), atol=0.06
            )


def test_two_groups_are_one_estimate_of_their_difference() -> None:
    a, b = pairs_of(slice(0, 300)), pairs_of(slice(300, 600))
    both = Differences((a.estimates, b.estimates), people_nodes())
    statistic, log_p = both.tested([a.estimates.eta, b.estimates.eta])
    joined = type(a.estimates)(
        a.estimates.layout,
        b.estimates.eta - a.estimates.eta,
        a.estimates.covariance + b.estimates.covariance,
        600.0,
    )
    expected = pair_statistics(joined, people_nodes())
    np.testing.assert_allclose(statistic, expected.statistic)
    np.testing.assert_allclose(log_p, expected.log_p, atol=1e-10)


def test_three_groups_and_their_mean() -> None:
    """The sum of squares about the mean, each in the metric of its own covariance."""
    groups = [pairs_of(slice(at, at + 200)).estimates for at in (0, 200, 400)]
    both = Differences(tuple(groups), people_nodes())
    statistic, _ = both.tested([each.eta for each in groups])
    mean_of_groups = both.together(range(3))
    layout = groups[0].layout
    starts = layout.starts - layout.n_node_terms
    squares = groups[0].start
    for g, (lo, hi) in enumerate(pairwise(starts)):
        inverses, values = [], []
        for each in groups:
            k = hi - lo
            matrix = each.covariance[squares[g] : squares[g + 1]].reshape(k, k)
            inverses.append(np.linalg.inv(matrix))
            values.append(each.eta[lo:hi])
        whole = np.linalg.inv(sum(inverses))
        mean = whole @ sum(i @ v for i, v in zip(inverses, values, strict=True))
        np.testing.assert_allclose(mean_of_groups.eta[lo:hi], mean, atol=1e-10)
        kept = mean_of_groups.covariance[squares[g] : squares[g + 1]].reshape(hi - lo, -1)
        np.testing.assert_allclose(kept, whole, atol=1e-12)
        expected = sum((v - mean) @ i @ (v - mean) for i, v in zip(inverses, values, strict=True))
        assert statistic[g] == pytest.approx(expected)
    np.testing.assert_array_equal(both.df, 2 * layout.sizes)


def people_nodes():
    return encode(people(600), Options(), None).schema.spans

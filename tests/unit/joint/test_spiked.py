"""Models with columns that may be zero: chains against sums over zero patterns and levels."""

from itertools import product

import numpy as np
import pytest

from mixedgm.base.errors import DistributionError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.marginals import marginal
from mixedgm.joint.posteriors import log_density_of, posterior, posterior_draw
from mixedgm.joint.sampled import draw, sampled_margins
from tests.support.spiked_world import H1, H2, Enumerated, spiked_model


def test_draws_have_the_moments_of_the_enumerated_distribution() -> None:
    params, n = spiked_model(), 40_000
    truth = Enumerated(params)
    drawn = draw(params, n, rng=np.random.default_rng(1), thin=10)
    assert drawn.method == "gibbs"
    assert drawn.diagnostics is not None
    assert drawn.diagnostics.good
    assert ((drawn.numbers[:, 1:] != 0.0) == drawn.codes[:, :2]).all()
    share = np.zeros((2, 2, 3, 3))
    np.add.at(share, tuple(drawn.codes.T), 1.0 / n)
    worth = min(n, drawn.diagnostics.worst_ess)
    error = np.sqrt(truth.table() * (1 - truth.table()) / worth)
    assert (np.abs(share - truth.table()) < 4.0 * error).all()
    products = drawn.numbers[:, :, None] * drawn.numbers[:, None]
    for values, expected in ((drawn.numbers, truth.mean), (products, truth.second)):
        error = values.std(axis=0) / np.sqrt(worth)
        assert (np.abs(values.mean(axis=0) - expected) < 4.0 * error).all()


def test_marginals_and_means_agree_within_their_errors() -> None:
    params = spiked_model()
    truth = Enumerated(params)
    found = marginal(params, [0, 2], [1, 3], rng=np.random.default_rng(2))
    assert not found.exact
    assert not found.gaussian
    assert "R-hat" in found.note
    table = truth.table().sum(axis=(0, 2))
    assert (np.abs(found.prob - table) < 4.0 * found.prob_error).all()
    for b, category in product((0, 1), range(3)):
        rows = [(p, m, s) for p, (y, m, s) in zip(truth.prob, truth.rows, strict=True)
                if (y[1], y[3]) == (b, category)]  # fmt: skip
        total = sum(p for p, _, _ in rows)
        mean = sum(p * m for p, m, _ in rows)[[0, 2]] / total
        square = sum(p * (s + np.outer(m, m)) for p, m, s in rows)[np.ix_([0, 2], [0, 2])] / total
        off = np.abs(found.mean[b, category] - mean)
        assert (off <= 4.0 * found.mean_error[b, category]).all()
        covariance = square - np.outer(mean, mean)
        np.testing.assert_allclose(found.covariance[b, category], covariance, atol=0.05)
    margins = sampled_margins(params, rng=np.random.default_rng(3))
    assert (np.abs(margins.mean - truth.mean) < 4.0 * margins.mean_error).all()
    levels = [truth.table().sum(axis=tuple({0, 1, 2, 3} - {k})) for k in range(4)]
    assert (np.abs(margins.share - np.concatenate(levels)) < 4.0 * margins.share_error).all()
    variance = np.diagonal(truth.second) - truth.mean**2
    np.testing.assert_allclose(margins.variance, variance, rtol=0.05)


@pytest.mark.parametrize(
    "known",
    [{1: 0.0}, {1: 0.7}, {0: -1.2, 3: 2}, {2: -0.5, 4: 1}, {0: 0.3, 1: 0.0, 2: 1.1}],
)
def test_conditionals_given_evidence(known: dict[int, float]) -> None:
    params, n = spiked_model(), 300
    truth = Enumerated(params, known)
    places = params.nodes.places(known)
    values = np.tile([float(known[node]) for node in places[0]], (n, 1))
    codes = np.tile([known[j + 1] if j > 1 else known[j + 1] != 0 for j in places[1]], (n, 1))
    evidence = KnownColumns(*places, values.reshape(n, -1), codes.astype(np.int64).reshape(n, -1))
    found = posterior(params, evidence, rng=np.random.default_rng(4))
    assert not found.exact
    unknown = sorted(set(range(5)) - set(known))
    assert found.numbers.tolist() == [v for v in unknown if v < 3]
    levels = [truth.table().sum(axis=tuple({0, 1, 2, 3} - {v - 1})) for v in unknown if v > 0]
    shares = np.concatenate(levels)
    error = found.levels.std(axis=0) / np.sqrt(n)
    assert (np.abs(found.levels.mean(axis=0) - shares) < 4.0 * error).all()
    # Standard errors of single rows are right on average.
    assert 0.8 < np.sqrt((found.levels_error**2).mean() / found.levels.var(axis=0).mean()) < 1.2
    error = found.mean.std(axis=0) / np.sqrt(n)
    mean = truth.mean[found.numbers]
    assert (np.abs(found.mean.mean(axis=0) - mean) <= 4.0 * error + 1e-12).all()
    numbers, states = posterior_draw(params, evidence, rng=np.random.default_rng(5))
    again = [posterior_draw(params, evidence, rng=np.random.default_rng(k))[0] for k in range(20)]
    assert numbers.shape == found.mean.shape
    assert states.shape[1] == sum(v > 0 for v in unknown)
    drawn = np.concatenate(again)
    second = np.diagonal(truth.second)[found.numbers]
    for each, expected in ((drawn, mean), (drawn**2, second)):
        error = each.std(axis=0) / np.sqrt(len(each))
        assert (np.abs(each.mean(axis=0) - expected) <= 4.0 * error + 1e-12).all()


@pytest.mark.parametrize(("node", "value"), [(0, 0.4), (1, 0.0), (1, 0.6), (2, -0.9)])
def test_densities_of_cells_with_other_columns_unknown(node: int, value: float) -> None:
    params, n = spiked_model(), 200
    known = {4: 2.0}
    expected = Enumerated(params, {**known, node: value}).log_z - Enumerated(params, known).log_z
    evidence = KnownColumns([], [3], np.zeros((n, 0)), np.full((n, 1), 2))
    log_density, exact = log_density_of(
        params, node, np.full(n, value), evidence, rng=np.random.default_rng(6)
    )
    density = np.exp(log_density)
    assert not exact
    error = density.std() / np.sqrt(n)
    assert abs(density.mean() - np.exp(expected)) < 4.0 * error


def test_there_is_no_exact_form() -> None:
    params = spiked_model()
    with pytest.raises(DistributionError, match="columns 1, 2 may be zero or any number"):
        _ = params.joint
    for ask in (draw, marginal):
        with pytest.raises(DistributionError, match="Gibbs chains"):
            ask(params, *([5] if ask is draw else []), rng=np.random.default_rng(0), method="exact")


def test_an_invalid_precision_names_its_columns() -> None:
    params = spiked_model()
    params.coef[H1, H2] = params.coef[H2, H1] = 3.0
    with pytest.raises(DistributionError, match="mostly about columns 1, 2"):
        draw(params, 5, rng=np.random.default_rng(0))

"""Information of two columns given the rest: against sums and integrals over the density itself."""

import itertools

import numpy as np
import pytest
from scipy import integrate

from mixedgm.families import CATEGORICAL, CONTINUOUS, HurdleKind, OrdinalKind
from mixedgm.model.density import End, information, uncertainty
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from tests.support.spiked_world import LOCATION, SCORES, spiked_model

N_NODES = 5
COLUMNS = [slice(0, 1), slice(1, 3), slice(3, 5), slice(5, 6), slice(6, 9)]
GRID = np.linspace(-14.0, 14.0, 1401)
ROW = {0: -0.7, 1: 1.9, 2: 0.0, 3: 1, 4: 2}


def seen(node: int, value: float) -> list[float]:
    """Design columns of a value."""
    if node == 0:
        return [value]
    if node in (1, 2):
        at = LOCATION if node == 1 else 0.0
        return [float(value != 0.0), value - at if value != 0.0 else 0.0]
    if node == 3:
        return [SCORES[int(value)]]
    return [float(value == k) for k in range(3)]


def own(params: Params, node: int, value: float) -> float:
    """Own terms of a value."""
    bias = params.bias
    if node == 0:
        return bias[0] * value - 0.5 * params.diagonal[0] * value**2
    if node in (1, 2):
        a, slope, precision = bias[[1, 2, 3]] if node == 1 else bias[[4, 5, 6]]
        there, y = seen(node, value)
        return a * there + slope * y - 0.5 * precision * y**2
    return bias[(7 if node == 3 else 10) + int(value)]


def points(node: int) -> tuple[list[float], np.ndarray]:
    """Values of a node and their measure: a grid where values are real numbers."""
    step = GRID[1] - GRID[0]
    if node == 0:
        return list(GRID), np.full(len(GRID), step)
    if node in (1, 2):
        at = LOCATION if node == 1 else 0.0
        grid = GRID + at + 1e-7  # never zero itself
        return [0.0, *grid], np.concatenate([[1.0], np.full(len(GRID), step)])
    return [0.0, 1.0, 2.0], np.ones(3)


def by_sums(params: Params, u: int, v: int, power: int = 1) -> float:
    """Mean of a power of the log density ratio of two nodes given the others of ROW.

    From the density at all their values; the first power is the information.
    """
    (of_u, measure_u), (of_v, measure_v) = points(u), points(v)
    rest = np.zeros(9)
    for node in set(range(N_NODES)) - {u, v}:
        rest[COLUMNS[node]] = seen(node, ROW[node])
    z_u, z_v = (np.array([seen(n, x) for x in xs]) for n, xs in ((u, of_u), (v, of_v)))
    density = np.array([own(params, u, x) for x in of_u])[:, None]
    density = density + np.array([own(params, v, x) for x in of_v])
    density += (z_u @ (params.coef[COLUMNS[u]] @ rest))[:, None] + z_v @ (
        params.coef[COLUMNS[v]] @ rest
    )
    density += z_u @ params.coef[COLUMNS[u], COLUMNS[v]] @ z_v.T
    share = np.exp(density - density.max())
    share /= measure_u @ share @ measure_v
    ratio = share / np.outer(share @ measure_v, measure_u @ share)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(share > 0.0, share * np.log(ratio) ** power, 0.0)
    return float(measure_u @ inside @ measure_v)


def by_formula(params: Params, u: int, v: int) -> float:
    """The same from the package, for one row."""
    return float(information(*one_row(params, u, v))[0])


def one_row(params: Params, u: int, v: int) -> tuple[End, End, np.ndarray, np.ndarray, np.ndarray]:
    """Both ends, what the others of ROW predict of each, and the parameters of the pair."""
    rest = np.zeros(9)
    for node in set(range(N_NODES)) - {u, v}:
        rest[COLUMNS[node]] = seen(node, ROW[node])
    of_u, of_v = (params.coef[COLUMNS[node]] @ rest for node in (u, v))
    block = params.coef[COLUMNS[u], COLUMNS[v]]
    return End.of(params, u), End.of(params, v), of_u[None], of_v[None], block


@pytest.mark.parametrize(("u", "v"), list(itertools.combinations(range(N_NODES), 2)))
def test_every_pair_of_kinds_agrees_with_sums_over_the_density(u, v):
    params = spiked_model()
    assert by_formula(params, u, v) == pytest.approx(by_sums(params, u, v), abs=1e-7)
    assert by_formula(params, v, u) == pytest.approx(by_formula(params, u, v), abs=1e-13)


@pytest.mark.parametrize(("u", "v"), list(itertools.combinations(range(N_NODES), 2)))
def test_the_variance_of_the_log_density_ratio_agrees_with_sums_over_the_density(u, v):
    params = spiked_model()
    found = uncertainty(*one_row(params, u, v), np.ones(1))
    expected = by_sums(params, u, v, 2) - by_sums(params, u, v) ** 2
    assert found.variance == pytest.approx(expected, abs=1e-7)
    turned = uncertainty(*one_row(params, v, u), np.ones(1))
    assert turned.variance == pytest.approx(found.variance, abs=1e-13)
    shape = params.coef[COLUMNS[u], COLUMNS[v]].shape
    order = np.arange(found.fisher.shape[0]).reshape(shape).T.ravel()
    np.testing.assert_allclose(turned.fisher, found.fisher[np.ix_(order, order)], atol=1e-13)


def test_fisher_information_of_a_table_is_that_of_log_odds_ratios():
    rng = np.random.default_rng(5)
    own = [np.log(rng.dirichlet(np.full(k, 5.0))) for k in (3, 4)]
    ends = [End(CATEGORICAL.family(len(each)), each[None]) for each in own]
    theta = rng.normal(size=(3, 4))
    share = np.exp(own[0][:, None] + own[1] + theta)
    share /= share.sum()
    ratios = np.kron(np.eye(3)[1:] - np.eye(3)[0], np.eye(4)[1:] - np.eye(4)[0])
    variance = ratios / share.ravel() @ ratios.T  # of log odds ratios (Agresti 2013), times n
    nothing = np.zeros((2, 3)), np.zeros((2, 4))
    found = uncertainty(*ends, *nothing, theta, np.array([0.3, 0.7])).fisher
    reference = np.kron(np.eye(3)[1:], np.eye(4)[1:])  # theta of the other levels, first ones zero
    np.testing.assert_allclose(
        reference @ found @ reference.T, np.linalg.inv(variance), rtol=1e-6, atol=1e-9
    )


def test_fisher_information_of_two_numbers_is_that_of_fishers_z():
    number, nothing = End(CONTINUOUS.family(0), np.array([[0.0, 1.0]])), np.zeros((1, 1))
    for r in (0.0, 0.5, 0.9):
        found = uncertainty(number, number, nothing, nothing, np.array([[r]]), np.ones(1))
        assert found.variance == pytest.approx(r**2, abs=1e-7)
        assert found.fisher[0, 0] == pytest.approx(1.0 / (1.0 + r**2), rel=1e-6)


def test_without_an_edge_fisher_information_is_the_product_of_covariances():
    params = spiked_model()
    for u, v in itertools.combinations(range(N_NODES), 2):
        first, second, of_u, of_v, block = one_row(params, u, v)
        found = uncertainty(first, second, of_u, of_v, np.zeros_like(block), np.ones(1))
        spreads = [
            each.given(of).covariances()[0][0, :, :, 0]
            for each, of in ((first, of_u), (second, of_v))
        ]
        np.testing.assert_allclose(found.fisher, np.kron(*spreads), atol=1e-7)
        assert found.variance == pytest.approx(0.0, abs=1e-12)


def test_two_categories_and_two_scored_columns_agree_with_sums_over_cells():
    rng = np.random.default_rng(3)
    kinds = (OrdinalKind(level_scores=SCORES), OrdinalKind(), CATEGORICAL, CATEGORICAL)
    nodes = Nodes(kinds, (3, 4, 2, 5))
    coef = rng.normal(size=(9, 9))
    coef = coef + coef.T
    params = Params(nodes, rng.normal(size=14), np.zeros(0), coef)
    for u, v in itertools.combinations(range(4), 2):
        ends = End.of(params, u), End.of(params, v)
        block = coef[nodes.columns_of(u), nodes.columns_of(v)]
        rest = rng.normal(size=(50, ends[0].statistics.shape[1]))
        other = rng.normal(size=(50, ends[1].statistics.shape[1]))
        found = information(*ends, rest, other, block)
        varying = information(*ends, rest, other, np.broadcast_to(block, (50, *block.shape)))
        for n in range(50):
            logits = ends[0].logits[:, None] + ends[1].logits
            logits = logits + (ends[0].statistics @ rest[n])[:, None]
            logits = logits + ends[1].statistics @ other[n]
            logits = logits + ends[0].statistics @ block @ ends[1].statistics.T
            share = np.exp(logits) / np.exp(logits).sum()
            ratio = share / np.outer(share.sum(axis=1), share.sum(axis=0))
            expected = (share * np.log(ratio)).sum()
            assert found[n] == pytest.approx(expected, abs=1e-13)
            assert varying[n] == pytest.approx(expected, abs=1e-13)


def test_hurdle_column_and_number_agree_with_adaptive_quadrature():
    params = spiked_model()
    u, v = 0, 1
    rest = np.zeros(9)
    for node in (2, 3, 4):
        rest[COLUMNS[node]] = seen(node, ROW[node])

    def density(x: float, y: float) -> float:
        z = rest.copy()
        z[COLUMNS[u]], z[COLUMNS[v]] = seen(u, x), seen(v, y)
        return float(np.exp(0.5 * z @ params.coef @ z + own(params, u, x) + own(params, v, y)))

    near = LOCATION + 1e-12
    span = {"epsabs": 1e-11, "epsrel": 1e-11, "limit": 200}

    def of_x(x: float) -> float:
        return density(x, 0.0) + integrate.quad(lambda y: density(x, y + near), -12, 12, **span)[0]

    none = integrate.quad(lambda x: density(x, 0.0), -12, 12, **span)[0]
    total = integrate.quad(of_x, -12, 12, **span)[0]
    entropies = [
        -integrate.quad(lambda x: of_x(x) / total * np.log(of_x(x) / total), -12, 12, **span)[0]
    ]

    def of_y(y: float) -> float:
        return integrate.quad(lambda x: density(x, y), -12, 12, **span)[0] / total

    zero = none / total
    entropies.append(
        -zero * np.log(zero)
        - integrate.quad(lambda y: of_y(y + near) * np.log(of_y(y + near)), -12, 12, **span)[0]
    )
    # Both together: x normal where y is zero, and x and y normal together where it is not.
    params_of = params.coef[COLUMNS[u], COLUMNS[v]][0]
    precision = np.array([[params.diagonal[0], -params_of[1]], [-params_of[1], params.bias[3]]])
    at_zero = -zero * np.log(zero) + zero * 0.5 * np.log(2 * np.pi * np.e / params.diagonal[0])
    there = 1.0 - zero
    both = at_zero - there * np.log(there)
    both += there * (np.log(2 * np.pi * np.e) - 0.5 * np.linalg.slogdet(precision)[1])
    expected = sum(entropies) - both
    assert by_formula(params, u, v) == pytest.approx(expected, abs=1e-7)


def test_normal_distributions_far_apart_tell_their_state():
    number = End(CONTINUOUS.family(0), np.array([[0.0, 1.0]]))
    state = End(CATEGORICAL.family(3), np.log([[0.2, 0.3, 0.5]]))
    theta = np.array([[0.0, 40.0, 5000.0]])
    # The terms of the levels are those that leave them their shares.
    of_state = -0.5 * theta**2
    nats = information(number, state, np.zeros((1, 1)), of_state, theta)
    shares = np.array([0.2, 0.3, 0.5])
    assert nats[0] == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-9)


def test_numbers_that_determine_each_other_have_infinite_information():
    number = End(CONTINUOUS.family(0), np.array([[0.0, 1.0]]))
    nothing = np.zeros((1, 1))
    assert np.isinf(information(number, number, nothing, nothing, np.array([[1.2]]))).all()


def test_counts_with_many_values_are_computed_from_some():
    from mixedgm.families import CountKind

    def both(largest: int) -> float:
        nodes = Nodes((CountKind(), CountKind()), (largest, largest))
        params = Params(nodes, np.array([3.0, 0.0, 3.0, 0.0]), np.zeros(0), np.zeros((2, 2)))
        ends = End.of(params, 0), End.of(params, 1)
        nothing = np.zeros((1, 1))
        return float(information(*ends, nothing, nothing, np.array([[0.4]]))[0])

    # exp(...) / k! leaves next to nothing beyond 200.
    assert both(900) == pytest.approx(both(250), rel=1e-3)


def test_hurdle_locations_change_no_information():
    params = spiked_model()
    moved = params.unlocated
    assert isinstance(moved.nodes.kinds[1], HurdleKind)
    for v in (0, 2, 3, 4):
        rest = np.zeros(9)
        for node in set(range(N_NODES)) - {1, v}:
            rest[COLUMNS[node]] = seen(node, ROW[node])
        found = [
            information(
                End.of(each, 1),
                End.of(each, v),
                (each.coef[COLUMNS[1]] @ rest)[None],
                (each.coef[COLUMNS[v]] @ rest)[None],
                each.coef[COLUMNS[1], COLUMNS[v]],
            )[0]
            for each in (params, moved)
        ]
        assert found[0] == pytest.approx(found[1], abs=1e-9)

"""mg.diagnostics.consistency against computations by hand, closed forms and invariances."""

import warnings
from itertools import combinations, product

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.model.nodes import Nodes
from tests.unit.diagnostics import by_hand
from tests.unit.joint import brute

CHAIN = [(0, 1), (1, 2), (2, 3)]
CYCLE = [*CHAIN, (0, 3)]
STAR = [(0, 1), (0, 2), (0, 3)]


def spins(edges, strengths, fields=(0.0, 0.0, 0.0, 0.0)):
    """Four binary columns: exponent sum of h_r s_r + J_rj s_r s_j with s = +-1."""
    params = mg.Params.independent(Nodes.mixed(0, (2,) * 4))
    for (r, j), strength in zip(edges, np.broadcast_to(strengths, len(edges)), strict=True):
        block = strength * np.outer([1.0, -1.0], [1.0, -1.0])
        params.cat_interaction[2 * r : 2 * r + 2, 2 * j : 2 * j + 2] = block
        params.cat_interaction[2 * j : 2 * j + 2, 2 * r : 2 * r + 2] = block
    params.cat_bias[:] = np.outer(fields, [1.0, -1.0]).ravel()
    return mg.from_params({f"y{k}": 2 for k in range(4)}, params)


def gaussian(edges, strengths, unit=None, mean=None):
    """Four continuous columns."""
    precision = np.eye(4)
    for (s, t), strength in zip(edges, np.broadcast_to(strengths, len(edges)), strict=True):
        precision[s, t] = precision[t, s] = strength
    unit = np.ones(4) if unit is None else np.asarray(unit)
    precision = precision / np.outer(unit, unit)
    mean = np.zeros(4) if mean is None else np.asarray(mean)
    kinds = dict.fromkeys(["x0", "x1", "x2", "x3"], "continuous")
    return mg.from_params(kinds, {"precision": precision, "cont_bias": precision @ mean})


def by_pair(found, part="upper"):
    return {frozenset((p.source, p.target)): getattr(p, part) for p in found.pairs}


# -- against computations by hand ----------------------------------------------------------------


@pytest.mark.parametrize("edges", [CHAIN, CYCLE, STAR])
def test_spins_by_enumeration(edges):
    strengths, fields = np.linspace(0.3, -0.5, len(edges)), np.array([0.2, -0.1, 0.3, 0.0])
    found = mg.diagnostics.consistency(spins(edges, strengths, fields))
    states = np.array(list(product([1, -1], repeat=4)))
    pairs = list(combinations(range(4), 2))
    couplings = dict(zip(edges, strengths, strict=True))
    weight = np.exp(
        states @ fields + sum(J * states[:, r] * states[:, j] for (r, j), J in couplings.items())
    )
    weight /= weight.sum()

    def loss(point):
        # Orthonormal contrasts: a bias is h (1, -1) = sqrt(2) h, a block J ss' = 2 J.
        h, matrix = point[:4] / np.sqrt(2.0), np.zeros((4, 4))
        for (r, j), value in zip(pairs, point[4:] / 2.0, strict=True):
            matrix[r, j] = matrix[j, r] = value
        logit = 2.0 * states * (h + states @ matrix)
        return weight @ np.log1p(np.exp(-logit)).sum(axis=1)

    at = np.array([*(np.sqrt(2.0) * fields), *(2.0 * couplings.get(pair, 0.0) for pair in pairs)])
    hess = by_hand.hessian(loss, at, step=1e-2)
    up = weight @ (states == 1)
    scale = np.sqrt(2.0 * up * (1.0 - up))
    weights = np.array([scale[r] * scale[j] for r, j in pairs])
    active = {pairs.index(pair): np.sign(J) for pair, J in couplings.items()}
    missing, worst, at_truth = by_hand.numbers(hess, weights, 4, active)
    names = [frozenset((f"y{pairs[g][0]}", f"y{pairs[g][1]}")) for g in missing]
    for part, values in (("upper", worst), ("lower", worst), ("at_truth", at_truth)):
        assert by_pair(found, part) == pytest.approx(
            dict(zip(names, values, strict=True)), rel=1e-5
        )
    inside = [*range(4), *(4 + a for a in sorted(active))]
    units = np.concatenate([np.ones(4), weights])
    scaled = (hess / np.outer(units, units))[np.ix_(inside, inside)]
    assert found.convexity == pytest.approx(np.linalg.eigvalsh(scaled)[0], rel=1e-5)


@pytest.mark.parametrize("weights", ["calibrated", "uniform"])
def test_gaussian_from_its_covariance(weights):
    model = gaussian(CYCLE, [0.3, -0.2, 0.4, 0.1], unit=[1.0, 3.0, 0.5, 2.0])
    found = mg.diagnostics.consistency(model, penalty_weights=weights)
    precision = model.params_.precision
    covariance, pairs = np.linalg.inv(precision), list(combinations(range(4), 2))

    def loss(point):
        # E (a_s - sum_t b_st x_t)^2 needs the covariance only, the mean being zero.
        matrix = np.diag(point[4:8])
        for (s, t), value in zip(pairs, point[8:], strict=True):
            matrix[s, t] = matrix[t, s] = value
        square = point[:4] ** 2 + np.einsum("st,tu,su->s", matrix, covariance, matrix)
        return np.sum(-0.5 * np.log(point[4:8]) + square / (2.0 * point[4:8]))

    at = np.concatenate([np.zeros(4), np.diagonal(precision), [precision[s, t] for s, t in pairs]])
    hess = by_hand.hessian(loss, at, step=1e-3)
    deviation = np.sqrt(np.diagonal(covariance))
    edge_weights = np.array([deviation[s] * deviation[t] for s, t in pairs])
    if weights == "uniform":
        edge_weights = np.ones(6)
    active = {k: np.sign(at[8 + k]) for k in range(6) if at[8 + k] != 0.0}
    missing, worst, at_truth = by_hand.numbers(hess, edge_weights, 8, active)
    names = [frozenset((f"x{pairs[g][0]}", f"x{pairs[g][1]}")) for g in missing]
    for part, values in (("upper", worst), ("at_truth", at_truth)):
        assert by_pair(found, part) == pytest.approx(
            dict(zip(names, values, strict=True)), rel=1e-5
        )


def test_likelihood_of_a_gaussian_by_isserlis():
    model = gaussian(CYCLE, [0.3, -0.2, 0.4, 0.1])
    found = mg.diagnostics.consistency(model, loss="likelihood")
    sigma = np.linalg.inv(model.params_.precision)
    statistics = [(s, s) for s in range(4)] + list(combinations(range(4), 2))
    half = np.array([0.5] * 4 + [1.0] * 6)
    hess = np.array(
        [
            [sigma[s, u] * sigma[t, v] + sigma[s, v] * sigma[t, u] for u, v in statistics]
            for s, t in statistics
        ]
    ) * np.outer(half, half)
    deviation = np.sqrt(np.diagonal(sigma))
    weights = np.array([deviation[s] * deviation[t] for s, t in statistics[4:]])
    active = {statistics[4:].index(pair): 1.0 for pair in CYCLE}
    missing, worst, _ = by_hand.numbers(hess, weights, 4, active)
    names = [frozenset(f"x{k}" for k in statistics[4 + g]) for g in missing]
    assert by_pair(found) == pytest.approx(dict(zip(names, worst, strict=True)), rel=1e-9)
    # Largest eigenvalue of the covariance of all statistics, in the penalty's units.
    units = np.concatenate([deviation**2, weights])
    scaled = hess / np.outer(units, units)
    largest = max(1.0, np.linalg.eigvalsh(scaled)[-1])  # x itself is a statistic, of variance 1
    correlation = np.linalg.eigvalsh(sigma / np.outer(deviation, deviation))[-1]
    assert found.constants.gradient_change == pytest.approx(max(largest, correlation), rel=1e-9)


@pytest.mark.parametrize("strength", [0.1, 0.3, 0.45, 0.55])
def test_likelihood_of_a_star_has_a_closed_form(strength):
    # Two leaves of a hub: twice the correlation of hub and leaf.
    model = gaussian(STAR, strength)
    found = mg.diagnostics.consistency(model, loss="likelihood")
    sigma = np.linalg.inv(model.params_.precision)
    correlation = abs(sigma[0, 1]) / np.sqrt(sigma[0, 0] * sigma[1, 1])
    assert found.upper == pytest.approx(2.0 * correlation, rel=1e-9)
    assert found.verdict == ("holds" if correlation < 0.5 else "fails")


# -- bounds and invariances ----------------------------------------------------------------------


def mixed(seed=0, density=0.45, n_levels=(2, 3, 4)):
    params = mg.Params.of_joint(
        brute.random_params(seed, 3, n_levels, density=density, strength=0.6)
    )
    kinds = {f"x{s}": "continuous" for s in range(3)}
    return kinds | {f"y{j}": n for j, n in enumerate(n_levels)}, params


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_bounds_are_in_order_and_meet_for_scalar_groups(loss):
    kinds, params = mixed()
    found = mg.diagnostics.consistency(mg.from_params(kinds, params), loss=loss)
    sizes = {name: 1 if what == "continuous" else what - 1 for name, what in kinds.items()}
    assert found.exact
    assert len(found.pairs) == 15 - len(mg.from_params(kinds, params).edges_)
    assert np.diff([p.upper for p in found.pairs]).max() < 1e-7
    for pair in found.pairs:
        assert 0.0 <= pair.at_truth <= pair.upper * (1 + 1e-12)
        assert pair.lower <= pair.upper
        if sizes[pair.source] * sizes[pair.target] == 1:
            assert pair.lower == pair.upper


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_units_do_not_matter_with_calibrated_weights(loss):
    kinds, params = mixed(1)
    unit, centre = np.array([0.1, 5.0, 70.0]), np.array([3.0, -100.0, 0.5])
    # x' = centre + unit x
    shift = params.category_shift / unit[:, None]
    precision = params.precision / np.outer(unit, unit)
    other = mg.Params.of_blocks(
        params.n_levels,
        precision,
        params.cont_bias / unit + precision @ centre,
        shift,
        params.cat_interaction,
        params.cat_bias - centre @ shift,
    )
    one, two = (
        mg.diagnostics.consistency(mg.from_params(kinds, p), loss=loss) for p in (params, other)
    )
    for part in ("at_truth", "lower", "upper"):
        assert by_pair(one, part) == pytest.approx(by_pair(two, part), rel=1e-6)
    assert one.convexity == pytest.approx(two.convexity, rel=1e-6)
    assert one.constants.gradient_change == pytest.approx(two.constants.gradient_change, rel=1e-6)
    if loss == "pseudolikelihood":
        uniform = mg.diagnostics.consistency(
            mg.from_params(kinds, other), penalty_weights="uniform"
        )
        assert uniform.upper != pytest.approx(two.upper, rel=0.01)


def test_the_order_of_columns_and_levels_does_not_matter():
    kinds, params = mixed(2)
    one = mg.diagnostics.consistency(mg.from_params(kinds, params))
    numbers, cats = [2, 0, 1], [1, 2, 0]
    levels = np.concatenate(
        [params.level_start[j] + np.arange(params.n_levels[j])[::-1] for j in cats]
    )
    other = mg.Params.of_blocks(
        tuple(params.n_levels[j] for j in cats),
        params.precision[np.ix_(numbers, numbers)],
        params.cont_bias[numbers],
        params.category_shift[np.ix_(numbers, levels)],
        params.cat_interaction[np.ix_(levels, levels)],
        params.cat_bias[levels],
    )
    names = {f"y{j}": kinds[f"y{j}"] for j in cats} | {f"x{s}": "continuous" for s in numbers}
    two = mg.diagnostics.consistency(mg.from_params(names, other))
    for part in ("at_truth", "lower", "upper"):
        assert by_pair(one, part) == pytest.approx(by_pair(two, part), rel=1e-6)
    assert one.convexity == pytest.approx(two.convexity, rel=1e-8)
    assert one.constants.curvature_change == pytest.approx(two.constants.curvature_change, rel=0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_draws_come_close_and_say_how_close(loss):
    """Fails by chance about once in 1,000 seeds: five standard errors, themselves estimated."""
    kinds, params = mixed(3, n_levels=(2, 3, 2))
    model = mg.from_params(kinds, params)
    exact = mg.diagnostics.consistency(model, loss=loss)
    few = {"n_draws": 20_000, "random_state": 1, "max_states": 11}  # of 12
    drawn = mg.diagnostics.consistency(model, loss=loss, **few)
    assert exact.exact
    assert not drawn.exact
    assert exact.standard_error == 0.0 < drawn.standard_error < 0.1
    for name in ("upper", "lower", "at_truth"):
        assert abs(getattr(drawn, name) - getattr(exact, name)) < 5.0 * drawn.standard_error
    assert abs(drawn.convexity - exact.convexity) < 5.0 * drawn.convexity_error
    assert drawn.constants.curvature_change == pytest.approx(
        exact.constants.curvature_change, rel=0.2
    )
    assert "20,000 exact draws" in repr(drawn)
    assert "standard error" in repr(drawn)


def test_models_too_large_for_elimination_are_sampled():
    _, model = mg.datasets.make_ladder(1, 3, random_state=0)
    exact = mg.diagnostics.consistency(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.SamplingWarning)
        drawn = mg.diagnostics.consistency(model, n_draws=20_000, limit=1)
    assert not drawn.exact
    assert "Gibbs" in repr(drawn)
    assert drawn.upper == pytest.approx(exact.upper, abs=max(0.1, 5 * drawn.standard_error))
    with pytest.raises(mg.TooLargeError):
        mg.diagnostics.consistency(model, loss="likelihood", n_draws=1000, limit=1)


# -- what the numbers mean -----------------------------------------------------------------------


def recovered(model, n_rows, seed):
    """Whether any small lam has exactly the edges of the truth.

    A large one may always do, where all edges are strong: false edges then come in later.
    """
    table = model.sample(n_rows, random_state=seed)
    path = mg.fit_path(table, [0.15, 0.12, 0.09])
    wanted = {(edge.source, edge.target) for edge in model.edges_}
    return any(set(path.edges(k)) == wanted for k in range(len(path)))


@pytest.mark.statistical
def test_above_one_no_small_lam_finds_the_graph_and_below_one_some_does():
    """Fails by chance less than once in 1,000 runs."""
    weak, strong = spins(STAR, 0.4), spins(STAR, 1.2)
    assert mg.diagnostics.consistency(weak).verdict == "holds"
    found = mg.diagnostics.consistency(strong)
    assert found.verdict == found.verdict_at_truth == "fails"
    assert not found.constants.applies
    assert sum(recovered(weak, 4000, seed) for seed in range(6)) == 6
    assert sum(recovered(strong, 4000, seed) for seed in range(6)) == 0


def test_a_weak_chain_holds_and_more_strength_is_worse():
    numbers = [mg.diagnostics.consistency(spins(CHAIN, s)).upper for s in (0.05, 0.2, 0.5, 1.0)]
    assert numbers == sorted(numbers)
    assert numbers[0] < 0.1
    assert numbers[-1] > 1.0


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_graphs_that_are_complete_or_empty(loss):
    complete = spins(list(combinations(range(4), 2)), 0.1)
    found = mg.diagnostics.consistency(complete, loss=loss)
    assert found.pairs == ()
    assert (found.upper, found.lower, found.at_truth, found.verdict) == (0.0, 0.0, 0.0, "holds")
    assert "no pair lacks an edge" in found.summary()
    assert "no pair lacks an edge" in found._repr_html_()
    empty = mg.diagnostics.consistency(spins([], []), loss=loss)
    assert len(empty.pairs) == 6
    assert empty.upper == 0.0
    assert empty.constants.n_edges == 0

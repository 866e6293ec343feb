"""The references agree with each other and with what is known in closed form."""

import numpy as np
import pytest

from tests.reference import conic, joint, optimality, plain, problems

PAIRED = ("precision", "cat_interaction")
MEASURED = pytest.mark.parametrize("name", problems.NAMES)
# One of each shape of table, for what costs more.
SHAPES = pytest.mark.parametrize(
    "name",
    [
        "mixed-calibrated-0.3",
        "continuous-uniform-0.3",
        "categorical-calibrated-0.3",
        "row-weights-uniform",
    ],
)


def random_blocks(seed, n_gaussian, n_levels, size=0.5):
    """A model with every parameter in use; edge blocks of categorical pairs symmetric."""
    rng = np.random.default_rng(seed)
    total = sum(n_levels)
    precision = rng.normal(scale=size / 2, size=(n_gaussian, n_gaussian))
    precision = (precision + precision.T) / 2
    np.fill_diagonal(precision, rng.uniform(1.0, 2.0, size=n_gaussian))
    interaction = rng.normal(scale=size, size=(total, total))
    interaction = interaction + interaction.T
    for start, m in zip(plain.starts(n_levels), n_levels, strict=True):
        interaction[start : start + m, start : start + m] = 0.0
    return plain.Blocks(
        tuple(n_levels),
        precision,
        rng.normal(scale=size, size=n_gaussian),
        rng.normal(scale=size, size=(n_gaussian, total)),
        interaction,
        rng.normal(scale=size, size=total),
    )


def objective_at(problem, blocks):
    return plain.objective(
        blocks, problem.X, problem.Y, problem.lam, problem.edge_weights, problem.row_weights
    )


def certificate_at(problem, blocks):
    return optimality.certificate(
        blocks, problem.X, problem.Y, problem.lam, problem.edge_weights, problem.row_weights
    )


# --- the conic optimum, judged by the loops -----------------------------------------------------


@MEASURED
def test_conic_value_is_the_objective_at_the_conic_parameters(name):
    optimum = problems.optimum(name)
    assert optimum.gap <= 1e-8
    assert objective_at(problems.get(name), optimum) == pytest.approx(optimum.value, abs=1e-8)


@MEASURED
def test_conic_optimum_satisfies_the_optimality_conditions(name):
    found = certificate_at(problems.get(name), problems.optimum(name))
    assert found.kkt <= 1e-6


@MEASURED
def test_edges_are_clearly_present_or_clearly_absent(name):
    """No edge set here hangs on a threshold: blocks are far above it or far below."""
    problem, optimum = problems.get(name), problems.optimum(name)
    upper = np.triu_indices(len(optimum.strength), 1)
    strengths = optimum.strength[upper]
    assert not np.any((strengths > conic.EDGE_THRESHOLD / 100) & (strengths < 1e-3))
    slack = certificate_at(problem, optimum).slack
    assert all(value > 1e-3 for value in slack.values())
    weights = problem.edge_weights
    every = {(int(u), int(v)) for u, v in zip(*upper, strict=True)}
    forbidden = {(u, v) for u, v in every if np.isinf(weights[u][v])}
    assert set(slack) | optimum.edges | forbidden == every


@MEASURED
def test_no_step_from_the_optimum_lowers_the_objective(name):
    problem, optimum = problems.get(name), problems.optimum(name)
    mean, scale = plain.mean_and_scale(problem.X, problem.row_weights)
    best = objective_at(problem, optimum)
    rng = np.random.default_rng(0)
    nodes_and_edges = [place for place in _allowed(problem, optimum) if place[2]]
    places = [place[:2] for place in _allowed(problem, optimum)]
    for step in (1e-1, 1e-2, 1e-3):
        one = places[rng.integers(len(places))]
        for chosen in (places, [place[:2] for place in nodes_and_edges], [one]):
            moved = plain.copy(optimum)
            for which, index in chosen:
                by = step * _unit(which, index, scale) * rng.normal()
                moved = optimality.moved(moved, which, index, by)
            moved = _recentred(moved, optimum, mean)
            assert objective_at(problem, moved) >= best - 1e-10


def _allowed(problem, optimum):
    """Coordinates outside forbidden pairs, with whether the optimum is smooth in them."""
    p = len(optimum.cont_bias)
    owner = [p + r for r, m in enumerate(optimum.n_levels) for _ in range(m)]
    weights = problem.edge_weights
    for which, index in optimality.coordinates(optimum):
        if which in ("cont_bias", "cat_bias") or (which == "precision" and index[0] == index[1]):
            yield which, index, True
            continue
        u = owner[index[0]] if which == "cat_interaction" else index[0]
        v = index[1] if which == "precision" else owner[index[1]]
        if np.isfinite(weights[u][v]):
            yield which, index, (u, v) in optimum.edges


def _unit(which, index, scale):
    """Size of one standardised unit of that coordinate, in the own units."""
    if which == "precision":
        return 0.3 / (scale[index[0]] * scale[index[1]])
    return 1 / scale[index[0]] if which in ("cont_bias", "category_shift") else 1.0


def _recentred(moved, optimum, mean):
    """Let node biases follow the edges, so that columns far from zero stay where they are."""
    mean = np.array(mean)
    moved.cont_bias += (moved.precision - optimum.precision) @ mean
    seen = np.isfinite(moved.cat_bias)
    moved.cat_bias[seen] -= (mean @ (moved.category_shift - optimum.category_shift))[seen]
    return moved


@MEASURED
def test_penalised_blocks_of_the_optimum_sum_to_zero_over_levels(name):
    optimum = problems.optimum(name)
    for start, m in zip(plain.starts(optimum.n_levels), optimum.n_levels, strict=True):
        levels = slice(start, start + m)
        scale = plain.mean_and_scale(problems.get(name).X)[1]
        shift = optimum.category_shift[:, levels].sum(axis=1) * np.array(scale)
        assert np.abs(shift).max(initial=0.0) <= 1e-5
        assert np.abs(optimum.cat_interaction[:, levels].sum(axis=1)).max() <= 1e-5


# --- what is known otherwise ----------------------------------------------------------------------


def test_without_a_penalty_the_precision_is_the_inverse_covariance():
    problem = problems.get("continuous-calibrated-0.3")
    found = conic.solve(problem.X, problem.Y, (), 0.0)
    expected = np.linalg.inv(np.cov(problem.X.T, ddof=0))
    np.testing.assert_allclose(found.precision, expected, atol=1e-5)
    np.testing.assert_allclose(found.cont_bias, expected @ problem.X.mean(axis=0), atol=1e-5)


def test_without_a_penalty_two_columns_give_their_centred_log_counts():
    rng = np.random.default_rng(3)
    Y = rng.integers(0, (2, 3), size=(60, 2))
    found = conic.solve(np.zeros((60, 0)), Y, (2, 3), 0.0)
    counts = np.zeros((2, 3))
    np.add.at(counts, (Y[:, 0], Y[:, 1]), 1)
    logs = np.log(counts)
    rows, columns = logs.mean(axis=1, keepdims=True), logs.mean(axis=0, keepdims=True)
    expected = logs - rows - columns + logs.mean()
    np.testing.assert_allclose(found.cat_interaction[:2, 2:], expected, atol=1e-5)
    np.testing.assert_allclose(found.cat_bias[:2], (rows - logs.mean()).ravel(), atol=1e-5)


def test_two_gaussian_columns_equal_a_search_over_one_number():
    """By symmetry both columns have one b; with -beta_st = k b it has a closed form."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    r, lam = float(np.corrcoef(X.T)[0, 1]), 0.3

    def profile(k):
        # F at b, t = k b is -log b + b (1 - 2 k r + k^2) + lam k b: best b in closed form.
        return np.log(1 - 2 * k * r + k * k + lam * k) + 1

    grid = np.linspace(0, 1, 200_001)
    expected = profile(grid).min() + np.log(X.std(axis=0)).sum()
    found = conic.solve(X, np.zeros((50, 0), dtype=int), (), lam)
    assert found.value == pytest.approx(expected, abs=1e-9)


@SHAPES
def test_lam_max_is_where_the_first_edge_leaves(name):
    problem = problems.get(name)
    data = (problem.X, problem.Y, problem.n_levels)
    top = plain.lam_max(*data, problem.edge_weights, problem.row_weights)
    more = {"weights": problem.weights, "row_weights": problem.row_weights}
    assert conic.solve(*data, 1.01 * top, **more).edges == frozenset()
    assert len(conic.solve(*data, 0.98 * top, **more).edges) == 1


@pytest.mark.parametrize(
    "name", ["row-weights-mixed", "row-weights-categorical", "row-weights-zero"]
)
def test_a_weight_counts_as_repetition(name):
    problem = problems.get(name)
    repeats = problem.row_weights.astype(int)
    repeated = conic.solve(
        np.repeat(problem.X, repeats, axis=0),
        np.repeat(problem.Y, repeats, axis=0),
        problem.n_levels,
        problem.lam,
    )
    optimum = problems.optimum(name)
    assert repeated.value == pytest.approx(optimum.value, abs=1e-8)
    assert repeated.edges == optimum.edges


def test_weights_may_be_given_as_an_array():
    problem = problems.get("mixed-uniform-0.3")
    size = len(problem.node_names)
    given = conic.solve(problem.X, problem.Y, problem.n_levels, problem.lam, np.ones((size, size)))
    assert given.value == pytest.approx(problems.optimum(problem.name).value, abs=1e-9)


# --- the loops, judged by differences and by the joint density ------------------------------------


@SHAPES
def test_gradient_equals_central_differences(name):
    problem = problems.get(name)
    blocks = random_blocks(11, problem.X.shape[1], problem.n_levels, size=0.2)
    data = (problem.X, problem.Y, problem.row_weights)
    exact = optimality.gradient(blocks, *data)
    differences = optimality.finite_difference(blocks, *data)
    for which, index in optimality.coordinates(blocks):
        assert getattr(exact, which)[index] == pytest.approx(
            getattr(differences, which)[index], abs=2e-8, rel=1e-7
        )
    for which in PAIRED:
        np.testing.assert_array_equal(getattr(exact, which), getattr(exact, which).T)


@SHAPES
def test_standardising_shifts_the_smooth_part_by_the_log_scales(name):
    problem = problems.get(name)
    blocks = random_blocks(12, problem.X.shape[1], problem.n_levels)
    mean, scale = plain.mean_and_scale(problem.X, problem.row_weights)
    own = plain.smooth(blocks, problem.X, problem.Y, problem.row_weights)
    there = plain.smooth(
        optimality.standardised(blocks, mean, scale),
        (problem.X - np.array(mean)) / np.array(scale),
        problem.Y,
        problem.row_weights,
    )
    assert own == pytest.approx(there + np.log(scale).sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("n_gaussian", "n_levels"), [(2, (2, 3)), (3, ()), (0, (2, 4, 3)), (1, (9,))]
)
def test_conditional_formulas_follow_from_the_joint_density(n_gaussian, n_levels):
    blocks = random_blocks(13, n_gaussian, n_levels)
    x = list(np.random.default_rng(1).normal(size=n_gaussian))
    for y in joint.states(n_levels):
        for r in range(len(n_levels)):
            np.testing.assert_allclose(
                plain.conditional_probabilities(blocks, r, x, y),
                joint.levels_from_joint(blocks, r, x, y),
                rtol=1e-12,
            )
        for s in range(n_gaussian):
            mean, variance = joint.moments_from_joint(blocks, s, x, y)
            assert plain.conditional_mean(blocks, s, x, y) == pytest.approx(mean, abs=1e-9)
            assert 1 / blocks.precision[s, s] == pytest.approx(variance, abs=1e-9)


def test_enumerated_states_have_the_conditional_distributions():
    blocks = random_blocks(14, 0, (2, 3, 2))
    table = joint.joint_table(blocks)
    assert sum(mass for mass, _ in table.values()) == pytest.approx(1.0, abs=1e-12)
    for y in table:
        for r, m in enumerate(blocks.n_levels):
            siblings = [(*y[:r], level, *y[r + 1 :]) for level in range(m)]
            total = sum(table[z][0] for z in siblings)
            expected = [table[z][0] / total for z in siblings]
            np.testing.assert_allclose(
                plain.conditional_probabilities(blocks, r, [], y), expected, rtol=1e-12
            )


def test_integrating_x_out_leaves_a_pairwise_field():
    """log p(y) = a'B^-1 a / 2 + biases + pairs with a = alpha + shifts; E[x | y] = B^-1 a."""
    blocks = random_blocks(15, 2, (2, 3))
    inverse = np.linalg.inv(blocks.precision)
    table = joint.joint_table(blocks)
    logs = {}
    for y, (_, mean) in table.items():
        places = [start + a for start, a in zip(plain.starts(blocks.n_levels), y, strict=True)]
        field = blocks.cont_bias + blocks.category_shift[:, places].sum(axis=1)
        np.testing.assert_allclose(mean, inverse @ field, atol=1e-9)
        logs[y] = (
            field @ inverse @ field / 2
            + blocks.cat_bias[places].sum()
            + blocks.cat_interaction[places[0], places[1]]
        )
    normaliser = plain.log_sum_exp(list(logs.values()))
    for y, (mass, _) in table.items():
        assert mass == pytest.approx(np.exp(logs[y] - normaliser), abs=1e-10)

"""Plans and clique trees: structure, large sparse fields, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from mixedgm.base.errors import TooLargeError
from mixedgm.joint.exact import exact, log_partition
from mixedgm.joint.marginals import marginal
from mixedgm.joint.plan import make_plan
from mixedgm.joint.tree import CARRIED, all_pairs, calibrate, discrete
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from tests.unit.joint import brute


def block_of(params: ConditionalGaussian, r: int, j: int) -> np.ndarray:
    return params.interaction[params.levels_of(r), params.levels_of(j)]


def pairwise_field(
    n_levels: tuple[int, ...], edges: list[tuple[int, int]], seed: int
) -> ConditionalGaussian:
    params = ConditionalGaussian.independent(0, n_levels)
    rng = np.random.default_rng(seed)
    params.bias[:] = rng.normal(size=sum(n_levels))
    for r, j in edges:
        block = 1.5 * rng.normal(size=(n_levels[r], n_levels[j]))
        params.interaction[params.levels_of(r), params.levels_of(j)] = block
        params.interaction[params.levels_of(j), params.levels_of(r)] = block.T
    return params


@given(st.integers(1, 9), st.floats(0, 1), st.integers(0, 2**20), st.sampled_from([0, 16, 256]))
@settings(max_examples=80, derandomize=True)
def test_plans_are_clique_trees(n, density, seed, small):
    rng = np.random.default_rng(seed)
    joined = np.triu(rng.random((n, n)) < density, 1)
    joined |= joined.T
    masks = tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined)
    plan = make_plan(masks, tuple(int(v) for v in rng.integers(1, 5, n)), small=small)
    # every column is at home exactly once
    assert sorted(j for clique in plan.cliques for j in clique.residual) == list(range(n))
    for r, j in zip(*np.nonzero(joined), strict=True):
        assert plan.holder((int(r), int(j))) is not None
    for c, clique in enumerate(plan.cliques):
        assert (clique.parent == -1) == (clique.separator == ())
        if clique.separator:
            assert clique.parent < c
            assert set(clique.separator) <= set(plan.cliques[clique.parent].columns)


def greedy_entries(joined: np.ndarray, n_levels: tuple[int, ...], by_fill: bool) -> int:
    """Entries of the maximal cliques of a greedy order, all prices computed anew at every step."""
    near = {v: set(np.flatnonzero(row).tolist()) for v, row in enumerate(joined)}
    cliques: list[set[int]] = []
    while near:
        prices = []
        for v, around in near.items():
            fill = sum(u < w and w not in near[u] for u in around for w in around)
            weight = int(np.prod([n_levels[u] for u in {v, *around}]))
            prices.append((fill, weight, v) if by_fill else (weight, fill, v))
        v = min(prices)[2]
        around = near.pop(v)
        for u in around:
            near[u] = (near[u] | around) - {u, v}
        if not any({v, *around} <= clique for clique in cliques):
            cliques.append({v, *around})
    return sum(int(np.prod([n_levels[j] for j in clique])) for clique in cliques)


@pytest.mark.parametrize("seed", range(12))
def test_plans_follow_the_better_of_two_greedy_rules(seed):
    rng = np.random.default_rng(seed)
    joined = np.triu(rng.random((14, 14)) < rng.uniform(0.1, 0.5), 1)
    joined |= joined.T
    masks = tuple(sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined)
    n_levels = tuple(int(v) for v in rng.integers(2, 6, 14))
    wanted = min(greedy_entries(joined, n_levels, rule) for rule in (True, False))
    assert make_plan(masks, n_levels, limit=10**12).entries == wanted


@given(st.integers(2, 7), st.floats(0, 1), st.integers(0, 2**20), st.booleans())
@settings(max_examples=40, derandomize=True)
def test_all_pairs_of_any_graph(q, density, seed, in_chunks):
    rng = np.random.default_rng(seed)
    n_levels = tuple(int(v) for v in rng.integers(1, 4, q))
    params = brute.random_params(seed, 0, n_levels, density=density, strength=2.0)
    states = brute.enumerate_states(params)
    tree = calibrate(params, small=0)
    pairs = all_pairs(tree.field, tree.plan, tree.cliques, 30 if in_chunks else CARRIED)[0]
    for r in range(q):
        for j in range(r):
            expected = brute.table(states, n_levels, [r, j])
            block = pairs[params.levels_of(r), params.levels_of(j)]
            np.testing.assert_allclose(block, expected, atol=1e-12)
    together = rng.permutation(q)[: rng.integers(1, q + 1)].tolist()
    table = calibrate(params, together=together, small=0).table(together)[0]
    np.testing.assert_allclose(table, brute.table(states, n_levels, together), atol=1e-12)


def test_chain_of_sixty_columns_against_transfer_matrices():
    q, n = 60, 3
    params = pairwise_field((n,) * q, [(j, j + 1) for j in range(q - 1)], seed=1)
    bias = params.bias.reshape(q, n)
    step = [block_of(params, j, j + 1) + bias[j + 1] for j in range(q - 1)]
    forward = [bias[0]]
    for matrix in step:
        forward.append(logsumexp(forward[-1][:, None] + matrix, axis=0))
    backward = [np.zeros(n)]
    for matrix in reversed(step):
        backward.insert(0, logsumexp(matrix + backward[0], axis=1))
    log_z = logsumexp(forward[-1])
    tree = calibrate(params)
    assert tree.log_z[0] == pytest.approx(log_z, abs=1e-10)
    for r, j in [(0, 1), (3, 17), (0, 59), (30, 58)]:
        between = step[r]
        for matrix in step[r + 1 : j]:
            between = logsumexp(between[:, :, None] + matrix, axis=1)
        joint = np.exp(forward[r][:, None] + between + backward[j] - log_z)
        block = tree.pairs[0][params.levels_of(r), params.levels_of(j)]
        np.testing.assert_allclose(block, joint, atol=1e-12)
        np.testing.assert_allclose(marginal(params, discrete=[j, r]).prob, joint.T, atol=1e-12)


def test_grid_of_thirty_six_columns_against_transfer_over_rows():
    side, n = 6, 3
    across = [(side * i + k, side * i + k + 1) for i in range(side) for k in range(side - 1)]
    down = [(side * i + k, side * (i + 1) + k) for i in range(side - 1) for k in range(side)]
    params = pairwise_field((n,) * side**2, across + down, seed=2)
    rows = np.indices((n,) * side).reshape(side, -1)  # all states of one row of the grid

    def within(i: int) -> np.ndarray:
        total = np.zeros(rows.shape[1])
        for k in range(side):
            total += params.bias[params.levels_of(side * i + k)][rows[k]]
        for k in range(side - 1):
            total += block_of(params, side * i + k, side * i + k + 1)[rows[k], rows[k + 1]]
        return total

    message = within(0)
    for i in range(1, side):
        for k in range(side):  # one column of the row at a time
            table = message.reshape((n,) * side)
            block = block_of(params, side * (i - 1) + k, side * i + k)
            shape = [1] * side + [n]
            shape[k] = n
            table = logsumexp(table[..., None] + block.reshape(shape), axis=k)
            message = np.moveaxis(table, -1, k).ravel()
        message = message + within(i)
    tree = calibrate(params)
    assert tree.log_z[0] == pytest.approx(logsumexp(message), abs=1e-10)
    assert tree.plan.entries < 30_000
    np.testing.assert_allclose(tree.pairs[0].sum(), side**4, rtol=1e-12)


def test_fields_side_by_side_equal_one_by_one():
    params = brute.random_params(4, 0, (3, 2, 4, 2, 3), density=0.4, dead_level=True)
    unary = params.bias + np.random.default_rng(0).normal(size=(7, 14))
    tree = calibrate(discrete(params, unary))
    for i, bias in enumerate(unary):
        alone = ConditionalGaussian(
            (3, 2, 4, 2, 3), *(getattr(params, name) for name in BLOCKS), bias
        )
        single = calibrate(alone)
        np.testing.assert_allclose(tree.log_z[i], single.log_z[0])
        np.testing.assert_allclose(tree.pairs[i], single.pairs[0], atol=1e-13)
        np.testing.assert_allclose(tree.levels[i], single.levels[0], atol=1e-13)


BLOCKS = ("precision", "linear", "shift", "interaction")


def test_the_limit_names_the_columns_that_must_stay_together():
    # 0-1-2 are a triangle of 4 levels, 3-4 a pair: only the triangle is too large.
    params = pairwise_field((4,) * 5, [(0, 1), (1, 2), (0, 2), (3, 4)], seed=0)
    with pytest.raises(TooLargeError, match=r"64 entries, more than the limit of 50") as caught:
        calibrate(params, limit=50)
    assert caught.value.columns == (0, 1, 2)
    assert log_partition(params, limit=1000) == pytest.approx(brute.enumerate_states(params).log_z)


def test_the_limit_counts_shared_continuous_neighbours_and_nodes():
    params = ConditionalGaussian.independent(2, (10, 10, 10))
    params.shift[1] = np.random.default_rng(0).normal(size=30)
    with pytest.raises(TooLargeError, match="columns 2, 3, 4 have to be kept") as caught:
        exact(params, limit=500)
    assert "'a', 'b', 'c'" in str(caught.value.named(["x", "z", "a", "b", "c"]))
    with pytest.raises(TooLargeError, match="columns 2, 3, 4"):
        marginal(params, [0], [0, 1, 2], limit=500)


def test_a_table_of_far_columns_is_made_state_by_state_when_one_table_does_not_fit():
    q = 12
    params = pairwise_field((3,) * q, [(j, j + 1) for j in range(q - 1)], seed=5)
    wide = marginal(params, discrete=[0, 6, 11]).prob
    narrow = marginal(params, discrete=[0, 6, 11], limit=27 * 4).prob
    np.testing.assert_allclose(narrow, wide, atol=1e-13)


def test_strong_fields_do_not_overflow():
    params = pairwise_field((3, 3, 3), [(0, 1), (1, 2)], seed=3)
    params.interaction[:] *= 4000.0
    params.bias[:] *= 5000.0
    states = brute.enumerate_states(params)
    tree = calibrate(params)
    assert tree.log_z[0] == pytest.approx(states.log_weight.max(), rel=1e-12)
    assert np.isfinite(tree.pairs).all()

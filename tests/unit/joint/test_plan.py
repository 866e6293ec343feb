"""Questions that take long are announced, and those that take too long are refused.

Warnings are errors here, so that an announcement ends the work before it begins.
"""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.base.progress import quietly
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.exact import side_by_side
from mixedgm.joint.gibbs import chains
from mixedgm.joint.marginals import Columns, mutual_information
from mixedgm.joint.margins import Margins, matched
from mixedgm.joint.plan import LIMIT, begin_chains, begin_tables, chain_seconds
from mixedgm.joint.posteriors import posterior, posterior_draw
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params


def dense(n_states, n_gaussian=0, strength=0.01):
    """Binary states that all depend on each other, and numbers that depend on them."""
    params = ConditionalGaussian.independent(n_numbers=n_gaussian, n_levels=(2,) * n_states)
    column = np.repeat(np.arange(n_states), 2)
    sign = np.where(np.arange(2 * n_states) % 2, 1.0, -1.0)
    apart = column[:, None] != column
    params.coupling[apart] = strength * np.outer(sign, sign)[apart]
    params.shift[:] = 0.1 * sign
    return params


def unknown(params, n):
    return KnownColumns([], [], np.zeros((n, 0)), np.zeros((n, 0), dtype=int))


def test_information_is_announced():
    params, columns = dense(18, n_gaussian=2), (Columns(numbers=(0,)), Columns(numbers=(1,)))
    with pytest.raises(mg.LongRunWarning, match=r"3,000 tables of .* To shorten it:.*given="):
        mutual_information(params, *columns)


def test_information_without_a_closed_form_has_an_error():
    params = dense(4, n_gaussian=2)
    found = mutual_information(params, Columns(numbers=(0,)), Columns(numbers=(1,)))
    assert not found.exact
    assert found.error > 0.0


def test_many_exact_answers_are_announced():
    params = dense(18)
    with pytest.raises(mg.LongRunWarning, match=r"5,000 tables of .* fewer rows at a time"):
        posterior(params, unknown(params, 5_000))
    with quietly():
        block, tree = next(side_by_side(params, np.repeat(params.bias[None], 5_000, axis=0)))
    assert block.start == 0
    np.testing.assert_allclose(tree.levels, 0.5)


def test_too_many_exact_answers_are_refused_or_sampled():
    params = dense(20)
    rows = unknown(params, 60_000)
    with pytest.raises(mg.TooLargeError, match=r"60,000 times.*fewer rows at a time; or raise lim"):
        posterior(params, rows, method="exact")
    with pytest.raises(mg.LongRunWarning, match="Gibbs chains"):  # by default they are sampled
        posterior(params, rows)
    with pytest.raises(mg.LongRunWarning, match="an exact answer"):
        posterior(params, rows, method="exact", limit=4 * LIMIT)


def test_chains_are_announced():
    params, rng = dense(20), np.random.default_rng(0)
    with pytest.raises(mg.LongRunWarning, match="200 sweeps of 32,000 Gibbs chains over 40 values"):
        posterior(params, unknown(params, 2_000), method="gibbs")
    with pytest.raises(mg.LongRunWarning, match="200 sweeps of 40,000 Gibbs chains"):
        posterior_draw(params, unknown(params, 40_000), method="gibbs", rng=rng)
    with pytest.raises(mg.LongRunWarning, match="of 64 Gibbs chains.*burn_in= or thin="):
        chains(params, 64, 10, rng=rng, burn_in=100_000)
    with pytest.raises(mg.TooLargeError, match="chains may take 2 hours. To fix: fewer rows"):
        begin_chains(params.n_levels, 32_000_000, 200)


def test_estimates_grow_with_the_work():
    one = chain_seconds((3, 3), 64, 100)
    assert chain_seconds((3, 3), 128, 100) == pytest.approx(2 * one)
    assert chain_seconds((3, 3), 64, 200) == pytest.approx(2 * one)
    # A count up to 5,000 is redrawn by its score, whatever the others are.
    assert chain_seconds((5001,) * 9, 1, 1, by_scores=True) < chain_seconds((5001,) * 9, 1, 1)
    with quietly():
        assert begin_tables(1_000, 2**20, LIMIT) > begin_tables(1_000, 2**19, LIMIT) > 0.0
        assert begin_chains((3, 3), 64, 100) == one


def test_a_limit_below_the_default_is_about_single_tables():
    begin_tables(10_000, 50, 64)


def test_matching_margins_is_announced_where_chains_mix_badly():
    """Thirty states that nearly all agree: chains stay where they begin."""
    nodes = Nodes.mixed(0, (2,) * 30)
    params = Params.independent(nodes)
    params.coef[:] = dense(30, strength=0.2).coupling
    margins = Margins(np.full(60, 0.5), np.zeros(0))
    with pytest.raises(mg.LongRunWarning, match=r"first question.*60 values of 30.*save the model"):
        matched(params, margins)


def test_matching_margins_of_a_hurdle_model_is_announced():
    x = np.random.default_rng(0).normal(size=(2, 60))
    table = np.column_stack([x[0] * (x[1] > 0), np.arange(60) % 7])
    types = {0: "hurdle", 1: mg.Count(largest=6_000)}
    model = mg.MixedGraphicalModel(lam=0.5, types=types).fit(table)
    with pytest.raises(mg.LongRunWarning, match="first question.*6,003 values of 2 columns"):
        model.sample(2, random_state=0)

"""Questions that take long are announced, and those that take too long are refused."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.joint import KnownColumns, entropy, posterior, posterior_draw
from mixedgm.joint import effort as joint_effort
from mixedgm.joint.effort import begin_chains, begin_tables
from mixedgm.joint.information import Columns, mutual_information
from mixedgm.joint.plan import LIMIT
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.margins import Margins
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.solve import margins as solve_margins

PAIR = Columns(numbers=(0,)), Columns(numbers=(1,))


@pytest.fixture
def slow(monkeypatch):
    """A machine on which everything takes a minute and more."""
    monkeypatch.setattr(joint_effort, "_ENTRIES_PER_SECOND", 1.0)
    monkeypatch.setattr(joint_effort, "_PER_LEVEL", 2e-4)


def mixture():
    """Two numbers that depend on two states: their joint entropy has no closed form."""
    params = ConditionalGaussian.independent(n_gaussian=2, n_levels=(2, 3))
    params.shift[0], params.shift[1] = [0, 1, 0, 1, 2], [0, 2, 1, 0, 0]
    return params


def known(n):
    return KnownColumns([0], [], np.zeros((n, 1)), np.zeros((n, 0), dtype=int))


def test_information_is_announced_once_and_is_the_same(slow, monkeypatch):
    with pytest.warns(mg.LongRunWarning) as told:
        found = mutual_information(mixture(), *PAIR)
    messages = [str(each.message) for each in told]
    assert sum("from 60,000 tables of" in each and "given=" in each for each in messages) == 1
    assert not any("20,000 tables" in each for each in messages)  # the three parts of it
    monkeypatch.undo()
    assert mutual_information(mixture(), *PAIR) == found


def test_information_is_refused_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(joint_effort, "MOST_TABLES", 2**-10)
    with pytest.raises(mg.TooLargeError, match=r"60,000 times.*given=.*or raise limit="):
        mutual_information(mixture(), *PAIR)
    assert not mutual_information(mixture(), *PAIR, limit=2**30).exact
    with pytest.raises(mg.TooLargeError, match="20,000 times"):
        entropy(mixture(), PAIR[0] | PAIR[1])


def test_rows_that_take_too_long_exactly_are_sampled(monkeypatch):
    params, rows = mixture(), known(500)
    expected = posterior(params, rows).levels
    monkeypatch.setattr(joint_effort, "MOST_TABLES", 2**-20)
    with pytest.raises(mg.TooLargeError, match="500 times.*fewer rows at a time"):
        posterior(params, rows, method="exact")
    answer = posterior(params, rows)
    assert not answer.exact
    np.testing.assert_allclose(answer.levels, expected, atol=0.1)


@pytest.mark.parametrize("method", ["exact", "gibbs"])
def test_rows_are_announced(slow, method):
    with pytest.warns(mg.LongRunWarning, match="takes about"):
        posterior(mixture(), known(50), method=method)
    with pytest.warns(mg.LongRunWarning, match="takes about"):
        posterior_draw(mixture(), known(50), method=method, rng=np.random.default_rng(0))


def test_announcements_say_how_much():
    with pytest.warns(mg.LongRunWarning, match="1,000 tables of 1,000,000 entries takes about 10"):
        begin_tables(1_000, 1_000_000, LIMIT)
    over = r"1,300 sweeps of 64 Gibbs chains over 9,000 values of 30 columns takes about"
    with pytest.warns(mg.LongRunWarning, match=over):
        begin_chains((300,) * 30, 64, 1300)
    with pytest.raises(mg.TooLargeError, match="chains may take 2 hours. To fix: fewer rows"):
        begin_chains((300,) * 30, 64_000, 1300)


def test_a_limit_below_the_default_is_about_single_tables():
    begin_tables(10_000, 50, 64)


@pytest.mark.parametrize("limit", [LIMIT, 1])
def test_matching_margins_is_announced(slow, monkeypatch, limit):
    monkeypatch.setattr(solve_margins, "_EASY_SWEEPS", 0)
    params = Params.independent(Nodes.mixed(1, (2, 2)))
    params.coef[0, 2] = params.coef[2, 0] = 1.0
    margins = Margins(np.array([2.0, 0.75, 0.25, 0.5, 0.5]), np.array([4.0]))
    with pytest.warns(mg.LongRunWarning, match="the first question to this model.*save the model"):
        solve_margins.matched(params, margins, limit=limit)


def test_rows_of_a_hurdle_model_are_announced(slow):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = np.column_stack([x[:, 0] * (x[:, 1] > 0), x[:, 1]])
    model = mg.MixedGraphicalModel(lam=0.2, types={0: "hurdle"}).fit(table)
    with pytest.warns((mg.LongRunWarning, mg.SamplingWarning)) as told:
        model.sample(2, random_state=0, burn_in=200, thin=1)
    messages = " ".join(str(each.message) for each in told)
    assert "the first question to this model" in messages
    assert "300 sweeps of 64 Gibbs chains over 2 values of 1 column takes about" in messages

"""StARS and stability selection: edges of sub-frames counted anew, bounds by hand."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.people import assert_same_params, people
from tests.support.solvers import Faulty
from tests.support.subsamples import halves, subsamples

Model = partial(mg.MixedGraphicalModel, n_jobs=1)
LAMS = [0.9, 0.6, 0.4, 0.25, 0.15, 0.08]
NODES = ["height", "weight", "group", "smoker", "colour"]
PAIRS = [(a, b) for k, a in enumerate(NODES) for b in NODES[k + 1 :]]


@pytest.fixture(scope="module")
def table():
    frame = people(160, seed=7)
    for name in ("smoker", "colour"):
        frame[name] = pd.Categorical(frame[name])
    return frame


def shares(frame, samples, lam):
    """How often every pair has an edge, from fits of the sub-frames as tables of their own."""
    count = dict.fromkeys(map(frozenset, PAIRS), 0)
    for rows in samples:
        model = Model(lam=lam).fit(frame.iloc[rows])
        for edge in model.edges_:
            count[frozenset((edge.source, edge.target))] += 1
    return np.array([count[frozenset(pair)] for pair in PAIRS]) / len(samples)


# -- StARS -----------------------------------------------------------------------------------------


def test_the_instability_curve(table):
    select = mg.StARS(beta=0.1, n_subsamples=6, ratio=0.5)
    model = Model(select=select, lams=LAMS, random_state=3).fit(table)
    samples = subsamples(160, 80, 6, random_state=3)
    raw = []
    for lam in LAMS:
        share = shares(table, samples, lam)
        raw.append(np.mean([2 * f * (1 - f) for f in share]))
    scores = model.fitted_.scores
    np.testing.assert_allclose(scores["stars_raw"], raw, atol=1e-12)
    highest = [max(raw[: k + 1]) for k in range(len(raw))]
    np.testing.assert_allclose(scores["stars"], highest, atol=1e-12)
    assert scores["stars_limit"].tolist() == [0.1] * len(LAMS)
    stable = [lam for lam, level in zip(LAMS, highest, strict=True) if level <= 0.1]
    assert 0 < len(stable) < len(LAMS)  # else the test could not fail
    assert model.lam_ == min(stable)
    assert model.fitted_.report.criterion == "StARS (instability 0.1, 6 subsamples)"


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize(("n_rows", "size"), [(100, 80), (144, 115), (400, 200), (900, 300)])
def test_the_usual_size_of_a_subsample(n_rows, size):
    """floor(10 sqrt(n)) rows, and 0.8 n of up to 144."""
    sizes = []

    def is_listed(problem):
        sizes.append(problem.smooth.n_rows)
        return False

    solver = Faulty(is_listed, AssertionError)
    Model(select=mg.StARS(n_subsamples=2), lams=[0.5], solver=solver).fit(people(n_rows))
    assert set(sizes) == {n_rows, size}


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_more_instability_gives_no_larger_lam(table):
    chosen = [
        Model(select=mg.StARS(beta=beta, n_subsamples=8), lams=LAMS, random_state=0).fit(table).lam_
        for beta in (0.02, 0.1, 0.3)
    ]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] > chosen[-1]


def test_the_path_ends_soon_after_it_becomes_unstable(table):
    model = Model(select=mg.StARS(n_subsamples=8), random_state=0).fit(table)
    scores = model.fitted_.scores
    assert len(scores["stars"]) == len(model.path_) < 50
    assert scores["stars"][-1] > 0.05
    np.testing.assert_allclose(
        model.path_.lams[1:] / model.path_.lams[:-1], 0.01 ** (1 / 49), rtol=1e-9
    )


def test_pairs_without_penalty_or_edge_do_not_count(table):
    options = {"require": [("height", "weight")], "forbid": [("group", "colour")]}
    select = mg.StARS(n_subsamples=5, ratio=0.3)
    model = Model(select=select, lams=[0.3], random_state=0, **options).fit(table)
    count = dict.fromkeys(map(frozenset, PAIRS), 0)
    for rows in subsamples(160, 48, 5, random_state=0):
        for edge in Model(lam=0.3, **options).fit(table.iloc[rows]).edges_:
            count[frozenset((edge.source, edge.target))] += 1
    left_out = [frozenset(("height", "weight")), frozenset(("group", "colour"))]
    share = np.array([n for pair, n in count.items() if pair not in left_out]) / 5
    expected = np.mean(2 * share * (1 - share))
    assert expected > 0
    assert model.fitted_.scores["stars_raw"][0] == pytest.approx(expected, abs=1e-12)


def test_nothing_stable_enough_is_said(table):
    select = mg.StARS(beta=1e-6, n_subsamples=6, ratio=0.1)
    model = Model(select=select, lams=[0.3, 0.2], random_state=0).fit(table)
    assert model.lam_ == 0.3
    assert any("no lam is as stable as asked for" in note for note in model.fitted_.report.notes)


# -- stability selection ---------------------------------------------------------------------------


def test_frequencies_bound_and_stable_edges(table):
    select = mg.StabilitySelection(
        threshold=0.8, max_false=1.5, n_subsamples=10, bound="worst-case"
    )
    model = Model(select=select, lams=LAMS, random_state=4).fit(table)
    samples = halves(160, 10, random_state=4)
    by_lam = [shares(table, samples, lam) for lam in LAMS]
    q = np.array([share.sum() for share in by_lam])
    false = q**2 / ((2 * 0.8 - 1) * 10)
    scores = model.fitted_.scores
    np.testing.assert_allclose(scores["stability_selected"], q, atol=1e-12)
    np.testing.assert_allclose(scores["stability"], false, atol=1e-12)
    np.testing.assert_allclose(
        scores["stability_stable"], [(share >= 0.8).sum() for share in by_lam]
    )
    index = max(k for k in range(len(LAMS)) if (false[: k + 1] <= 1.5).all())
    assert 0 < index < len(LAMS) - 1  # else the test could not fail
    assert model.lam_ == LAMS[index]
    stable = {frozenset(p) for p, f in zip(PAIRS, by_lam[index], strict=True) if f >= 0.8}
    assert {frozenset((e.source, e.target)) for e in model.edges_} == stable
    assert stable
    frame = model.edges()
    found = {frozenset((row.source, row.target)): row.frequency for row in frame.itertuples()}
    expected = {
        frozenset(p): f for p, f in zip(PAIRS, by_lam[index], strict=True) if frozenset(p) in stable
    }
    assert found == pytest.approx(expected)
    matrix, nodes = model.fitted_.selection_frequency, [c.name for c in model.schema_.nodes]
    for (a, b), f in zip(PAIRS, by_lam[index], strict=True):
        assert matrix[nodes.index(a), nodes.index(b)] == matrix[nodes.index(b), nodes.index(a)] == f


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
def test_frequencies_are_those_of_the_chosen_lam_when_the_path_grows(table):
    """The grid comes in parts of ten; the choice may be the last lam of a part before."""
    for select in (mg.StARS(n_subsamples=6), mg.StabilitySelection(n_subsamples=6)):
        for n_lams in (40, 41, 43, 46, 50):
            options = {"n_lams": n_lams, "random_state": 1}
            model = Model(select=select, **options).fit(table)
            alone = Model(select=select, lams=[model.lam_], random_state=1).fit(table)
            np.testing.assert_array_equal(
                model.fitted_.selection_frequency, alone.fitted_.selection_frequency
            )


def test_the_stable_edges_are_estimated_alone(table):
    """The same as a fit at that lam in which every other edge is forbidden."""
    select = mg.StabilitySelection(n_subsamples=10, max_false=1.0)
    model = Model(select=select, random_state=4, tol=1e-8, refit=False).fit(table)
    kept = {frozenset((e.source, e.target)) for e in model.edges_}
    others = [pair for pair in PAIRS if frozenset(pair) not in kept]
    twin = Model(lam=model.lam_, forbid=others, tol=1e-8).fit(table)
    assert_same_params(model.params_, twin.params_, atol=1e-5)
    assert model.objective_ == pytest.approx(twin.objective_, abs=1e-8)
    assert model.converged_
    assert kept < {frozenset(pair) for pair in model.path_.edges(len(model.path_) - 1)}


@pytest.mark.parametrize(
    ("threshold", "n_subsamples", "selected", "n_pairs", "expected"),
    [
        (0.75, 100, 10.0, 100, 1.0 / (2 * (0.5 - 0.01))),
        (0.6, 100, 5.0, 100, 0.25 / (2 * (0.2 - 0.01))),
        (0.9, 100, 10.0, 100, 4 * (0.1 + 0.01) / 1.02),
        (1.0, 20, 10.0, 100, 4 * 0.05 / 1.1),
        # Less than 1/2 + 1/B can be reached, so only the worst case is proven.
        (0.51, 40, 10.0, 100, 1.0 / 0.02),
        # From a share of 1 / sqrt(3) on only the worst case is proven.
        (0.9, 100, 60.0, 100, 36.0 / 0.8),
    ],
)
def test_the_unimodal_bound(threshold, n_subsamples, selected, n_pairs, expected):
    """Theorem 2 of Shah and Samworth: C(threshold, B) q^2 / P with B pairs of halves."""
    criterion = mg.StabilitySelection(threshold=threshold, n_subsamples=n_subsamples)
    found = criterion.expected_false(np.array([selected]), n_pairs)
    assert found[0] == pytest.approx(expected, rel=1e-12)


def test_the_unimodal_bound_is_never_above_the_worst_case():
    q = np.linspace(0, 100, 201)
    for threshold in (0.51, 0.6, 0.75, 0.76, 0.9, 1.0):
        options = {"threshold": threshold, "n_subsamples": 40}
        worst = mg.StabilitySelection(bound="worst-case", **options).expected_false(q, 100)
        np.testing.assert_allclose(worst, q**2 / ((2 * threshold - 1) * 100))
        assert (mg.StabilitySelection(**options).expected_false(q, 100) <= worst + 1e-12).all()


@pytest.mark.statistical
def test_the_bound_holds_for_noise():
    """Columns of noise: every stable edge is false.  Fixed seeds; 1 per table is allowed."""
    counts = []
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(100, 12))
        select = mg.StabilitySelection(threshold=0.6, max_false=1.0, n_subsamples=20)
        counts.append(len(Model(select=select, random_state=seed).fit(X).edges_))
    assert np.mean(counts) <= 1.0


# -- both ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "select", [mg.StARS(n_subsamples=6), mg.StabilitySelection(n_subsamples=6)]
)
def test_a_refit_is_without_shrinkage(table, select):
    options = {"select": select, "random_state": 0}
    model, refit = (Model(refit=flag, **options).fit(table) for flag in (False, True))
    assert [e[:2] for e in sorted(model.edges_)] == [e[:2] for e in sorted(refit.edges_)]
    kept = {frozenset((e.source, e.target)) for e in model.edges_}
    others = [pair for pair in PAIRS if frozenset(pair) not in kept]
    free = [tuple(pair) for pair in kept]
    twin = Model(lam=0.5, require=free, forbid=others, tol=1e-8).fit(table)
    assert_same_params(refit.params_, twin.params_, atol=1e-3)
    assert refit.objective_ == pytest.approx(twin.objective_, abs=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mg.StARS(beta=0.5), "beta must be a number in (0, 0.5). Got 0.5 instead."),
        (lambda: mg.StARS(beta=True), "beta must be a number in (0, 0.5). Got True instead."),
        (lambda: mg.StARS(n_subsamples=1), "n_subsamples must be an integer of at least 2. Got 1"),
        (lambda: mg.StARS(ratio=1.0), "ratio must be a number in (0, 1) or None. Got 1.0"),
        (
            lambda: mg.StabilitySelection(threshold=0.5),
            "threshold must be a number in (0.5, 1]. Got 0.5 instead.",
        ),
        (lambda: mg.StabilitySelection(max_false=0), "max_false must be a positive number. Got 0"),
        (lambda: mg.StabilitySelection(n_subsamples=9), "n_subsamples must be an even number"),
        (lambda: mg.StabilitySelection(bound="best"), "bound must be 'unimodal' or 'worst-case'"),
    ],
)
def test_impossible_options_are_named(make, message):
    with pytest.raises(mg.ParameterError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("select", [mg.StARS(ratio=0.3), mg.StabilitySelection(n_subsamples=20)])
def test_rare_levels_are_counted(select):
    frame = people(200, seed=8)[["height", "group"]]
    frame["rare"] = pd.Categorical(["yes"] * 2 + ["no"] * 198)
    model = Model(select=select, random_state=0).fit(frame)
    notes = [n for n in model.fitted_.report.notes if "'rare' was constant or lacked levels" in n]
    assert len(notes) == 1

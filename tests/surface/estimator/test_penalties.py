"""Refits, required and forbidden edges, factors and row weights, against independent optima."""

import numpy as np
import pytest

import mixedgm as mg
from tests.reference import conic, optimality, plain
from tests.support.people import assert_same_params, numbers, people

LEVELS = (3, 2, 2)
NODES = ["height", "weight", "group", "smoker", "colour"]


@pytest.fixture(scope="module")
def table():
    return people(80, seed=41)


@pytest.fixture(scope="module")
def shrunken(table):
    return mg.MixedGraphicalModel(lam=0.25).fit(table)


def pairs(model):
    return {frozenset((edge.source, edge.target)) for edge in model.edges_}


def factor_matrix(by_pair, other=1.0):
    factors = np.full((5, 5), other)
    for (a, b), value in by_pair.items():
        u, v = NODES.index(a), NODES.index(b)
        factors[u, v] = factors[v, u] = value
    return factors


# -- refit -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refitted(table):
    return mg.MixedGraphicalModel(lam=0.25, refit=True, tol=1e-8).fit(table)


def test_a_refit_keeps_the_graph_and_the_lam(shrunken, refitted):
    assert pairs(refitted) == pairs(shrunken)
    assert 0 < len(pairs(refitted)) < 10
    assert refitted.lam_ == shrunken.lam_ == 0.25


def test_other_edges_are_exactly_zero(refitted):
    params = refitted.params_
    for u, v in plain.pairs(2, 3):
        entries = np.array(plain.block(params, u, v))
        assert entries.any() == (frozenset((NODES[u], NODES[v])) in pairs(refitted))


def test_a_refit_fits_better_and_its_edges_are_heavier(table, shrunken, refitted):
    X, Y = numbers(table)
    loss = plain.smooth(refitted.params_, X, Y)
    assert loss < plain.smooth(shrunken.params_, X, Y) - 1e-3
    assert refitted.objective_ == pytest.approx(loss, rel=1e-10)
    before = {frozenset(e[:2]): e.norm for e in shrunken.edges_}
    assert all(edge.norm > before[frozenset(edge[:2])] for edge in refitted.edges_)


def test_a_refit_is_the_optimum_of_its_graph(table, refitted):
    X, Y = numbers(table)
    free = {tuple(sorted(p, key=NODES.index)): 0.0 for p in pairs(refitted)}
    factors = factor_matrix(free, other=np.inf)
    exact = conic.solve(X, Y, LEVELS, 1.0, factors=factors)
    assert refitted.objective_ == pytest.approx(exact.value, abs=1e-8)
    assert_same_params(refitted.params_, exact, atol=2e-3)
    found = optimality.certificate(refitted.params_, X, Y, 1.0, factors.tolist())
    assert refitted.kkt_ <= 1e-8
    assert found.kkt <= 1e-7
    assert refitted.fitted_.report.refitted
    assert refitted.fitted_.report.ridge == ()


def test_a_refit_follows_the_selection(table):
    """Graphs are scored with a ridge on pairs of categories; the chosen one can do without."""
    options = {"select": "ebic", "n_lams": 10}
    shrunken = mg.MixedGraphicalModel(refit=False, **options).fit(table)
    again = mg.MixedGraphicalModel(**options).fit(table)
    assert again.lam_ == shrunken.lam_
    assert pairs(again) == pairs(shrunken)
    X, Y = numbers(table)
    free = {tuple(sorted(p, key=NODES.index)): 0.0 for p in pairs(again)}
    given = X, Y, LEVELS, 1.0, "calibrated", factor_matrix(free, other=np.inf)
    exact, ridged = conic.solve(*given), conic.solve(*given, ridge=1.0)
    k = int(np.flatnonzero(again.path_.lams == again.lam_)[0])
    loss = again.fitted_.scores["refit_loss"][k]
    assert again.objective_ == pytest.approx(exact.value, abs=1e-6)
    assert loss == pytest.approx(ridged.value - ridged.added, abs=1e-6)
    assert loss > exact.value + 1e-4


def test_free_groups_are_centred_after_a_refit(refitted):
    """No penalty settles the sums over levels; they are zero by choice."""
    params = refitted.params_
    starts = [0, 3, 5, 7]
    for a, b in zip(starts[:-1], starts[1:], strict=True):
        np.testing.assert_allclose(params.category_shift[:, a:b].sum(axis=1), 0, atol=1e-8)
        np.testing.assert_allclose(params.cat_interaction[a:b].sum(axis=0), 0, atol=1e-8)


# -- required, forbidden, weighted edges -----------------------------------------------------------


def test_required_is_present_even_in_an_empty_graph(table):
    model = mg.MixedGraphicalModel(lam=3.0, require=[("weight", "colour")]).fit(table)
    assert pairs(model) == {frozenset(("weight", "colour"))}


def test_forbidden_is_absent_even_without_penalty(table):
    forbid = [("group", "height"), ("smoker", "colour")]
    model = mg.MixedGraphicalModel(lam=0.0, forbid=forbid).fit(table)
    assert len(pairs(model)) == 8
    assert not pairs(model) & {frozenset(pair) for pair in forbid}
    assert not model.interaction("height", "group").to_numpy().any()


def test_required_and_forbidden_hold_along_a_whole_path(table):
    model = mg.MixedGraphicalModel(
        require=[("height", "colour")], forbid=[("weight", "height")], n_lams=8
    ).fit(table)
    for k in range(len(model.path_)):
        edges = set(model.path_.edges(k))
        assert ("height", "colour") in edges
        assert ("height", "weight") not in edges
    assert model.path_.n_edges[0] == 1


@pytest.mark.parametrize(
    "factors",
    [
        {("height", "weight"): 0.0, ("group", "smoker"): np.inf},
        {("weight", "height"): 0.3, ("smoker", "group"): 2.5, ("height", "colour"): 0.5},
    ],
)
def test_factors_give_the_optimum_of_the_conic_solver(table, factors):
    X, Y = numbers(table)
    exact = conic.solve(X, Y, LEVELS, 0.15, factors=factor_matrix(factors))
    model = mg.MixedGraphicalModel(lam=0.15, penalty_factors=factors, tol=1e-7).fit(table)
    assert model.objective_ == pytest.approx(exact.value, abs=1e-8)
    assert pairs(model) == {frozenset((NODES[u], NODES[v])) for u, v in exact.edges}


def test_factors_by_kind_and_pair_and_their_readable_face_agree(table):
    by_kind = {"continuous-categorical": np.inf, ("height", "group"): 1.0}
    forbid = [(x, y) for x in NODES[:2] for y in NODES[2:] if (x, y) != ("height", "group")]
    one = mg.MixedGraphicalModel(lam=0.1, penalty_factors=by_kind).fit(table)
    two = mg.MixedGraphicalModel(lam=0.1, forbid=forbid).fit(table)
    assert_same_params(one.params_, two.params_)
    zero = {("height", "weight"): 0.0}
    one = mg.MixedGraphicalModel(lam=0.1, penalty_factors=zero).fit(table)
    two = mg.MixedGraphicalModel(lam=0.1, require=[["weight", "height"]]).fit(table)
    assert_same_params(one.params_, two.params_)


def test_a_common_factor_is_a_change_of_lam(table):
    kinds = ("continuous-continuous", "continuous-categorical", "categorical-categorical")
    one = mg.MixedGraphicalModel(lam=0.1, penalty_factors=dict.fromkeys(kinds, 2.0), tol=1e-9)
    two = mg.MixedGraphicalModel(lam=0.2, tol=1e-9)
    assert_same_params(one.fit(table).params_, two.fit(table).params_, atol=1e-7)


# -- row weights -----------------------------------------------------------------------------------


def test_weight_two_for_all_changes_only_the_count(table):
    one = mg.MixedGraphicalModel(lam=0.1, tol=1e-9).fit(table)
    two = mg.MixedGraphicalModel(lam=0.1, tol=1e-9).fit(table, sample_weight=np.full(80, 2.0))
    assert_same_params(one.params_, two.params_, atol=1e-8)
    assert two.objective_ == pytest.approx(one.objective_, abs=1e-12)
    report = two.fitted_.report
    assert (report.total_weight, report.n_rows) == (160.0, 80)


@pytest.mark.parametrize(
    "options", [{"lam": 0.1}, {"n_lams": 8, "select": "ebic"}, {"lam": 0.1, "refit": True}]
)
def test_whole_weights_are_repetition(table, options):
    weights = np.random.default_rng(0).integers(0, 3, len(table))
    one = mg.MixedGraphicalModel(tol=1e-9, **options).fit(table, sample_weight=weights)
    repeated = table.loc[table.index.repeat(weights)]
    two = mg.MixedGraphicalModel(tol=1e-9, **options).fit(repeated)
    assert_same_params(one.params_, two.params_, atol=1e-6)
    assert one.lam_ == pytest.approx(two.lam_, rel=1e-12)
    assert one.objective_ == pytest.approx(two.objective_, abs=1e-10)
    assert pairs(one) == pairs(two)
    assert one.fitted_.report.total_weight == weights.sum() == two.fitted_.report.total_weight
    if "n_lams" in options:
        np.testing.assert_allclose(
            one.fitted_.scores["ebic"], two.fitted_.scores["ebic"], rtol=1e-5
        )


def test_weights_far_from_the_number_of_rows_are_pointed_out(table):
    with pytest.warns(mg.TableWarning, match="sample_weight sums to 8 over 80 rows"):
        mg.MixedGraphicalModel(lam=0.1).fit(table, sample_weight=np.full(80, 0.1))


def test_a_row_of_weight_zero_is_not_there(table):
    weights = np.ones(80)
    weights[:5] = 0
    spoilt = table.copy()
    spoilt.loc[:4, "height"] = [np.nan, np.inf, 1e9, -1e9, 0.0]
    one = mg.MixedGraphicalModel(lam=0.1).fit(spoilt, sample_weight=weights)
    two = mg.MixedGraphicalModel(lam=0.1).fit(table.iloc[5:])
    assert_same_params(one.params_, two.params_, atol=1e-9)

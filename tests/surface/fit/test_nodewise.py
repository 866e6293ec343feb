"""loss="nodewise" through the estimator: rules, files, scores, and what it does not claim."""

from dataclasses import replace

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import people
from tests.support.subsamples import halves

LAM = 0.03


@pytest.fixture(scope="module")
def table():
    return people(300, seed=3)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=LAM, loss="nodewise").fit(table)


def pairs(model):
    return {frozenset(edge[:2]) for edge in model.edges_}


def test_rules_ask_both_regressions_or_either(table, model):
    either = mg.MixedGraphicalModel(lam=LAM, loss="nodewise", rule="or").fit(table)
    names = [node.name for node in model.schema_.nodes]
    says = {
        (names[u], names[v])
        for u in range(len(names))
        for v in range(len(names))
        if u != v and np.any(model.params_.says(u, v))
    }
    both = {frozenset(pair) for pair in says if pair[::-1] in says}
    assert pairs(model) == both
    assert pairs(either) == {frozenset(pair) for pair in says}
    assert pairs(model) < pairs(either), "the rules should differ on this table"
    assert model.path_.n_edges.tolist() == [len(both)]


def test_an_edge_weighs_as_much_as_the_mean_of_both_regressions(model):
    params = model.params_
    evened = replace(
        model.fitted_, params=replace(params, coef=0.5 * (params.coef + params.coef.T))
    )
    there = model.fitted_.edge_norms > 0.0
    assert there.any()
    assert not np.allclose(params.coef, params.coef.T)
    expected = model.fitted_.edge_norms[there]
    np.testing.assert_allclose(evened.edge_norms[there], expected, rtol=1e-12)


def test_every_column_is_the_conditional_model_of_that_column(table, model):
    """One target, all others covariates: the same regression, with half the weight at twice lam."""
    for name in ("height", "group"):
        others = [column for column in table.columns if column != name]
        alone = mg.MixedGraphicalModel(lam=2 * LAM, covariates=others, tol=1e-8).fit(table)
        tight = mg.MixedGraphicalModel(lam=LAM, loss="nodewise", tol=1e-8).fit(table)
        assert alone.node_scores(table)[name] == pytest.approx(tight.node_scores(table)[name])


def test_scores_are_comparable_and_models_are_kept(table, model, tmp_path):
    joint = mg.MixedGraphicalModel(lam=2 * LAM).fit(table)
    assert list(model.node_scores(table)) == list(joint.node_scores(table))
    assert model.score(table) == pytest.approx(joint.score(table), abs=0.2)
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    assert again.edges_ == model.edges_
    assert again.score(table) == model.score(table)
    assert again.path_.n_edges.tolist() == model.path_.n_edges.tolist()
    np.testing.assert_array_equal(again.params_.coef, model.params_.coef)


def test_no_joint_distribution_is_claimed(model):
    for ask in (lambda: model.sample(2), lambda: model.marginal(["group"])):
        with pytest.raises(mg.DistributionError, match="no joint distribution"):
            ask()


def test_the_rule_is_for_separate_regressions_only(table):
    with pytest.raises(mg.ParameterError, match="rule='or' is for separate regressions"):
        mg.MixedGraphicalModel(rule="or").fit(table)
    with pytest.raises(mg.ParameterError, match="'and' or 'or'"):
        mg.MixedGraphicalModel(loss="nodewise", rule="xor").fit(table)


@pytest.mark.filterwarnings("ignore:the choice .* near the end:mixedgm.SelectionWarning")
@pytest.mark.parametrize("rule", ["and", "or"])
@pytest.mark.parametrize("covariates", [None, ["weight", "group"]])
def test_subsamples_count_edges_by_the_rule(table, rule, covariates):
    """Frequencies are those of the edges of half-samples, which are fitted here one by one."""
    select = mg.StabilitySelection(n_subsamples=6, max_false=8, threshold=0.8)
    options = {"loss": "nodewise", "rule": rule, "covariates": covariates}
    found = mg.MixedGraphicalModel(
        select=select, lams=[0.3, 0.1, 0.05], random_state=0, n_jobs=1, **options
    ).fit(table)
    count = np.zeros((5, 5))
    for rows in halves(len(table), 6, random_state=0):
        half = mg.MixedGraphicalModel(lam=found.lam_, **options).fit(table.iloc[rows])
        there = half.fitted_.edge_norms > 0.0
        count += there
    np.testing.assert_allclose(found.fitted_.selection_frequency, count / 6)
    stable = {frozenset(pair) for pair in np.argwhere(np.triu(count / 6 >= 0.8)).tolist()}
    at = found.schema_.node_index
    assert {frozenset(at(name) for name in edge[:2]) for edge in found.edges_} == stable
    assert stable
    n_pairs = 10 if covariates is None else 9
    assert found.fitted_.scores["stability_selected"][-1] <= n_pairs


def test_instability_is_a_mean_over_edges(table):
    options = {"loss": "nodewise", "lams": [0.3, 0.1, 0.05], "random_state": 0, "n_jobs": 1}
    found = mg.MixedGraphicalModel(select=mg.StARS(n_subsamples=4), **options).fit(table)
    raw = found.fitted_.scores["stars_raw"]
    k = found.path_.lams.tolist().index(found.lam_)
    share = found.fitted_.selection_frequency[np.triu_indices(5, 1)]
    assert raw[k] == pytest.approx((2 * share * (1 - share)).mean())


def test_every_copy_of_an_edge_is_priced_once(table):
    """A copy is in one conditional, so its gain is that of one likelihood."""
    options = {"select": "ebic", "n_lams": 12, "covariates": ["colour"]}
    model = mg.MixedGraphicalModel(loss="nodewise", **options).fit(table)
    scores, path, n = model.fitted_.scores, model.path_, len(table)
    parameters = {"height": 1, "weight": 1, "group": 2, "smoker": 1, "colour": 1}
    for k, point in enumerate(path.points):
        names = [[path.schema.nodes[u].name for u in pair] for pair in path.layout.pairs]
        df = sum(parameters[a] * parameters[b] for a, b in np.array(names)[point.groups])
        price = df * np.log(n) + 2 * len(point.groups) * np.log(5)
        assert scores["degrees_of_freedom"][k] == df
        assert scores["ebic"][k] == pytest.approx(2 * n * scores["refit_loss"][k] + price)


@pytest.mark.parametrize("select", ["ebic", "cv"])
def test_the_penalty_is_chosen_on_its_own_path(table, select):
    chosen = mg.MixedGraphicalModel(loss="nodewise", select=select, random_state=0).fit(table)
    joint = mg.fit_path(table, n_lams=2)
    assert chosen.converged_
    assert chosen.path_.lam_max == pytest.approx(0.5 * joint.lam_max, rel=1e-9)
    n = len(table.columns)
    assert f"of {n * (n - 1) // 2} possible" in str(chosen.summary())

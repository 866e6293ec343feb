"""Every kind of model through every public method: it answers, or says why it cannot."""

import math

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import CONTINUOUS, LEVELS, as_library, people

GIVEN = ["height", "colour"]
KINDS = {
    "pseudolikelihood": {"lam": 0.1},
    "likelihood": {"lam": 0.05, "loss": "likelihood"},
    "nodewise": {"lam": 0.05, "loss": "nodewise"},
    "nodewise, or": {"lam": 0.05, "loss": "nodewise", "rule": "or"},
    "per node": {"loss": "nodewise", "select": mg.AIC(per_node=True)},
    "conditional": {"lam": 0.1, "covariates": GIVEN},
    "conditional likelihood": {"lam": 0.05, "loss": "likelihood", "covariates": GIVEN},
    "conditional nodewise": {"lam": 0.05, "loss": "nodewise", "covariates": GIVEN},
    "conditional per node": {
        "loss": "nodewise",
        "select": mg.AIC(per_node=True),
        "covariates": GIVEN,
    },
}
KNOWN = {"height": 0.3, "colour": "red"}


@pytest.fixture(scope="module")
def table():
    return people(250, seed=5)


# Another library meets one of each sort: a joint model, one with covariates, and regressions.
CASES = [(kind, "pandas") for kind in KINDS]
CASES += [(kind, "polars") for kind in ("pseudolikelihood", "conditional", "per node")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def fitted(request, table):
    kind, library = request.param
    rows = as_library(table, library)
    return mg.MixedGraphicalModel(**KINDS[kind], n_jobs=1).fit(rows), rows


def is_nodewise(model):
    return model.loss == "nodewise"


# -- scores ----------------------------------------------------------------------------------------


def own_term(model, node):
    """Bias of a continuous node, or biases of the levels of a categorical one."""
    params, p = model.params_, model.schema_.n_gaussian
    return params.cont_bias[[node]] if node < p else params.cat_bias[params.levels_of(node - p)]


def loss_by_hand(model, table, name):
    """Mean negative log density of one column given all others, from the blocks, row by row."""
    nodes, target = [n.name for n in model.schema_.nodes], model.schema_.node_index(name)
    block = model.params_.says if is_nodewise(model) else model.params_.block
    total = 0.0
    for _, row in table.iterrows():
        eta = own_term(model, target).copy()
        for u, other in enumerate(nodes):
            if u == target:
                continue
            if other in CONTINUOUS:
                eta += row[other] * block(u, target)[0]
            else:
                eta += block(u, target)[LEVELS[other].index(row[other])]
        if name in CONTINUOUS:
            precision = model.params_.precision[target, target]
            error = row[name] - eta[0] / precision
            total += 0.5 * (math.log(2 * math.pi / precision) + precision * error**2)
        else:
            total += np.log(np.exp(eta).sum()) - eta[LEVELS[name].index(row[name])]
    return total / len(table)


def test_scores_are_the_log_densities_of_columns_given_the_others(fitted, table):
    """One scale for all kinds of models, so that they can be compared column by column."""
    model, rows = fitted
    scores = model.node_scores(rows)
    assert list(scores) == [n for n in table.columns if n not in (model.covariates or ())]
    for name, score in scores.items():
        assert score == pytest.approx(loss_by_hand(model, table, name), rel=1e-9)
    assert model.score(rows) == pytest.approx(-sum(scores.values()))


# -- all that there is -----------------------------------------------------------------------------


def test_graphs_are_shown_and_kept(fitted, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    model, rows = fitted
    assert "Edges" in str(model.summary())
    assert model.summary()._repr_html_()
    columns = dict(zip(model.edges().columns, range(99), strict=False))
    assert ("directed" in columns) == bool(model.covariates)
    assert len(model.edges()) == len(model.edges_) == model.to_networkx().number_of_edges()
    assert model.to_adjacency(signed=True).shape[0] == 5
    for name in ("graph.graphml", "graph.json", "graph.csv"):
        model.export(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    model.plot(predictability=rows)
    model.plot_path()
    model.plot_parameters()
    plt.close("all")
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    assert again.edges_ == model.edges_
    assert again.path_.n_edges.tolist() == model.path_.n_edges.tolist()
    assert again.node_scores(rows) == model.node_scores(rows)


def test_columns_are_predicted_and_covariates_are_not(fitted, table):
    model, rows = fitted
    targets = [name for name in table.columns if name not in (model.covariates or ())]
    assert list(model.predict(rows).columns) == targets
    assert list(model.predictability(rows)["column"]) == targets
    assert model.predict_proba(rows, "group").shape == (250, 3)
    if model.covariates:
        with pytest.raises(mg.ParameterError, match="'colour' is a covariate"):
            model.predict_proba(rows, "colour")


def test_resamples_and_groups(fitted, table):
    model, rows = fitted
    found = mg.bootstrap(model, rows, n_boot=3, random_state=0, n_jobs=1)
    strengths = dict(
        zip(zip(*ends(found), strict=True), found.selection()["strength"], strict=True)
    )
    for edge in model.edges_:
        assert strengths[edge[:2]] == pytest.approx(edge.strength, rel=1e-6)
    options = {name: value for name, value in model.get_params(deep=False).items() if name != "lam"}
    site = np.arange(250) % 2
    again = mg.compare(rows, site, lam=model.lam, n_perm=1, **(options | {"random_state": 0}))
    assert len(again.edges()) > 0


def ends(found):
    frame = found.selection()
    return list(frame["source"]), list(frame["target"])


# -- distributions ---------------------------------------------------------------------------------


def questions(model, rows, given):
    yield lambda: model.sample(3, given, random_state=0)
    yield lambda: model.conditional(["group"], given or {"smoker": True})
    yield lambda: model.mean(given)
    yield lambda: model.expectation(lambda frame: frame["weight"], given, random_state=0)
    yield lambda: model.entropy("group", given)
    yield lambda: model.mutual_information("group", "smoker", given)
    yield lambda: model.condition(given or {"smoker": True})
    yield lambda: model.log_density(rows)
    yield lambda: model.log_likelihood(rows)
    yield lambda: model.repaired()
    yield lambda: model.check_fit(rows, refit=False, n_sim=20, random_state=0)


def test_a_distribution_is_asked_or_the_error_says_why_there_is_none(fitted):
    model, rows = fitted
    for ask in questions(model, rows, KNOWN if model.covariates else None):
        if not is_nodewise(model):
            ask()
            continue
        with pytest.raises(mg.DistributionError, match="no joint distribution") as error:
            ask()
        assert "fit with another loss, such as 'pseudolikelihood'" in str(error.value)


def test_regressions_say_so_before_they_ask_for_covariates(table):
    model = mg.MixedGraphicalModel(**KINDS["conditional nodewise"]).fit(table)
    holes = table.astype({"weight": float})
    holes.loc[3, "weight"] = np.nan
    for ask in (
        lambda: model.marginal(["group"]),
        lambda: model.log_partition(),
        lambda: model.sample(2),
        lambda: model.impute(holes),
    ):
        with pytest.raises(mg.DistributionError, match="separate regressions have no joint"):
            ask()


# -- the check given covariates --------------------------------------------------------------------


def test_a_right_model_passes_the_check_given_covariates():
    """Covariates far from what any model of them would draw; the rest follows the model."""
    rng = np.random.default_rng(3)
    table = people(600, seed=4)
    table["height"] = np.exp(rng.normal(size=600)) + 5.0 * (np.arange(600) % 2)
    table["weight"] = 2.0 * table["height"] + rng.normal(size=600)
    model = mg.MixedGraphicalModel(covariates=["height"], refit=True).fit(table)
    found = model.check_fit(table, n_sim=60, random_state=0)
    assert not found.flagged
    assert "height" not in set(found.nodes()["column"])
    assert {"height"} < set(found.pairs()["source"]) | set(found.pairs()["target"])
    weighted = model.check_fit(table, sample_weight=np.full(600, 0.5), n_sim=20, random_state=0)
    assert weighted.n_rows == 300


def test_a_wrong_model_fails_the_check_given_covariates():
    """`weight` depends on the covariate, and the model may not know."""
    table = people(600, seed=4)
    options = {"covariates": ["height"], "forbid": [("height", "weight")], "refit": True}
    found = mg.MixedGraphicalModel(**options).fit(table).check_fit(table, n_sim=60, random_state=0)
    assert ("height", "weight") in found.flagged


# -- pictures of covariates ------------------------------------------------------------------------


def test_covariates_are_white_and_arrows_lead_from_them(table):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import same_color
    from matplotlib.patches import FancyArrowPatch

    model = mg.MixedGraphicalModel(**KINDS["conditional"]).fit(table)
    ax = model.plot().ax
    directed = [edge for edge in model.edges_ if edge.directed]
    heads = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    assert 0 < len(heads) == len(directed) < len(model.edges_)
    faces = {c.get_label(): c.get_facecolor()[0] for c in ax.collections if len(c.get_facecolor())}
    assert same_color(faces["continuous covariate"], "white")
    assert not same_color(faces["continuous"], "white")
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"continuous covariate", "categorical covariate"} <= set(legend)
    text = str(model.summary())
    assert sum("->" in line for line in text.splitlines()) == len(directed)
    assert "&rarr;" in model.summary()._repr_html_()
    graph = model.to_networkx()
    assert {edge[:2]: graph.edges[edge[:2]]["directed"] for edge in directed} == {
        edge[:2]: True for edge in directed
    }
    matrix = model.plot_parameters().images[0].get_array()
    assert matrix.mask[0, 0]
    plt.close("all")


def test_without_covariates_nothing_is_directed(table):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch

    model = mg.MixedGraphicalModel(lam=0.1).fit(table)
    assert not [p for p in model.plot().ax.patches if isinstance(p, FancyArrowPatch)]
    assert "->" not in str(model.summary())
    plt.close("all")

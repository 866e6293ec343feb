"""Every kind of column through every public method of models and of their results.

A method that is new has no entry here, and the first test fails: add one, or say why there is none.
"""

import inspect
import json
import math
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.cli import main
from tests.support.command_line import command_names
from tests.support.patients import (
    KIND,
    PAIN,
    TYPES,
    chances,
    gaussian,
    log_density,
    median_with_zeros,
    patients,
    score_of,
    seen,
    values_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::mixedgm.SamplingWarning")

N_ROWS = 300
SCORED = [name for name, kind in KIND.items() if kind in ("ordinal", "count")]
DISCRETE = [name for name, kind in KIND.items() if kind != "continuous"]

EXEMPT = {
    "model.get_params": "scikit-learn's: options, not columns",
    "model.set_params": "scikit-learn's: options, not columns",
    "model.get_metadata_routing": "scikit-learn's",
    "model.set_fit_request": "scikit-learn's",
    "model.set_score_request": "scikit-learn's",
    "model.set_predict_request": "scikit-learn's",
    "model.set_predict_proba_request": "scikit-learn's",
    "imputer.get_params": "scikit-learn's: options, not columns",
    "imputer.set_params": "scikit-learn's: options, not columns",
    "imputer.set_output": "scikit-learn's",
    "imputer.get_metadata_routing": "scikit-learn's",
    "imputer.set_fit_request": "scikit-learn's",
    "draws.of": "internal: makes the report",
    "path.of": "internal: makes the path",
    "path.held_out_loss": "internal: for criteria",
    "path.losses": "internal: for criteria",
}
ASKED = {}


def asks(*names):
    """Register what is asserted about a method: "class.method"."""

    def register(function):
        ASKED.update(dict.fromkeys(names, function))
        return function

    return register


def public_methods(cls):
    members = inspect.getmembers(cls, lambda member: callable(member) or hasattr(member, "fget"))
    return {
        name
        for name, member in members
        if not name.startswith("_") and (callable(member) and not inspect.isclass(member))
    }


@pytest.fixture(scope="module")
def table():
    return patients(N_ROWS, seed=1)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(types=TYPES, lams=[0.3, 0.15, 0.06], select="bic").fit(table)


@pytest.fixture(scope="module")
def plain(table):
    """Without the hurdle column: exact joint answers."""
    return table.drop(columns="debt")


@pytest.fixture(scope="module")
def exact(plain):
    options = {"types": without_debt(TYPES), "lams": [0.3, 0.15, 0.06], "select": "bic"}
    return mg.MixedGraphicalModel(**options).fit(plain)


def without_debt(mapping):
    return {name: value for name, value in mapping.items() if name != "debt"}


MODELS = {
    "pseudolikelihood": {"lam": 0.08},
    "likelihood": {"lam": 0.08, "loss": "likelihood", "columns": ["age", "pain", "visits", "ward"]},
    "nodewise": {"lam": 0.08, "loss": "nodewise"},
    "per node": {"loss": "nodewise", "select": mg.AIC(per_node=True)},
    "conditional": {"lam": 0.08, "covariates": ["grade", "falls", "ward"]},
    "scores and terms": {
        "lam": 0.08,
        "types": {
            "pain": mg.Ordinal(scores=[0, 1, 4, 6]),
            "grade": mg.Ordinal(thresholds="quadratic"),
            "visits": mg.Count(zero_term=True),
            "falls": mg.Count(largest=60),
            "debt": "hurdle",
        },
    },
}


@pytest.fixture(scope="module", params=MODELS)
def each(request, table):
    """Every kind of model, and every option of a column."""
    options = dict(MODELS[request.param])
    names = options.pop("columns", list(table.columns))
    types = {name: kind for name, kind in TYPES.items() if name in names}
    return mg.MixedGraphicalModel(**{"types": types} | options, n_jobs=1).fit(table[names])


@pytest.fixture(scope="module")
def rows(table):
    return table.iloc[:12]


@pytest.fixture
def axes():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def records(rows):
    return rows.astype({"pain": object, "ward": object}).to_dict("records")


def column(model, name):
    return model.schema_.nodes[model.schema_.node_index(name)]


def edge_between(model, a, b):
    return next(edge for edge in model.edges_ if {edge.source, edge.target} == {a, b})


def test_every_public_method_is_asked(exact, checked):
    classes = {
        "model": mg.MixedGraphicalModel,
        "imputer": mg.MixedImputer,
        "check": type(checked),
        "bootstrap": mg.Bootstrap,
        "tests": mg.EdgeTests,
        "groups": mg.GroupComparison,
        "distribution": mg.Distribution,
        "means": type(exact.mean()),
        "discrepancy": type(exact.joint_discrepancy()),
        "draws": type(exact.sample(2, random_state=0, report=True)[1]),
        "summary": type(exact.summary().values),
        "consistency": mg.diagnostics.Consistency,
        "path": mg.Path,
    }
    methods = {f"{key}.{m}" for key, cls in classes.items() for m in public_methods(cls)}
    assert methods == ASKED.keys() | EXEMPT.keys()
    assert not ASKED.keys() & EXEMPT.keys()


# -- the graph -------------------------------------------------------------------------------------


@asks("model.fit", "model.describe", "model.edges", "model.nodes")
def test_edges_and_nodes_tell_kinds(model):
    assert {name: column(model, name).kind for name in KIND} == KIND
    assert model.converged_
    assert model.describe("age", "pain").startswith("age")
    frame = model.edges()
    order = ["continuous", "hurdle", "ordinal", "count", "categorical"]
    for row in frame.itertuples():
        kinds = sorted((KIND[row.source], KIND[row.target]), key=order.index)
        assert row.kind == "-".join(kinds)
        if "debt" in (row.source, row.target) and "ward" not in (row.source, row.target):
            entries = model.interaction("debt", ({row.source, row.target} - {"debt"}).pop())
            signs = set(np.sign(entries.to_numpy()[:, -1]))
            assert row.sign == {1.0: "+", -1.0: "-"}[signs.pop()] if len(signs) == 1 else None
            continue
        assert (row.sign in ("+", "-")) == ("ward" not in (row.source, row.target))
    signs = {
        ("age", "pain"): "+",
        ("pain", "visits"): "+",
        ("visits", "smoker"): "+",
        ("age", "grade"): "-",
        ("dose", "falls"): "-",
        ("age", "debt"): "+",
    }
    for pair, sign in signs.items():
        assert edge_between(model, *pair).sign == sign
    nodes = model.nodes().set_index("column")
    assert nodes.loc["pain", "levels"] == ", ".join(PAIN)
    assert nodes.loc["visits", "levels"] == f"0 to {column(model, 'visits').largest}"
    assert nodes.loc[["age", "debt"], "n_levels"].tolist() == [0, 0]


@asks("model.interaction")
def test_interactions_have_one_parameter_where_columns_are_ordered(model, table):
    for a, b in product(KIND, KIND):
        if a == b:
            continue
        block = model.interaction(a, b)
        shape = tuple({"ward": 3, "smoker": 2, "debt": 2}.get(n, 1) for n in (a, b))
        assert block.shape == shape
        np.testing.assert_allclose(block.to_numpy(), model.interaction(b, a).to_numpy().T)
    block = model.interaction("pain", "ward")
    assert block.index.tolist() == ["pain"]
    assert block.columns.tolist() == ["east", "north", "west"]
    # The norm of an edge is the standardised parameter where both columns are numbers to others.
    for a, b in [("age", "pain"), ("pain", "visits")]:
        block = model.interaction(a, b, standardised=True)
        assert abs(block.iloc[0, 0]) == pytest.approx(edge_between(model, a, b).norm)
    spread = {
        name: np.std([score_of(column(model, name), v) for v in table[name]]) for name in SCORED
    }
    parameter = model.interaction("pain", "visits").iloc[0, 0]
    assert edge_between(model, "pain", "visits").norm == pytest.approx(
        parameter * spread["pain"] * spread["visits"]
    )
    # A hurdle column has two, whether and how much, which are not correlated in the table.
    debt, age = table["debt"], table["age"]
    amount = np.where(debt != 0, debt - debt[debt != 0].mean(), 0.0)
    assert np.corrcoef(debt != 0, amount)[0, 1] == pytest.approx(0.0, abs=1e-12)
    block = model.interaction("debt", "age")
    assert block.index.tolist() == ["debt != 0", "debt"]
    units = np.array([np.std(debt != 0), np.std(amount)]) * np.std(age)
    scaled = model.interaction("debt", "age", standardised=True).iloc[:, 0]
    np.testing.assert_allclose(scaled, block.iloc[:, 0] * units)
    norm = edge_between(model, "age", "debt").norm
    assert norm == pytest.approx(math.sqrt(2) * np.linalg.norm(scaled))


@asks("model.summary")
def test_the_summary_names_kinds(model):
    text = str(model.summary())
    assert "2 ordinal (4 to 5 levels)" in text
    assert "2 count" in text
    assert "1 hurdle" in text
    assert any("ordinal-count" in line for line in text.splitlines())
    html = model.summary()._repr_html_()
    assert "ordinal (levels): pain (4), grade (5)" in html
    assert "count: visits, falls" in html
    assert "hurdle: debt" in html
    assert "no sign: a categorical column" in html


@asks("model.to_networkx", "model.to_adjacency", "model.export")
def test_exports_hold_kinds_levels_in_order_and_signs(model, tmp_path):
    nx = pytest.importorskip("networkx")
    graph = model.to_networkx()
    assert dict(graph.nodes(data="kind")) == KIND
    assert json.loads(graph.nodes["pain"]["levels"]) == PAIN
    assert graph.nodes["visits"]["largest"] == column(model, "visits").largest
    matrix = model.to_adjacency(signed=True)
    assert matrix.loc["age", "grade"] == -edge_between(model, "age", "grade").strength
    assert matrix.loc["pain", "visits"] == edge_between(model, "pain", "visits").strength
    for name in ("graph.graphml", "graph.json", "graph.csv"):
        model.export(tmp_path / name)
    again = nx.read_graphml(tmp_path / "graph.graphml")
    assert again.nodes["falls"]["kind"] == "count"
    told = json.loads((tmp_path / "graph.json").read_text())
    by_name = {entry["column"]: entry for entry in told["nodes"]}
    assert list(by_name["pain"]["bias"]) == PAIN
    assert list(by_name["visits"]["bias"]) == ["score", "score^2"]
    assert list(by_name["debt"]["bias"]) == ["not zero", "linear", "precision"]
    pair = next(e for e in told["edges"] if {e["source"], e["target"]} == {"pain", "visits"})
    value = model.interaction("pain", "visits").iloc[0, 0]
    assert pair["parameters"]["values"] == [[pytest.approx(value)]]
    stored = pd.read_csv(tmp_path / "graph.csv")
    assert stored["kind"].tolist() == model.edges()["kind"].tolist()


@asks("model.save")
def test_files_keep_every_kind(model, rows, tmp_path):
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    assert again.schema_ == model.schema_
    assert again.edges_ == model.edges_
    assert again.node_scores(rows) == model.node_scores(rows)


@asks("model.report", "model.view")
def test_reports_show_kinds(model, rows, tmp_path):
    model.report(tmp_path / "report.html", rows, check=False)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    content = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    shown = json.loads(content[1])
    kinds = {node["name"]: node["kind"] for node in shown["graph"]["nodes"]}
    assert kinds == {node.name: node.kind for node in model.schema_.nodes}
    assert "sandbox" in model.view()._repr_html_()


@asks("model.plot", "model.plot_path", "model.plot_selection", "model.plot_parameters")
def test_pictures_show_kinds(model, rows, axes):
    from matplotlib.collections import LineCollection
    from matplotlib.colors import same_color

    ax = model.plot(predictability=rows).ax
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[:5] == ["continuous", "hurdle", "ordinal", "count", "categorical"]
    drawn = {c.get_label(): c for c in ax.collections}
    points = {kind: drawn[kind].get_paths()[0].vertices.round(6).tolist() for kind in names[:5]}
    assert len({str(shape) for shape in points.values()}) == 5
    fills = [tuple(drawn[kind].get_facecolor()[0]) for kind in names[:5]]
    assert len(set(fills)) == 5
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    unsigned = sum(same_color(colour[:3], "#009e73") for colour in lines.get_colors())
    assert unsigned == sum(edge.sign is None for edge in model.edges_)
    path = model.plot_path()
    ends = [line.get_ydata()[-1] for line in path.lines if len(line.get_ydata()) == 3]
    here = max(
        edge.norm
        for edge in mg.MixedGraphicalModel(types=TYPES, lam=model.path_.lams[-1])
        .fit(patients(N_ROWS, seed=1))
        .edges_
    )
    assert max(ends) == pytest.approx(here, rel=1e-4)
    labels = [text.get_text() for text in path.get_legend().get_texts()]
    assert len(labels) == len(set(labels))
    matrix = model.plot_parameters()
    ticks = [text.get_text() for text in matrix.get_yticklabels()]
    nodes = [node.name for node in model.schema_.nodes]
    levels = ["east", "north", "west", "False", "True"]
    assert ticks == [*nodes[:2], "debt != 0", *nodes[2:7], *levels]
    shown = matrix.images[0].get_array()
    at = ticks.index("pain"), ticks.index("visits")
    standardised = model.interaction("pain", "visits", standardised=True).iloc[0, 0]
    assert shown[at] == pytest.approx(standardised)
    assert model.plot_selection().lines


# -- rows ------------------------------------------------------------------------------------------


@asks("model.predict_proba")
def test_probabilities_are_those_of_the_conditionals(each, rows):
    tables = each.predict_proba(rows)
    assert set(tables) == set(DISCRETE) & set(each.schema_.targets)
    for name, found in tables.items():
        assert found.columns.tolist() == [str(value) for value in values_of(column(each, name))]
        for row, chance in zip(records(rows), found.to_numpy(), strict=True):
            expected = chances(each.params_, each.schema_, row, name)
            np.testing.assert_allclose(chance, expected, atol=1e-12)


@asks("model.predict")
def test_predictions_are_modes_medians_and_means(each, rows):
    default = {"pain": "mode", "grade": "mode", "visits": "mean", "falls": "mean"}
    found = {value: each.predict(rows, value=value) for value in (None, "mode", "median", "mean")}
    assert found[None].columns.tolist() == list(each.schema_.targets)
    for (at, row), name in product(enumerate(records(rows)), each.schema_.targets):
        if name not in [*SCORED, "debt"]:
            for value in ("mode", "median", "mean"):
                assert found[value][name].iloc[at] == found[None][name].iloc[at]
        if name in ("age", "dose"):
            mean, _ = gaussian(each.params_, each.schema_, row, name)
            assert found[None][name].iloc[at] == pytest.approx(mean)
            continue
        values = values_of(column(each, name))
        chance = chances(each.params_, each.schema_, row, name)
        if name == "debt":
            mean, variance = gaussian(each.params_, each.schema_, row, name)
            expected = {None: chance[1] * mean, "mean": chance[1] * mean}
            expected["mode"] = mean if chance[1] >= 0.5 else 0.0
            expected["median"] = median_with_zeros(chance[1], mean, variance**0.5)
            for value, number in expected.items():
                assert found[value][name].iloc[at] == pytest.approx(number)
            continue
        if name in ("ward", "smoker"):
            assert found[None][name].iloc[at] == values[chance.argmax()]
            continue
        numbers = [score_of(column(each, name), v) for v in values] if name == "pain" else values
        expected = {
            "mode": values[chance.argmax()],
            "median": values[np.searchsorted(chance.cumsum(), 0.5)],
            "mean": pytest.approx(chance @ numbers),
        }
        for value in (None, *expected):
            assert found[value][name].iloc[at] == expected[value or default[name]]


def test_predictions_have_the_types_of_the_table(model, rows):
    assert model.predict(rows)["pain"].dtype == rows["pain"].dtype
    assert model.predict(rows, value="median").dtypes.equals(rows.dtypes)
    mean = model.predict(rows, value="mean")
    assert {mean[name].dtype for name in SCORED} == {np.dtype(float)}
    alone = model.predict(rows.drop(columns="visits"), "visits", value="mean")
    assert alone.tolist() == mean["visits"].tolist()
    with pytest.raises(mg.ParameterError, match="value must be 'mode', 'median', 'mean' or None"):
        model.predict(rows, value="average")


def test_counts_above_the_largest_are_seen_as_the_largest(model, rows):
    most = column(model, "visits").largest
    far, near = rows.assign(visits=most + 50), rows.assign(visits=most)
    with pytest.raises(mg.TableError, match="visits"):
        model.predict(far)
    found = model.predict(far, unseen="ignore").drop(columns="visits")
    pd.testing.assert_frame_equal(found, model.predict(near).drop(columns="visits"))
    scores = model.node_scores(far), model.node_scores(near)
    assert scores[0].pop("visits") == pytest.approx(math.log(2 * N_ROWS + 1), rel=1e-3)
    assert scores[0] == {name: scores[1][name] for name in scores[0]}


@asks("model.score", "model.node_scores")
def test_scores_are_log_conditionals(each, rows):
    scores = each.node_scores(rows)
    assert list(scores) == list(each.schema_.targets)
    for name, score in scores.items():
        total = 0.0
        for row in records(rows):
            if name in DISCRETE:
                chance = chances(each.params_, each.schema_, row, name)
                value = row[name]
                if name == "debt":
                    value = "not zero" if value else "zero"
                total -= math.log(chance[values_of(column(each, name)).index(value)])
            if name in ("age", "dose") or (name == "debt" and row[name]):
                mean, variance = gaussian(each.params_, each.schema_, row, name)
                total += 0.5 * math.log(2 * math.pi * variance)
                total += 0.5 * (row[name] - mean) ** 2 / variance
        assert score == pytest.approx(total / len(rows), rel=1e-9)
    assert each.score(rows) == pytest.approx(-sum(scores.values()))


@asks("model.predictability")
def test_predictability_is_r2_of_numbers_and_accuracy_of_levels(model, table):
    found = model.predictability(table).set_index("column")
    means = model.predict(table, value="mean")
    for name in ("age", "debt", "grade", "visits", "falls"):
        error = table[name] - means[name]
        expected = 1 - (error**2).sum() / ((table[name] - table[name].mean()) ** 2).sum()
        assert found.loc[name, "r2"] == pytest.approx(expected)
    codes = table["pain"].cat.codes
    expected = 1 - ((codes - means["pain"]) ** 2).sum() / ((codes - codes.mean()) ** 2).sum()
    assert found.loc["pain", "r2"] == pytest.approx(expected)
    assert found["r2"].isna().tolist() == [name in ("ward", "smoker") for name in found.index]
    guesses = model.predict(table)
    for name in ("pain", "grade", "ward", "smoker"):
        accuracy = (guesses[name].astype(object) == table[name].astype(object)).mean()
        assert found.loc[name, "accuracy"] == pytest.approx(accuracy)
    assert found.loc[["visits", "falls"], "accuracy"].isna().all()
    owes = table["debt"] != 0
    right = (model.predict_proba(table, "debt")["not zero"] >= 0.5) == owes
    assert found.loc["debt", "accuracy"] == pytest.approx(right.mean())
    assert found.loc["debt", "majority"] == pytest.approx(max(owes.mean(), 1 - owes.mean()))
    finite = [name for name in DISCRETE if name != "debt"]
    assert found.loc[finite, "deviance_explained"].between(-0.05, 1).all()
    # A count is compared with the same distribution without edges: the truncated Poisson-like one.
    alone = mg.MixedGraphicalModel(types=TYPES, lam=10.0).fit(table)
    assert (
        alone.predictability(table)
        .set_index("column")
        .loc[finite, "deviance_explained"]
        .abs()
        .max()
        < 1e-6
    )


@asks(
    "model.impute",
    "imputer.fit",
    "imputer.transform",
    "imputer.get_feature_names_out",
    "imputer.fit_transform",
)
def test_gaps_are_filled_with_values_of_the_column(exact, plain):
    model, table, types = exact, plain, without_debt(TYPES)
    gappy = table.copy()
    gappy["visits"] = gappy["visits"].astype("Int64")
    gappy["grade"] = gappy["grade"].astype("Int64")
    for at, name in enumerate(("visits", "grade", "pain", "ward", "age")):
        gappy.loc[[at, at + 10], name] = None
    done = model.impute(gappy)
    assert done.notna().all().all()
    assert done.dtypes.equals(gappy.dtypes)
    params = model.fitted_.joint_params
    for at, name in enumerate(("visits", "grade", "pain", "ward")):
        for row in (at, at + 10):
            record = records(table.iloc[[row]])[0]
            values = values_of(column(model, name))
            chance = chances(params, model.schema_, record, name)
            median = values[np.searchsorted(chance.cumsum(), 0.5)]
            assert done[name][row] == (median if name == "visits" else values[chance.argmax()])
    drawn = model.impute(gappy, 3, random_state=0)
    assert all(each["visits"].between(0, column(model, "visits").largest).all() for each in drawn)
    imputer = mg.MixedImputer(mg.MixedGraphicalModel(types=types, lam=0.1))
    filled = imputer.fit_transform(gappy)
    assert filled.notna().all().all()
    assert imputer.fit(table).transform(gappy)["pain"].dtype == table["pain"].dtype
    assert imputer.get_feature_names_out().tolist() == list(table.columns)


@asks("model.missing_report")
def test_gaps_are_reported_for_every_kind(model, table):
    gappy = table.mask(np.random.default_rng(0).random(table.shape) < 0.1)
    report = model.missing_report(gappy)
    missing = report.columns().set_index("column")["missing"]
    assert missing.to_dict() == gappy.isna().sum().to_dict()
    edges = report.edges()
    assert len(edges) == 36
    assert edges["missing_information"].between(0.0, 1.0).all()


def test_gaps_of_a_hurdle_column_get_zero_or_an_amount(model, table):
    """What is likelier; by Gibbs chains, so to a few percent of an amount."""
    params = model.fitted_.joint_params
    gappy = table.iloc[:40].copy()
    gappy.loc[::2, "debt"] = np.nan
    gappy.loc[1::4, "pain"] = np.nan
    done = model.impute(gappy, random_state=0)
    kept = gappy["debt"].notna()
    assert done.loc[kept, "debt"].tolist() == gappy.loc[kept, "debt"].tolist()
    assert done.notna().all().all()
    for at in range(0, 40, 2):
        row = records(table.iloc[[at]])[0]
        share = chances(params, model.schema_, row, "debt")[1]
        mean, _ = gaussian(params, model.schema_, row, "debt")
        if abs(share - 0.5) > 0.1:
            expected = mean if share > 0.5 else 0.0
            assert done["debt"].iloc[at] == pytest.approx(expected, rel=0.03)
    drawn = model.impute(gappy, 2, random_state=0)
    assert all((each["debt"] == 0.0).any() for each in drawn)
    assert not drawn[0].equals(drawn[1])
    told = model.predict(gappy.iloc[:4])
    assert told.notna().all().all()
    assert math.isfinite(model.score(gappy))
    imputer = mg.MixedImputer(mg.MixedGraphicalModel(types=TYPES, lam=0.1))
    assert imputer.fit(table).transform(gappy).notna().all().all()


# -- does the model fit ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked(model, table):
    return model.check_fit(table, refit=False, n_sim=40, random_state=0, n_jobs=1)


@asks("model.check_fit", "check.nodes", "check.pairs", "check.levels")
def test_residuals_of_the_check_are_those_of_scores_and_counts(model, table, checked):
    nodes = checked.nodes().set_index("column")
    tables = model.predict_proba(table)
    numbers = {name: np.array(values_of(column(model, name))) for name in SCORED}
    numbers |= {"pain": np.arange(4), "grade": np.arange(5)}
    for name in SCORED:
        chance = tables[name].to_numpy()
        expected = chance @ numbers[name]
        spread = np.sqrt(chance @ numbers[name] ** 2 - expected**2)
        value = table[name].cat.codes if name == "pain" else table[name] - (name == "grade")
        residual = (value - expected) / spread
        assert nodes.loc[name, "residual_mean"] == pytest.approx(residual.mean(), abs=1e-9)
        assert nodes.loc[name, "residual_sd"] == pytest.approx(residual.std(ddof=0))
        assert nodes.loc[name, "dispersion"] == pytest.approx((residual**2).mean())
        assert nodes.loc[name, "largest"] == pytest.approx(residual.abs().max())
    owes, share = table["debt"] != 0, tables["debt"]["not zero"]
    mean = model.predict(table, "debt") / share
    residual = ((table["debt"] - mean) * math.sqrt(model.params_.terms_of(2)[2]))[owes]
    assert nodes.loc["debt", "residual_mean"] == pytest.approx(residual.mean(), abs=1e-9)
    assert nodes.loc["debt", "residual_sd"] == pytest.approx(residual.std(ddof=0))
    assert nodes.loc["debt", "largest"] == pytest.approx(residual.abs().max())
    pearson = (owes - share) ** 2 / (share * (1 - share))
    assert nodes.loc["debt", "dispersion"] == pytest.approx(pearson.mean())
    pairs = checked.pairs()
    for pair in pairs.itertuples():
        if {pair.source, pair.target} <= {"pain", "visits"}:
            both = table["pain"].cat.codes.corr(np.sqrt(table["visits"]))
            assert pair.observed == pytest.approx(both)
            assert pair.kind == "ordinal-count"
        if {pair.source, pair.target} <= {"age", "debt"}:
            parts = [table["debt"] != 0, table["debt"].where(owes, table["debt"][owes].mean())]
            both = [np.corrcoef(table["age"], part)[0, 1] for part in parts]
            assert pair.observed == pytest.approx(np.linalg.norm(both))
    assert len(pairs) == 36
    levels = checked.levels().set_index(["column", "level"])
    assert levels.loc[("visits", "0"), "observed"] == (table["visits"] == 0).sum()
    assert levels.loc[("debt", "zero"), "observed"] == (~owes).sum()
    assert levels.loc[("pain", "mild"), "expected"] == pytest.approx(tables["pain"]["mild"].sum())
    assert (levels.groupby("column").sum()["observed"] == N_ROWS).all()


@asks("check.plot", "check.flags", "check.by_meaning")
def test_the_check_is_drawn_and_says_what_is_wrong(checked, model, table, axes):
    assert checked.plot().images[0].get_array().shape == (9, 9)
    assert "of 45 columns and pairs flagged" in str(checked).replace("\n ", "")
    judged = pd.concat([checked.nodes(), checked.pairs()])
    flagged = judged[judged["flagged"]]
    assert len(flagged) == len(checked.flagged) > 0
    assert checked.flags()["advice"].tolist() == flagged["advice"].tolist()
    assert sum(len(remedy.flags) for remedy in checked.by_meaning()) == len(flagged)
    assert (judged["meaning"] != "").equals(judged["flagged"])


def test_the_graph_of_every_kind_is_checked(model, table):
    """Refitted, with a hurdle column, whose tables come from chains."""
    checked = model.check_fit(table, n_sim=20, random_state=0, n_jobs=1)
    assert checked.refit
    assert len(checked.node_checks) == 9
    assert len(checked.pair_checks) == 36
    judged = pd.concat([checked.nodes(), checked.pairs()])
    assert judged[["distance", "p", "p_adjusted"]].notna().all().all()
    assert judged["p_adjusted"].between(0.0, 1.0).all()


def test_the_check_finds_what_is_wrong_with_a_hurdle_column(table):
    names = ["age", "debt", "smoker"]
    model = mg.MixedGraphicalModel(types={"debt": "hurdle"}).fit(table[names])
    rows = model.sample(500, random_state=1)
    options = {"n_sim": 60, "random_state": 0, "n_jobs": 1}
    assert not model.check_fit(rows, **options).flagged
    rng = np.random.default_rng(0)
    rid = rows.assign(debt=rows["debt"].where(rng.random(500) < 0.7, 0.0))
    assert ("debt",) in model.check_fit(rid, refit=False, **options).flagged
    mean, spread = model.predict(rows, "debt") / model.predict_proba(rows, "debt")["not zero"], 50
    skewed = rows["debt"].where(rows["debt"] == 0, mean + spread * (rng.exponential(size=500) - 1))
    found = model.check_fit(rows.assign(debt=skewed), **options)
    assert ("debt",) in found.flagged
    assert "np.log1p keeps zeros" in " ".join(str(found).split())


def test_the_check_finds_what_is_wrong_and_nothing_else(plain):
    """A right model is flagged in one of twenty tables (this in 6 of 100); the seed is fixed."""
    model = mg.MixedGraphicalModel(types=without_debt(TYPES)).fit(plain)
    rows = model.sample(500, random_state=2)
    options = {"n_sim": 60, "random_state": 0, "n_jobs": 1}
    assert not model.check_fit(rows, **options).flagged
    rng = np.random.default_rng(0)
    most = np.minimum(rows["falls"] + 4, column(model, "falls").largest)
    idle = rows.assign(falls=np.where(rng.random(500) < 0.2, 0, most))
    found = model.check_fit(idle, **options)
    assert ("falls",) in found.flagged
    assert "falls: There are more zeros, or fewer, than the model says" in " ".join(
        str(found).split()
    )
    visits = rng.poisson(rows["visits"] * rng.gamma(1.0, 1.0, 500))
    wild = rows.assign(visits=np.minimum(visits, column(model, "visits").largest))
    found = model.check_fit(wild, **options)
    assert ("visits",) in found.flagged
    assert found.nodes().set_index("column").loc["visits", "dispersion"] > 1.3
    noise = rng.permuted(rows["pain"].to_numpy())
    mixed_up = rows.assign(pain=pd.Categorical(noise, PAIN, ordered=True))
    found = model.check_fit(mixed_up, refit=False, **options)
    assert ("age", "pain") in found.flagged
    assert ("pain", "visits") in found.flagged


@asks(
    *("bootstrap.selection", "bootstrap.intervals", "bootstrap.parameters"),
    *("bootstrap.difference", "bootstrap.differences", "bootstrap.strengths"),
)
def test_the_bootstrap_has_a_row_for_every_parameter(model, table, resampled):
    edges = resampled.selection()
    weights = {frozenset((e.source, e.target)): e for e in model.edges_}
    for row in edges[edges["strength"] > 0].itertuples():
        edge = weights[frozenset((row.source, row.target))]
        assert row.strength == pytest.approx(edge.strength, rel=1e-5)
        assert row.sign == edge.sign or (edge.sign is None and pd.isna(row.sign))
    parts = resampled.selection(parts=True)
    of_debt = parts["source_part"].notna() | parts["target_part"].notna()
    whole = edges[[("debt" in pair) for pair in zip(edges["source"], edges["target"], strict=True)]]
    assert of_debt.sum() == 2 * len(whole)
    others = parts[~of_debt].drop(columns=["source_part", "target_part", "norm", "mean"])
    same = edges.drop(whole.index).drop(columns="mean")
    pd.testing.assert_frame_equal(others.reset_index(drop=True), same.reset_index(drop=True))
    for edge, part in parts[of_debt & (parts["norm"] > 0)].groupby(["source", "target"]):
        norm = math.hypot(*part["norm"])
        assert norm == pytest.approx(edge_between(model, *edge).norm, rel=1e-5)
        if "ward" not in edge:
            block = model.interaction(*edge).to_numpy()
            block = block[:, -1] if edge[0] == "debt" else block[-1]
            signs = [{1.0: "+", -1.0: "-"}[sign] for sign in np.sign(block)]
            assert part["sign"].tolist() == signs
    told = resampled.parameters()
    tested = mg.edge_tests(model, table, method="free").parameters()
    edges = told[told["parameter"] == "interaction"]
    named = [part.set_index(list(tested.columns[:4]))["estimate"] for part in (edges, tested)]
    np.testing.assert_allclose(named[0].reindex(named[1].index), named[1], rtol=1e-2, atol=1e-3)
    between = told[(told["source"] == "pain") & (told["target"] == "visits")]
    assert between["source_level"].isna().all()
    own = told[(told["source"] == "visits") & told["target"].isna()]
    assert own["source_level"].tolist() == ["score", "score^2"]
    own = told[(told["source"] == "pain") & told["target"].isna()]
    assert own["source_level"].tolist() == PAIN
    both = told[(told["source"] == "age") & (told["target"] == "debt")]
    assert both["target_level"].tolist() == ["debt != 0", "debt"]
    strong = resampled.strengths()
    assert len(strong) == math.comb(len(KIND), 2)
    known = strong.dropna(subset=["lower", "upper"])
    assert set(known["kind"]) == set(strong["kind"])
    assert (known["lower"] <= known["strength"]).all()
    assert (known["strength"] <= known["upper"]).all()
    sizes = resampled.intervals()
    assert len(sizes.groupby(["source", "target"])) == math.comb(len(KIND), 2)
    both = sizes[(sizes["source"] == "age") & (sizes["target"] == "debt")]
    assert both["target_level"].tolist() == ["debt != 0", "debt"]
    one = resampled.difference(("age", "pain"), ("pain", "visits"))
    assert one.difference == pytest.approx(
        edge_between(model, "age", "pain").strength
        - edge_between(model, "pain", "visits").strength,
        rel=1e-3,
    )
    assert len(resampled.differences()) == math.comb(len(model.edges_), 2)


@pytest.fixture(scope="module")
def resampled(model, table):
    return mg.bootstrap(model, table, n_boot=4, random_state=0, n_jobs=1)


@asks(
    "bootstrap.centrality",
    "bootstrap.degenerate",
    "bootstrap.summary",
    "bootstrap.plot_intervals",
    "bootstrap.plot_selection",
    "bootstrap.plot_differences",
    "bootstrap.plot_centrality",
)
def test_the_bootstrap_is_shown(model, resampled, axes):
    centrality = resampled.centrality().set_index(["measure", "column"])["estimate"]
    strength = model.nodes().set_index("column")["total_strength"]
    assert centrality["total_strength"].to_dict() == pytest.approx(strength.to_dict(), rel=1e-4)
    has_influence = centrality["expected_influence"].notna()
    unsigned = {"ward", "debt"}
    near = {e.source for e in model.edges_ if e.target in unsigned}
    near |= {e.target for e in model.edges_ if e.source in unsigned} | unsigned
    assert {name for name in KIND if not has_influence[name]} == near
    assert set(resampled.degenerate().columns) == {"column", "constant", "missing_levels"}
    assert "4 of 4 resamples" in resampled.summary() or "4 resamples" in resampled.summary()
    for what in ("intervals", "selection", "differences", "centrality"):
        assert getattr(resampled, f"plot_{what}")().figure


@asks("bootstrap.stability", "bootstrap.cs_coefficient", "bootstrap.plot_stability")
def test_stability_of_rows_left_out(model, table, axes):
    dropped = mg.bootstrap(model, table, n_boot=6, kind="case-dropping", random_state=0, n_jobs=1)
    assert dropped.stability()["mean"].between(-1, 1).all()
    assert dropped.cs_coefficient()["cs_coefficient"].dropna().between(0, 1).all()
    assert dropped.plot_stability().lines


@asks(
    "groups.edges",
    "groups.tests",
    "groups.group_table",
    "groups.plot",
    "groups.plot_differences",
    "groups.summary",
)
@pytest.mark.parametrize("test", ["permutation", "differences"])
def test_groups_are_compared(table, axes, test):
    site = np.arange(N_ROWS) % 2
    options = {"types": TYPES, "lam": 0.1, "random_state": 0, "n_jobs": 1}
    count = 2 if test == "permutation" else None
    found = mg.compare(table, site, test=test, n_perm=count, **options)
    edges = found.edges()
    for group, part in enumerate(found.fitted):
        for edge in part.edges:
            row = edges[(edges["source"] == edge.source) & (edges["target"] == edge.target)]
            assert row["kind"].item() == edge.kind
            if test == "permutation":
                assert row[f"norm_{group}"].item() == pytest.approx(edge.norm)
    assert found.tests()["p"].between(0, 1).all()
    assert found.group_table()["n_rows"].tolist() == [N_ROWS / 2, N_ROWS / 2]
    if test == "permutation":
        assert "column" in found.degenerate().columns
    else:
        assert "reason" in found.untested().columns
        assert edges["probability_differs"].dropna().between(0, 1).all()
    assert "group" in found.summary()
    assert len(found.plot()) == 2
    assert found.plot_differences().figure


@asks("tests.edges", "tests.named", "tests.parameters", "tests.plot", "tests.summary")
def test_all_pairs_are_tested(model, table, axes):
    tests = mg.edge_tests(model, table, random_state=0)
    edges = tests.edges()
    assert tests.named("p") == "p"
    assert len(edges) == math.comb(len(KIND), 2)
    freedom = {"ward": 2, "debt": 2}
    order = ["continuous", "hurdle", "ordinal", "count", "categorical"]
    for row in edges.itertuples():
        assert row.df == freedom.get(row.source, 1) * freedom.get(row.target, 1)
        assert row.kind == "-".join(sorted((KIND[row.source], KIND[row.target]), key=order.index))
        assert np.isnan(row.estimate) == (row.df > 1)
    verdicts = {frozenset((row.source, row.target)): row.verdict for row in edges.itertuples()}
    chain = [("age", "pain"), ("pain", "visits"), ("age", "grade"), ("dose", "falls")]
    for pair in (*chain, ("age", "debt")):
        assert verdicts[frozenset(pair)] == "present"
    for row in tests.parameters().itertuples():
        block = model.interaction(row.source, row.target)
        for end, names in (("source", block.index), ("target", block.columns)):
            level = getattr(row, f"{end}_level")
            assert (level in names) if isinstance(level, str) else len(names) == 1
    assert f"Tests of {len(edges)} pairs" in tests.summary()
    assert tests.plot().images


# -- distributions ---------------------------------------------------------------------------------

REST = {"age": 0.3, "dose": 52.0, "grade": 3, "falls": 1, "ward": "west", "smoker": True}


@pytest.fixture(scope="module")
def pain_and_visits(exact):
    """Probability of every level of pain and count of visits given the rest, by hand."""
    params, schema = exact.fitted_.joint_params, exact.schema_
    counts = values_of(column(exact, "visits"))
    logs = np.array(
        [
            [log_density(params, schema, {**REST, "pain": p, "visits": c}) for c in counts]
            for p in PAIN
        ]
    )
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


@asks("model.conditional", "model.marginal", "distribution.frame")
@pytest.mark.parametrize("asked", [["pain", "visits"], ["visits", "pain"]])
def test_distributions_of_ordered_columns(exact, pain_and_visits, asked):
    found = exact.conditional(asked, REST).frame()
    table = found.pivot(index="pain", columns="visits", values="probability")
    counts = [
        str(c) if isinstance(table.columns[0], str) else c
        for c in values_of(column(exact, "visits"))
    ]
    np.testing.assert_allclose(table.loc[PAIN, counts].to_numpy(), pain_and_visits, atol=1e-10)
    # The whole distribution averages the conditionals; its margin of one column agrees.
    both = exact.marginal(["pain", "grade"]).frame()
    one = exact.marginal("pain").frame().set_index("pain")["probability"]
    summed = both.groupby("pain", observed=False, sort=False)["probability"].sum()
    np.testing.assert_allclose(summed[PAIN], one[PAIN], atol=1e-10)


@asks("distribution.covariance", "distribution.density")
def test_densities_of_mixed_columns(exact, pain_and_visits):
    found = exact.conditional(
        ["age", "pain"], {k: v for k, v in REST.items() if k != "age"} | {"visits": 2}
    )
    at = [found.density({"age": x, "pain": "mild"}) for x in (-0.4, 0.8)]
    params, schema = exact.fitted_.joint_params, exact.schema_
    logs = [
        log_density(params, schema, {**REST, "age": x, "pain": "mild", "visits": 2})
        for x in (-0.4, 0.8)
    ]
    assert math.log(at[0] / at[1]) == pytest.approx(logs[0] - logs[1])
    assert found.covariance({"pain": "mild"}).iloc[0, 0] == pytest.approx(
        1 / params.diagonal[schema.node_index("age")]
    )


@asks("model.mean", "means.frame", "means.score")
def test_means_of_ordered_columns(exact, pain_and_visits):
    given = {**REST, "visits": 2}
    found = exact.mean(given)
    shares = pain_and_visits[:, 2] / pain_and_visits[:, 2].sum()
    frame = found.frame()
    told = frame[frame["column"] == "pain"]
    assert told["level"].tolist()[:4] == PAIN
    np.testing.assert_allclose(told["mean"].to_numpy()[:4], shares, atol=1e-10)
    assert found.score("pain") == pytest.approx(shares @ np.arange(4))
    counts = pain_and_visits[1] / pain_and_visits[1].sum()
    mean = counts @ np.arange(len(counts))
    assert exact.mean({**REST, "pain": "mild"})["visits"] == pytest.approx(mean)


@asks("distribution.comparisons", "means.comparisons")
def test_answers_stand_beside_the_rows_of_the_table(exact, plain):
    """Single columns have the margins of the table, whatever their kind: nothing differs."""
    smokers = plain[plain["smoker"]]
    found = exact.mean({"smoker": True}, data=plain)
    seen = found.frame().set_index("column")["observed"]
    for name in ("age", "dose", "visits", "falls"):
        assert seen[name] == pytest.approx(smokers[name].mean())
    for name in ("pain", "ward"):
        levels = column(exact, name).level_names
        shares = [(smokers[name].astype(str) == level).mean() for level in levels]
        np.testing.assert_allclose(seen[name], shares)
    every = exact.mean(data=plain)
    assert min(one.chance for one in every.comparisons()) > 0.5
    both = exact.marginal(["ward", "age"], data=plain)
    table = [one.table for one in both.comparisons() if one.what == "the mean of age"]
    wanted = plain.groupby("ward", observed=False)["age"].mean()
    np.testing.assert_allclose(table, wanted[list(column(exact, "ward").levels)])


@asks("model.entropy", "model.mutual_information")
def test_information_of_ordered_columns(exact, pain_and_visits):
    p = pain_and_visits

    def entropy(q):
        return -np.sum(q[q > 0] * np.log(q[q > 0]))

    assert float(exact.entropy(["pain", "visits"], REST)) == pytest.approx(entropy(p))
    expected = entropy(p.sum(0)) + entropy(p.sum(1)) - entropy(p)
    assert float(exact.mutual_information("pain", "visits", REST)) == pytest.approx(expected)


@asks("model.condition", "model.log_partition")
def test_conditioning_keeps_the_distribution(exact, pain_and_visits):
    part = exact.condition({k: v for k, v in REST.items() if k != "grade"})
    assert [c.kind for c in part.schema_.columns] == ["count", "ordinal", "ordinal"]
    again = part.condition({"grade": REST["grade"]})
    shares = again.marginal("pain").frame()["probability"]
    np.testing.assert_allclose(shares, pain_and_visits.sum(axis=1), atol=1e-10)
    logs = [
        log_density(again.fitted_.joint_params, again.schema_, {"pain": p, "visits": c})
        for p in PAIN
        for c in values_of(column(exact, "visits"))
    ]
    assert again.log_partition() == pytest.approx(np.logaddexp.reduce(logs))


@asks("model.log_density", "model.log_likelihood")
def test_log_densities_are_those_of_the_parameters(exact, plain):
    rows = plain.iloc[:12]
    found = exact.log_density(rows)
    params, schema = exact.fitted_.joint_params, exact.schema_
    expected = [log_density(params, schema, row) for row in records(rows)]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-8)
    assert float(exact.log_likelihood(rows)) == pytest.approx(float(np.mean(found)), rel=1e-9)


@asks("model.sample", "model.expectation", "draws.frame")
def test_draws_have_the_values_of_the_columns(exact, plain, pain_and_visits):
    drawn, report = exact.sample(2000, REST, random_state=0, report=True)
    assert drawn.columns.tolist() == plain.columns.tolist()
    assert drawn.dtypes.equals(plain.dtypes)
    shares = drawn["pain"].value_counts(normalize=True)[PAIN].to_numpy()
    spread = np.sqrt(pain_and_visits.sum(1) * (1 - pain_and_visits.sum(1)) / 2000)
    assert (np.abs(shares - pain_and_visits.sum(1)) < 5 * spread + 1e-12).all()
    mean = pain_and_visits.sum(0) @ np.arange(pain_and_visits.shape[1])
    told = exact.expectation(lambda frame: frame["visits"], REST, random_state=0)
    assert float(told) == pytest.approx(mean, abs=0.2)
    assert len(report.frame()) >= 0
    gibbs, report = exact.sample(50, method="gibbs", random_state=0, report=True)
    assert set(gibbs["pain"]) <= set(PAIN)
    assert {"pain", "visits", "ward"} <= set(report.frame()["column"])


@asks("model.joint_discrepancy", "discrepancy.frame")
def test_the_joint_distribution_is_compared_with_the_table(exact, plain):
    pairs = exact.joint_discrepancy().frame()
    row = pairs[(pairs["source"] == "pain") & (pairs["target"] == "visits")].iloc[0]
    expected = plain["pain"].cat.codes.corr(np.sqrt(plain["visits"]))
    assert row["table"] == pytest.approx(expected, rel=1e-6)
    assert abs(row["joint"]) <= 1


@asks("model.repaired")
def test_a_valid_model_needs_no_repair(exact):
    assert exact.repaired().edges_ == exact.edges_


def test_joint_answers_about_a_hurdle_column_are_drawn(model):
    """Given all other columns they are known; the chains are long enough for a few percent."""
    params = model.fitted_.joint_params
    given = {**REST, "pain": "mild", "visits": 2}
    share = chances(params, model.schema_, given, "debt")[1]
    mean, variance = gaussian(params, model.schema_, given, "debt")
    found = model.conditional("debt", given).frame().set_index("debt != 0")
    assert found.loc[True, "probability"] == pytest.approx(share, abs=0.02)
    assert found.loc[True, "debt_mean"] == pytest.approx(mean, rel=0.02)
    assert found.loc[True, "debt_sd"] == pytest.approx(math.sqrt(variance), rel=0.1)
    assert found.loc[False, ["debt_mean", "debt_sd"]].tolist() == [0.0, 0.0]
    assert model.mean(given)["debt"] == pytest.approx(share * mean, rel=0.05)
    drawn = model.sample(2000, given, random_state=0)["debt"]
    assert (drawn != 0).mean() == pytest.approx(share, abs=0.05)
    assert drawn[drawn != 0].mean() == pytest.approx(mean, rel=0.03)
    told = model.expectation(lambda frame: frame["debt"] != 0, given, random_state=0)
    assert float(told) == pytest.approx(share, abs=0.05)
    # A debt that is known says the same to the others as by hand.
    known = {**given, "debt": 310.0}
    del known["pain"]
    shares = model.conditional("pain", known).frame()["probability"]
    expected = chances(params, model.schema_, {**known, "pain": "mild"}, "pain")
    np.testing.assert_allclose(shares, expected, atol=0.03)
    part = model.condition({name: known[name] for name in ("debt", "age", "ward")})
    params = model.fitted_.matched_params  # whose joint distribution has the table's margins
    expected = chances(params, model.schema_, {**known, "pain": "mild"}, "pain")
    for pain in PAIN:
        rest = {k: v for k, v in known.items() if k not in ("debt", "age", "ward")} | {"pain": pain}
        one = chances(part.params_, part.schema_, rest, "pain")
        np.testing.assert_allclose(one, expected, atol=1e-12)
    rows = model.sample(20, random_state=0)
    assert (rows["debt"] == 0).any()
    assert (rows["debt"] > 100).any()
    assert model.repaired().edges_ == model.edges_


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, rows: model.log_partition(),
        lambda model, rows: model.log_density(rows),
        lambda model, rows: model.log_likelihood(rows),
        lambda model, rows: model.entropy(["pain"]),
        lambda model, rows: model.mutual_information("pain", "visits"),
        lambda model, rows: model.marginal("age").density({"age": 0.0}),
        lambda model, rows: mg.diagnostics.consistency(model),
        lambda model, rows: mg.MixedGraphicalModel(loss="likelihood", types=TYPES).fit(rows),
    ],
)
def test_exact_joint_answers_of_a_hurdle_column_are_refused(model, table, ask):
    with pytest.raises((mg.DistributionError, mg.ParameterError), match="debt"):
        ask(model, table)


# -- moderators, paths, truths ---------------------------------------------------------------------


@asks("model.at", "model.plot_moderation")
@pytest.mark.parametrize(
    ("moderator", "low", "high"), [("pain", "none", "severe"), ("visits", 0, 4), ("debt", 0, 350.0)]
)
def test_edges_vary_with_an_ordered_column(table, moderator, low, high, axes):
    model = mg.MixedGraphicalModel(types=TYPES, lam=0.05, moderators=[moderator]).fit(table)
    block = model.interaction("age", "dose", moderator)
    assert block.shape == (2 if moderator == "debt" else 1, 1)
    at = {value: model.at({moderator: value}) for value in (low, high)}
    less, more = (seen(column(model, moderator), value) for value in (low, high))
    pairs = [("age", "dose"), ("age", "grade"), ("age", "falls"), ("dose", "falls")]
    blocks = [model.interaction(*pair, moderator).to_numpy()[:, 0] for pair in pairs]
    assert np.any(blocks)
    for pair, block in zip(pairs, blocks, strict=True):
        change = at[high].interaction(*pair) - at[low].interaction(*pair)
        assert change.iloc[0, 0] == pytest.approx((more - less) @ block, abs=1e-12)
    assert len(model.plot_moderation(moderator)) >= 2


@asks(
    "path.edges",
    "path.group_norms",
    "path.log_likelihood",
    "path.node_scores",
    "path.pairs",
    "path.params",
    "path.score",
    "path.theta",
    "path.triples",
)
def test_a_path_is_its_models(table, plain, rows):
    path = mg.fit_path(table, types=TYPES, lams=[0.3, 0.1])
    norms = path.group_norms()
    assert norms.shape == (2, 36)
    for at, lam in enumerate(path.lams):
        model = mg.MixedGraphicalModel(types=TYPES, lam=lam).fit(table)
        edges = {frozenset((edge.source, edge.target)) for edge in model.edges_}
        assert set(map(frozenset, path.edges(at))) == edges
        assert path.n_edges[at] == (norms[at] > 0).sum() == len(path.pairs(at))
        assert (path.triples(at)[:, 2] == -1).all()
        assert len(path.theta(at)) == path.layout.n_theta
        np.testing.assert_allclose(path.params(at).coef, model.params_.coef, atol=1e-5)
        scores = model.node_scores(rows)
        for name, along in path.node_scores(rows).items():
            assert along[at] == pytest.approx(scores[name], abs=1e-5)
        assert path.score(rows)[at] == pytest.approx(model.score(rows), abs=1e-5)
    with pytest.raises(mg.DistributionError, match="debt"):
        path.log_likelihood(rows)
    path, first, second = (
        mg.fit_path(plain, types=without_debt(TYPES), lams=[0.3, 0.1]),
        plain.iloc[:1],
        plain.iloc[1:2],
    )
    for at in range(2):
        logs = [log_density(path.params(at), path.schema, row) for row in records(plain.iloc[:2])]
        apart = path.log_likelihood(first)[at] - path.log_likelihood(second)[at]
        assert apart == pytest.approx(logs[0] - logs[1])


@asks("consistency.theorem", "consistency.frame", "consistency.plot", "consistency.summary")
def test_consistency_of_a_model_with_ordered_columns(table, axes):
    names = ["age", "pain", "visits", "ward"]
    types = {"pain": "ordinal", "visits": "count"}
    forbid = [("age", "visits")]
    truth = mg.MixedGraphicalModel(types=types, lam=0.1, forbid=forbid).fit(table[names])
    found = mg.diagnostics.consistency(truth, n_draws=1000)
    assert len(found.frame()) == 6 - len(truth.edges_)
    assert set(found.frame()["kind"]) >= {"continuous-count"}
    assert found.gradient_at_truth < 0.01
    assert found.theorem(1e6).n_rows == 1e6
    assert "continuous-count" in found.summary()
    assert found.plot().figure


@pytest.mark.parametrize("loss", ["pseudolikelihood", "likelihood"])
def test_consistency_of_two_ordered_levels_is_that_of_categories(table, loss):
    halved = pd.DataFrame(
        {
            "age": table["age"],
            "pain": (table["pain"].cat.codes > 1).astype(int),
            "visits": (table["visits"] > 1).astype(int),
            "smoker": table["smoker"].astype(int),
        }
    )
    numbers = []
    for kind in ("categorical", "ordinal"):
        types = {"pain": kind, "visits": kind, "smoker": "categorical"}
        model = mg.MixedGraphicalModel(types=types, lam=0.15).fit(halved)
        numbers.append(mg.diagnostics.consistency(model, loss=loss))
    of_categories, of_levels = numbers
    assert len(of_categories.pairs) > 0
    for one, other in zip(of_categories.pairs, of_levels.pairs, strict=True):
        assert one[:2] == other[:2]
        assert one[3:] == pytest.approx(other[3:], abs=1e-5)


# -- the command line ------------------------------------------------------------------------------

DECLARED = [
    *("--types", "grade=ordinal,visits=count,falls=count,debt=hurdle"),
    *("--levels", "pain=none,mild,strong,severe"),
]
COMMANDS = {
    "check": (["table.csv", *DECLARED], "4: none < mild < strong < severe"),
    "fit": (["table.csv", "-o", "again.mgm", "--lam", "0.1", *DECLARED], "ordinal-count"),
    "select": (["table.csv", "--criterion", "bic", "--lams", "0.3,0.1", *DECLARED], "11 edges"),
    "path": (["table.csv", "--lams", "0.3,0.1", *DECLARED], "n_edges"),
    "edges": (["model.mgm"], "ordinal-count"),
    "plot": (["model.mgm", "-o", "picture.png"], "wrote picture.png"),
    "report": (["model.mgm", "table.csv", "--no-check", "-o", "r.html"], "wrote r.html"),
    "query": (["model.mgm", "--mean", "--given", "pain=mild,visits=3"], "grade"),
    "sample": (["model.mgm", "-n", "5", "--seed", "1"], "visits,ward,age,pain"),
    "impute": (["model.mgm", "gaps.csv"], "visits,ward,age,pain"),
    "missing": (["model.mgm", "gaps.csv"], "visits"),
    "test": (["model.mgm", "table.csv", "--seed", "1"], "Tests of 36 pairs"),
    "bootstrap": (["model.mgm", "table.csv", "-o", "boot", "--n-boot", "3", "--seed", "1"], "boot"),
    "compare": (
        [
            "site.csv",
            "--groups",
            "site",
            "-o",
            "sites",
            "--permutations",
            "2",
            "--lam",
            "0.2",
            *DECLARED,
        ],
        "site",
    ),
}


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Tables as files, and a model of them."""
    where = tmp_path_factory.mktemp("kinds")
    table.to_csv(where / "table.csv", index=False)
    table.iloc[:4].assign(visits=None, pain=["none", None, "mild", None]).to_csv(
        where / "gaps.csv", index=False
    )
    table.assign(site=np.arange(N_ROWS) % 2).to_csv(where / "site.csv", index=False)
    mg.MixedGraphicalModel(types=TYPES, lam=0.1).fit(table).save(where / "model.mgm")
    return where


def run(folder, monkeypatch, capsys, *words):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr()


def test_every_command_is_run():
    of_their_own = {"predict": "the test below", "demo": "a table of its own"}
    assert set(command_names()) == COMMANDS.keys() | of_their_own.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_every_kind(folder, monkeypatch, capsys, axes, command):
    words, expected = COMMANDS[command]
    said = run(folder, monkeypatch, capsys, command, *words)
    assert expected in said.out + said.err


def test_predictions_on_the_command_line(folder, table, monkeypatch, capsys):
    model = mg.load(folder / "model.mgm")
    for value in (None, "median", "mean"):
        words = [] if value is None else ["--value", value]
        run(folder, monkeypatch, capsys, "predict", "model.mgm", "table.csv", *words, "-o", "p.csv")
        expected = model.predict(table, value=value)
        for name in SCORED:
            found = pd.read_csv(folder / "p.csv", keep_default_na=False)[name]
            wanted = expected[name].astype(object if name == "pain" and value != "mean" else float)
            assert found.tolist() == pytest.approx(wanted.tolist())
    words = ["--column", "visits", "--proba", "-o", "p.csv"]
    run(folder, monkeypatch, capsys, "predict", "model.mgm", "table.csv", *words)
    shares = pd.read_csv(folder / "p.csv")
    assert shares.columns.tolist() == [str(v) for v in values_of(column(model, "visits"))]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)

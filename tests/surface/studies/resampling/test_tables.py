"""Tables of the bootstrap, against fits through the front door and graphs made by networkx."""

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.people import people

N_BOOT = 12
LAM = 0.12


def spawned(seed: int, n: int = N_BOOT) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(n)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return people(150)


@pytest.fixture(scope="module")
def model(table):
    return mg.MixedGraphicalModel(lam=LAM, tol=1e-8, transforms=None).fit(table)


@pytest.fixture(scope="module")
def found(model, table) -> mg.Bootstrap:
    return mg.bootstrap(model, table, n_boot=N_BOOT, random_state=5, n_jobs=1)


@pytest.fixture(scope="module")
def alone(table, model) -> list[mg.MixedGraphicalModel]:
    """Every resample drawn here, written out row by row, and fitted as a table of its own.

    Strengths are means over the rows of the whole table.
    """
    fits = []
    for seed in spawned(5):
        rows = np.random.default_rng(seed).integers(150, size=150)
        fits.append(
            mg.MixedGraphicalModel(lam=LAM, tol=1e-8, transforms=None).fit(table.iloc[rows])
        )
        fits[-1].fitted_ = replace(fits[-1].fitted_, rows=model.fitted_.rows)
    return fits


def strengths_of(models, signed: bool = False) -> pd.DataFrame:
    """One row per model, one column per pair that any of them has."""
    rows = []
    for model in models:
        sign = {"+": 1.0, "-": -1.0, None: 1.0}
        rows.append(
            {
                frozenset((e.source, e.target)): e.strength * (sign[e.sign] if signed else 1.0)
                for e in model.edges_
            }
        )
    return pd.DataFrame(rows).fillna(0.0)


def pairs(frame: pd.DataFrame) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in zip(frame["source"], frame["target"], strict=True)]


# -- tables against independent fits -------------------------------------------------------------


def test_selection_is_what_separate_fits_say(found, model, alone) -> None:
    edges = found.selection()
    expected = strengths_of([*alone, model], signed=True)
    assert set(pairs(edges)) == set(expected)
    signed = expected.iloc[:N_BOOT][pairs(edges)]
    np.testing.assert_allclose(edges["inclusion"], (signed != 0).mean(), atol=1e-12)
    np.testing.assert_allclose(edges["mean"], signed.mean(), atol=1e-5)
    assert (signed < 0).to_numpy().any()
    assert (edges["inclusion"] < 1).any()


def test_selection_carries_what_the_model_says(found, model) -> None:
    edges = found.selection()
    here = model.edges()
    own = edges[edges["strength"] > 0]
    for name in ("source", "target", "kind", "sign"):
        assert own[name].fillna("").tolist() == here[name].fillna("").tolist()
    np.testing.assert_allclose(own["strength"], here["strength"])
    absent = edges[edges["strength"] == 0]
    assert absent["sign"].isna().all()
    assert (absent["inclusion"].diff().dropna() <= 0).all(), "the most frequent first"
    assert own["same_sign"].isna().tolist() == own["sign"].isna().tolist()
    assert (own["same_sign"].dropna() <= own["inclusion"][own["sign"].notna()] + 1e-12).all()


def test_centrality_is_what_networkx_says_of_separate_fits(found, model, alone) -> None:
    table = found.centrality(level=0.8).set_index(["measure", "column"])
    for measure in ("total_strength", "closeness", "betweenness"):
        values = pd.DataFrame([by_networkx(fit, measure) for fit in alone])
        here = by_networkx(model, measure)
        for column in model.schema_.names:
            row = table.loc[measure, column]
            assert row["estimate"] == pytest.approx(here[column], abs=1e-4)
            assert row["mean"] == pytest.approx(values[column].mean(), abs=1e-4)
            assert row["lower"] == pytest.approx(np.percentile(values[column], 10), abs=1e-4)
            assert row["upper"] == pytest.approx(np.percentile(values[column], 90), abs=1e-4)


def by_networkx(model, measure: str) -> dict[str, float]:
    graph = nx.Graph()
    graph.add_nodes_from(model.schema_.names)
    for edge in model.edges_:
        graph.add_edge(edge.source, edge.target, weight=edge.strength, length=1.0 / edge.strength)
    if measure == "total_strength":
        return dict(graph.degree(weight="weight"))
    if measure == "closeness":
        return nx.closeness_centrality(graph, distance="length")
    return nx.betweenness_centrality(graph, weight="length")


def test_expected_influence_exists_where_signs_do(found, model, alone) -> None:
    table = found.centrality().set_index(["measure", "column"]).loc["expected_influence"]
    unsigned = {end for e in model.edges_ if e.sign is None for end in (e.source, e.target)}
    missing = {*unsigned, "group"}
    assert set(table.index[table["estimate"].isna()]) == missing
    assert missing < set(model.schema_.names), "some columns have one"
    signed = strengths_of([*alone, model], signed=True)
    for column in set(model.schema_.names) - missing:
        own = [p for p in signed if column in p and "group" not in p]
        assert table.loc[column, "estimate"] == pytest.approx(
            signed.iloc[N_BOOT][own].sum(), abs=1e-4
        )
        assert table.loc[column, "mean"] == pytest.approx(
            signed.iloc[:N_BOOT][own].sum(axis=1).mean(), abs=1e-4
        )


def test_differences_are_those_of_the_strengths(found, model, alone) -> None:
    weights = strengths_of(alone)
    table = found.differences(level=0.9)
    n_edges = len(model.edges_)
    assert len(table) == n_edges * (n_edges - 1) // 2
    for row in table.itertuples():
        first = weights[frozenset((row.first_source, row.first_target))]
        second = weights[frozenset((row.second_source, row.second_target))]
        low, high = np.percentile(first - second, [5, 95])
        assert (row.lower, row.upper) == pytest.approx((low, high), abs=1e-4)
        assert row.significant == (row.lower > 0 or row.upper < 0)
        assert row.difference >= 0, "the stronger edge comes first"
    assert table["significant"].nunique() == 2
    row = table.iloc[0]
    names = (row.first_target, row.first_source), (row.second_source, row.second_target)
    one = found.difference(*names, level=0.9)
    assert (one.difference, one.lower, one.upper, one.significant) == pytest.approx(
        (row.difference, row.lower, row.upper, row.significant)
    )
    other = found.difference(names[1], names[0], level=0.9)
    assert (other.lower, other.upper) == pytest.approx((-one.upper, -one.lower))


# -- case-dropping ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dropping(model, table) -> mg.Bootstrap:
    return mg.bootstrap(
        model, table, 60, "case-dropping", drop=[0.1, 0.5, 0.9], random_state=5, n_jobs=1
    )


def correlations(dropping, model, statistic: str) -> np.ndarray:
    """Recomputed from the replicates' strengths alone, graph by graph."""
    names = [node.name for node in model.schema_.nodes]
    replicates = dropping.replicates
    everything = [frozenset((a, b)) for k, a in enumerate(names) for b in names[:k]]
    ends = [frozenset(names[end] for end in pair) for pair in replicates.ends]
    found = []
    for k in range(len(replicates)):
        if statistic == "edge_strengths":
            here = dict.fromkeys(everything, 0.0)
            sign = {"+": 1.0, "-": -1.0, None: 1.0}
            here |= {frozenset(e[:2]): e.strength * sign[e.sign] for e in model.edges_}
            there = dict.fromkeys(everything, 0.0)
            there |= dict(zip(ends, replicates.signed_strengths[k], strict=True))
        else:
            here = by_networkx(model, statistic)
            graph = nx.Graph()
            graph.add_nodes_from(names)
            for pair, weight in zip(ends, replicates.strengths[k], strict=True):
                if weight > 0:
                    graph.add_edge(*pair, weight=weight, length=1.0 / weight)
            there = (
                dict(graph.degree(weight="weight"))
                if statistic == "total_strength"
                else nx.betweenness_centrality(graph, weight="length")
            )
        x, y = (np.array([d[key] for key in here]) for d in (here, there))
        found.append(0.0 if np.ptp(y) == 0 else np.corrcoef(x, y)[0, 1])
    return np.array(found)


@pytest.mark.parametrize("statistic", ["edge_strengths", "total_strength", "betweenness"])
def test_stability_and_cs_are_recomputed_from_the_graphs(dropping, model, statistic) -> None:
    values = correlations(dropping, model, statistic)
    table = dropping.stability(level=0.9)
    own = table[table["statistic"] == statistic]
    assert own["dropped"].tolist() == [0.1, 0.5, 0.9]
    assert own["n_resamples"].tolist() == [20, 20, 20]
    by_share = [values[dropping.dropped == share] for share in own["dropped"]]
    np.testing.assert_allclose(own["mean"], [v.mean() for v in by_share], atol=1e-6)
    np.testing.assert_allclose(own["lower"], [np.percentile(v, 5) for v in by_share], atol=1e-6)
    np.testing.assert_allclose(own["upper"], [np.percentile(v, 95) for v in by_share], atol=1e-6)
    for correlation in (0.3, 0.7, 0.97, 0.9999):
        good = [
            share
            for share, v in zip(own["dropped"], by_share, strict=True)
            if np.mean(v >= correlation) >= 0.95
        ]
        got = dropping.cs_coefficient(statistic, correlation=correlation)
        assert got == (max(good) if good else 0.0)


def test_cs_coefficients_of_all_statistics(dropping) -> None:
    table = dropping.cs_coefficient()
    assert table["statistic"].tolist() == [
        "edge_strengths",
        "total_strength",
        "expected_influence",
        "closeness",
        "betweenness",
    ]
    for row in table.itertuples():
        one = dropping.cs_coefficient(row.statistic)
        assert one == row.cs_coefficient or np.isnan(one)
    text = dropping.summary()
    assert "case-dropping" in text
    assert re.search(r"strength\s+0\.\d", text)


def test_resamples_of_case_dropping_are_fits_of_the_rows_that_stay(dropping, table, model) -> None:
    names = list(dropping.fitted.schema.nodes)
    for k, share in ((0, 0.1), (1, 0.5)):
        rng = np.random.default_rng(spawned(5, 60)[k])
        rows = rng.permutation(150)[: round((1 - share) * 150)]
        fit = mg.MixedGraphicalModel(lam=LAM, tol=1e-8, transforms=None).fit(
            table.iloc[np.sort(rows)]
        )
        fit.fitted_ = replace(fit.fitted_, rows=model.fitted_.rows)
        expected = strengths_of([fit]).iloc[0]
        ends = [frozenset(names[end].name for end in p) for p in dropping.replicates.ends]
        got = pd.Series(dropping.replicates.strengths[k], index=ends)
        np.testing.assert_allclose(got[list(expected.index)], expected, atol=1e-4)
        assert got.drop(list(expected.index)).abs().max() < 1e-4

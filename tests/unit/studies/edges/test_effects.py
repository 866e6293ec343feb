"""Effects of edges and histograms of columns, next to values by hand."""

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.report.details import histogram, known_shares
from mixedgm.studies.edges.effects import edge_effects, rows_to_vary, typical_row
from mixedgm.table.gaps import learn_gaps, read_gaps
from mixedgm.table.read import as_frame
from tests.support.patients import TYPES, patients


@pytest.fixture(scope="module")
def fitted():
    return mg.MixedGraphicalModel(types=TYPES, lam=0.05).fit(patients(300)).fitted_


@pytest.mark.filterwarnings("ignore:.*follows from:mixedgm.TableWarning")
def test_rows_are_complete_and_spread_over_the_table():
    table = pd.DataFrame({"x": np.arange(1000) / 2, "y": np.arange(1000.0) ** 0.5})
    table.loc[::2, "y"] = np.nan
    gaps, _ = learn_gaps(table, transforms=None)
    rows = rows_to_vary(gaps)
    assert rows.n_rows == 400
    assert rows.numbers[0, 0] == 0.5
    assert rows.numbers[-1, 0] == 499.5
    assert not np.isnan(rows.numbers).any()
    assert rows_to_vary(gaps.take(np.arange(0, 1000, 2))) is None


def test_effects_of_every_kind_without_rows(fitted):
    effects = edge_effects(fitted, typical_row(fitted))
    ends = {frozenset((e.source, e.target)) for e in fitted.edges}
    assert {frozenset(pair) for pair in effects} == ends
    for effect in effects.values():
        assert np.isfinite(effect.predicted).all()
        if effect.levels:
            np.testing.assert_allclose(effect.predicted.sum(axis=1), 1.0)
    assert effects["debt", "age"].values[0] == 0.0


def test_a_slope_is_the_coefficient_over_the_precision(fitted):
    effects = edge_effects(fitted, typical_row(fitted))
    effect = effects["grade", "age"]
    steps = np.diff(effect.predicted[:, 0])
    slope = fitted.interaction("grade", "age").values[0, 0]
    node = fitted.schema.node_index("age")
    np.testing.assert_allclose(steps, slope / fitted.params.precision[node, node])


def test_covariates_are_not_predicted():
    rows = patients(200)[["age", "dose", "pain"]]
    fitted = mg.MixedGraphicalModel(lam=0.01, covariates=["age"]).fit(rows).fitted_
    assert typical_row(fitted) is None  # the model has no margins of its covariates
    gaps = read_gaps(as_frame(rows), fitted.schema)
    effects = edge_effects(fitted, rows_to_vary(gaps))
    assert {target for _, target in effects} == {"dose", "pain"}
    assert {source for source, _ in effects} == {"age", "dose", "pain"}


def test_histograms_count_every_row(fitted):
    rows = patients(300)
    gaps = read_gaps(as_frame(rows), fitted.schema)
    for name in rows.columns:
        chart = histogram(gaps, fitted.schema.node_index(name))
        assert chart.counts.sum() + chart.zeros + chart.missing == 300
    node = fitted.schema.node_index("debt")
    assert histogram(gaps, node).zeros == (rows["debt"] == 0).sum()
    ward = histogram(gaps, fitted.schema.node_index("ward"))
    assert dict(zip(ward.names, ward.counts, strict=True)) == rows["ward"].value_counts().to_dict()
    shares = known_shares(fitted, fitted.schema.node_index("ward"))
    np.testing.assert_allclose(shares.counts, ward.counts / 300)
    assert known_shares(fitted, fitted.schema.node_index("age")) is None


@pytest.mark.filterwarnings("ignore:.*follows from:mixedgm.TableWarning")
def test_whole_numbers_have_whole_bins():
    table = pd.DataFrame({"year": np.arange(1950, 2010), "x": np.arange(60) ** 0.5})
    gaps, _ = learn_gaps(table, types={"year": "continuous"})
    chart = histogram(gaps, 0)
    assert set(np.diff(chart.edges)) == {3.0}
    assert chart.edges[0] == 1949.5
    assert set(chart.counts) <= {3.0}

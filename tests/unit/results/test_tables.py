"""Frames of edges, nodes, interactions and paths, in every library."""

import sys
from dataclasses import replace

import narwhals as nw
import numpy as np
import pytest

import mixedgm as mg
from mixedgm.base.errors import ParameterError, TableError
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.results.tables import (
    edges_columns,
    interaction_frame,
    nodes_columns,
    path_columns,
    probability_frame,
)
from mixedgm.table import read as assemble
from mixedgm.table.read import frame
from tests.support.moderated import people


def framed(columns, fitted):
    return frame(columns(fitted), fitted.library)


LIBRARIES = ["pandas", "polars", "pyarrow"]

EDGES = [
    ("age", "wage", "continuous-continuous", 1.0, "+", 1.0 / np.sqrt(8.0)),
    ("age", "sex", "continuous-categorical", np.sqrt(0.5) * 1.4, "+", None),
    ("wage", "edu", "continuous-categorical", np.sqrt(2.0) * 0.4, None, None),
    ("wage", "sex", "continuous-categorical", np.sqrt(0.125) * 0.35, "-", None),
]


def columns_of(native):
    """Columns as lists with None for every missing value, whatever the library."""
    if type(native).__module__.startswith("pandas"):
        native = native.astype(object).where(native.notna(), None)
    return nw.from_native(native, eager_only=True).to_dict(as_series=False)


@pytest.mark.parametrize("library", LIBRARIES)
def test_edges_strongest_first_with_missing_signs_as_missing(hand, library):
    found = framed(edges_columns, hand(library))
    assert type(found).__module__.split(".")[0] == library
    columns = columns_of(found)
    assert list(columns) == [
        "source",
        "target",
        "kind",
        "strength",
        "sign",
        "partial_correlation",
        "norm",
    ]
    rows = list(zip(*columns.values(), strict=True))
    for row, wanted in zip(rows, EDGES, strict=True):
        assert row[:3] == wanted[:3]
        assert row[3] == pytest.approx(wanted[3])
        assert row[4] == wanted[4]
        assert row[5] == (None if wanted[5] is None else pytest.approx(wanted[5]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_graph_without_edges_keeps_its_column_types(hand, library):
    model = hand(library)
    model = replace(model, params=Params.independent(Nodes.mixed(2, (2, 3))), known_strengths=None)
    schema = nw.from_native(framed(edges_columns, model), eager_only=True).schema
    assert schema["source"] == nw.String
    assert schema["sign"] == nw.String
    assert schema["strength"] == nw.Float64
    assert schema["partial_correlation"] == nw.Float64


@pytest.mark.parametrize("library", LIBRARIES)
def test_nodes_in_the_order_of_the_table(hand, library):
    columns = columns_of(framed(nodes_columns, hand(library)))
    assert columns["column"] == ["sex", "age", "edu", "wage"]
    assert columns["kind"] == ["categorical", "continuous", "categorical", "continuous"]
    assert columns["role"] == ["target"] * 4
    assert columns["n_levels"] == [2, 0, 3, 0]
    assert columns["levels"] == ["F, M", None, "lo, mid, hi", None]
    assert columns["degree"] == [2, 2, 1, 3]
    weight = {edge[:2]: edge[3] for edge in EDGES}
    assert columns["total_strength"] == pytest.approx(
        [
            weight["age", "sex"] + weight["wage", "sex"],
            weight["age", "wage"] + weight["age", "sex"],
            weight["wage", "edu"],
            weight["age", "wage"] + weight["wage", "edu"] + weight["wage", "sex"],
        ]
    )


def test_interaction_in_pandas_names_both_axes(hand):
    found = interaction_frame(hand("pandas"), "edu", "wage")
    assert found.index.name == "edu"
    assert found.columns.name == "wage"
    assert found.index.tolist() == ["lo", "mid", "hi"]
    assert found.columns.tolist() == ["wage"]
    assert found["wage"].tolist() == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_interaction_elsewhere_has_row_names_in_the_first_column(hand, library):
    columns = columns_of(interaction_frame(hand(library), "age", "sex"))
    assert columns == {"age": ["age"], "F": [-0.5], "M": [0.5]}


def test_row_names_do_not_hide_a_level_of_the_same_name(hand):
    model = hand("polars", names=("sex", "M", "edu", "wage"))
    assert columns_of(interaction_frame(model, "M", "sex")) == {
        "M_": ["M"],
        "F": [-0.5],
        "M": [0.5],
    }


def test_interaction_of_continuous_pair_is_minus_the_precision(hand):
    assert interaction_frame(hand(), "age", "wage").loc["age", "wage"] == 1.0


def test_standardised_interactions_are_those_of_a_table_in_standard_deviations():
    """Fit the table with its columns divided by their standard deviations, and compare."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x, e, u = rng.normal(size=(3, 400))
    discrete = np.where(x + rng.normal(size=400) > 0, "p", np.where(u > 0, "q", "r"))
    table = pd.DataFrame({"x": 50.0 * x, "y": 0.01 * (x + e), "c": discrete})
    scaled = table.assign(**{name: table[name] / table[name].std(ddof=0) for name in ("x", "y")})
    model, other = (mg.MixedGraphicalModel(lam=0.05).fit(each) for each in (table, scaled))
    share = table["c"].value_counts(normalize=True)
    spread = {"x": 1.0, "y": 1.0, "c": np.sqrt(1.0 - (share**2).sum())}
    assert len(model.edges_) >= 2
    for a, b, norm in ((e.source, e.target, e.norm) for e in model.edges_):
        found = model.interaction(a, b, standardised=True)
        np.testing.assert_allclose(found, other.interaction(a, b), rtol=1e-3, atol=1e-5)
        assert np.linalg.norm(found) * spread[a] * spread[b] == pytest.approx(norm)


def test_standardised_deviations_give_the_norm_of_a_deviation():
    """A continuous moderator is in standard deviations too."""
    table = people()
    options = {"moderators": ["age"], "covariates": ["group", "wave"], "lam": 0.06}
    model = mg.MixedGraphicalModel(**options).fit(table)
    edge = next(e for e in model.edges_ if e.moderator and {e.source, e.target} == {"a", "b"})
    found = model.interaction("a", "b", "age", standardised=True).iloc[0, 0]
    assert abs(found) == pytest.approx(edge.norm)
    units = [table[name].std(ddof=0) for name in ("a", "b", "age")]
    plain = model.interaction("a", "b", "age").iloc[0, 0]
    assert found == pytest.approx(plain * np.prod(units))


def test_path_has_one_row_per_lam_and_the_scores(solved):
    found = framed(path_columns, solved)
    assert found.columns.tolist() == [
        "lam", "n_edges", "objective", "kkt", "kkt_relative", "passes", "curvature_passes",
        "seconds", "pass_seconds", "curvature_seconds", "n_iter", "converged", "ebic",
    ]  # fmt: skip
    assert found["lam"].is_monotonic_decreasing
    assert found["n_edges"].iloc[0] == 0
    assert found["n_edges"].iloc[3] == len(solved.edges)
    assert found["converged"].all()
    np.testing.assert_allclose(found["kkt_relative"], found["kkt"] / found["lam"])
    assert found["ebic"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_model_without_path_says_how_to_get_one(hand):
    with pytest.raises(ParameterError, match="without lam, or with lams"):
        framed(path_columns, hand())


def test_probabilities_are_named_by_level():
    values = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert probability_frame(("F", "M"), values, "numpy") is values
    found = columns_of(probability_frame(("F", "M"), values, "pyarrow"))
    assert found == {"F": [0.25, 0.5], "M": [0.75, 0.5]}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_keeps_types_and_missing_values(library):
    native = frame(
        {
            "text": ["a", None],
            "number": [1.5, None],
            "whole": [1, 2],
            "truth": [True, False],
            "nothing": [None, None],
            "array": np.array([np.nan, 2.0]),
        },
        library,
    )
    assert columns_of(native) == {
        "text": ["a", None],
        "number": [1.5, None],
        "whole": [1, 2],
        "truth": [True, False],
        "nothing": [None, None],
        "array": [None, 2.0],
    }
    schema = nw.from_native(native, eager_only=True).schema
    assert schema["text"] == nw.String
    assert schema["whole"] == nw.Int64
    assert schema["truth"] == nw.Boolean


def test_an_array_takes_the_first_library_that_is_installed(monkeypatch, hand):
    def installed(*names):
        monkeypatch.setattr(assemble, "find_spec", lambda name: name in names or None)

    installed("polars", "pyarrow")
    assert type(framed(edges_columns, hand("numpy"))).__module__.startswith("polars")
    installed("pyarrow")
    assert type(framed(edges_columns, hand("numpy"))).__module__.startswith("pyarrow")
    installed()
    with pytest.raises(TableError, match=r'pip install "mixedgm\[frames\]"'):
        framed(edges_columns, hand("numpy"))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_gone_is_named(monkeypatch, hand, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TableError, match=f"pip install {library}"):
        framed(edges_columns, hand(library))


def test_an_unknown_library_is_refused():
    with pytest.raises(ParameterError, match="library must be one of"):
        frame({"a": [1]}, "excel")

"""One table in every library -> the same fit, and frames back in the user's own library."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mixedgm as mg
from tests.support.people import LEVELS, as_library, assert_same_params, numbers, people

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
COLUMNS = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.ChunkedArray}


@pytest.fixture(scope="module")
def reference():
    return mg.MixedGraphicalModel(lam=0.15).fit(people())


@pytest.fixture(scope="module", params=["pandas", "polars", "pyarrow"])
def fitted(request):
    frame = as_library(people(), request.param)
    return request.param, frame, mg.MixedGraphicalModel(lam=0.15).fit(frame)


def to_dict(frame) -> dict[str, list]:
    """A frame of any library as lists, by way of that library only."""
    if isinstance(frame, pd.DataFrame):
        return {name: frame[name].tolist() for name in frame.columns}
    return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()


# -- the same fit ----------------------------------------------------------------------------------


def test_the_table_has_edges_of_all_kinds(reference):
    assert {edge.kind for edge in reference.edges_} == {
        "continuous-continuous",
        "continuous-categorical",
        "categorical-categorical",
    }


@pytest.mark.parametrize("library", ["polars", "pyarrow", "objects"])
def test_every_library_gives_the_same_fit(reference, library):
    model = mg.MixedGraphicalModel(lam=0.15).fit(as_library(people(), library))
    assert_same_params(model.params_, reference.params_)


def test_codes_with_types_give_the_same_fit(reference):
    model = mg.MixedGraphicalModel(lam=0.15, types={1: "categorical"})
    model.fit(as_library(people(), "codes"))
    assert_same_params(model.params_, reference.params_)
    as_list = mg.MixedGraphicalModel(lam=0.15, types=[None, "categorical", None, None, None])
    assert_same_params(as_list.fit(as_library(people(), "codes")).params_, reference.params_)


def test_a_list_of_rows_gives_the_same_fit(reference):
    rows = as_library(people(), "objects").tolist()
    assert_same_params(mg.MixedGraphicalModel(lam=0.15).fit(rows).params_, reference.params_)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("as_text", [True, False])
def test_files_give_the_same_fit(reference, tmp_path, suffix, as_text):
    path = tmp_path / f"people{suffix}"
    if suffix == ".csv":
        people().to_csv(path, index=False)
    else:
        people().to_parquet(path, index=False)
    model = mg.MixedGraphicalModel(lam=0.15).fit(str(path) if as_text else path)
    assert_same_params(model.params_, reference.params_)
    assert model.score(path) == reference.score(people())
    assert model.feature_names_in_.tolist() == list(people().columns)


def test_the_fit_does_not_depend_on_the_order_of_columns_in_new_data(reference):
    turned = people()[["colour", "weight", "smoker", "height", "group"]].assign(extra=1.0)
    assert reference.score(turned) == reference.score(people())
    expected = reference.predict(people())
    assert reference.predict(turned).equals(expected)


# -- frames out ------------------------------------------------------------------------------------


def test_edges_are_a_frame_of_the_users_library(fitted, reference):
    library, _, model = fitted
    edges = model.edges()
    assert isinstance(edges, FRAMES[library])
    table = to_dict(edges)
    assert list(table) == [
        "source",
        "target",
        "kind",
        "strength",
        "sign",
        "partial_correlation",
        "norm",
    ]
    assert table["norm"] == [edge.norm for edge in reference.edges_]
    assert table["source"] == [edge.source for edge in reference.edges_]
    unsigned = [edge.sign is None for edge in reference.edges_]
    assert [value not in ("+", "-") for value in table["sign"]] == unsigned
    partial = [v is None or v != v for v in table["partial_correlation"]]
    assert partial == [edge.partial_correlation is None for edge in reference.edges_]


def test_nodes_are_a_frame_in_the_tables_order(fitted):
    library, frame, model = fitted
    nodes = model.nodes()
    assert isinstance(nodes, FRAMES[library])
    table = to_dict(nodes)
    assert table["column"] == ["height", "group", "weight", "smoker", "colour"]
    assert table["n_levels"] == [0, 3, 0, 2, 2]
    for name, degree, strength in zip(
        table["column"], table["degree"], table["total_strength"], strict=True
    ):
        mine = [edge.strength for edge in model.edges_ if name in (edge.source, edge.target)]
        assert degree == len(mine)
        assert strength == pytest.approx(sum(mine))


def test_interaction_has_level_names_on_both_axes(fitted):
    library, _, model = fitted
    found = model.interaction("smoker", "group")
    assert isinstance(found, FRAMES[library])
    table = to_dict(found)
    names = found.index.tolist() if library == "pandas" else table.pop("smoker")
    assert names == ["False", "True"]
    assert list(table) == ["a", "b", "c"]
    # group is the first categorical column, smoker the second: rows 3 and 4, columns 0 to 2.
    np.testing.assert_array_equal(
        np.array(list(table.values())).T, model.params_.cat_interaction[3:5, :3]
    )


def test_interaction_turns_with_its_arguments(reference):
    one, other = reference.interaction("height", "group"), reference.interaction("group", "height")
    assert one.shape == (1, 3)
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy().T)
    np.testing.assert_array_equal(one.to_numpy()[0], reference.params_.category_shift[0, :3])
    pair = reference.interaction("height", "weight")
    assert pair.loc["height", "weight"] == -reference.params_.precision[0, 1]


def test_adjacency_is_symmetric_in_the_tables_order(fitted, reference):
    library, _, model = fitted
    found = model.to_adjacency()
    assert isinstance(found, FRAMES[library])
    table = to_dict(found)
    if library != "pandas":
        assert table.pop("column") == list(people().columns)
    else:
        assert found.index.tolist() == list(people().columns)
    matrix = np.array(list(table.values()))
    assert list(table) == list(people().columns)
    np.testing.assert_array_equal(matrix, matrix.T)
    where = {name: k for k, name in enumerate(people().columns)}
    expected = np.zeros((5, 5))
    for edge in reference.edges_:
        expected[where[edge.source], where[edge.target]] = edge.strength
    np.testing.assert_array_equal(matrix, expected + expected.T)


def test_adjacency_of_an_array_is_an_array_and_signs_can_be_asked_for():
    x = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, -0.8], [0.0, 1.0]]
    model = mg.MixedGraphicalModel(lam=0.1).fit(x)
    plain, signed = model.to_adjacency(), model.to_adjacency(signed=True)
    assert isinstance(plain, np.ndarray)
    assert plain[0, 1] == plain[1, 0] > 0
    np.testing.assert_array_equal(signed, -plain)
    np.testing.assert_array_equal(model.to_adjacency(), plain)


def test_networkx_has_the_same_edges(reference):
    graph = reference.to_networkx()
    assert isinstance(graph, nx.Graph)
    assert list(graph) == list(people().columns)
    assert {frozenset(pair) for pair in graph.edges} == {
        frozenset((edge.source, edge.target)) for edge in reference.edges_
    }


# -- predictions -----------------------------------------------------------------------------------


def test_predictions_come_back_in_library_names_and_types(fitted, reference):
    library, frame, model = fitted
    out = model.predict(frame)
    assert isinstance(out, FRAMES[library])
    assert list(to_dict(out)) == list(people().columns)
    if library == "pandas":
        assert out.dtypes.equals(frame.dtypes)
    elif library == "polars":
        assert out.schema == frame.schema
    else:
        assert out.schema.equals(frame.schema)
    assert to_dict(out) == to_dict(reference.predict(people()))


def test_one_name_gives_one_column_and_a_list_gives_a_frame(fitted):
    library, frame, model = fitted
    everything = to_dict(model.predict(frame))
    for name in ("height", "group", "smoker"):
        column = model.predict(frame, name)
        assert isinstance(column, COLUMNS[library])
        values = column.to_pylist() if library == "pyarrow" else column.to_list()
        assert values == everything[name]
    part = model.predict(frame, ["weight", "group"])
    assert isinstance(part, FRAMES[library])
    assert to_dict(part) == {name: everything[name] for name in ("weight", "group")}


def test_the_predicted_column_may_be_absent_and_is_never_read(fitted):
    library, frame, model = fitted
    for name in ("height", "group", "smoker"):
        expected = to_dict(model.predict(frame, [name]))
        if library == "pandas":
            lacking, spoilt = frame.drop(columns=name), frame.assign(**{name: "nonsense"})
        elif library == "polars":
            lacking = frame.drop(name)
            spoilt = frame.with_columns(pl.lit("nonsense").alias(name))
        else:
            lacking = frame.drop_columns([name])
            at = frame.column_names.index(name)
            spoilt = frame.set_column(at, name, pa.array(["nonsense"] * len(frame)))
        assert to_dict(model.predict(lacking, [name])) == expected
        assert to_dict(model.predict(spoilt, [name])) == expected
        if name != "height":
            expected = to_dict(model.predict_proba(frame, name))
            assert to_dict(model.predict_proba(lacking, name)) == expected


def test_probabilities_have_one_column_per_level(fitted):
    library, frame, model = fitted
    found = model.predict_proba(frame, "group")
    assert isinstance(found, FRAMES[library])
    table = to_dict(found)
    assert list(table) == LEVELS["group"]
    matrix = np.array(list(table.values()))
    np.testing.assert_allclose(matrix.sum(axis=0), 1.0, rtol=1e-12)
    modes = [LEVELS["group"][k] for k in matrix.argmax(axis=0)]
    assert to_dict(model.predict(frame, ["group"]))["group"] == modes


def test_probabilities_of_all_columns_are_a_dict(reference):
    found = reference.predict_proba(people())
    assert list(found) == ["group", "smoker", "colour"]
    for name, table in found.items():
        assert table.equals(reference.predict_proba(people(), name))
        assert table.columns.tolist() == [str(level) for level in LEVELS[name]]


@pytest.mark.parametrize("index", [[7, 5, 3], ["x", "y", "z"]])
def test_predictions_keep_the_index_of_a_pandas_frame(reference, index):
    rows = people().iloc[:3].set_axis(index, axis=0)
    assert reference.predict(rows).index.tolist() == index
    assert reference.predict(rows, "height").index.tolist() == index
    assert reference.predict_proba(rows, "group").index.tolist() == index


def test_an_array_gives_arrays():
    codes = as_library(people(), "codes")
    model = mg.MixedGraphicalModel(lam=0.15, types={1: "categorical"}).fit(codes)
    out = model.predict(codes)
    assert out.shape == codes.shape
    assert out.dtype == np.float64
    names = model.schema_.names
    np.testing.assert_array_equal(model.predict(codes, names[2]), out[:, 2])
    found = model.predict_proba(codes, names[1])
    assert found.shape == (len(codes), 3)
    assert isinstance(model.edges(), pd.DataFrame)


def test_rows_given_in_another_library_come_back_in_that_library(reference):
    out = reference.predict(as_library(people(), "polars"))
    assert isinstance(out, pl.DataFrame)
    assert to_dict(out) == to_dict(reference.predict(people()))


# -- levels ----------------------------------------------------------------------------------------


def test_an_unseen_level_is_named_with_its_column(reference):
    rows = people().iloc[:4].copy()
    rows["colour"] = ["blue", "green", "green", "red"]
    refused = {"unseen": "error"}
    for ask in (
        reference.predict,
        lambda rows: reference.score(rows, **refused),
        lambda rows: reference.node_scores(rows, **refused),
    ):
        with pytest.raises(mg.TableError, match=r"'?colour'?.*'green'") as caught:
            ask(rows)
        assert caught.value.findings[0].column == "colour"


def test_a_missing_column_is_named(reference):
    with pytest.raises(mg.TableError, match="weight.*the table lacks it"):
        reference.score(people().drop(columns="weight"))
    with pytest.raises(mg.TableError, match="height.*the table lacks it"):
        reference.predict(people().drop(columns=["height", "weight"]), "weight")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "interaction"])
def test_an_unknown_column_is_refused_with_a_hint(reference, method):
    arguments = ("groop", "height") if method == "interaction" else (people(), "groop")
    with pytest.raises(mg.ParameterError, match=r"no column 'groop'; did you mean 'group'\?"):
        getattr(reference, method)(*arguments)


def test_probabilities_of_a_continuous_column_are_refused(reference):
    with pytest.raises(mg.ParameterError, match="'height' is continuous.*use predict"):
        reference.predict_proba(people(), "height")


def test_no_columns_to_predict_is_refused(reference):
    with pytest.raises(mg.ParameterError, match="columns must be at least one column name"):
        reference.predict(people(), [])


@pytest.fixture
def with_spare_level():
    frame = people()
    frame["group"] = frame["group"].cat.set_categories(["a", "spare", "b", "c"])
    with pytest.warns(mg.TableWarning, match="group.*level without rows: 'spare'"):
        return frame, mg.MixedGraphicalModel(lam=0.15).fit(frame)


def test_a_declared_level_without_rows_has_half_a_row(with_spare_level, reference):
    frame, model = with_spare_level
    n = len(frame)
    found = model.predict_proba(frame, "group")
    np.testing.assert_allclose(found["spare"], 0.5 / (n + 0.5), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    # The others keep their ratios.
    rest = found[["a", "b", "c"]].to_numpy()
    expected = reference.predict_proba(people(), "group").to_numpy() * n / (n + 0.5)
    np.testing.assert_allclose(rest, expected, rtol=1e-9)
    assert model.predict(frame, "group").cat.categories.tolist() == ["a", "spare", "b", "c"]


def test_a_declared_level_without_rows_has_no_parameters(with_spare_level, reference):
    _, model = with_spare_level
    params = model.params_
    assert params.n_levels == (4, 2, 2)
    assert params.cat_bias[1] == -np.inf
    assert np.isfinite(np.delete(params.cat_bias, 1)).all()
    assert not params.category_shift[:, 1].any()
    assert not params.cat_interaction[:, 1].any()
    assert not params.cat_interaction[1].any()
    keep = [0, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(
        params.category_shift[:, keep], reference.params_.category_shift, atol=1e-10
    )
    assert model.objective_ == pytest.approx(reference.objective_, abs=1e-12)


def test_new_rows_may_have_the_declared_level(with_spare_level):
    frame, model = with_spare_level
    rows = frame.iloc[:5].copy()
    rows["group"] = pd.Categorical(["spare"] * 5, categories=["a", "spare", "b", "c"])
    expected = -np.log(0.5 / (len(frame) + 0.5))
    assert model.node_scores(rows)["group"] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(model.score(rows))


def test_codes_read_by_hand_are_those_of_the_fit(reference):
    """The table's helper and the model agree on what column 3 of the level blocks is."""
    _, Y = numbers(people())
    frequency = np.concatenate([np.bincount(y) / len(Y) for y in Y.T])
    empty = mg.MixedGraphicalModel(lam=3.0).fit(people()).params_
    for block in (slice(0, 3), slice(3, 5), slice(5, 7)):
        weights = np.exp(empty.cat_bias[block])
        np.testing.assert_allclose(weights / weights.sum(), frequency[block], rtol=1e-9)

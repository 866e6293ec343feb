"""Graphs for other programs: networkx, matrices, GraphML, JSON, CSV."""

import csv
import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from mixedgm.base.errors import OutputError, ParameterError
from mixedgm.results.export import to_adjacency, to_networkx, write

ORDER = ["sex", "age", "edu", "wage"]
ODD = ("<&\"'>", "nul\x00 bell\x07", "tab\tline\nend", "nul\\x00 bell\\x07")


def matrix(signed):
    """The hand-made weights in the order of the table."""
    found = np.zeros((4, 4))
    minus = -1.0 if signed else 1.0
    for u, v, weight in [
        (1, 3, 1.0),
        (1, 0, np.sqrt(0.5) * 1.4),
        (3, 2, np.sqrt(2.0) * 0.4),
        (3, 0, minus * np.sqrt(0.125) * 0.35),
    ]:
        found[u, v] = found[v, u] = weight
    return found


def test_networkx_has_names_and_attributes(hand):
    graph = to_networkx(hand())
    assert list(graph) == ORDER
    assert graph.nodes["edu"] == {
        "kind": "categorical",
        "role": "target",
        "levels": '["lo", "mid", "hi"]',
    }
    assert graph.edges["age", "wage"] == {
        "kind": "continuous-continuous",
        "weight": pytest.approx(1.0),
        "sign": "+",
        "partial_correlation": pytest.approx(1.0 / np.sqrt(8.0)),
    }
    assert {d["sign"] for *_, d in graph.edges(data=True)} == {"+", "-", "none"}
    assert "partial_correlation" not in graph.edges["wage", "sex"]


@pytest.mark.parametrize("signed", [False, True])
def test_adjacency_in_the_order_of_the_table(hand, signed):
    wanted = matrix(signed)
    np.testing.assert_allclose(to_adjacency(hand("numpy"), signed=signed), wanted)
    found = to_adjacency(hand("pandas"), signed=signed)
    assert found.index.tolist() == found.columns.tolist() == ORDER
    np.testing.assert_allclose(found.to_numpy(), wanted)
    for library in ("polars", "pyarrow"):
        table = to_adjacency(hand(library), signed=signed)
        names = table["column"].to_list() if library == "polars" else table["column"].to_pylist()
        assert names == ORDER
        values = np.column_stack([np.asarray(table[name]) for name in ORDER])
        np.testing.assert_allclose(values, wanted)


def test_adjacency_does_not_touch_the_model(hand):
    model = hand("numpy")
    to_adjacency(model, signed=True)[...] = 9.0
    np.testing.assert_allclose(to_adjacency(model), matrix(False))


def test_a_column_called_column_keeps_its_name(hand):
    found = to_adjacency(hand("polars", names=("column", "age", "edu", "wage")))
    assert found.columns == ["column_", "column", "age", "edu", "wage"]


def test_graphml_round_trip(hand, tmp_path):
    model = hand()
    write(model, tmp_path / "graph.graphml")
    back, graph = nx.read_graphml(tmp_path / "graph.graphml"), to_networkx(model)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert nx.utils.edges_equal(back.edges(data=True), graph.edges(data=True))
    assert back.graph["lam"] == 0.1


def test_graphml_with_odd_names_is_read_back(hand, tmp_path):
    write(hand(names=ODD), tmp_path / "odd.GraphML")
    back = nx.read_graphml(tmp_path / "odd.GraphML")
    # Two names read the same once control characters are spelled out; both nodes are kept.
    assert set(back) == {
        "<&\"'>",
        "nul\\x00 bell\\x07",
        "tab\tline\nend",
        "nul\\x00 bell\\x07_",
    }
    assert back.number_of_edges() == 4


def test_graphml_keeps_levels_that_xml_cannot_hold(hand, tmp_path):
    model = hand()
    columns = list(model.schema.columns)
    columns[0] = replace(columns[0], levels=("F\x0b", "M\ud800"))
    model = replace(model, schema=replace(model.schema, columns=tuple(columns)))
    write(model, tmp_path / "g.graphml")
    levels = nx.read_graphml(tmp_path / "g.graphml").nodes["sex"]["levels"]
    assert "F" in levels
    assert "M" in levels


def test_json_holds_everything(hand, tmp_path):
    write(hand(), tmp_path / "graph.json")
    found = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    assert found["fit"]["lam"] == 0.1
    assert found["fit"]["kkt"] == 2e-6
    assert found["fit"]["converged"] is True
    assert [column["name"] for column in found["schema"]["columns"]] == ORDER
    assert [(edge["source"], edge["target"], edge["sign"]) for edge in found["edges"]] == [
        ("age", "wage", "+"),
        ("age", "sex", "+"),
        ("wage", "edu", None),
        ("wage", "sex", "-"),
    ]
    assert found["edges"][2]["parameters"] == {
        "source_levels": ["wage"],
        "target_levels": ["lo", "mid", "hi"],
        "values": [[1.0, 0.0, -1.0]],
    }
    nodes = {node["column"]: node for node in found["nodes"]}
    assert nodes["age"] == {"column": "age", "kind": "continuous", "bias": 0.5, "precision": 2.0}
    # The bias of a level without rows is minus infinity, which JSON cannot hold.
    assert nodes["edu"]["bias"] == {"lo": 0.0, "mid": 0.3, "hi": None}


def test_json_of_names_without_utf8(hand, tmp_path):
    write(hand(names=("half \ud800", "age", "édu", "wage")), tmp_path / "g.json")
    found = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
    assert found["nodes"][0]["column"] == "half \ud800"
    assert found["nodes"][2]["column"] == "édu"


def test_csv_round_trip(hand, tmp_path):
    write(hand(names=("sex, or so", 'the "age"', "edu", "wage\nline")), tmp_path / "graph.csv")
    with (tmp_path / "graph.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["source"] == 'the "age"'
    assert rows[0]["target"] == "wage\nline"
    assert float(rows[0]["partial_correlation"]) == pytest.approx(1.0 / np.sqrt(8.0), rel=1e-15)
    assert rows[1]["target"] == "sex, or so"
    assert [row["sign"] for row in rows] == ["+", "+", "", "-"]
    assert [row["partial_correlation"] for row in rows[1:]] == ["", "", ""]
    assert float(rows[1]["strength"]) == pytest.approx(np.sqrt(0.5) * 1.4, rel=1e-15)


def test_an_unknown_suffix_lists_the_choices(hand, tmp_path):
    with pytest.raises(ParameterError, match=r"\.graphml, \.json, \.csv.*graph\.gexf"):
        write(hand(), tmp_path / "graph.gexf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".graphml", ".json", ".csv"])
def test_nothing_is_half_written(hand, tmp_path, monkeypatch, suffix):
    def full(_):
        raise OSError("no space left")

    path = tmp_path / f"graph{suffix}"
    path.write_text("before")
    monkeypatch.setattr("mixedgm.base.atomic.os.fsync", full)
    with pytest.raises(OutputError, match="cannot be written: no space left") as raised:
        write(hand(), path)
    assert isinstance(raised.value, OSError)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "before"


def test_a_missing_folder_is_named(hand, tmp_path):
    with pytest.raises(ParameterError, match="nowhere"):
        write(hand(), tmp_path / "nowhere" / "graph.json")

"""The live graph: the layout, the strengths and the bends of static pictures."""

import networkx as nx
import numpy as np
import pytest

import mixedgm as mg
from mixedgm.report.graph import graph_content
from mixedgm.report.material import Material


@pytest.mark.parametrize(("n", "n_edges"), [(9, 14), (25, 80)])
def test_columns_stand_where_static_pictures_have_them(n, n_edges):
    graph = nx.relabel_nodes(nx.gnm_random_graph(n, n_edges, seed=1), lambda k: f"income_{k}")
    model = mg.random_model(graph, random_state=1)
    drawing = model.plot()
    content = graph_content(Material(model.fitted_))
    live = np.array([(node["x"], -node["y"]) for node in content["nodes"]])
    np.testing.assert_allclose(live, list(drawing.positions.values()), rtol=1e-3, atol=1e-3)
    strengths = [edge["strength"] for edge in content["edges"]]
    assert strengths == sorted(strengths, reverse=True)
    assert all(0.0 < strength <= 1.0 for strength in strengths)
    (lines,) = [each for each in drawing.ax.collections if each.get_gid() == "edges"]
    segments = lines.get_segments()[::-1]  # strong edges are drawn last
    drawn = np.array([len(line) > 2 for line in segments])
    told = np.array(["bend" in edge for edge in content["edges"]])
    # Nodes of the page keep a little more room.
    assert np.mean(drawn == told) > 0.9
    assert (content["scale"]["cut"] is None) == (n < 20 or n_edges <= 2 * n)

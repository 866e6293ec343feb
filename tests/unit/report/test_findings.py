"""The opening of the report: what it says is what the graph has."""

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.report.findings import findings_content
from mixedgm.report.material import Material
from mixedgm.report.methods import methods_text
from mixedgm.report.trust import trust_content


def said(edges, n=5):
    """The sentences about a graph of continuous columns with these partial correlations."""
    precision = np.eye(n)
    for (a, b), size in edges.items():
        precision[a, b] = precision[b, a] = -size
    columns = {f"c{k}": "continuous" for k in range(n)}
    model = mg.from_params(columns, {"precision": precision.tolist()})
    return findings_content(Material(model.fitted_))["sentences"]


def test_the_most_connected_column_comes_first_with_its_strongest_neighbours():
    first, second, third, fourth = said({(0, 1): 0.3, (0, 2): 0.4, (0, 3): 0.2, (1, 3): 0.1})
    assert first == "c0 is most directly related to c2, c1 and c3."
    assert second == "The strongest relation among the other columns is between c1 and c3."
    assert third == "Of 10 pairs of columns 4 are directly related."
    assert fourth == "Nothing is directly related to c4."


def test_the_strongest_relation_is_named_where_it_is_elsewhere():
    sentences = said({(0, 1): 0.3, (0, 2): 0.3, (3, 4): 0.5})
    assert sentences[:2] == [
        "c0 is most directly related to c1 and c2.",
        "The strongest relation of all is between c3 and c4.",
    ]
    assert len(sentences) == 3


def test_one_edge_and_none():
    assert said({(0, 1): 0.3}, n=2) == [
        "c0 is most directly related to c1.",
        "Of 1 pair of columns 1 is directly related.",
    ]
    (only,) = said({})
    assert only.startswith("No two columns are directly related")


@pytest.mark.parametrize("n_rows", [99, 100])
def test_false_edges_are_counted_from_a_hundred_rows_on(n_rows):
    x = np.random.default_rng(0).normal(size=(n_rows, 3))
    x[:, 1] += x[:, 0]
    model = mg.MixedGraphicalModel().fit(x)
    material = Material(model.fitted_)
    number = (1 - model.edges()["probability"]).sum()
    summary = " ".join(str(model.summary()).split())
    if n_rows == 100:
        assert f"{number:.2g} of these edges expected to be false" in summary
    else:
        assert "how many of these edges are false is not known with 99 rows" in summary
    said = ("expected to be false", "not known how many of the")[n_rows < 100]
    assert said in findings_content(material)["sentences"][1]
    assert said in methods_text(material)
    assert said in next(
        each["summary"] for each in trust_content(material) if "choice" in each.values()
    )

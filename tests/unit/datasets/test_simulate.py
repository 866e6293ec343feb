"""make_ladder -> the paper's graph: its parameters, its table, its recovery."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.shared import shared_data


def test_the_parameters_are_those_of_the_reference_set():
    stored = np.load(shared_data("sim/a.npz"))
    _, truth = mg.datasets.make_ladder(2, random_state=0)
    np.testing.assert_array_equal(truth.params_.precision, stored["B"])
    np.testing.assert_array_equal(truth.params_.category_shift, stored["R"])
    np.testing.assert_array_equal(truth.params_.cat_interaction, stored["Phi"])
    index = truth.schema_.node_index
    edges = {(index(edge.source), index(edge.target)) for edge in truth.edges_}
    assert edges == {(int(u), int(v)) for u, v in stored["edges"]}


@pytest.mark.parametrize("p", [1, 2, 5])
def test_a_ladder_has_three_edges_per_rung_less_two(p):
    table, truth = mg.datasets.make_ladder(30, p, random_state=0)
    assert table.shape == (30, 2 * p)
    assert len(truth.edges_) == 3 * p - 2
    assert list(table.columns) == [f"x{k + 1}" for k in range(p)] + [f"y{k + 1}" for k in range(p)]


def test_levels_may_differ_by_column():
    table, truth = mg.datasets.make_ladder(200, 3, n_levels=[2, 5, 3], random_state=0)
    assert truth.schema_.n_levels == (2, 5, 3)
    assert [len(table[f"y{k}"].cat.categories) for k in (1, 2, 3)] == [2, 5, 3]
    assert len(truth.edges_) == 7
    np.testing.assert_allclose(truth.interaction("x2", "y2"), [[0.5, 0.25, 0.0, -0.25, -0.5]])


def test_equal_seeds_give_equal_tables():
    one, _ = mg.datasets.make_ladder(20, 3, random_state=1)
    two, _ = mg.datasets.make_ladder(20, 3, random_state=1)
    other, _ = mg.datasets.make_ladder(20, 3, random_state=2)
    assert one.equals(two)
    assert not one.equals(other)


def test_the_default_fit_finds_the_ladder():
    table, truth = mg.datasets.make_ladder(2000, 4, random_state=0)
    found = mg.compare_graphs(truth, mg.MixedGraphicalModel().fit(table))
    assert found.recall == 1.0
    assert len(found.false_edges) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0}, "p must be"),
        ({"p": 2.5}, "p must be"),
        ({"n": 0}, "n must be"),
        ({"n_levels": 1}, "n_levels must be"),
        ({"n_levels": [2, 2]}, "n_levels must be"),
        ({"beta": 0.6}, "positive definite"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.datasets.make_ladder(**options)

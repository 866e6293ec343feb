"""Pictures: what is drawn where, in which colour, and with which layout."""

import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

import mixedgm as mg
from mixedgm.base.errors import MixedGMError, ParameterError
from mixedgm.pictures.matrices import parameter_matrix, plot_parameters
from mixedgm.pictures.network.plot import plot_network
from mixedgm.pictures.network.positions import positions
from mixedgm.pictures.path import path_norms, plot_path
from tests.support.models import chain
from tests.support.people import people

PLOTS = [plot_network, plot_path, plot_parameters]
NAMED = ["spring", "circle", "kamada-kawai"]


def lines_of(drawing):
    """Colour, dashes and width of every drawn edge, by the names of its ends."""
    found, names = {}, list(drawing.positions)
    places = np.array(list(drawing.positions.values()))
    for artist in drawing.ax.collections:
        if isinstance(artist, LineCollection):
            looks = zip(
                artist.get_segments(),
                artist.get_colors(),
                artist.get_linestyles(),
                artist.get_linewidths(),
                strict=True,
            )
            for line, colour, dashes, width in looks:
                ends = [names[np.abs(places - end).sum(axis=1).argmin()] for end in line[[0, -1]]]
                found[frozenset(ends)] = to_hex(colour), dashes[1], width
    return found


BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"
SIGNS = {
    frozenset({"age", "wage"}): BLUE,
    frozenset({"age", "sex"}): BLUE,
    frozenset({"wage", "sex"}): VERMILION,
    frozenset({"wage", "edu"}): GREEN,
}


def test_edges_are_coloured_by_sign(hand):
    assert {ends: look[0] for ends, look in lines_of(plot_network(hand())).items()} == SIGNS
    dark = lines_of(plot_network(hand(), theme="dark"))
    assert {SIGNS[ends]: look[0] for ends, look in dark.items()} == {
        BLUE: "#58b4f0",
        VERMILION: "#ff9248",
        GREEN: "#4cc79b",
    }


def test_negative_edges_are_dashed_where_lines_are_few_or_it_is_asked(hand):
    for ends, (_, dashes, _) in lines_of(plot_network(hand())).items():
        assert (dashes is not None) == (SIGNS[ends] == VERMILION)
    many = chain(12, [(u, v) for u in range(12) for v in range(u)])
    flipped = replace(many, params=many.params.with_precision(np.abs(many.params.precision)))
    assert {look[1] is None for look in lines_of(plot_network(flipped)).values()} == {True}
    asked = lines_of(plot_network(flipped, dashes=True)).values()
    assert {look[1] is None for look in asked} == {False}


def test_edges_whose_size_is_not_determined_are_dotted(hand):
    model = hand()
    open_ = replace(model, report=replace(model.report, ridge=(("age", "wage"),)))
    dashes = {ends: look[1] for ends, look in lines_of(plot_network(open_)).items()}
    assert dashes[frozenset({"age", "wage"})] is not None
    assert dashes[frozenset({"age", "sex"})] is None
    texts = [text.get_text() for text in plot_network(open_).ax.get_legend().get_texts()]
    assert "size not determined" in texts


def test_width_grows_with_the_strength(hand):
    found = lines_of(plot_network(hand()))
    by_strength = [found[frozenset({e.source, e.target})][2] for e in hand().edges]
    assert by_strength == sorted(by_strength, reverse=True)
    assert by_strength[0] > by_strength[-1]


def test_shape_by_kind(hand):
    marks = {
        artist.get_label(): artist
        for artist in plot_network(hand()).ax.collections
        if isinstance(artist, PathCollection)
    }
    assert set(marks) == {"continuous", "categorical"}
    assert len(marks["continuous"].get_offsets()) == 2
    corners = {kind: len(mark.get_paths()[0].vertices) for kind, mark in marks.items()}
    assert corners["categorical"] == 5  # a closed square
    assert corners["continuous"] > 10
    fill = {kind: to_hex(mark.get_facecolor()[0]) for kind, mark in marks.items()}
    assert fill["continuous"] != fill["categorical"]


def test_the_legend_explains_what_is_there(hand):
    texts = {text.get_text() for text in plot_network(hand()).ax.get_legend().get_texts()}
    signs = {"positive", "negative", "no single sign"}
    widths = {"strength 1", "strength 0.55", "strength 0.10"}
    assert texts - {""} == {"continuous", "categorical"} | signs | widths
    assert plot_network(hand(), legend=False).ax.get_legend() is None


@pytest.mark.parametrize("layout", NAMED)
def test_layouts_are_deterministic_and_can_be_used_again(hand, layout):
    first, second = plot_network(hand(), layout=layout), plot_network(hand(), layout=layout)
    assert first.positions == second.positions
    assert list(first.positions) == ["sex", "age", "edu", "wage"]
    for again in (first, first.positions):
        third = plot_network(hand(), layout=again)
        assert third.positions == first.positions
    ax, places = first
    assert ax is first.ax
    assert places == positions(hand(), layout)
    assert repr(first) == "NetworkDrawing(4 nodes)"


def test_a_layout_serves_another_graph(hand):
    model = hand()
    places = plot_network(model).positions
    only = np.zeros((7, 7))
    only[0, 1] = only[1, 0] = 1.0
    other = replace(model, known_strengths=None, params=replace(model.params, coef=only))
    assert len(other.edges) == 1
    assert plot_network(other, layout={**places, "more": (0, 0)}).positions == places


@pytest.mark.parametrize("layout", ["spring", "kamada-kawai"])
def test_unconnected_nodes_stay_in_the_picture_and_apart(layout):
    edges = [(k, k + 1) for k in range(9)] + [(10, 11), (11, 12), (13, 14)]
    places = np.array(list(positions(chain(20, edges), layout).values()))
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(20, 1)]
    assert gaps.min() > 0.999
    # Columns without edges are neighbours of the rest, not outliers that squeeze it.
    assert np.ptp(places[:10], axis=0).max() > 0.6 * np.ptp(places, axis=0).max()


@pytest.mark.parametrize("n", [1, 2, 3, 200])
@pytest.mark.parametrize("layout", NAMED)
def test_any_number_of_nodes(n, layout):
    model = chain(n, [(k, k + 1) for k in range(0, n - 1, 2)])
    drawing = plot_network(model, layout=layout, labels=n < 100)
    assert np.isfinite(list(drawing.positions.values())).all()
    assert np.isfinite([*drawing.ax.get_xlim(), *drawing.ax.get_ylim()]).all()


def test_labels_can_be_left_out_or_replaced(hand):
    assert len(plot_network(hand(), labels=False).ax.texts) == 0
    texts = [t.get_text() for t in plot_network(hand(), labels={"edu": "school"}).ax.texts]
    assert texts == ["sex", "age", "school", "wage"]
    with pytest.raises(ParameterError, match="no column 'school'"):
        plot_network(hand(), labels={"school": "edu"})


def test_dollar_signs_in_names_are_no_formulas(hand):
    model = hand(names=("$x_", "cost $", "a$b$c", r"$\frac$"))
    for drawn in (plot_network(model).ax, plot_parameters(model)):
        drawn.figure.canvas.draw()


def test_only_the_strongest_edges(hand):
    strongest = {frozenset({edge.source, edge.target}) for edge in hand().edges[:2]}
    assert set(lines_of(plot_network(hand(), max_edges=2))) == strongest
    assert lines_of(plot_network(hand(), max_edges=0)) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "tree"}, "layout must be one of 'spring', 'kamada-kawai', 'circle', 'groups'"),
        ({"layout": 3}, "layout must be one of"),
        ({"layout": {"age": (0, 0)}}, "no place .* 'sex', 'edu', 'wage'"),
        ({"layout": dict.fromkeys(["sex", "age", "edu", "wage"], (0, np.nan))}, "two finite"),
        ({"layout": dict.fromkeys(["sex", "age", "edu", "wage"], 1)}, "two finite"),
        ({"max_edges": -1}, "max_edges must be an integer"),
        ({"max_edges": 1.5}, "max_edges must be an integer"),
        ({"node_size": 0}, "node_size must be"),
        ({"ax": "left"}, "ax must be matplotlib Axes"),
    ],
)
def test_bad_options_are_named(hand, options, message):
    with pytest.raises(ParameterError, match=message):
        plot_network(hand(), **options)
    assert plt.get_fignums() == []


def test_the_path_is_drawn_on_the_scale_of_the_edges(solved):
    norms = path_norms(solved)
    pairs = solved.path.layout.pairs
    for k in range(len(solved.path)):
        model = replace(solved, params=solved.path.params(k))
        np.testing.assert_allclose(norms[k], model.edge_norms[pairs[:, 0], pairs[:, 1]])


def test_plot_path_marks_the_chosen_lam(solved):
    ax = plot_path(solved, n_labels=2)
    left, right = ax.get_xlim()
    assert (left, right) == (solved.path.lams[0], solved.path.lams[-1])
    assert ax.get_xscale() == "log"
    upright = [line for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in upright] == [solved.report.lam]
    assert len(ax.lines) == 1 + np.count_nonzero(path_norms(solved).any(axis=0))
    names = {text.get_text() for text in ax.texts}
    strongest = [{edge.source, edge.target} for edge in solved.edges[:2]]
    assert all(set(name.split(" – ")) in strongest for name in names)
    assert len(names) == 2
    counts = [int(t.get_text()) for t in ax.child_axes[0].get_xticklabels()]
    assert counts[0] == 0
    assert counts == sorted(counts)
    ax.figure.canvas.draw()


def test_plot_path_needs_a_path(hand, solved):
    with pytest.raises(ParameterError, match="no path"):
        plot_path(hand())
    point = replace(solved.path.points[0], lam=0.0)
    zero = replace(solved, path=replace(solved.path, points=(point,)))
    with pytest.raises(ParameterError, match="no lam above zero"):
        plot_path(zero)
    with pytest.raises(ParameterError, match="n_labels"):
        plot_path(solved, n_labels=-1)


def test_plot_path_of_one_lam(solved):
    one = replace(solved, path=replace(solved.path, points=solved.path.points[3:4]))
    plot_path(one).figure.canvas.draw()


def test_the_parameter_matrix_is_symmetric_and_in_standard_deviations(hand):
    found = parameter_matrix(hand())
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found[:2, :2], [[8.0, 1.0], [1.0, 1.0]])  # 2*2², 1*2*0.5, 4*0.5²
    np.testing.assert_allclose(found[0, 2:], [-1.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found[1, 2:], [0.125, -0.125, 0.5, 0.0, -0.5])
    assert np.isnan(found[2:4, 2:4]).all()
    assert np.isnan(found[4:, 4:]).all()
    np.testing.assert_allclose(found[2:4, 4:], 0.0)


def test_plot_parameters_names_levels_and_centres_the_colours(hand):
    ax = plot_parameters(hand())
    (image,) = ax.images
    assert image.get_clim() == (-1.0, 1.0)
    names = ["age", "wage", "F", "M", "lo", "mid", "hi"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == names
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    assert "standard deviations" in image.colorbar.ax.get_ylabel()
    zero, plus, minus = (to_hex(image.cmap(image.norm(value))) for value in (0.0, 1.0, -1.0))
    assert zero == "#ffffff"
    assert plus == "#0072b2"
    assert minus == "#d55e00"
    ax.figure.canvas.draw()


def test_plot_parameters_of_large_and_edgeless_models():
    for model in (chain(150, []), chain(1, [])):
        plot_parameters(model).figure.canvas.draw()


@pytest.mark.parametrize("plot", PLOTS)
def test_axes_of_the_user_are_used_and_nothing_else_is_opened(solved, plot):
    figure, (left, right) = plt.subplots(1, 2)
    result = plot(solved, ax=right)
    assert (result.ax if plot is plot_network else result) is right
    assert plt.get_fignums() == [figure.number]
    assert not left.has_data()
    figure.canvas.draw()


@pytest.mark.parametrize("plot", PLOTS)
def test_nothing_is_shown_or_closed(solved, plot, monkeypatch):
    mine = plt.figure()
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a figure was shown"))
    plot(solved)
    assert len(plt.get_fignums()) == 2
    assert plt.fignum_exists(mine.number)


@pytest.mark.parametrize("plot", PLOTS)
def test_missing_matplotlib_names_the_extra(solved, plot, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MixedGMError, match=r'pip install "mixedgm\[plot\]"'):
        plot(solved)


def test_plot_path_draws_a_graph_that_tests_chose_beside_the_path():
    fitted = mg.MixedGraphicalModel().fit(people(200)).fitted_
    assert fitted.edge_probability is not None
    ax = plot_path(fitted, n_labels=2)
    last = fitted.path.lams[-1]
    assert ax.get_xlim()[1] < last
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_xdata()[0] < last]
    norms = sorted(edge.norm for edge in fitted.edges)
    assert sorted(float(dot.get_ydata()[0]) for dot in dots) == pytest.approx(norms)
    strongest = sorted(fitted.edges, key=lambda edge: -edge.norm)[:2]
    names = {text.get_text() for text in ax.texts if text.get_text() != "chosen\ngraph"}
    assert names == {f"{edge.source} – {edge.target}" for edge in strongest}
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(text.startswith("nearest to the chosen graph: lam") for text in legend)

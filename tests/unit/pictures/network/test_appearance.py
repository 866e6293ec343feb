"""Options of network pictures: scale of widths, groups, edge labels, chosen columns, panels."""

import io
import itertools
import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from mixedgm.base.errors import ParameterError
from mixedgm.pictures.bootstrap import plot_selection as plot_inclusion
from mixedgm.pictures.check import CheckPicture, plot_check
from mixedgm.pictures.matrices import plot_parameters
from mixedgm.pictures.network.groups import plot_differences, plot_groups
from mixedgm.pictures.network.plot import legend_columns, plot_network
from mixedgm.pictures.network.positions import positions
from mixedgm.pictures.network.sizes import Scale, automatic_cut
from mixedgm.pictures.path import plot_path, plot_selection
from tests.support.models import chain, with_strengths


def weighted(weights, n=None):
    """A chain v0 - v1 - ... whose edges have these weights."""
    model = chain(n or len(weights) + 1, [])
    precision = model.params.precision.copy()
    for k, weight in enumerate(weights):
        precision[k, k + 1] = precision[k + 1, k] = -weight
    return with_strengths(replace(model, params=model.params.with_precision(precision)))


def random_network(n, n_edges, seed):
    """Continuous columns with edges of random strengths."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(n), 2))
    model = chain(n, [])
    precision = model.params.precision.copy()
    for at in rng.choice(len(pairs), min(n_edges, len(pairs)), replace=False):
        u, v = pairs[at]
        precision[u, v] = precision[v, u] = rng.choice([-1, 1]) * rng.exponential(0.3)
    return with_strengths(replace(model, params=model.params.with_precision(precision)))


def widths(ax):
    """Width and opacity of every drawn edge, by its ends."""
    found = {}
    for lines in ax.collections:
        if isinstance(lines, LineCollection):
            own = zip(lines.get_segments(), lines.get_linewidths(), lines.get_colors(), strict=True)
            for segment, width, colour in own:
                ends = frozenset(map(tuple, segment[[0, -1]].round(9)))
                found[ends] = (float(width), float(colour[3]))
    return found


def edge(drawing, a, b):
    ends = frozenset(tuple(np.round(drawing.positions[name], 9)) for name in (a, b))
    return widths(drawing.ax).get(ends)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts() if text.get_text()]


def shown_texts(figure):
    """What a reader sees: the text elements of the SVG."""
    file = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    root = ET.fromstring(file.getvalue())
    return {
        "".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")
    }


# -- widths ----------------------------------------------------------------------------------------


def test_one_strong_edge_does_not_flatten_the_others():
    drawing = plot_network(weighted([0.3, 15.0, 0.2, 0.1, 0.25]), layout="circle")
    light, giant, lighter = (edge(drawing, f"v{k}", f"v{k + 1}") for k in (0, 1, 2))
    assert giant[0] > light[0] > lighter[0] > 0.2 * giant[0]
    assert giant[1] == 1.0
    assert light[1] > lighter[1] > 0.3
    assert "strength 1" in legend(drawing.ax)


@pytest.mark.parametrize("n", [9, 25, 60])
@pytest.mark.parametrize("seed", range(3))
def test_width_and_opacity_never_fall_with_strength(n, seed):
    model = random_network(n, 4 * n, seed)
    drawing = plot_network(model)
    looks = [edge(drawing, each.source, each.target) for each in model.edges]
    for wider, narrower in itertools.pairwise(looks):
        assert wider >= narrower
    opacities = [opacity for _, opacity in looks]
    assert max(opacities) == 1.0
    assert min(opacities) >= 0.1
    assert n < 20 or min(opacities) <= 0.3


def test_from_20_columns_on_weak_edges_recede_and_the_legend_counts_them():
    assert automatic_cut([0.5] * 100, 19) is None
    assert automatic_cut([0.5] * 40, 20) is None
    sizes = np.linspace(0.01, 0.8, 80)
    cut = automatic_cut(list(sizes), 20)
    assert np.count_nonzero(sizes >= cut) == 40
    model = random_network(25, 150, 0)
    drawing = plot_network(model)
    faint = [opacity for _, opacity in widths(drawing.ax).values() if opacity <= 0.3]
    assert len(faint) == 100
    assert any(text.startswith("100 edges below 0.") for text in legend(drawing.ax))
    assert not any("below" in text for text in legend(plot_network(model, cut=0).ax))


@pytest.mark.parametrize("cut", [None, 0.2])
def test_the_legend_shows_three_widths_that_are_drawn(cut):
    scale = Scale(0.8, cut)
    keys = scale.keys([0.05, 0.3, 0.8])
    assert len(keys) == 3
    assert keys == sorted(keys, reverse=True)
    assert not any(scale.recedes(key) for key in keys)


def test_an_edge_of_strength_zero_has_no_key():
    drawing = plot_network(replace(weighted([0.5, 0.3]), known_strengths=np.array([0.4, 0.0])))
    shown = [text for text in legend(drawing.ax) if text.startswith("strength")]
    assert shown == ["strength 0.40", "strength 0.20", "strength 0.05"]
    none = plot_network(replace(weighted([0.5, 0.3]), known_strengths=np.zeros(2)))
    assert not any(text.startswith("strength") for text in legend(none.ax))


def test_a_given_maximum_makes_pictures_comparable():
    wide = plot_network(weighted([1.0, 0.5]), layout="circle", maximum=1.0)
    other = plot_network(weighted([0.5, 0.2]), layout="circle", maximum=1.0)
    assert edge(wide, "v1", "v2") == edge(other, "v0", "v1")


def test_minimum_hides_and_the_legend_counts():
    drawing = plot_network(weighted([1.0, 0.5, 0.25, 0.2]), layout="circle", minimum=0.24)
    assert len(widths(drawing.ax)) == 3
    assert edge(drawing, "v3", "v4") is None
    assert "1 weaker edge not drawn" in legend(drawing.ax)
    fewer = plot_network(weighted([1.0, 0.5, 0.25, 0.2]), max_edges=1)
    assert "3 weaker edges not drawn" in legend(fewer.ax)


def test_cut_splits_faint_from_solid():
    drawing = plot_network(weighted([1.0, 0.5, 0.4, 0.1]), layout="circle", cut=0.43)
    looks = [edge(drawing, f"v{k}", f"v{k + 1}") for k in range(4)]
    assert looks == sorted(looks, reverse=True)
    assert looks[1][1] > 0.4 > 0.31 > looks[2][1]
    assert "2 edges below 0.43" in legend(drawing.ax)


def test_a_strong_edge_does_not_decide_the_layout():
    model, other = weighted([0.3, 15.0, 0.2, 0.1]), weighted([0.3, 150.0, 0.2, 0.1])
    ours, theirs = (np.array(list(positions(each).values())) for each in (model, other))
    np.testing.assert_allclose(ours, theirs, atol=0.05)


# -- groups and colours ----------------------------------------------------------------------------


def fills(ax):
    """Fill of every node by its place."""
    found = {}
    for nodes in ax.collections:
        if isinstance(nodes, PathCollection):
            colours = nodes.get_facecolors()
            for k, place in enumerate(nodes.get_offsets()):
                found[tuple(np.round(place, 9))] = to_hex(colours[min(k, len(colours) - 1)])
    return found


def fill(drawing, name):
    return fills(drawing.ax)[tuple(np.round(drawing.positions[name], 9))]


@pytest.mark.parametrize(
    "groups",
    [
        {"money": ["wage", "sex"], "time": ["age"]},
        {"wage": "money", "sex": "money", "age": "time"},
        {"money": ("wage", "sex"), "time": "age"},
    ],
)
def test_groups_colour_nodes_and_shapes_still_tell_the_kind(hand, groups):
    plain, drawing = plot_network(hand()), plot_network(hand(), groups=groups)
    assert fill(drawing, "wage") == fill(drawing, "sex") != fill(drawing, "age")
    assert fill(drawing, "edu") == fill(plain, "edu")
    shapes = {
        nodes.get_label(): len(nodes.get_paths()[0].vertices)
        for nodes in drawing.ax.collections
        if isinstance(nodes, PathCollection)
    }
    assert shapes["categorical"] == 5 < shapes["continuous"]
    assert legend(drawing.ax)[:4] == ["continuous", "categorical", "money", "time"]
    keys = {key.get_label(): key for key in drawing.ax.get_legend().legend_handles}
    assert to_hex(keys["money"].get_facecolor()) == fill(drawing, "wage")


def test_colours_can_be_chosen(hand):
    groups = {"money": ["wage"], "time": ["age"]}
    by_name = plot_network(hand(), groups=groups, colors={"time": "gold", "money": "#123456"})
    by_order = plot_network(hand(), groups=groups, colors=["#123456", "gold"])
    for drawing in (by_name, by_order):
        assert (fill(drawing, "wage"), fill(drawing, "age")) == ("#123456", to_hex("gold"))
    assert fill(plot_network(hand(), colors={"edu": "gold"}), "edu") == to_hex("gold")


# -- labels of edges, columns ----------------------------------------------------------------------


def edge_labels(ax):
    return {text.get_text(): text for text in ax.texts if text.get_gid() == "edge label"}


def test_edge_labels_are_strengths_on_their_lines():
    drawing = plot_network(weighted([12.34, 0.3, 0.0456]), layout="circle", edge_labels=True)
    found = edge_labels(drawing.ax)
    assert list(found) == ["1.00", "0.29", "0.05"]
    for k, text in enumerate(found.values()):
        a, b = (np.array(drawing.positions[f"v{i}"]) for i in (k, k + 1))
        along, off = b - a, np.array(text.xy) - a
        assert abs(along[0] * off[1] - along[1] * off[0]) < 1e-9
        assert 0.2 < (off @ along) / (along @ along) < 0.8
        assert text.get_bbox_patch().get_facecolor()[:3] == (1.0, 1.0, 1.0)


def test_edge_labels_keep_clear_of_each_other():
    model = chain(4, [(0, 2), (1, 3)])  # two lines that cross in their middles
    drawing = plot_network(model, layout="circle", edge_labels=True)
    drawing.ax.figure.canvas.draw()
    one, two = (text.get_window_extent() for text in drawing.ax.texts if text.get_gid())
    assert not one.overlaps(two)


def test_edge_labels_by_pair_and_by_function(hand):
    by_pair = plot_network(hand(), edge_labels={("sex", "age"): "A", ("edu", "sex"): "no edge"})
    assert list(edge_labels(by_pair.ax)) == ["A"]
    by_call = plot_network(hand(), edge_labels=lambda a, b: f"{a}/{b}" if a == "age" else None)
    assert set(edge_labels(by_call.ax)) == {"age/wage", "age/sex"}
    assert edge_labels(plot_network(hand()).ax) == {}


def test_only_some_columns(hand):
    drawing = plot_network(hand(), columns=["wage", "age", "sex"], layout="circle")
    assert list(drawing.positions) == ["sex", "age", "wage"]
    assert [text.get_text() for text in drawing.ax.texts] == ["sex", "age", "wage"]
    assert len(widths(drawing.ax)) == 3
    kinds = ["continuous", "categorical", "positive", "negative"]
    assert legend(drawing.ax) == [*kinds, "strength 1", "strength 0.55", "strength 0.10"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknown": 1}, r"plot has no option 'unknown'. Its options are 'layout', .*'cut'"),
        ({"layuot": "circle"}, r"'layuot' \(did you mean 'layout'\?\)"),
        ({"minimum": -1}, r"minimum must be a number in \[0, 1\]"),
        ({"maximum": 0}, r"maximum must be a number in \(0, 1\]"),
        ({"maximum": np.nan}, "maximum must be a number"),
        ({"cut": True}, "cut must be a number"),
        ({"minimum": 0.5, "cut": 0.2}, "minimum must not exceed cut. Got 0.5 and 0.2"),
        ({"cut": 0.5, "maximum": 0.4}, "cut must not exceed maximum. Got 0.5 and 0.4"),
        ({"theme": "blue"}, "theme must be 'light' or 'dark'"),
        ({"labels": "tiny"}, "labels must be True, False, 'short'"),
        ({"size": "poster"}, "size must be 'column', 'page' or None"),
        ({"layout": "groups"}, "needs groups="),
        ({"columns": "age"}, "columns must be a list of column names"),
        ({"columns": ["agee", "sxe"]}, "'agee' is not a column; .*'age'.* and 'sxe' is not"),
        ({"groups": ["age"]}, "groups must be a mapping"),
        ({"groups": {"a": ["agee"]}}, "groups: 'agee' is not a column; did you mean 'age'"),
        ({"groups": {"agee": "a"}}, "groups: 'agee' is not a column"),
        ({"groups": {"a": ["age"], "b": ["age"]}}, "'age' is in 'a' and in 'b'"),
        ({"groups": {"a": ["age"]}, "colors": {"b": "red"}}, "no colour for the group 'a' and"),
        ({"groups": {"a": ["age"]}, "colors": []}, "names 1 groups, but colors has 0"),
        ({"groups": {"a": ["age"]}, "colors": ["reddish"]}, "the colour of 'a' must be a colour"),
        ({"colors": ["red"]}, "colors must be a mapping of column to colour"),
        ({"colors": {"agee": "red"}}, "colors: 'agee' is not a column"),
        ({"edge_labels": 3}, "edge_labels must be True, a mapping"),
        ({"edge_labels": {"age": "x"}}, "a key of edge_labels must be two names"),
        ({"edge_labels": {("age", "sxe"): "x"}}, "edge_labels: 'sxe' is not a column"),
    ],
)
def test_bad_options_are_named_before_anything_is_drawn(hand, options, message):
    with pytest.raises(ParameterError, match=message):
        plot_network(hand(), **options)
    assert plt.get_fignums() == []


def test_more_groups_than_colours_are_refused():
    model = chain(9, [])
    groups = {f"g{k}": [f"v{k}"] for k in range(9)}
    with pytest.raises(ParameterError, match="9 groups, but there are 8 colours"):
        plot_network(model, groups=groups)


@pytest.mark.parametrize("draw", [plot_path, plot_parameters, plot_selection])
def test_other_pictures_refuse_unknown_options_too(solved, draw):
    with pytest.raises(ParameterError, match=f"{draw.__name__} has no option 'unknown'. Its"):
        draw(solved, unknown=1)


# -- several networks ------------------------------------------------------------------------------


def test_groups_share_places_and_scale():
    one, two = weighted([1.0, 0.5], n=4), weighted([0.25, 0.5, 2.0])
    first, second = plot_groups([one, two], ["a", "b"])
    assert first.positions == second.positions
    assert edge(first, "v1", "v2") == pytest.approx(edge(second, "v1", "v2"))
    assert edge(second, "v2", "v3")[1] == 1.0
    assert edge(first, "v0", "v1") < edge(second, "v2", "v3")
    boxes = [drawing.ax.get_window_extent() for drawing in (first, second)]
    assert boxes[0].width == pytest.approx(boxes[1].width)
    alone = plot_groups([one, two], ["a", "b"], columns=["v1", "v2"], minimum=0.6)
    assert list(alone[0].positions) == ["v1", "v2"]
    assert widths(alone[0].ax) == {}


def test_many_columns_get_large_panels_and_too_many_are_refused():
    few, many = chain(20, [(0, 1)]), chain(72, [(k, k + 1) for k in range(71)])
    small = plot_groups([few, few], ["a", "b"], layout="circle")[0].ax.figure
    large = plot_groups([many, many], ["a", "b"], layout="circle")[0].ax.figure
    assert large.get_figwidth() > 1.8 * small.get_figwidth()
    crowd = chain(101, [(0, 1)])
    message = r"101 columns in each of 2 networks .* at most 100 .* To fix: .* columns=\[...\]"
    with pytest.raises(ParameterError, match=message):
        plot_groups([crowd, crowd], ["a", "b"])
    assert len(plot_groups([crowd, crowd], ["a", "b"], columns=["v0", "v1"])) == 2
    assert len(plot_groups([crowd, crowd], ["a", "b"], layout="circle", labels=False)) == 2


def test_the_legend_of_several_networks_stays_in_the_figure():
    model = weighted([15.0, 0.5, 0.3])
    groups = {f"a rather long name {k}": [f"v{k}"] for k in range(4)}
    figure = plot_groups([model, model], ["a", "b"], groups=groups)[0].ax.figure
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.width


# -- texts of the user's are never mathematics -----------------------------------------------------

NAMES = ("$x_1$", "cost $", "_a$b$c", r"$\frac$")


def test_names_are_shown_as_they_are_in_every_picture(hand):
    model = hand(names=NAMES)
    groups = {"_$g$": [NAMES[0]], "$": [NAMES[1]]}
    drawn = plot_network(model, groups=groups, edge_labels={(NAMES[0], NAMES[1]): "$e^2$"})
    names = zip(list(drawn.ax.texts), NAMES, strict=False)  # with a halo: outlines in an SVG
    for text, name in names:
        plain = drawn.ax.text(0, 0, name, fontsize=text.get_fontsize(), parse_math=False)
        assert text.get_window_extent().width == pytest.approx(plain.get_window_extent().width)
        plain.remove()
    assert {"_$g$", "$", "$e^2$"} <= shown_texts(drawn.ax.figure)
    assert set(NAMES) <= shown_texts(plot_parameters(model).figure)
    panels = plot_groups([model, model], ["$a$", "_$b$"])
    assert {"$a$ (n = 120)", "_$b$ (n = 120)"} <= shown_texts(panels[0].ax.figure)
    edges = {"source": [NAMES[0]], "target": [NAMES[1]], "p_max": [0.5], "differs": [True]}
    edges |= {"norm_$a$": [1.0], "sign_$a$": ["+"], "norm__$b$": [0.5], "sign__$b$": ["-"]}
    edges |= {"estimate_$a$": [1.0], "estimate__$b$": [-0.5]}
    pair = f"{NAMES[0]} – {NAMES[1]}"
    assert {pair, "$a$", "_$b$"} <= shown_texts(plot_differences(edges, ["$a$", "_$b$"]).figure)
    one = {"sign": ["+"], "inclusion": [1.0], "estimate": [1.0]}
    one |= {"mean": [1.0], "lower": [0.5], "upper": [1.5]}
    assert pair in shown_texts(plot_inclusion({**edges, **one}).figure)
    flags = np.zeros((2, 2), dtype=bool)
    nodes = [(2.0, True, "$a$ +2.0"), (1.0, False, "")]
    check = CheckPicture(NAMES[:2], np.full((2, 2), 1.0), flags, flags, nodes)
    assert {*NAMES[:2], "$a$ +2.0"} <= shown_texts(plot_check(check).figure)


# -- legends and what is not known -----------------------------------------------------------------


@pytest.mark.parametrize("size", [None, "column", "page"])
def test_lines_of_the_legend_are_as_wide_as_those_of_the_picture(size):
    model = replace(weighted([0.5, 0.3]), known_strengths=np.array([0.6, 0.3]))
    drawing = plot_network(model, size=size, layout="circle")
    keys = {key.get_label(): key for key in drawing.ax.get_legend().legend_handles}
    for name, (a, b) in {"0.60": ("v0", "v1"), "0.30": ("v1", "v2")}.items():
        key = keys[f"strength {name}"]
        assert (key.get_linewidth(), key.get_alpha()) == pytest.approx(edge(drawing, a, b))


@pytest.mark.parametrize("n_kinds", range(8))
@pytest.mark.parametrize("width", [120.0, 250.0, 500.0, 2_000.0])
def test_strengths_of_the_legend_stand_in_one_column_or_row(n_kinds, width):
    names = [f"kind {k}" for k in range(n_kinds)] + [f"strength 0.{k}" for k in (5, 3, 1)]
    keys = [Line2D([], [], label=name) for name in [*names, "9 edges below 0.05"]]
    shown, in_a_row = legend_columns(keys, width, 9.0)
    box = plt.figure().legend(handles=shown, ncols=in_a_row)
    box.figure.canvas.draw()
    assert [text.get_text() for text in box.get_texts() if text.get_text()] == [
        key.get_label() for key in keys
    ]
    corners = [
        tuple(np.round(text.get_window_extent().get_points()[0]))
        for text in box.get_texts()
        if text.get_text().startswith("strength")
    ]
    assert min(len(set(axis)) for axis in zip(*corners, strict=True)) == 1
    assert width < 2_000.0 or len({y for _, y in corners}) == 1


def test_lines_of_the_legend_are_as_wide_as_those_of_all_groups():
    model = replace(weighted([0.5, 0.3]), known_strengths=np.array([0.6, 0.3]))
    drawings = plot_groups([model, model], ["a", "b"])
    (legend,) = drawings[0].ax.figure.legends
    keys = {key.get_label(): key for key in legend.legend_handles}
    for drawing in drawings:
        drawn = edge(drawing, "v0", "v1")
        assert keys["strength 0.60"].get_linewidth() == pytest.approx(drawn[0])


@pytest.mark.parametrize("sizes", ["strength", "norm"])
def test_pairs_that_cannot_be_tested_do_not_set_the_scale(sizes):
    columns = {
        "source": ["x", "y"],
        "target": ["y", "z"],
        "estimate_a": [0.1, 50.0],
        "estimate_b": [-0.2, -50.0],
        "p_max": [0.3, np.nan],
        "differs": [False, False],
    }
    if sizes == "strength":
        known = {"strength": [0.1, 1.0], "lower": [0.05, 0.9], "upper": [0.2, 1.0]}
        columns |= {f"{name}_{group}": known[name] for name in known for group in "ab"}
        columns["probability_differs"] = [0.3, np.nan]
    ax = plot_differences(columns, ["a", "b"])
    assert -0.3 < ax.get_xlim()[0] < ax.get_xlim()[1] < 0.3
    shown = "P(differs) = 0.30" if sizes == "strength" else "p = 0.3"
    assert [text.get_text() for text in ax.texts] == [shown, "not tested"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x – y", "y – z"]


def test_faint_edges_do_not_bend_far():
    model = random_network(25, 150, 1)
    drawing = plot_network(model)
    (lines,) = [each for each in drawing.ax.collections if each.get_gid() == "edges"]
    faint = lines.get_colors()[:, 3] <= 0.3
    assert 0 < faint.sum() < len(faint)
    for segment in np.array(lines.get_segments(), dtype=object)[faint]:
        line = np.asarray(segment, dtype=float)
        step = line[-1] - line[0]
        off = np.abs(step[0] * (line - line[0])[:, 1] - step[1] * (line - line[0])[:, 0])
        assert off.max() / np.hypot(*step) <= 0.301


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_of_groups_are_nearest_to_their_own_nodes(theme):
    model = random_network(24, 60, 2)
    groups = {name: f"group {k % 4}" for k, name in enumerate(model.schema.names)}
    drawing = plot_network(model, groups=groups, theme=theme, layout="groups")
    drawing.ax.figure.canvas.draw()
    nodes = drawing.ax.transData.transform(list(drawing.positions.values()))
    notes = [text for text in drawing.ax.texts if text.get_gid() == "group name"]
    assert len(notes) == 4
    for note in notes:
        (x0, y0), (x1, y1) = note.get_window_extent().get_points()
        beyond = np.maximum(np.maximum([x0, y0] - nodes, nodes - [x1, y1]), 0.0)
        nearest = list(drawing.positions)[int(np.linalg.norm(beyond, axis=1).argmin())]
        assert groups[nearest] == note.get_text()
    keys = {key.get_label(): key for key in drawing.ax.get_legend().legend_handles}
    for name, group in groups.items():
        assert to_hex(keys[group].get_facecolor()) == fill(drawing, name)

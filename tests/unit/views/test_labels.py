"""Labels of networks: measured on the drawn picture, they meet no line and no other label."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyArrowPatch

import mixedgm as mg
from mixedgm.errors import ParameterError
from mixedgm.views.plot import plot_network
from tests.support.people import people

KINDS = ("income", "blood_pressure", "visits", "smoker", "education_level", "bmi")


def sparse_graph(n_nodes, n_edges, seed):
    """A random model whose columns have names as tables have them."""
    import networkx as nx

    names = {k: f"{KINDS[k % len(KINDS)]}_{k}" for k in range(n_nodes)}
    graph = nx.relabel_nodes(nx.gnm_random_graph(n_nodes, n_edges, seed=seed), names)
    return mg.random_model(graph, random_state=seed)


def label_boxes(ax):
    return {note.get_text(): note.get_window_extent() for note in ax.texts if note.get_text()}


def points_on_lines(ax):
    """Pixels on everything that is drawn as a line, its width included, and on arrows."""
    along = np.linspace(0.0, 1.0, 400)[:, None]
    points = []
    for lines in (each for each in ax.collections if isinstance(each, LineCollection)):
        widths = np.broadcast_to(lines.get_linewidths(), len(lines.get_segments()))
        for ends, width in zip(lines.get_segments(), widths, strict=True):
            start, end = ax.transData.transform(ends)
            here = start + along * (end - start)
            across = np.array([start[1] - end[1], end[0] - start[0]])
            across *= width / 2 * ax.figure.dpi / 72 / max(np.linalg.norm(across), 1e-9)
            points += [here - across, here, here + across]
    for arrow in (each for each in ax.patches if isinstance(each, FancyArrowPatch)):
        path = arrow.get_path()
        points.append(ax.transData.transform(path.vertices))
    return np.concatenate(points)


def faults(drawing):
    """Names whose box meets a line that is not its own leader, another name, or leaves the axes."""
    ax = drawing.ax
    ax.figure.canvas.draw()
    boxes, found = label_boxes(ax), []
    lines = points_on_lines(ax)
    for name, box in boxes.items():
        # A line that leads to a name may touch the border of its box.
        inside = np.all((lines > box.min + 0.6) & (lines < box.max - 0.6), axis=1)
        found += [f"{name} on a line"] * bool(inside.any())
        found += [
            f"{name} on {other}" for other in boxes if other > name and box.overlaps(boxes[other])
        ]
        outer = ax.figure.bbox
        found += [f"{name} outside"] * (not (outer.x0 <= box.x0 and box.x1 <= outer.x1))
        for node, place in drawing.positions.items():
            x, y = ax.transData.transform(place)
            found += [f"{name} on the node {node}"] * bool(box.contains(x, y))
    return found


def test_the_measure_sees_a_label_on_a_line():
    drawing = plot_network(sparse_graph(6, 6, 0).fitted_)
    first, second = list(drawing.positions.values())[:2]
    note = drawing.ax.texts[0]
    edge = drawing.ax.collections[0].get_segments()[0]
    note.set_position((0, 0))
    note.xy = tuple(np.mean(edge, axis=0))
    assert any("on a line" in fault for fault in faults(drawing))
    note.xy = first
    assert any("on the node" in fault for fault in faults(drawing))
    drawing.ax.texts[1].xy = first
    drawing.ax.texts[1].set_position((0, 0))
    assert any(note.get_text() in fault and " on " in fault for fault in faults(drawing))
    assert first != second


@pytest.mark.parametrize("options", [{}, {"layout": "circle"}, {"layout": "kamada-kawai"}])
def test_labels_of_the_survey_meet_nothing(options):
    model = mg.MixedGraphicalModel(lam=0.09).fit(mg.datasets.load_wage())
    assert len(model.edges_) > 12
    assert faults(model.plot(**options)) == []


@pytest.mark.parametrize(("n_nodes", "n_edges", "seed"), [(12, 18, 0), (60, 90, 3)])
def test_labels_of_sparse_graphs_meet_nothing(n_nodes, n_edges, seed):
    drawing = sparse_graph(n_nodes, n_edges, seed).plot()
    assert faults(drawing) == []
    assert min(note.get_fontsize() for note in drawing.ax.texts) >= 7.0


def test_labels_keep_clear_of_arrows_and_rings():
    table = people()
    columns = list(table.columns)
    model = mg.MixedGraphicalModel(lam=0.05, covariates=columns[:2]).fit(table)
    assert any(edge.directed for edge in model.edges_)
    assert faults(model.plot(predictability=table)) == []


def test_names_that_cannot_be_clear_hide_the_lines_behind_them():
    import matplotlib.pyplot as plt

    model = sparse_graph(20, 120, 0)
    _, ax = plt.subplots(figsize=(3, 3))
    notes = model.plot(ax=ax).ax.texts
    hidden = [note for note in notes if note.get_bbox_patch() is not None]
    assert hidden
    assert all(note.get_bbox_patch().get_alpha() == 1.0 for note in hidden)
    assert all(note.get_bbox_patch() is None for note in sparse_graph(6, 6, 0).plot().ax.texts)


def test_axes_of_the_user_keep_their_size():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(4, 3))
    sparse_graph(25, 60, 1).plot(ax=ax)
    assert tuple(figure.get_size_inches()) == (4.0, 3.0)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_stand_off_lines_that_are_not_theirs(seed):
    model = sparse_graph(12, 16, seed)
    places = model.plot().positions
    spacing = np.ptp(list(places.values()), axis=0).max() / 12
    for edge in model.edges_:
        a, b = np.array(places[edge.source]), np.array(places[edge.target])
        for name, place in places.items():
            if name not in (edge.source, edge.target):
                share = np.clip((place - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
                assert np.linalg.norm(place - a - share * (b - a)) > 0.15 * spacing


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_drawing_saves_itself_and_names_stay_text(ending, tmp_path):
    drawing = sparse_graph(6, 6, 0).plot()
    paths = [tmp_path / f"{k}.{ending}" for k in (1, 2)]
    for path in paths:
        drawing.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if ending == "svg":
        assert ">income_0</text>" in paths[0].read_text(encoding="utf-8")
    if ending == "pdf":
        assert b"/Type /Font" in paths[0].read_bytes()


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"ends in .png, .svg, .pdf"):
        sparse_graph(3, 2, 0).plot().save(tmp_path / "network.docx")

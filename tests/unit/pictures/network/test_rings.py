"""Rings around nodes: filled to the share, outside the node, explained in the legend."""

import numpy as np
import pytest

from mixedgm.pictures.network.plot import _INNER, _RING_WIDTH, _arc, plot_network


def arcs(ax):
    return {
        str(c.get_gid()).removeprefix("ring "): c
        for c in ax.collections
        if str(c.get_gid()).startswith("ring ")
    }


@pytest.mark.parametrize("share", [0.05, 0.25, 0.5, 0.9, 1.0])
def test_the_arc_has_the_area_of_its_share(share):
    x, y = _arc(share).vertices.T
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    whole = np.pi * (1 - (_INNER / _RING_WIDTH) ** 2)
    assert area == pytest.approx(share * whole, rel=0.02)
    assert np.abs(_arc(share).vertices).max() == 1.0  # so that all rings have one size


def test_only_given_nodes_have_rings_and_a_negative_share_is_empty(hand):
    drawing = plot_network(hand(), rings={"age": 0.5, "sex": -0.1})
    assert set(arcs(drawing.ax)) == {"age"}
    plain = plot_network(hand())
    assert arcs(plain.ax) == {}
    x, y = arcs(drawing.ax)["age"].get_offsets()[0]
    assert (x, y) == drawing.positions["age"]


def test_the_legend_explains_rings_only_where_there_are_some(hand):
    def texts(drawing):
        return [text.get_text() for text in drawing.ax.get_legend().get_texts()]

    assert "predicted share" in texts(plot_network(hand(), rings={"age": 0.5}))
    assert "predicted share" not in texts(plot_network(hand()))


def test_the_legend_stays_inside_the_figure(hand):
    drawing = plot_network(hand(), rings={"age": 0.5})
    figure = drawing.ax.figure
    figure.canvas.draw()
    box = drawing.ax.get_legend().get_window_extent()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.bbox.width


@pytest.mark.parametrize("options", [{}, {"labels": False, "node_size": 40}, {"theme": "dark"}])
def test_rings_stay_inside_the_picture(hand, options):
    names = hand().schema.names
    places = {name: (0.5 * (at % 2), float(at)) for at, name in enumerate(names)}
    drawing = plot_network(hand(), rings=dict.fromkeys(names, 1.0), layout=places, **options)
    drawing.ax.figure.canvas.draw()
    frame = drawing.ax.get_window_extent()
    middles = drawing.ax.transData.transform(list(drawing.positions.values()))
    sizes = [float(np.sqrt(ring.get_sizes()[0])) for ring in arcs(drawing.ax).values()]
    reach = 0.5 * max(sizes) * drawing.ax.figure.dpi / 72.0
    assert middles.min(axis=0)[0] - reach >= frame.x0
    assert middles.min(axis=0)[1] - reach >= frame.y0
    assert middles.max(axis=0)[0] + reach <= frame.x1
    assert middles.max(axis=0)[1] + reach <= frame.y1

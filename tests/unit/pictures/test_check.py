"""The picture of a check: one cell per pair, frames where flagged, a bar per column."""

from dataclasses import replace

import numpy as np
import pytest

from mixedgm.pictures.check import CheckPicture, plot_check


def picture(n: int = 4) -> CheckPicture:
    distance = np.full((n, n), 1.0)
    distance[0, 1] = distance[1, 0] = 8.0
    np.fill_diagonal(distance, np.nan)
    flagged = distance == 8.0
    edge = np.zeros((n, n), dtype=bool)
    edge[1, 2] = edge[2, 1] = True
    nodes = [(0.8, False, "mean +0.1")] * (n - 1) + [(5.0, True, "kurtosis +9.0")]
    return CheckPicture([f"c{k}" for k in range(n)], distance, flagged, edge, nodes)


def test_cells_frames_dots_and_bars():
    ax = plot_check(picture())
    shown = ax.images[0].get_array()
    assert shown.shape == (4, 4)
    assert shown.mask.diagonal().all()
    assert shown[0, 1] == 8.0
    frames = [c for c in ax.collections if c.get_gid() == "flagged"]
    assert len(frames[0].get_paths()) == 2
    dots = ax.collections[0].get_offsets()
    assert list(map(tuple, dots.tolist())) == [(1.0, 2.0)]
    bars = ax.child_axes[0]
    assert [bar.get_width() for bar in bars.patches] == [0.8, 0.8, 0.8, 5.0]
    colours = {bar.get_facecolor() for bar in bars.patches[:3]}
    assert bars.patches[3].get_facecolor() not in colours
    assert [text.get_text() for text in bars.texts] == ["kurtosis +9.0"]


def test_letters_above_the_diagonal_say_what_the_flags_mean():
    shown = picture()
    shown.flagged[2, 3] = shown.flagged[3, 2] = shown.flagged[0, 2] = shown.flagged[2, 0] = True
    meanings = {(1, 0): "missing edge", (2, 3): "curved", (0, 2): "missing edge"}
    ax = plot_check(replace(shown, meanings=meanings))
    letters = {text.get_position(): text.get_text() for text in ax.texts}
    assert letters == {(1, 0): "A", (3, 2): "B", (2, 0): "A"}
    assert ax.get_title().splitlines()[1] == "A = missing edge, B = curved"


def test_names_are_on_both_axes_and_everything_is_inside_the_figure():
    ax = plot_check(picture())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["c0", "c1", "c2", "c3"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c0", "c1", "c2", "c3"]
    figure = ax.figure
    figure.canvas.draw()
    for one in (ax, *ax.child_axes):
        box = one.get_tightbbox()
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1


def test_own_axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    _, own = plt.subplots(figsize=(8, 5))
    assert plot_check(picture(), ax=own) is own


def test_many_columns_have_no_names():
    ax = plot_check(picture(250))
    assert list(ax.get_xticks()) == []
    ax.figure.canvas.draw()


def test_the_check_draws_itself():
    import mixedgm as mg

    table, truth = mg.datasets.make_ladder(200, 2, random_state=0)
    ax = truth.check_fit(table, n_sim=20, random_state=0).plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x1", "x2", "y1", "y2"]
    dots = {tuple(map(int, at)) for at in ax.collections[0].get_offsets()}
    assert dots == {(0, 1), (0, 2), (1, 3), (2, 3)}


def luminance(colour):
    parts = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_letters_frames_and_dots_are_seen_on_every_shade():
    from matplotlib.colors import to_rgb

    n = 12
    u, v = np.triu_indices(n, 1)
    distance = np.full((n, n), np.nan)
    distance[u, v] = distance[v, u] = np.geomspace(1.0, 30.0, len(u))
    flagged = ~np.isnan(distance)
    meanings = dict.fromkeys(zip(u.tolist(), v.tolist(), strict=True), "curved")
    shown = replace(picture(n), distance=distance, flagged=flagged, edge=flagged, meanings=meanings)
    ax = plot_check(shown)
    dots, frames = ax.collections
    marks = [(text.get_position(), text.get_color()) for text in ax.texts]
    marks += zip(dots.get_offsets().tolist(), dots.get_facecolor(), strict=True)
    centres = [path.vertices[:4].mean(axis=0).tolist() for path in frames.get_paths()]
    marks += zip(centres, frames.get_edgecolor(), strict=True)
    assert len(marks) == 2 * n * (n - 1)
    image = ax.images[0]
    for (x, y), colour in marks:
        cell = image.cmap(image.norm(distance[round(y), round(x)]))
        low, high = sorted((luminance(to_rgb(cell)), luminance(to_rgb(colour))))
        assert (high + 0.05) / (low + 0.05) >= 3.0

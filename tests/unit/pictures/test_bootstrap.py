"""Pictures of a bootstrap: what is drawn is what the tables say."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

import mixedgm as mg
from mixedgm.base.errors import ParameterError
from mixedgm.pictures.bootstrap import plot_centrality, plot_intervals
from tests.support.people import people


@pytest.fixture(scope="module")
def boot() -> mg.Bootstrap:
    table = people(150)
    model = mg.MixedGraphicalModel(lam=0.12).fit(table)
    return mg.bootstrap(model, table, n_boot=10, random_state=0, n_jobs=1)


@pytest.fixture(scope="module")
def dropping() -> mg.Bootstrap:
    table = people(150)
    model = mg.MixedGraphicalModel(lam=0.12).fit(table)
    return mg.bootstrap(
        model, table, 20, "case-dropping", drop=[0.2, 0.6], random_state=0, n_jobs=1
    )


def drawn(ax):
    """Rows from bottom to top: name, lower, upper, estimate, colour of the dot."""
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    dots = [c for c in ax.collections if isinstance(c, PathCollection)][-1]
    names = [text.get_text() for text in ax.get_yticklabels()]
    spans = [segment[:, 0].tolist() for segment in lines.get_segments()]
    places = dots.get_offsets()
    assert places[:, 1].tolist() == list(range(len(names)))
    colours = [to_hex(c) for c in dots.get_facecolors()]
    return list(zip(names, spans, places[:, 0].tolist(), colours, strict=True))


def test_sizes_are_drawn_with_their_intervals_and_colours(boot):
    table = boot.intervals(level=0.8)
    rows = drawn(boot.plot_intervals(level=0.8))
    assert len(rows) == len(table)
    assert [row[2] for row in rows] == sorted(row[2] for row in rows), "largest on top"
    order = table.sort_values("estimate", kind="stable")
    for (name, (low, high), estimate, colour), own in zip(rows, order.itertuples(), strict=True):
        levels = [x for x in (own.source_level, own.target_level) if isinstance(x, str)]
        label = f"{own.source} – {own.target}" + (f": {', '.join(levels)}" if levels else "")
        assert name == label
        assert (low, high, estimate) == pytest.approx((own.lower, own.upper, own.estimate))
        certain = "#0072b2" if own.lower > 0 else "#d55e00" if own.upper < 0 else "#8a8a8a"
        assert colour == certain


def test_bars_are_shares_of_resamples(boot):
    ax = boot.plot_selection()
    names = [text.get_text() for text in ax.get_yticklabels()]
    shares = {f"{r.source} – {r.target}": r.inclusion for r in boot.selection().itertuples()}
    assert set(names) == set(shares)
    assert names[-1] == next(iter(shares)), "the strongest on top"
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx([100 * shares[name] for name in names])


def test_the_first_rows_only(boot):
    assert len(drawn(boot.plot_intervals(max_edges=2))) == 2
    assert len(boot.plot_selection(max_edges=2).patches) == 2
    assert len(boot.plot_differences(max_edges=2).get_yticklabels()) == 2
    for wrong in (0, True, 1.5):
        with pytest.raises(ParameterError, match="max_edges must be"):
            boot.plot_intervals(max_edges=wrong)


def test_the_matrix_shows_which_edges_differ(boot):
    ax = boot.plot_differences()
    matrix = np.ma.filled(ax.get_images()[0].get_array(), np.nan)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [
        f"{r.source} – {r.target}" for r in boot.selection().query("strength > 0").itertuples()
    ]
    assert np.isnan(np.diagonal(matrix)).all()
    for row in boot.differences().itertuples():
        i = names.index(f"{row.first_source} – {row.first_target}")
        j = names.index(f"{row.second_source} – {row.second_target}")
        assert matrix[i, j] == matrix[j, i] == float(row.significant)
    strengths = [float(text.get_text()) for text in ax.texts]
    np.testing.assert_allclose(strengths, boot.selection()["strength"].head(len(names)), atol=0.005)


@pytest.mark.parametrize("measure", ["total_strength", "expected_influence", "betweenness"])
def test_centrality_is_drawn_where_it_exists(boot, measure):
    ax = boot.plot_centrality(measure)
    table = boot.centrality()
    own = table[(table["measure"] == measure) & table["estimate"].notna()].set_index("column")
    rows = drawn(ax)
    assert {name for name, *_ in rows} == set(own.index)
    for name, (low, high), estimate, _ in rows:
        assert (low, high, estimate) == pytest.approx(
            tuple(own.loc[name, ["lower", "upper", "estimate"]])
        )
    text, _, without = ax.get_xlabel().partition("\n")
    assert text == measure.replace("_", " ")
    left_out = sorted(set(table["column"]) - set(own.index))
    assert sorted(without.split(": ")[0].removeprefix("not defined for ").split(", ")) == (
        left_out or [""]
    )
    assert all(box.get_window_extent().y0 >= ax.bbox.y1 for box in [ax.get_legend()])


def test_stability_has_a_line_for_every_statistic(dropping):
    ax = dropping.plot_stability()
    table = dropping.stability()
    lines = {line.get_label(): line for line in ax.get_lines() if len(line.get_xdata()) == 2}
    for name, own in table.dropna(subset="mean").groupby("statistic"):
        line = lines[name.replace("_", " ")]
        np.testing.assert_allclose(line.get_xdata(), [20, 60])
        np.testing.assert_allclose(line.get_ydata(), own["mean"])
    limits = [line for line in ax.get_lines() if np.allclose(line.get_ydata(), 0.7)]
    assert [line.get_label()[:12] for line in limits] == ["0.7: stable "]
    assert limits[0].get_label() in [text.get_text() for text in ax.get_legend().get_texts()]


def test_pictures_go_where_they_are_asked_to(boot, dropping):
    figure, ax = plt.subplots()
    assert boot.plot_intervals(ax=ax) is ax
    figure, ax = plt.subplots()
    assert dropping.plot_stability(ax=ax) is ax
    for plot in (
        boot.plot_intervals,
        boot.plot_selection,
        boot.plot_differences,
        boot.plot_centrality,
    ):
        plot().figure.canvas.draw()
    with pytest.raises(ParameterError, match="ax must be"):
        boot.plot_intervals(ax="here")
    del figure


def test_estimates_outside_their_intervals_are_hollow_and_explained():
    columns = {
        "column": ["a", "b"],
        "measure": ["total_strength"] * 2,
        "estimate": [1.0, 2.0],
        "mean": [0.9, 1.2],
        "lower": [0.8, 1.0],
        "upper": [1.1, 1.5],
    }
    ax = plot_centrality(columns, "total_strength")
    assert [colour for *_, colour in drawn(ax)] == ["#0072b2", "#ffffff"]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(text.startswith("outside: resampled graphs") for text in texts)
    inside = {name: values[:1] for name, values in columns.items()}
    texts = [t.get_text() for t in plot_centrality(inside, "total_strength").get_legend().texts]
    assert texts == ["whole table", "mean of resamples", "interval of resamples"]


@pytest.mark.parametrize("width", [4.5, 7.0])
def test_legends_and_notes_stay_in_the_figure(width):
    names = [f"a column named {k}" for k in range(9)]
    columns = {
        "column": names,
        "measure": ["expected_influence"] * 9,
        "estimate": [0.5, *[np.nan] * 8],
        "mean": [0.2] * 9,
        "lower": [0.1] * 9,
        "upper": [0.3] * 9,
    }
    figure, ax = plt.subplots(figsize=(width, 4.0), layout="constrained")
    plot_centrality(columns, "expected_influence", ax=ax)
    figure.canvas.draw()
    for part in (ax.get_legend(), ax.xaxis.label):
        box = part.get_window_extent()
        assert min(box.x0, box.y0) >= 0.0
        assert box.x1 <= figure.bbox.x1


def test_levels_keep_their_beginnings():
    levels = ["Married, spouse absent from home", "Married, spouse absent at sea"]
    columns = {
        "source": ["x", "x"],
        "target": ["marital", "marital"],
        "source_level": [None, None],
        "target_level": levels,
        "estimate": [1.0, 0.5],
        "lower": [0.5, 0.1],
        "upper": [1.5, 0.9],
    }
    ax = plot_intervals(columns)
    shown = [text.get_text() for text in ax.get_yticklabels()][::-1]
    assert shown == ["x – marital: Married, spouse absent from…"] + [
        "x – marital: Married, spouse absent at s…"
    ]

"""A fitted model with a path -> pictures of its edges, and of the scores, against lam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import is_integer
from mixedgm.families import KINDS
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.penalty.weights import edge_kind
from mixedgm.pictures.canvas import INK, axes, known_options, label
from mixedgm.results.colours import KIND_COLOURS
from mixedgm.results.tables import path_of
from mixedgm.results.text import SHORT_KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TOP_TICKS = 8
_BESIDE = 0.09
"""Distance of a graph that is none of the path from its end, in lengths of the axis."""
_STRIP = "#f1f3f4"


def path_norms(fitted: FittedModel) -> Floats:
    """(n_lams, n_pairs) norms of the edges along the path, as in ``edges``."""
    path = path_of(fitted)
    # The path holds standardised parameters, so the scale of a column of numbers is 1 there.
    scales, nodes = fitted.column_scales, fitted.schema.spans
    scales[nodes.numeric] /= path.units.scale
    scales = scales[nodes.column_start[:-1]]
    u, v = path.layout.pairs.T
    moderators = () if path.moderators is None else path.moderators.nodes
    spread = np.append(scales[list(moderators)], 1.0)[path.layout.moderator]
    return np.asarray(path.group_norms() * (scales[u] * scales[v] * spread))


@known_options
def plot_path(
    fitted: FittedModel, *, ax: Axes | None = None, n_labels: int = 8, legend: bool = True
) -> Axes:
    """Draw how the edges enter as lam falls.

    Norms are on the vertical axis, lam, falling, on the horizontal one, numbers of edges above.
    The `n_labels` edges that are largest at the chosen lam are named. Separate regressions have
    two lines for an edge, one for each end that is predicted. A graph that tests have chosen is
    none of the path: its edges are dots at the right, with their own norms, which nothing shrinks.
    """
    path, keep = path_of(fitted), drawn_lams(fitted)
    if not is_integer(n_labels, 0):
        raise ParameterError.must_be("n_labels", "an integer of at least 0", n_labels)
    lams, norms = path.lams[keep], path_norms(fitted)[keep]
    ax = axes(ax, (8.0, 5.0), layout="constrained")
    chosen, beside = _chosen(fitted), _beside(fitted)
    order = _order(lams, norms, chosen, beside)
    named = order[:n_labels]
    _draw_lines(ax, fitted, lams, norms, order, named)
    set_lam_axis(ax, lams)
    if beside is not None:
        _draw_beside(ax, fitted, lams, beside, named)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("norm of the edge")
    ax.spines[["right"]].set_visible(False)
    _draw_chosen(ax, fitted, lams, norms, chosen)
    draw_counts(ax, lams, path.n_edges[keep])
    _draw_names(ax, fitted, norms[-1] if beside is None else beside, named)
    if legend and len(order):
        _draw_legend(ax, fitted, order)
    return ax


def drawn_lams(fitted: FittedModel) -> NDArray[np.bool_]:
    """Return which lams of the path a logarithmic axis can show."""
    keep = path_of(fitted).lams > 0.0
    if not keep.any():
        raise ParameterError("this path has no lam above zero, so there is no axis to draw it on.")
    return np.asarray(keep)


def _chosen(fitted: FittedModel) -> Floats:
    """Return the lam of every group: that of all, or of the column whose regression it is in."""
    pairs, lam = path_of(fitted).layout.pairs, fitted.report.lam
    if not isinstance(lam, tuple):
        return np.full(len(pairs), lam)
    by_name = dict(zip(fitted.schema.names, lam, strict=True))
    return np.array([by_name[fitted.schema.nodes[v].name] for v in pairs[:, 1]])


def _beside(fitted: FittedModel) -> Floats | None:
    """(n_pairs,) norms in a chosen graph that is none of the path; None where it is one."""
    if fitted.edge_probability is None:
        return None
    pairs, nodes = path_of(fitted).layout.pairs, fitted.schema.nodes
    norms = {(frozenset((e.source, e.target)), e.moderator): e.norm for e in fitted.edges}
    return np.array(
        [
            norms.get((frozenset((nodes[u].name, nodes[v].name)), _moderator(fitted, group)), 0.0)
            for group, (u, v) in enumerate(pairs)
        ]
    )


def _draw_beside(ax: Axes, fitted: FittedModel, lams: Floats, norms: Floats, named: Ints) -> None:
    """Draw the edges of a graph that is none of the path, right of it."""
    first, last = ax.get_xlim()
    at, end = last * (last / first) ** _BESIDE, last * (last / first) ** (1.6 * _BESIDE)
    ax.set_xticks([tick for tick in ax.get_xticks() if last <= tick <= first])
    ax.set_xlim(first, end)
    ax.axvspan(last, end, color=_STRIP, linewidth=0.0, zorder=0)
    strong = set(named.tolist())
    for group in np.flatnonzero(norms).tolist():
        ax.plot(
            [at],
            [norms[group]],
            "o",
            color=KIND_COLOURS[_kind(fitted, group)],
            markersize=5.0 if group in strong else 3.0,
            alpha=1.0 if group in strong else 0.6,
            clip_on=False,
            zorder=3,
        )
    ax.annotate(
        "chosen\ngraph",
        (at, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(0.0, -4.0),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=8,
        color=INK,
        annotation_clip=False,
    )


def _order(lams: Floats, norms: Floats, chosen: Floats, beside: Floats | None) -> Ints:
    """Return the edges that ever appear, largest at the choice first."""
    if beside is not None:
        ever = np.flatnonzero(norms.any(axis=0) | (beside > 0.0))
        return np.asarray(ever[np.lexsort((-norms[-1, ever], -beside[ever]))])
    at = np.abs(np.log(lams)[:, None] - np.log(np.maximum(chosen, lams[-1]))).argmin(axis=0)
    ever = np.flatnonzero(norms.any(axis=0))
    # Equal (often both zero) at the chosen lam: the largest at the end of the path.
    keys = np.lexsort((-norms[-1, ever], -norms[at[ever], ever]))
    return np.asarray(ever[keys])


def _draw_chosen(
    ax: Axes, fitted: FittedModel, lams: Floats, norms: Floats, chosen: Floats
) -> None:
    """Mark the choice: a line, or a dot on each edge where every column has a lam of its own."""
    lam = fitted.report.lam
    if not isinstance(lam, tuple):
        if lams[-1] <= lam <= lams[0]:
            ax.axvline(lam, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
        return
    at = np.abs(np.log(lams)[:, None] - np.log(chosen)).argmin(axis=0)
    height = norms[at, np.arange(len(chosen))]
    there = height > 0.0
    ax.plot(chosen[there], height[there], "o", color=INK, markersize=4.0, zorder=3.5)


def _kind(fitted: FittedModel, group: int) -> str:
    u, v = path_of(fitted).layout.pairs[group]
    return edge_kind(fitted.schema, int(u), int(v))


def _moderator(fitted: FittedModel, group: int) -> str | None:
    path = path_of(fitted)
    which = int(path.layout.moderator[group])
    if path.moderators is None or which < 0:
        return None
    return fitted.schema.nodes[path.moderators.nodes[which]].name


def _draw_lines(
    ax: Axes, fitted: FittedModel, lams: Floats, norms: Floats, order: Ints, named: Ints
) -> None:
    marker = "o" if len(lams) == 1 else ""
    strong = set(named.tolist())
    for group in order[::-1].tolist():
        ax.plot(
            lams,
            norms[:, group],
            color=KIND_COLOURS[_kind(fitted, group)],
            linestyle="-" if _moderator(fitted, group) is None else ":",
            linewidth=1.9 if group in strong else 0.9,
            alpha=1.0 if group in strong else 0.5,
            marker=marker,
            zorder=2.5 if group in strong else 2.0,
        )


def set_lam_axis(ax: Axes, lams: Floats) -> None:
    """Make the axis logarithmic, the largest lam at the left, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    wide = len(lams) > 1
    ax.set_xlabel("lam")
    ax.set_xscale("log")
    ax.set_xlim(*((lams[0], lams[-1]) if wide else (2.0 * lams[0], lams[0] / 2.0)))
    ratio = lams[0] / lams[-1]
    subs = (1, 2, 3, 4, 5, 6, 8) if ratio < 8.0 else (1, 2, 3, 5) if ratio < 2e3 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def draw_counts(ax: Axes, lams: Floats, n_edges: Ints) -> None:
    """Write the number of edges along the top, at lams about equally far apart."""
    wanted = np.linspace(np.log(lams[0]), np.log(lams[-1]), min(_TOP_TICKS, len(lams)))
    at = sorted({int(np.abs(np.log(lams) - value).argmin()) for value in wanted})
    top = ax.secondary_xaxis("top")
    top.set_xticks(lams[at], labels=[str(n_edges[k]) for k in at])
    top.minorticks_off()
    top.set_xlabel("number of edges")


def _draw_names(ax: Axes, fitted: FittedModel, heights: Floats, named: Ints) -> None:
    """Write the names at the right-hand ends, moved apart where lines end close together."""
    if len(named) == 0:
        return
    pairs, nodes = path_of(fitted).layout.pairs, fitted.schema.nodes
    ends = heights[named] / ax.get_ylim()[1]
    moved = _apart(ends, 0.05)
    for group, end, height in zip(named.tolist(), ends, moved, strict=True):
        u, v = fitted.schema.directed(*pairs[group])
        directed = path_of(fitted).layout.nodewise or u in fitted.schema.covariates
        dash = "→" if directed else "–"
        colour = KIND_COLOURS[_kind(fitted, group)]
        moderator = _moderator(fitted, group)
        by = "" if moderator is None else f" by {label(moderator, 18)}"
        ax.annotate(
            f"{label(nodes[u].name, 18)} {dash} {label(nodes[v].name, 18)}{by}",
            (1.0, end),
            xytext=(1.035, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkA": 1},
            annotation_clip=False,
        )


def _apart(heights: Floats, gap: float) -> Floats:
    """Return the heights moved as little as a few passes find, at least `gap` apart, in [0, 1]."""
    order = np.argsort(heights, kind="stable")
    moved = heights[order].copy()
    gap = min(gap, 1.0 / max(len(moved) - 1, 1))
    for _ in range(200):
        short = gap - np.diff(moved)
        short[short < 0.0] = 0.0
        if not short.any():
            break
        moved[:-1] -= short / 2.0
        moved[1:] += short / 2.0
        moved = np.clip(moved, 0.0, 1.0)
    result = np.empty_like(moved)
    result[order] = moved
    return result


def _draw_legend(ax: Axes, fitted: FittedModel, order: Ints) -> None:
    from matplotlib.lines import Line2D

    present = {_kind(fitted, group) for group in order.tolist()}
    alike: dict[str, list[str]] = {}
    for kind, colour in KIND_COLOURS.items():
        if kind in present:
            alike.setdefault(colour, []).append(kind)
    named = {
        colour: kinds[0] if len(kinds) == 1 else ", ".join(SHORT_KINDS[kind] for kind in kinds)
        for colour, kinds in alike.items()
    }
    keys = [
        Line2D([], [], color=colour, linewidth=1.9, label=text) for colour, text in named.items()
    ]
    lam = fitted.report.lam
    if isinstance(lam, tuple):
        style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.0}
        keys.append(Line2D([], [], color=INK, label="lam of the column predicted", **style))
    else:
        style = {"linewidth": 1.0, "linestyle": (0, (4, 3))}
        text = f"lam = {lam:.3g}"
        if fitted.edge_probability is not None:
            text = f"nearest to the chosen graph: {text}"
        keys.append(Line2D([], [], color=INK, label=text, **style))
    ax.legend(handles=keys, loc="upper left", frameon=False, fontsize=8.5)


# -- scores of the choice --------------------------------------------------------------------------

_CURVE = "#2f6db2"
_LIMIT = "#b5482f"
_FAINT = "#8a8f98"
_ROW = 0.8
SCORE_LABELS = {
    "errors": "pairs expected to be wrong",
    "ebic": "EBIC",
    "bic": "BIC",
    "aic": "AIC",
    "cv": "loss of the rows held out",
    "holdout": "loss of the rows held out",
    "stars": "instability",
    "stability": "false edges expected at most",
}

SCORE_LIMITS = {"errors": "the graph of the tests"}


@known_options
def plot_selection(fitted: FittedModel, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw the scores against lam, with the choice marked.

    Scores are on the vertical axis, lam, falling, on the horizontal one, numbers of edges above.
    Cross-validation has error bars of one standard error; StARS and stability selection have their
    limit as a line. With one lam per column every column has its own row: how far its score is
    above its lowest, on a logarithmic scale that all rows share.
    """
    path = path_of(fitted)
    if not fitted.scores:
        raise ParameterError(
            "this model has no selection scores; fit it without lam, so that one is chosen."
        )
    keep = drawn_lams(fitted)
    scores = {name: np.asarray(values)[keep] for name, values in fitted.scores.items()}
    lams, name = path.lams[keep], next(iter(scores))
    if isinstance(fitted.report.lam, tuple):
        return _plot_columns(ax, fitted, lams, scores[name], legend)
    ax = axes(ax, (8.0, 4.6), layout="constrained")
    _draw_score(ax, lams, scores, name)
    _draw_reference(ax, fitted, lams, scores, name)
    _draw_choice(ax, fitted, lams, scores[name])
    set_lam_axis(ax, lams)
    ax.set_ylabel(SCORE_LABELS.get(name, name))
    ax.set_title(fitted.report.criterion or "", loc="left", fontsize=10, color=INK)
    ax.spines[["right"]].set_visible(False)
    draw_counts(ax, lams, path.n_edges[keep])
    if legend:
        ax.legend(frameon=False, fontsize=8.5, loc="best")
    return ax


def _finite(values: Floats) -> Floats:
    """Scores that are not there leave a gap."""
    return np.where(np.isfinite(values), values, np.nan)


def _draw_score(ax: Axes, lams: Floats, scores: dict[str, Floats], name: str) -> None:
    values, style = _finite(scores[name]), {"marker": "o", "markersize": 3.0, "color": _CURVE}
    if f"{name}_se" in scores:
        ax.errorbar(
            lams,
            values,
            yerr=_finite(scores[f"{name}_se"]),
            ecolor=_FAINT,
            elinewidth=0.9,
            linewidth=1.6,
            label="mean over folds ± one standard error",
            **style,  # type: ignore[arg-type]
        )
        return
    ax.plot(lams, values, linewidth=1.6, label=SCORE_LABELS.get(name, name), **style)  # type: ignore[arg-type]
    if f"{name}_raw" in scores:
        raw = _finite(scores[f"{name}_raw"])
        ax.plot(lams, raw, color=_FAINT, linewidth=1.0, label="before it is made monotone")


def _draw_reference(
    ax: Axes, fitted: FittedModel, lams: Floats, scores: dict[str, Floats], name: str
) -> None:
    """The line that the choice was compared with: a limit, or the lowest mean + one error."""
    if f"{name}_limit" in scores:
        limit, label = scores[f"{name}_limit"], SCORE_LIMITS.get(name, "limit")
        if fitted.edge_probability is not None:
            label = f"the chosen graph, by tests: {len(fitted.edges)} edges"
        ax.plot(lams, limit, color=_LIMIT, linewidth=1.2, linestyle="--", label=label)
    if f"{name}_se" in scores:
        lowest = int(np.nanargmin(_finite(scores[name])))
        height = scores[name][lowest] + scores[f"{name}_se"][lowest]
        ax.axhline(
            height,
            color=_LIMIT,
            linewidth=1.2,
            linestyle="--",
            label="lowest mean + one standard error",
        )


def _draw_choice(ax: Axes, fitted: FittedModel, lams: Floats, score: Floats) -> None:
    chosen = fitted.report.lam
    if isinstance(chosen, tuple) or not chosen > 0.0:
        return
    ax.axvline(chosen, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    at = int(np.abs(np.log(lams) - np.log(chosen)).argmin())
    if np.isfinite(score[at]):
        label = f"chosen: lam = {chosen:.3g}, {len(fitted.edges)} edges"
        if fitted.edge_probability is not None:
            path = path_of(fitted)
            n_edges = path.n_edges[np.abs(np.log(path.lams) - np.log(chosen)).argmin()]
            label = f"nearest to the chosen graph: lam = {chosen:.3g}, {n_edges} edges"
        ax.plot([lams[at]], [score[at]], "o", color=INK, markersize=7, zorder=4, label=label)


# -- one lam per column ----------------------------------------------------------------------------


def _plot_columns(
    ax: Axes | None, fitted: FittedModel, lams: Floats, scores: Floats, legend: bool
) -> Axes:
    """Draw one curve per column, each in its own row, with its choice marked."""
    by_column = fitted.report.lam_by_column
    assert by_column is not None
    columns = [k for k in range(len(by_column)) if not np.isnan(by_column[k])]
    ax = axes(ax, (8.0, 1.4 + 0.45 * len(columns)), layout="constrained")
    neighbours, above = fitted.n_predictors, _above(scores)
    for row, k in enumerate(reversed(columns)):
        kind = fitted.schema.columns[k].kind
        shape = row + _ROW * above[:, k]
        ax.axhline(row, color=_FAINT, linewidth=0.4, zorder=1)
        ax.plot(lams, shape, color=KINDS[kind].line, linewidth=1.5, zorder=2)
        at = int(np.abs(np.log(lams) - np.log(by_column[k])).argmin())
        ax.plot(
            [by_column[k]], [shape[at]], "o", color=INK, markersize=5.0, zorder=3, clip_on=False
        )
        note = f"{by_column[k]:.3g}, {neighbours[fitted.schema.names[k]]}"
        ax.annotate(
            note,
            (1.01, row + 0.25),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=INK,
            annotation_clip=False,
        )
    names = [label(fitted.schema.columns[k].name, 22) for k in reversed(columns)]
    ax.set_yticks(np.arange(len(columns)) + 0.25, labels=names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.2, len(columns) + (0.8 if legend else 0.1))
    set_lam_axis(ax, lams)
    title = f"{fitted.report.criterion} of every column's regression"
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.set_title("lam, neighbours", loc="right", fontsize=8, color=INK)
    ax.spines[["right", "top", "left"]].set_visible(False)
    if legend:
        _draw_column_legend(ax, fitted, columns)
    return ax


def _above(scores: Floats) -> Floats:
    """Logarithms of the scores above each column's lowest, from 0 to 1 over all columns."""
    values = _finite(scores)
    low = np.min(np.where(np.isnan(values), np.inf, values), axis=0)
    above = np.log1p(values - low)
    return np.asarray(above / max(float(np.nanmax(above)), 1e-300))


def _draw_column_legend(ax: Axes, fitted: FittedModel, columns: list[int]) -> None:
    from matplotlib.lines import Line2D

    present = {fitted.schema.columns[k].kind for k in columns}
    keys = [
        Line2D([], [], color=kind.line, linewidth=1.5, label=name)
        for name, kind in KINDS.items()
        if name in present
    ]
    keys.append(Line2D([], [], color=INK, linestyle="", marker="o", markersize=5.0, label="chosen"))
    ax.legend(handles=keys, frameon=False, fontsize=8.5, loc="upper right", ncols=len(keys))

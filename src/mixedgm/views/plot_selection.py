"""A fitted model in -> a picture of the scores from which lam was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.kinds import KINDS
from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes, known_options, label
from mixedgm.views.plot_path import draw_counts, drawn_lams, set_lam_axis
from mixedgm.views.tables import path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SCORE_LABELS", "SCORE_LIMITS", "plot_selection"]

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

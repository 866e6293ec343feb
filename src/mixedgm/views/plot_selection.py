"""A fitted model in -> a picture of the scores from which lam was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixedgm.errors import ParameterError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.views.canvas import INK, axes
from mixedgm.views.plot_path import draw_counts, set_lam_axis
from mixedgm.views.tables import path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_selection"]

_CURVE = "#2f6db2"
_LIMIT = "#b5482f"
_FAINT = "#8a8f98"
_LABELS = {
    "ebic": "EBIC",
    "bic": "BIC",
    "aic": "AIC",
    "cv": "loss of the rows held out",
    "holdout": "loss of the rows held out",
    "stars": "instability",
    "stability": "false edges expected at most",
}


def plot_selection(fitted: FittedModel, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Draw the scores against lam, with the choice marked.

    Parameters
    ----------
    fitted : FittedModel
        A model whose lam was chosen by a criterion.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    legend : bool
        Whether to explain the lines.

    Returns
    -------
    matplotlib Axes
        Scores on the vertical axis; lam, falling, on the horizontal one; numbers of edges above.
        Cross-validation has error bars of one standard error; StARS and stability selection have
        their limit as a line.

    Raises
    ------
    ParameterError
        When the model has no scores, as with a given lam.
    """
    path = path_of(fitted)
    if not fitted.scores:
        raise ParameterError(
            "this model has no selection scores; fit it without lam, so that one is chosen."
        )
    keep = path.lams > 0.0
    if not keep.any():
        raise ParameterError("this path has no lam above zero, so there is no axis to draw it on.")
    scores = {name: np.asarray(values)[keep] for name, values in fitted.scores.items()}
    lams, name = path.lams[keep], next(iter(scores))
    ax = axes(ax, (8.0, 4.6), layout="constrained")
    _draw_score(ax, lams, scores, name)
    _draw_reference(ax, lams, scores, name)
    _draw_choice(ax, fitted, lams, scores[name])
    set_lam_axis(ax, lams)
    ax.set_xlabel("lam")
    ax.set_ylabel(_LABELS.get(name, name))
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
    ax.plot(lams, values, linewidth=1.6, label=_LABELS.get(name, name), **style)  # type: ignore[arg-type]
    if f"{name}_raw" in scores:
        raw = _finite(scores[f"{name}_raw"])
        ax.plot(lams, raw, color=_FAINT, linewidth=1.0, label="before it is made monotone")


def _draw_reference(ax: Axes, lams: Floats, scores: dict[str, Floats], name: str) -> None:
    """The line that the choice was compared with: a limit, or the lowest mean + one error."""
    if f"{name}_limit" in scores:
        limit = scores[f"{name}_limit"]
        ax.plot(lams, limit, color=_LIMIT, linewidth=1.2, linestyle="--", label="limit")
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
    if not chosen > 0.0:
        return
    ax.axvline(chosen, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    at = int(np.abs(np.log(lams) - np.log(chosen)).argmin())
    if np.isfinite(score[at]):
        label = f"chosen: lam = {chosen:.3g}, {len(fitted.edges)} edges"
        ax.plot([lams[at]], [score[at]], "o", color=INK, markersize=7, zorder=4, label=label)

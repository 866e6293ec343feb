"""Which penalty, and how many edges, predict other rows best, as the table grows.

The paper's figure on model selection: the model is fitted to n rows of a survey at 50 values of lam
and scored on rows that were held out, by the mean negative log pseudolikelihood of a row.  It is
done on two surveys.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import mixedgm as mg
from experiments.common import Run, Skip, start
from experiments.surveys import GRID, held_out_of, name_of, split

BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}


def score(survey: Path | str, n: int, held_out: int, lams: list[float]) -> list[dict[str, Any]]:
    """The loss of the held-out rows at every lam of one path."""
    train, test = split(survey, n, held_out)
    path = mg.fit_path(train, lams, n_jobs=1)
    return [
        {"lam": lam, "loss": -score, "edges": edges, "kkt": kkt}
        for lam, score, edges, kkt in zip(
            path.lams, path.score(test), path.n_edges, path.kkt, strict=True
        )
    ]


def draw(ax: Axes, table: pd.DataFrame, best: pd.DataFrame) -> None:
    """One curve for each n; at its minimum a circle and, in brackets, the number of edges."""
    sizes = sorted(table.n.unique())
    colours = colormaps["viridis"](np.linspace(0.0, 0.85, len(sizes)))
    for n, colour in zip(sizes, colours, strict=True):
        rows, low = table[table.n == n], best[best.n == n].iloc[0]
        ax.plot(rows.lam, rows.loss, color=colour, lw=1.4, label=f"{n:,}")
        ax.plot(low.lam, low.loss, "o", ms=7, mfc="none", mew=1.6, color=colour)
        at = {"xytext": (0, -14), "textcoords": "offset points", "ha": "center", "fontsize": 7.5}
        ax.annotate(f"({low.edges:.0f})", (low.lam, low.loss), bbox=BOX, **at)
    ax.legend(title="rows n", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.minorticks_off()
    span = best.loss.max() - best.loss.min()
    ax.set(
        xscale="log", xlabel="λ", ylim=(best.loss.min() - 0.2 * span, best.loss.max() + 1.2 * span)
    )


def main(run: Run) -> None:
    """Score all paths; write curves and minima, draw one panel for each survey."""
    lams = GRID[:: run.pick(full=1, quick=2, toy=7)].tolist()
    sizes: dict[Path | str, list[int]] = {}
    try:
        survey = run.survey()
        sizes[survey] = run.pick(
            full=[100, 200, 500, 1000, 2000, 5000, 10_000],
            quick=[100, 1000, 10_000],
            toy=[100, 800],
        )
    except Skip as reason:
        run.say(f"one of two surveys is left out: {reason}")
    sizes["taxunits"] = run.pick(
        full=[100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000],
        quick=[100, 1000, 10_000],
        toy=[100, 1000],
    )
    settings = [
        {"survey": survey, "n": n, "held_out": held_out_of(run, survey), "lams": lams}
        for survey, of in sizes.items()
        for n in of
    ]
    table = run.table(score, settings)
    best = table.loc[table.groupby(["survey", "n"], sort=False).loss.idxmin()]
    run.save_table(table, "model_selection")
    run.save_table(best, "model_selection_best")

    figure, axes = plt.subplots(1, len(sizes), figsize=(5.2 * len(sizes), 4.2), squeeze=False)
    for ax, survey in zip(axes[0], sizes, strict=True):
        name = name_of(survey)
        draw(ax, table[table.survey == name], best[best.survey == name])
        ax.set_title(f"{name}, {held_out_of(run, survey):,} rows held out")
    axes[0, 0].set_ylabel("negative log pseudolikelihood of a held-out row")
    run.save_figure(figure, "model_selection")


if __name__ == "__main__":
    start(main, __doc__)

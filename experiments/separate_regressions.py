"""One model of all columns against a regression of each column on all others.

The paper's comparison: both are fitted to n rows of a survey at 50 values of lam, and scored on
held-out rows by the negative log likelihood of each column given the others.  A regression
minimises this very number; the joint model has half as many parameters, since both ends of an edge
share them.  An edge is penalised in two regressions and once in the joint model, so that the
regressions at lam / 2 are as strongly penalised as the joint model at lam, and are drawn there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import mixedgm as mg
from experiments.common import BLUE, ORANGE, Run, start
from experiments.surveys import at_own_best, comparisons, draw_curves, mean_curves, name_of, split

LOOKS = {"pseudolikelihood": (BLUE, "-"), "separate regressions": (ORANGE, "--")}
TOTAL = "all columns"


def score(
    survey: Path | str, n: int, draw: int, held_out: int, method: str, lams: list[float]
) -> list[dict[str, Any]]:
    """Loss of the held-out rows by column, at every lam of one path."""
    train, test = split(survey, n, held_out, draw)
    if method == "pseudolikelihood":
        path = mg.fit_path(train, lams, n_jobs=1)
    else:
        path = mg.fit_path(train, [lam / 2 for lam in lams], loss="nodewise", n_jobs=1)
    losses = path.node_scores(test)
    losses |= {TOTAL: sum(losses.values())}
    return [
        {"column": column, "lam": lam, "loss": loss, "edges": edges}
        for column, at in losses.items()
        for lam, loss, edges in zip(lams, at, path.n_edges, strict=True)
    ]


def draw(curves: pd.DataFrame, title: str) -> Figure:
    """A panel for the total and for each column."""
    columns = [TOTAL, *(name for name in curves.column.unique() if name != TOTAL)]
    figure, axes = plt.subplots(3, 4, figsize=(9.5, 6.4), sharex=True)
    for ax in axes.flat[len(columns) :]:
        ax.set_axis_off()
    for ax, column in zip(axes.flat, columns, strict=False):
        draw_curves(ax, curves[curves.column == column], LOOKS)
        ax.set_title(column, fontweight="bold" if column == TOTAL else "normal")
    figure.supxlabel("λ of the joint model, 2λ of the regressions", fontsize=9)
    figure.supylabel("negative log likelihood of a held-out value given the others", fontsize=9)
    lines = axes[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=2, title=title, title_fontsize=10)
    return figure


def main(run: Run) -> None:
    """Score both methods; write curves and each one's best, draw one figure for each n."""
    survey = run.survey()
    draws = run.pick(full={100: 8, 10_000: 1}, quick={100: 2, 10_000: 1}, toy={100: 2, 400: 1})
    table = run.table(score, comparisons(run, survey, draws, LOOKS))
    curves = mean_curves(table, ["n", "method", "column"])
    run.save_table(curves, "separate_regressions")
    run.save_table(at_own_best(table, ["n", "column"]), "separate_regressions_best")
    for n in draws:
        tables = "one table" if draws[n] == 1 else f"mean of {draws[n]} tables"
        figure = draw(curves[curves.n == n], f"{name_of(survey)}, n = {n:,} ({tables})")
        run.save_figure(figure, f"separate_regressions_{n}")


if __name__ == "__main__":
    start(main, __doc__)

"""All solvers on one survey problem: how far from optimal, after how many passes and seconds.

10,000 rows of a survey, from the model without edges, at two values of lam.  Each solver is asked
for smaller and smaller KKT numbers, up to 1e-8 or to its limit of 1,000 steps.  Each answer is one
point, with KKT number and objective recomputed at the returned parameters.  Seconds are those of
the processor, on one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from sklearn.exceptions import ConvergenceWarning

import mixedgm as mg
from experiments.common import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Run, Skip, start
from experiments.surveys import name_of, split

SOLVERS: dict[str, Any] = {
    "auto": "auto",
    "Newton, sampled": mg.ProximalNewton("sampled"),
    "Newton, exact": mg.ProximalNewton("exact"),
    "Newton, sampled, inner gradient": mg.ProximalNewton("sampled", "proximal-gradient"),
    "Newton, exact, inner gradient": mg.ProximalNewton("exact", "proximal-gradient"),
    "Newton, limited memory": mg.ProximalNewton("limited-memory"),
    "Nesterov 1983 (FISTA)": mg.ProximalGradient("nesterov-1983"),
    "Lan, Lu, Monteiro": mg.ProximalGradient("lan-lu-monteiro"),
    "Auslender, Teboulle": mg.ProximalGradient("auslender-teboulle"),
    "Tseng": mg.ProximalGradient("tseng"),
    "Nesterov 2007": mg.ProximalGradient("nesterov-2007"),
    "gradient without momentum": mg.ProximalGradient("plain"),
}
# Newton in blue and green with solid lines, gradient methods in warm colours with broken ones.
LOOKS = {
    "auto": ("#BBBBBB", "-", "o"),
    "Newton, sampled": (BLUE, "-", "o"),
    "Newton, exact": (SKY, "-", "s"),
    "Newton, sampled, inner gradient": (BLUE, ":", "o"),
    "Newton, exact, inner gradient": (SKY, ":", "s"),
    "Newton, limited memory": (GREEN, "-", "^"),
    "Nesterov 1983 (FISTA)": (RED, "--", "o"),
    "Lan, Lu, Monteiro": (RED, ":", "s"),
    "Auslender, Teboulle": (ORANGE, "--", "o"),
    "Tseng": (ORANGE, ":", "s"),
    "Nesterov 2007": (PURPLE, "--", "o"),
    "gradient without momentum": ("black", ":", "x"),
}


def solve(
    survey: Path | str, n: int, lam: float, solver: str, tols: list[float], repeats: int
) -> list[dict[str, Any]]:
    """One solver, asked for every accuracy; seconds are those of the fastest repeat."""
    train, _ = split(survey, n, 1)
    options = {"solver": SOLVERS[solver], "max_iter": 1000, "n_jobs": 1}
    mg.MixedGraphicalModel(0.3, **options).fit(train)  # so that compilation is not timed
    rows = []
    for tol in tols:
        model = mg.MixedGraphicalModel(lam, tol=tol, **options)
        seconds = min(seconds_of_fit(model, train) for _ in range(repeats))
        path = model.path_
        row = {"tol": tol, "kkt": model.kkt_, "objective": model.objective_, "seconds": seconds}
        row |= {"passes": path.passes[0], "curvature_passes": path.curvature_passes[0]}
        rows.append(row | {"converged": model.converged_})
        if not model.converged_:
            break
        repeats = repeats if seconds < 0.5 else 1
    return rows


def seconds_of_fit(model: mg.MixedGraphicalModel, table: pd.DataFrame) -> float:
    """Fit, and return the processor time."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is in the table
        model.fit(table)
    return time.process_time() - begin


def draw(axes: list[Axes], table: pd.DataFrame) -> None:
    """Objective above its lowest value, and KKT number, against passes and seconds."""
    views = [("passes", "above"), ("passes", "kkt"), ("seconds", "above"), ("seconds", "kkt")]
    for ax, (x, y) in zip(axes, views, strict=True):
        for name, (colour, dash, marker) in LOOKS.items():
            rows, wide = table[table.solver == name], 4.5 if name == "auto" else 1.3
            ax.plot(rows[x], rows[y], dash, color=colour, marker=marker, ms=3, lw=wide, label=name)
        ax.set(xscale="log", yscale="log")
        ax.minorticks_off()


def main(run: Run) -> None:
    """Solve, write the table, draw a row of panels for each lam."""
    try:
        survey = run.survey()
    except Skip:
        survey = "taxunits"
    n, lams = run.pick(full=10_000, quick=3_000, toy=200), [0.05, 0.0065]
    tols = [10.0**-k for k in range(1, run.pick(full=9, quick=7, toy=4))]
    settings = [
        {"survey": survey, "n": n, "lam": lam, "solver": solver, "tols": tols,
         "repeats": run.pick(full=3, quick=1, toy=1)}
        for lam in lams for solver in SOLVERS
    ]  # fmt: skip
    table = run.table(solve, settings, n_jobs=1)  # nothing beside what is timed
    lowest = table.groupby("lam").objective.transform("min")
    table["above"] = (table.objective - lowest).clip(lower=1e-13)
    table["passes"] += table.curvature_passes
    run.save_table(table, "solvers")

    figure, axes = plt.subplots(2, 4, figsize=(11.0, 5.4), sharey="col")
    for row, lam in zip(axes, lams, strict=True):
        draw(list(row), table[table.lam == lam])
        for ax, label in zip(row, ("objective above its minimum", "KKT number") * 2, strict=True):
            ax.set_ylabel(label)
        row[0].set_title(f"λ = {lam}", loc="left", fontweight="bold")
    for ax, label in zip(
        axes[1], ("passes over the rows",) * 2 + ("processor seconds",) * 2, strict=True
    ):
        ax.set_xlabel(label)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle(f"{name_of(survey)}, {n:,} rows, one thread", fontsize=10)
    run.save_figure(figure, "solvers")


if __name__ == "__main__":
    start(main, __doc__)

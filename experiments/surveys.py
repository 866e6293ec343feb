"""Name of a survey -> rows to learn from and rows to score on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

import mixedgm as mg
from experiments.common import Run

GRID = np.geomspace(0.7, 5e-5, 50)
"""The values of lam of the paper's survey experiments."""
TARGETS = ("logwage", "education", "jobclass")
"""What the paper's conditional model describes, given all other columns."""
HELD_OUT = {"atus_wage": 87_492, "taxunits": 100_000, "wage": 2_000}
"""Rows that no model is fitted to."""


def name_of(survey: Path | str) -> str:
    """The name of a bundled table, or of a file."""
    return survey.stem if isinstance(survey, Path) else survey


@cache
def shuffled(survey: Path | str) -> pd.DataFrame:
    """All rows in random order: the first order in which every column varies in 100 rows."""
    if isinstance(survey, Path):
        table = pd.read_parquet(survey).iloc[:, :11]
    else:
        table = {"taxunits": mg.datasets.load_taxunits, "wage": mg.datasets.load_wage}[survey]()
    for seed in count():
        order = table.sample(frac=1.0, random_state=seed).reset_index(drop=True)
        if (order.iloc[:100].nunique() > 1).all():
            return order
    raise AssertionError("count() has no end")


def held_out_of(run: Run, survey: Path | str) -> int:
    """How many rows are scored."""
    return run.pick(full=HELD_OUT[name_of(survey)], quick=20_000, toy=500)


def split(
    survey: Path | str, n: int, held_out: int, draw: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The draw-th n rows to learn from, and the last rows to score on, which no draw contains."""
    table = shuffled(survey)
    pool = len(table) - HELD_OUT[name_of(survey)]
    if (draw + 1) * n > pool:
        raise ValueError(f"{draw + 1} draws of {n} rows are more than the {pool} rows there are")
    return table.iloc[draw * n : (draw + 1) * n], table.iloc[-held_out:]


def comparisons(
    run: Run, survey: Path | str, draws: dict[int, int], methods: Iterable[str]
) -> list[dict[str, Any]]:
    """Settings of two methods on the same tables: so many draws of each size."""
    lams = GRID[:: run.pick(full=1, quick=2, toy=7)].tolist()
    same = {"survey": survey, "held_out": held_out_of(run, survey), "lams": lams}
    return [
        {**same, "n": n, "draw": draw, "method": method}
        for n in draws
        for draw in range(draws[n])
        for method in methods
    ]


def draws_of_sizes(run: Run) -> dict[int, int]:
    """Sizes of the tables on which the conditional model is studied, and draws of each."""
    return run.pick(
        full={100: 20, 300: 10, 1000: 10, 3000: 3, 10_000: 1},
        quick={100: 4, 1000: 2, 10_000: 1},
        toy={100: 2, 400: 1},
    )


def mean_curves(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Losses against lam, averaged over draws."""
    groups = table.groupby([*by, "lam"], sort=False)
    return groups.agg(loss=("loss", "mean"), draws=("loss", "size")).reset_index()


def at_own_best(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Loss of both methods, each at the lam that is best for it in each draw, and the difference.

    The standard error is that of the mean difference over draws; with one draw there is none.
    """
    lowest = table.groupby([*by, "draw", "method"], sort=False).loss.min().unstack("method")
    first, second = lowest.columns
    lowest["difference"] = lowest[second] - lowest[first]
    groups = lowest.groupby(level=by, sort=False)
    found = groups.mean()
    found["standard_error"] = groups.difference.sem()
    found["draws"] = groups.size()
    return found.reset_index()


def differences(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Second method minus first at every lam: mean over draws, and its standard error."""
    wide = table.pivot_table(
        index=[*by, "lam", "draw"], columns="method", values="loss", sort=False
    )
    groups = (wide.iloc[:, 1] - wide.iloc[:, 0]).groupby(level=[*by, "lam"], sort=False)
    found = pd.DataFrame({"difference": groups.mean(), "standard_error": groups.sem()})
    return found.reset_index()


def draw_curves(ax: Axes, curves: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    """One line for each method, a dot at its lowest point; logarithms where losses explode."""
    for method, (colour, dash) in looks.items():
        rows = curves[curves.method == method]
        low = rows.loc[rows.loss.idxmin()]
        ax.plot(rows.lam, rows.loss, color=colour, ls=dash, lw=1.4, label=method)
        ax.plot(low.lam, low.loss, "o", color=colour, ms=4)
    ax.set_xscale("log")
    if curves.loss.max() > 1.5 * curves.loss.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def draw_differences(ax: Axes, rows: pd.DataFrame) -> None:
    """The mean difference with a band of two standard errors; large ones by their logarithms."""
    error = 2.0 * rows.standard_error.fillna(0.0)
    ax.fill_between(rows.lam, rows.difference - error, rows.difference + error, color="#DDDDDD")
    ax.plot(rows.lam, rows.difference, color="black", lw=1.2)
    ax.axhline(0.0, color="#888888", lw=0.8)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_yticks([-1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 1.0])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def draw_by_size(
    table: pd.DataFrame, looks: dict[str, tuple[str, str]], lam: str, difference: str
) -> Figure:
    """Panels for each n: the curves of both methods by each criterion, and their difference.

    `lam` and `difference` name the axes.
    """
    by = ["criterion", "n"]
    curves, apart = mean_curves(table, [*by, "method"]), differences(table, by)
    sizes, criteria = table.n.unique(), table.criterion.unique()
    size = (2.2 * len(sizes), 0.7 + 3.2 * len(criteria))
    figure, axes = plt.subplots(
        2 * len(criteria), len(sizes), figsize=size, sharex=True, squeeze=False,
        height_ratios=[3, 2] * len(criteria),
    )  # fmt: skip
    for k, criterion in enumerate(criteria):
        for upper, lower, n in zip(axes[2 * k], axes[2 * k + 1], sizes, strict=True):
            rows = curves[(curves.criterion == criterion) & (curves.n == n)]
            draw_curves(upper, rows, looks)
            draw_differences(lower, apart[(apart.criterion == criterion) & (apart.n == n)])
            draws = rows.draws.iloc[0]
            if k == 0:
                upper.set_title(f"n = {n:,}" + ("" if draws == 1 else f" (mean of {draws})"))
        for ax in axes[2 * k + 1]:
            ax.sharey(axes[2 * k + 1, 0])
        axes[2 * k, 0].set_ylabel(f"held-out\n{criterion}")
        axes[2 * k + 1, 0].set_ylabel(difference)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.supxlabel(lam, fontsize=9)
    return figure

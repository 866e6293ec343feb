"""Where the irrepresentable condition ends, and what happens to the graph there.

Two families of models, each with one strength that grows: a star (a hub of three levels with
continuous leaves) and the ladder of the paper.  For every strength the irrepresentability number of
section 6, and the share of tables from which exactly the true edges are found at the best lam of a
path, so that the choice of lam is not to blame.  One weak edge apart from the rest keeps lam
from being large; without it a strong star is found before its false edges enter the path.  Then the
same against the number of rows, on both sides of 1, and the theorem's sample size beside what the
ladder really needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import mixedgm as mg
from experiments.common import BLACK, BLUE, ORANGE, Run, start, wilson
from mixedgm.model.conditional_gaussian import ConditionalGaussian

STRENGTHS = {
    "star": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "ladder": (0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 1.7, 1.8, 1.9),
}
LOSSES = ("pseudolikelihood", "likelihood")
WEAK = 0.08
"""Weight of the weak edge, about: its covariance is half of the lam at which it enters."""
LAMS = np.geomspace(0.25, 0.05, 20)
"""For the pseudolikelihood; half of them for the likelihood, which has every edge in one term."""
THEOREM = (0.3, 0.5)
"""Strengths of the ladder for which the theorem applies."""
FARTHEST = 2.3
"""End of the axes of numbers; what is beyond is in the tables."""
NAMES = {"pseudolikelihood": "pseudolikelihood", "likelihood": "maximum likelihood"}
COLOURS = dict(zip(LOSSES, (BLUE, ORANGE), strict=True))
MARKERS = {"star": "o", "ladder": "s"}


def model(family: str, strength: float) -> mg.MixedGraphicalModel:
    """One of the family, and a weak edge u - v apart from it."""
    if family == "star":
        columns: dict[str, Any] = {"hub": 3} | dict.fromkeys(("a", "b", "c"), "continuous")
        params = ConditionalGaussian.independent(3, (3,))
        params.shift[:] = strength * np.array([1.0, 0.0, -1.0])
    else:
        sizes = {"beta": 0.25 * strength, "rho": 0.5 * strength, "phi": 0.5 * strength}
        _, ladder = mg.datasets.make_ladder(1, 4, random_state=0, **sizes)
        params = ladder.params_.joint
        columns = {c.name: len(c.levels) or "continuous" for c in ladder.schema_.nodes}
    p, n_levels = params.n_numbers, params.n_levels
    whole = ConditionalGaussian.independent(p + 1, (*n_levels, 2))
    inside = slice(0, sum(n_levels))
    whole.precision[:p, :p] = params.precision
    whole.shift[:p, inside] = params.shift
    whole.interaction[inside, inside] = params.interaction
    whole.shift[p, -2:] = WEAK, -WEAK
    columns |= {"u": "continuous", "v": 2}
    return mg.from_params(columns, mg.Params.of_joint(whole))


def numbers(family: str, strength: float, loss: str) -> list[dict[str, Any]]:
    """What theory says about one model."""
    found = mg.diagnostics.consistency(model(family, strength), loss=loss)
    row = {"at_truth": found.at_truth, "lower": found.lower, "upper": found.upper}
    return [row | {"convexity": found.convexity}]


def recovery(family: str, strength: float, n: int, seed: int) -> list[dict[str, Any]]:
    """One table: is the true graph on the path, by either loss?"""
    truth = model(family, strength)
    rng = np.random.default_rng([seed, n, round(100 * strength), len(family)])
    table = truth.sample(n, random_state=rng)
    rows = []
    for loss in LOSSES:
        lams = LAMS if loss == "pseudolikelihood" else LAMS / 2
        path = mg.fit_path(table, lams, loss=loss, n_jobs=1)
        graphs = [mg.compare_graphs(truth, path.edges(k)) for k in range(len(path))]
        best = min(graphs, key=lambda graph: graph.hamming)
        rows.append({"loss": loss, "exact": best.hamming == 0, "mistakes": best.hamming})
    return rows


def rows_needed(strength: float, n: int, seed: int) -> list[dict[str, Any]]:
    """One table of the plain ladder: is the true graph on the path, by either loss?"""
    sizes = {"beta": 0.25 * strength, "rho": 0.5 * strength, "phi": 0.5 * strength}
    rng = np.random.default_rng([seed, n, round(100 * strength)])
    table, truth = mg.datasets.make_ladder(n, 4, random_state=rng, **sizes)
    rows = []
    for loss in LOSSES:
        path = mg.fit_path(table, loss=loss, n_lams=40, lam_min_ratio=0.05, n_jobs=1)
        exact = [mg.compare_graphs(truth, path.edges(k)).hamming == 0 for k in range(len(path))]
        rows.append({"loss": loss, "exact": any(exact)})
    return rows


def promised(strength: float, loss: str, n: int) -> list[dict[str, Any]]:
    """What the theorem says about the plain ladder, and what it says for n rows."""
    sizes = {"beta": 0.25 * strength, "rho": 0.5 * strength, "phi": 0.5 * strength}
    _, truth = mg.datasets.make_ladder(1, 4, random_state=0, **sizes)
    found = mg.diagnostics.consistency(truth, loss=loss)
    there = found.theorem(n)
    row = {
        "upper": found.upper,
        "convexity": found.convexity,
        "theorem_rows": found.theorem().n_rows,
    }
    return [row | {"theorem_lam": there.lam, "theorem_error_bound": there.error_bound}]


def shares(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Share of tables whose graph is found, with its interval."""
    out = frame.groupby(by, sort=False).exact.agg(trials="size", share="mean").reset_index()
    out[["lower", "upper"]] = [wilson(s, n) for s, n in zip(out.share, out.trials, strict=True)]
    return out


def curve(ax: Axes, x: str, rows: pd.DataFrame, **line: Any) -> None:
    """Shares with 95% intervals."""
    spread = np.maximum(0.0, [rows.share - rows.low, rows.high - rows.share])
    look = {"ms": 4, "lw": 1.4, "elinewidth": 0.8, "capsize": 1.5, **line}
    ax.errorbar(rows[x], rows.share, spread, **look)
    ax.set(ylim=(-0.03, 1.03))


def draw_numbers(ax: Axes, table: pd.DataFrame, family: str) -> None:
    """Numbers against strength: for the true directions, and for all of them."""
    for loss, rows in table[table.family == family].groupby("loss", sort=False):
        colour = COLOURS[str(loss)]
        ax.plot(rows.strength, rows.at_truth, color=colour, marker=MARKERS[family], ms=4, lw=1.4)
        if (rows.upper > rows.at_truth + 1e-6).any():
            ax.plot(rows.strength, rows.upper, color=colour, ls=":", lw=1.4)
    ax.axhline(1.0, color=BLACK, lw=0.8, ls="--")
    ax.set(xlabel="strength", ylabel="irrepresentability", title=family, ylim=(0.0, FARTHEST))


def draw_legend(ax: Axes) -> None:
    """Colours are losses, solid lines the truth."""
    for loss, colour in COLOURS.items():
        ax.plot([], [], color=colour, lw=1.4, label=NAMES[loss])
    ax.plot([], [], color="grey", lw=1.4, label="for the true directions")
    ax.plot([], [], color="grey", lw=1.4, ls=":", label="for all directions")
    ax.legend(loc="upper left")


def draw_recovery(ax: Axes, table: pd.DataFrame, n: int) -> None:
    """Recovery against the number: everything falls at 1."""
    for (family, loss), rows in table.groupby(["family", "loss"], sort=False):
        look = {"color": COLOURS[loss], "marker": MARKERS[family]}
        label = f"{family}, {NAMES[loss]}"
        curve(ax, "at_truth", rows.sort_values("at_truth"), label=label, **look)
    ax.axvline(1.0, color=BLACK, lw=0.8, ls="--")
    ax.set(
        xlabel="irrepresentability for the true directions",
        ylabel="share of tables with exactly the true edges",
        title=f"n = {n:,}, best λ",
        xlim=(0.0, FARTHEST),
    )
    ax.legend(loc="upper right")


def draw_rows(ax: Axes, table: pd.DataFrame) -> None:
    """Recovery of the star against n, on both sides of 1."""
    for at, (number, rows) in enumerate(table.groupby("at_truth", sort=True)):
        look = {"color": COLOURS["pseudolikelihood"], "marker": "o^sD"[at % 4]}
        side = "-" if float(str(number)) < 1.0 else "--"
        curve(ax, "n", rows, ls=side, label=f"{float(str(number)):.2f}", **look)
    ax.set(xscale="log", xlabel="rows n", title="star, pseudolikelihood, best λ")
    ax.set_xticks(sizes := sorted(set(table.n)), [f"{n:,}" for n in sizes], minor=False)
    ax.minorticks_off()
    ax.legend(title="irrepresentability", loc="center right")


def beside_theorem(run: Run) -> pd.DataFrame:
    """The rows that the theorem asks for beside those from which 95% of the graphs are found."""
    sizes = run.pick(full=(250, 500, 1000, 2000, 4000, 8000), quick=(500, 2000, 8000), toy=(2000,))
    trials = run.pick(full=40, quick=10, toy=2)
    settings = [
        {"strength": s, "n": n, "seed": k} for s in THEOREM for n in sizes for k in range(trials)
    ]
    found = shares(run.table(rows_needed, settings), ["strength", "loss", "n"])
    settings, seen = [], []
    for (strength, loss), rows in found.groupby(["strength", "loss"], sort=False):
        enough = rows[rows.share >= 0.95]
        first = (enough if len(enough) else rows).iloc[0 if len(enough) else -1]
        settings.append({"strength": strength, "loss": loss, "n": int(first.n)})
        seen.append({"share": first.share, "trials": first.trials})
    said = run.table(promised, settings)
    return pd.concat([said, pd.DataFrame(seen)], axis=1)


def main(run: Run) -> None:
    """Numbers, trials, and both against each other."""
    every = run.pick(full=1, quick=2, toy=7)
    models = [(f, s) for f, all_of in STRENGTHS.items() for s in all_of[::every]]
    trials, n = run.pick(full=60, quick=15, toy=2), run.pick(full=10_000, quick=10_000, toy=2000)
    settings = [{"family": f, "strength": s, "loss": loss} for f, s in models for loss in LOSSES]
    said = run.table(numbers, settings)
    settings = [
        {"family": f, "strength": s, "n": n, "seed": k} for f, s in models for k in range(trials)
    ]
    found = shares(run.table(recovery, settings), ["family", "strength", "loss", "n"])
    found = found.rename(columns={"lower": "low", "upper": "high"})
    both = said.merge(found, on=["family", "strength", "loss"])
    run.save_table(both, "consistency")

    sizes = run.pick(
        full=(1000, 2000, 4000, 8000, 16000, 32000), quick=(1000, 8000), toy=(1000, 2000)
    )
    sides = run.pick(full=(0.6, 0.9), quick=(0.6, 0.9), toy=(0.6,))
    settings = [
        {"family": "star", "strength": s, "n": m, "seed": k}
        for s in sides
        for m in sizes
        for k in range(run.pick(full=40, quick=10, toy=2))
    ]
    grown = shares(run.table(recovery, settings), ["family", "strength", "loss", "n"])
    grown = grown.rename(columns={"lower": "low", "upper": "high"})
    settings = [{"family": "star", "strength": s, "loss": loss} for s in sides for loss in LOSSES]
    grown = run.table(numbers, settings).merge(grown, on=["family", "strength", "loss"])
    run.save_table(grown, "consistency_rows")
    run.save_table(beside_theorem(run), "consistency_theorem")

    figure, axes = plt.subplots(2, 2, figsize=(9.0, 6.6))
    draw_numbers(axes[0, 0], both, "star")
    draw_numbers(axes[0, 1], both, "ladder")
    draw_legend(axes[0, 1])
    draw_recovery(axes[1, 0], both, n)
    draw_rows(axes[1, 1], grown[grown.loss == "pseudolikelihood"])
    run.save_figure(figure, "consistency")


if __name__ == "__main__":
    start(main, __doc__)

"""How many rows it takes to find exactly the edges of a ladder.

The paper's synthetic experiment: ten continuous and ten binary columns, lam = 5 sqrt(log(p + q)/n),
the share of 100 tables from which the true graph is found, without a mistake.  An edge is in one
term of the likelihood and in two of the pseudolikelihood, so maximum likelihood is shown at lam and
at lam / 2.  Then the same with calibrated and with uniform penalty weights, on this ladder and on
one whose categorical columns have two to six levels: at that lam, and at the best of 33 values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import mixedgm as mg
from experiments.common import BLUE, GREEN, ORANGE, RED, Run, start, wilson

P = 10
LADDERS: dict[str, dict[str, Any]] = {
    "binary": {"n_levels": (2,) * P, "beta": 0.25, "rho": 0.5, "phi": 0.5},
    "2 to 6 levels": {"n_levels": (2, 3, 4, 5, 6) * 2, "beta": 0.25, "rho": 0.7, "phi": 0.7},
}
FACTORS = np.geomspace(4.0, 0.25, 33)
"""Multiples of lam on the path; the one in the middle is 1."""
RULE, BEST = "5√(log(p + q)/n)", "the best value"


def rate(n: int) -> float:
    """The paper's lam."""
    return float(5.0 * np.sqrt(np.log(2 * P) / n))


def draw(ladder: str, n: int, seed: int) -> tuple[pd.DataFrame, mg.MixedGraphicalModel]:
    """A table and the model that it was drawn from."""
    rng = np.random.default_rng([seed, n, *LADDERS[ladder]["n_levels"]])
    return mg.datasets.make_ladder(n, P, random_state=rng, **LADDERS[ladder])


def mistakes(graph: Any) -> dict[str, int]:
    """Whether a graph is exact; missed and false edges; those from one rung to the next but one."""
    ends = [(place(a), place(b)) for a, b in graph.false_edges]
    skipping = sum(a[1] == b[1] and abs(a[0] - b[0]) == 2 for a, b in ends)
    found = {"missed": len(graph.missed_edges), "false": len(ends), "skipping": skipping}
    return {"exact": int(graph.hamming == 0), **found}


def likelihoods(n: int, seed: int) -> list[dict[str, Any]]:
    """One table, maximum likelihood at two values of lam: is the graph right, and if not, why."""
    table, truth = draw("binary", n, seed)
    rows = []
    for name, lam in (("λ", rate(n)), ("λ/2", rate(n) / 2)):
        model = mg.MixedGraphicalModel(lam, loss="likelihood", solver="proximal-newton", n_jobs=1)
        found = mg.compare_graphs(truth, model.fit(table))
        rows.append({"method": f"maximum likelihood at {name}", **mistakes(found)})
    return rows


def weights(ladder: str, n: int, seed: int) -> list[dict[str, Any]]:
    """One table, pseudolikelihood with both weights: the graph at lam, and any on the path."""
    table, truth = draw(ladder, n, seed)
    rows = []
    for kind in ("calibrated", "uniform"):
        lams = rate(n) * FACTORS
        path = mg.fit_path(table, lams, penalty_weights=kind, solver="proximal-newton", n_jobs=1)
        found = [mg.compare_graphs(truth, path.edges(k)) for k in range(len(path))]
        best = min(found, key=lambda graph: graph.hamming)
        for lam, graph in ((RULE, found[len(lams) // 2]), (BEST, best)):
            rows.append({"weights": kind, "lam": lam, **mistakes(graph)})
    return rows


def irrepresentability(loss: str) -> list[dict[str, Any]]:
    """How nearly the binary ladder breaks the condition for recovery; above 1 it is broken."""
    _, truth = draw("binary", 1, 0)
    found = mg.diagnostics.consistency(truth, loss=loss)
    return [{"irrepresentability": found.at_truth, "for_all_directions": found.upper}]


def shares(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Share of exact graphs with its interval, and mean numbers of mistakes."""
    groups = frame.groupby(by, sort=False)
    out = groups[["exact", "missed", "false", "skipping"]].mean().reset_index()
    out = out.rename(columns={"exact": "share"}).assign(trials=groups.size().to_numpy())
    out[["lower", "upper"]] = [wilson(s, n) for s, n in zip(out.share, out.trials, strict=True)]
    return out


def curve(ax: Axes, rows: pd.DataFrame, colour: str, marker: str, **line: Any) -> None:
    """Shares against n with 95% intervals."""
    spread = [rows.share - rows.lower, rows.upper - rows.share]
    look = {"ms": 4, "lw": 1.4, "elinewidth": 0.8, "capsize": 1.5, **line}
    ax.errorbar(rows.n, rows.share, spread, color=colour, marker=marker, **look)
    ax.set(xlabel="rows n", ylim=(-0.03, 1.03))


def draw_ladder(ax: Axes) -> None:
    """The graph for p = q = 4, as in the paper."""
    _, truth = mg.datasets.make_ladder(1, 4)
    kinds = {"continuous-continuous": BLUE, "continuous-categorical": GREEN}
    for edge in truth.edges_:
        ends = np.array([place(edge.source), place(edge.target)])
        ax.plot(*ends.T, color=kinds.get(edge.kind, ORANGE), lw=3, zorder=1)
    for node in truth.schema_.nodes:
        x, y = place(node.name)
        colour = "#CFE5F5" if node.kind == "continuous" else "#FBE3CF"
        ax.scatter(x, y, s=420, color=colour, edgecolor="black", linewidth=0.8, zorder=2)
        ax.text(x, y, node.name, ha="center", va="center", fontsize=8)
    for colour, name in ((BLUE, "β"), (GREEN, "ρ"), (ORANGE, "φ")):
        ax.plot([], [], color=colour, lw=3, label=name)
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.05))
    ax.set(xlim=(-0.5, 3.5), ylim=(-0.8, 1.6), title="the ladder, here for p = q = 4")
    ax.set_axis_off()


def place(name: str) -> tuple[int, int]:
    """Continuous columns above, categorical ones below."""
    return int(name[1:]) - 1, int(name[0] == "x")


def draw_methods(ax: Axes, table: pd.DataFrame) -> None:
    """Pseudolikelihood and maximum likelihood."""
    looks = {
        "pseudolikelihood at λ": (BLUE, "o"),
        "maximum likelihood at λ/2": (ORANGE, "D"),
        "maximum likelihood at λ": (RED, "s"),
    }
    for name, (colour, marker) in looks.items():
        curve(ax, table[table.method == name], colour, marker, label=name)
    ax.set(ylabel="share of tables with exactly the true edges")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def draw_weights(axes: list[Axes], table: pd.DataFrame) -> None:
    """Calibrated and uniform weights, on both ladders."""
    for ax, (ladder, rows) in zip(axes, table.groupby("ladder", sort=False), strict=True):
        for (kind, lam), part in rows.groupby(["weights", "lam"], sort=False):
            colour, marker = (BLUE, "o") if kind == "calibrated" else (GREEN, "^")
            curve(ax, part, colour, marker, ls="-" if lam == RULE else ":")
        ax.set_title(f"categorical columns: {ladder}")
    axes[0].set_ylabel("share of tables with exactly the true edges")
    marks = [
        Line2D([], [], color=BLUE, marker="o", label="calibrated weights"),
        Line2D([], [], color=GREEN, marker="^", label="uniform weights"),
        Line2D([], [], color="black", ls="-", label=f"λ = {RULE}"),
        Line2D([], [], color="black", ls=":", label="best λ of 33 for each table"),
    ]
    axes[0].figure.legend(handles=marks, loc="outside upper center", ncols=4)


def main(run: Run) -> None:
    """Run the trials, write shares with intervals, draw both figures."""
    trials = run.pick(full=100, quick=20, toy=2)
    sizes = {
        "binary": run.pick(full=range(100, 2001, 100), quick=range(250, 2001, 250), toy=[200, 800]),
        "2 to 6 levels": run.pick(
            full=range(500, 5001, 500), quick=range(1000, 5001, 1000), toy=[300, 900]
        ),
    }
    seeds = range(trials)
    settings = [{"n": n, "seed": seed} for n in sizes["binary"] for seed in seeds]
    likely = run.table(likelihoods, settings)
    settings = [
        {"ladder": k, "n": n, "seed": s} for k, of in sizes.items() for n in of for s in seeds
    ]
    weighed = run.table(weights, settings)
    losses = [{"loss": loss} for loss in ("pseudolikelihood", "likelihood")]
    run.save_table(run.table(irrepresentability, losses), "phase_transition_condition")

    table = shares(weighed, ["ladder", "weights", "lam", "n"])
    run.save_table(table, "calibration")
    usual = (table.ladder == "binary") & (table.weights == "calibrated") & (table.lam == RULE)
    pseudo = table[usual].assign(method="pseudolikelihood at λ")
    both = pd.concat([pseudo, shares(likely, ["method", "n"])])
    methods = both[
        ["method", *both.columns.difference(["method", "ladder", "weights", "lam"], sort=False)]
    ]
    run.save_table(methods, "phase_transition")

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), width_ratios=(1, 2))
    draw_ladder(axes[0])
    draw_methods(axes[1], methods)
    run.save_figure(figure, "phase_transition")
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True)
    draw_weights(list(axes), table)
    run.save_figure(figure, "calibration")


if __name__ == "__main__":
    start(main, __doc__)

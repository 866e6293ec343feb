"""Tables drawn from known graphs -> true and false edges that every criterion finds, and seconds.

Run it when a criterion changes: ``python docs/studies/selection.py``.  It takes about ten minutes
on one core and prints the tables of docs/selection.md.  Names of settings as arguments restrict it.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

import mixedgm as mg

REPLICATES = 5
GAMMAS = (0.0, 0.25, 0.5, 1.0)
STRENGTH = {
    "continuous-continuous": (0.2, 0.3),
    "continuous-categorical": (0.4, 0.6),
    "categorical-categorical": (0.4, 0.6),
}
CRITERIA = {
    "EBIC": "ebic",
    "BIC": "bic",
    "AIC": "aic",
    "CV, lowest": mg.CV(5, one_se=False),
    "CV, one SE": mg.CV(5),
    "hold-out": "holdout",
    "StARS": "stars",
    "stability": mg.StabilitySelection(n_subsamples=40),
}


@dataclass(frozen=True)
class Setting:
    """How tables are drawn."""

    rows: int = 500
    columns: int = 20
    levels: int = 3
    degree: float = 2.0
    strength: float = 1.0
    ladder: bool = False


BASE = Setting()
SETTINGS = {
    "base": BASE,
    "100 rows": replace(BASE, rows=100),
    "200 rows": replace(BASE, rows=200),
    "2,000 rows": replace(BASE, rows=2000),
    "edges 0.6 as strong": replace(BASE, strength=0.6),
    "edges 1.5 as strong": replace(BASE, strength=1.5),
    "degree 1": replace(BASE, degree=1.0),
    "degree 4": replace(BASE, degree=4.0),
    "2 levels": replace(BASE, levels=2),
    "6 levels": replace(BASE, levels=6),
    "6 levels, 2,000 rows": replace(BASE, levels=6, rows=2000),
    "50 columns": replace(BASE, columns=50),
    "ladder, 200 rows": Setting(rows=200, ladder=True),
    "ladder, 1,000 rows": Setting(rows=1000, ladder=True),
}


def drawn(setting: Setting, seed: int) -> tuple[object, mg.MixedGraphicalModel]:
    """Draw a table and the model it comes from."""
    if setting.ladder:
        half = setting.columns // 2
        return mg.datasets.make_ladder(setting.rows, half, random_state=seed)
    n_edges = round(setting.columns * setting.degree / 2)
    graph = nx.gnm_random_graph(setting.columns, n_edges, seed=seed)
    types = ["continuous", setting.levels] * (setting.columns // 2)
    strength = {
        kind: (low * setting.strength, high * setting.strength)
        for kind, (low, high) in STRENGTH.items()
    }
    named = nx.relabel_nodes(graph, {k: f"v{k:02d}" for k in graph})
    truth = mg.random_model(named, types=types, sizes=strength, random_state=seed)
    return truth.sample(setting.rows, random_state=1000 + seed), truth


def information(table: object, truth: mg.MixedGraphicalModel) -> Iterator[tuple[str, int, int]]:
    """EBIC by gamma and price, all from the refits of one path that goes far down."""
    model = mg.MixedGraphicalModel(select="aic", n_jobs=1).fit(table)
    scores, path = model.fitted_.scores, model.path_
    n, columns = path.total_weight, len(model.schema_.nodes)
    for price in (1, 2):
        for gamma in GAMMAS:
            cost = scores["degrees_of_freedom"] * np.log(n)
            cost = cost + 4 * gamma * path.n_edges * np.log(columns)
            best = int(np.argmin(2 * n * scores["refit_loss"] + price * cost))
            found = mg.compare_graphs(truth, list(path.edges(best)))
            yield f"{price}, {gamma:g}", len(found.true_edges), len(found.false_edges)


def others(
    table: object, truth: mg.MixedGraphicalModel, seed: int
) -> Iterator[tuple[str, int, int, float]]:
    """Every criterion as `select` takes it."""
    for name, select in CRITERIA.items():
        clock = time.process_time()
        model = mg.MixedGraphicalModel(select=select, random_state=seed, n_jobs=1).fit(table)
        seconds = time.process_time() - clock
        found = mg.compare_graphs(truth, model)
        yield name, len(found.true_edges), len(found.false_edges), seconds


def row(label: str, counts: dict[str, list[tuple[int, int]]]) -> str:
    """One line of a table: mean true + mean false edges."""
    cells = []
    for found in counts.values():
        true, false = np.mean(found, axis=0)
        cells.append(f"{true:.1f} + {false:.1f}")
    return f"| {label} | {' | '.join(cells)} |"


def heading(first: list[str], rest: list[str]) -> str:
    """The two lines above a table."""
    cells = [*first, *rest]
    return f"| {' | '.join(cells)} |\n| {' | '.join('---' for _ in cells)} |"


def main(wanted: list[str]) -> None:
    """Print both tables, and the seconds."""
    by_price, by_criterion, by_seconds = [], [], []
    for name, setting in SETTINGS.items():
        if wanted and name not in wanted:
            continue
        prices: dict[str, list[tuple[int, int]]] = {}
        criteria: dict[str, list[tuple[int, int]]] = {}
        seconds: dict[str, list[float]] = {}
        n_true = []
        for seed in range(REPLICATES):
            table, truth = drawn(setting, seed)
            n_true.append(len(truth.edges_))
            for label, true, false in information(table, truth):
                prices.setdefault(label, []).append((true, false))
            for label, true, false, spent in others(table, truth, seed):
                criteria.setdefault(label, []).append((true, false))
                seconds.setdefault(label, []).append(spent)
        edges = f"{np.mean(n_true):g}"
        by_price.append(row(f"{name} | {edges}", prices))
        by_criterion.append(row(f"{name} | {edges}", criteria))
        spent = [f"{np.mean(each):.2f}" for each in seconds.values()]
        by_seconds.append(f"| {name} | {' | '.join(spent)} |")
        sys.stderr.write(f"{name} done\n")
    first, rest = ["tables", "true edges"], list(prices)
    lines = [heading(first, [f"price {each}" for each in rest]), *by_price, ""]
    lines += [heading(first, list(CRITERIA)), *by_criterion, ""]
    lines += [heading(["seconds"], list(CRITERIA)), *by_seconds]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

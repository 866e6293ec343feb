"""Tables drawn from known graphs -> true and false edges that every penalty finds.

The group lasso (the default) and the adaptive group lasso; for each the graph that EBIC chooses
from its path.  Stored counts of the group MCP are those of version 0.2, which had it.

Run it when a penalty or its weights change: ``python docs/studies/penalties.py``.  It takes a few
minutes on one core, writes docs/studies/penalties.csv row by row, goes on where that ends, and
prints the tables of docs/selection.md.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

import mixedgm as mg
from mixedgm.fit.fitting import encode
from mixedgm.fit.options import Options
from mixedgm.path.path import geometric_lams
from mixedgm.path.task import prepare
from mixedgm.select.evidence import Evidence
from mixedgm.select.selection import choose

REPLICATES = 20
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("tables", "seed", "penalty", "edges", "true", "false", "best_f1")
PENALTIES = {
    "group lasso": "calibrated",
    "adaptive": "adaptive",
}


@dataclass(frozen=True)
class Setting:
    """How tables are drawn.

    `levels` has 0 for a number; `graph` makes one of a seed; an edge between `likert` items acts by
    the product of their scores, others as `random_model` draws them.
    """

    rows: int
    levels: tuple[int, ...]
    graph: Callable[[int], nx.Graph]
    strength: tuple[float, float] | None = None
    bias: float = 0.0
    likert: bool = False


def random(columns: int, edges: int) -> Callable[[int], nx.Graph]:
    """Graphs of so many edges, all equally likely."""
    return lambda seed: nx.gnm_random_graph(columns, edges, seed=seed)


def hubs(_: int) -> nx.Graph:
    """Two stars of nine columns each, with an edge between their centres."""
    graph = nx.disjoint_union(nx.star_graph(8), nx.star_graph(8))
    graph.add_edge(0, 9)
    return graph


def scale_free(seed: int) -> nx.Graph:
    """A tree that grows by preferential attachment."""
    return nx.barabasi_albert_graph(30, 1, seed)


SETTINGS = {
    "base": Setting(500, (0, 3) * 10, random(20, 20)),
    "weak binary items, 300 rows": Setting(300, (2,) * 20, random(20, 30), (0.15, 0.25)),
    "weak binary items, 1,000 rows": Setting(1000, (2,) * 20, random(20, 30), (0.15, 0.25)),
    "dense, 8 + 8 columns": Setting(1000, (0, 3) * 8, random(16, 40)),
    "hubs, rare levels": Setting(1000, (3, 0) * 9, hubs, bias=1.0),
    "scale-free": Setting(500, (0, 3) * 15, scale_free),
    "Likert items as categories": Setting(1000, (5,) * 12, random(12, 14), (0.1, 0.2), 0.5, True),
    "no edges": Setting(200, (0, 3) * 15, random(30, 0)),
}


def drawn(setting: Setting, seed: int) -> tuple[object, mg.MixedGraphicalModel]:
    """Draw a table and the model it comes from."""
    names = [f"v{k:02d}" for k in range(len(setting.levels))]
    graph = nx.relabel_nodes(setting.graph(seed), dict(enumerate(names)))
    if setting.likert:
        truth = likert(graph, names, setting, seed)
    else:
        types = [levels or "continuous" for levels in setting.levels]
        drawing = {"strength": setting.strength, "bias": setting.bias}
        truth = mg.random_model(graph, types=types, random_state=seed, **drawing)
    return truth.sample(setting.rows, random_state=1000 + seed), truth


def likert(
    graph: nx.Graph, names: list[str], setting: Setting, seed: int
) -> mg.MixedGraphicalModel:
    """Ordered answers: edges are linear by linear, in scores such as -2 ... 2."""
    rng, n_levels = np.random.default_rng(seed), setting.levels[0]
    scores = np.arange(n_levels) - (n_levels - 1) / 2
    coupling = np.zeros((len(names), len(names)))
    for a, b in graph.edges:
        u, v = names.index(a), names.index(b)
        coupling[u, v] = coupling[v, u] = rng.choice([-1, 1]) * rng.uniform(*setting.strength)
    blocks = {
        "cat_interaction": np.kron(coupling, np.outer(scores, scores)),
        "cat_bias": rng.uniform(-setting.bias, setting.bias, len(names) * n_levels),
    }
    return mg.from_params(dict.fromkeys(names, n_levels), blocks)


def fitted(table: object, weights: str) -> tuple[mg.Path, int]:
    """The path, and where EBIC chooses on it; as a fit does, but for the penalty."""
    options = Options(penalty_weights=weights)
    design = encode(table, options)
    recipe = options.recipe(design.schema)
    task = prepare(design, recipe)
    begun, seed = mg.Path.of(task), np.random.SeedSequence(0)
    lams = geometric_lams(task.lam_max, options.n_lams, options.lam_min_ratio)
    evidence = Evidence(design, recipe, task, begun, seed)
    path, choice = choose(evidence, options.criterion, lams, grows=True)
    assert path.converged.all()
    return path, choice.index


def counted(setting: Setting, seed: int) -> Iterator[dict[str, object]]:
    """True and false edges by penalty, and F1 of the best graph anywhere on the path."""
    table, truth = drawn(setting, seed)
    n_true = len(truth.edges_)
    for name, weights in PENALTIES.items():
        path, chosen = fitted(table, weights)
        graphs = [mg.compare_graphs(truth, list(path.edges(k))) for k in range(len(path))]
        counts = [(len(graph.true_edges), len(graph.false_edges)) for graph in graphs]
        best = max(f1(n_true, *each) for each in counts)
        true, false = counts[chosen]
        yield {
            "penalty": name,
            "edges": n_true,
            "true": true,
            "false": false,
            "best_f1": round(best, 4),
        }


def f1(n_true: int, true: int, false: int) -> float:
    """Harmonic mean of the share of edges found and of the share that is true."""
    return 2 * true / (n_true + true + false) if n_true + false else 1.0


def run() -> None:
    """Count in every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["seed"], strict=True))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name, setting in SETTINGS.items():
            for seed in range(REPLICATES):
                if (name, seed) not in done:
                    rows = [
                        {"tables": name, "seed": seed, **each} for each in counted(setting, seed)
                    ]
                    writer.writerows(rows)
                    stream.flush()
            sys.stderr.write(f"{name} done\n")


def report() -> None:
    """Print the means over the tables of every setting, and the sums of these means."""
    found = pd.read_csv(FILE)
    found["f1"] = [f1(*each) for each in found[["edges", "true", "false"]].to_numpy()]
    lines = [f"| tables | true edges | {' | '.join(PENALTIES)} |"]
    lines += ["| --- | --- |" + " --- |" * len(PENALTIES)]
    for name in SETTINGS:
        part = found[found["tables"] == name]
        cells = [name, f"{part['edges'].mean():g}"]
        for penalty in PENALTIES:
            mean = part[part["penalty"] == penalty].mean(numeric_only=True)
            both = f", {mean['f1']:.2f} ({mean['best_f1']:.2f})" * bool(mean["edges"])
            cells.append(f"{mean['true']:.1f} + {mean['false']:.1f}{both}")
        lines.append(f"| {' | '.join(cells)} |")
    found["missed"] = found["edges"] - found["true"]
    lines += ["", f"| | {' | '.join(PENALTIES)} |", "| --- |" + " --- |" * len(PENALTIES)]
    for what in ("missed", "false"):
        means = found.groupby(["penalty", "tables"])[what].mean().groupby("penalty").sum()
        lines.append(f"| {what} | {' | '.join(f'{means[each]:.1f}' for each in PENALTIES)} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)  # rare levels are the point of some tables
    run()
    report()

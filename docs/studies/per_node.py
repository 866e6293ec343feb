"""Tables drawn from known graphs -> true and false edges of separate regressions, by their lam.

One lam for all columns by EBIC, or one per column, each with both rules; the joint model beside
them.  Run it when a criterion changes: ``python docs/studies/per_node.py``.  It takes a few
minutes on one core and prints the table of docs/separate.md.  Names of settings as arguments
restrict it.
"""

import sys

import numpy as np
from selection import REPLICATES, SETTINGS, drawn, heading, row

import mixedgm as mg

CHOSEN = (
    *("base", "100 rows", "200 rows", "2,000 rows", "degree 4", "6 levels", "50 columns"),
    "ladder, 200 rows",
)
FITS = {
    "one λ": mg.EBIC(),
    "one per column, γ = 0.5": mg.EBIC(per_node=True),
    "one per column, γ = 1": mg.EBIC(gamma=1.0, per_node=True),
}
NOISE = "noise, 100 rows, 30 columns"


def found(truth: mg.MixedGraphicalModel | None, edges: list[tuple[str, str]]) -> tuple[int, int]:
    """True and false edges."""
    if truth is None:
        return 0, len(edges)
    compared = mg.compare_graphs(truth, edges)
    return len(compared.true_edges), len(compared.false_edges)


def by_rule(model: mg.MixedGraphicalModel) -> dict[str, list[tuple[str, str]]]:
    """Edges by both rules, from one fit."""
    says = model.params_.block_norms(model.params_.coef) > 0.0
    names = [node.name for node in model.schema_.nodes]
    joined = {"and": says & says.T, "or": says | says.T}
    return {
        rule: [(names[u], names[v]) for u, v in np.argwhere(np.triu(there))]
        for rule, there in joined.items()
    }


def counts(table: object, truth: mg.MixedGraphicalModel | None) -> dict[str, tuple[int, int]]:
    """True and false edges of every way to fit the table."""
    joint = mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(table)
    all_found = {"joint": found(truth, [edge[:2] for edge in joint.edges_])}
    for name, select in FITS.items():
        model = mg.MixedGraphicalModel(loss="nodewise", select=select, n_jobs=1).fit(table)
        for rule, edges in by_rule(model).items():
            all_found[f"{name}, {rule}"] = found(truth, edges)
    return all_found


def main(wanted: list[str]) -> None:
    """Print the table."""
    lines = []
    for name in (*CHOSEN, NOISE):
        if wanted and name not in wanted:
            continue
        every: dict[str, list[tuple[int, int]]] = {}
        n_true = []
        for seed in range(REPLICATES):
            table, truth = np.random.default_rng(seed).normal(size=(100, 30)), None
            if name != NOISE:
                table, truth = drawn(SETTINGS[name], seed)
            n_true.append(0 if truth is None else len(truth.edges_))
            for label, pair in counts(table, truth).items():
                every.setdefault(label, []).append(pair)
        lines.append(row(f"{name} | {np.mean(n_true):g}", every))
        sys.stderr.write(f"{lines[-1]}\n")
    sys.stdout.write("\n".join([heading(["tables", "true edges"], list(every)), *lines]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

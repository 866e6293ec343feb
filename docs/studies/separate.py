"""Joint model against separate regressions on a survey: held-out loss of every column.

    python docs/studies/separate.py TABLE.parquet

Both are fitted to the first n rows of the shuffled table on a path of 50 values and scored on the
rows after the first 10,000, each at its own best lam.  Prints the table of docs/separate.md.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import mixedgm as mg

GRID = np.geomspace(0.7, 5e-5, 50)
TRAIN = (100, 10_000)
N_COLUMNS = 11


def best(train: pd.DataFrame, test: pd.DataFrame, loss: str) -> mg.MixedGraphicalModel:
    """The model at the lam of the path with the lowest loss of the other rows."""
    lams = GRID if loss == "pseudolikelihood" else GRID / 2
    path = mg.fit_path(train, lams=lams, loss=loss)
    lam = float(path.lams[np.argmax(path.score(test))])
    return mg.MixedGraphicalModel(lam=lam, loss=loss).fit(train)


def main(file: str) -> None:
    """Print one table."""
    table = pd.read_parquet(file).iloc[:, :N_COLUMNS]
    table = table.sample(frac=1.0, random_state=0).reset_index(drop=True)
    test = table.iloc[max(TRAIN) :]
    columns: dict[str, dict[str, float]] = {}
    for n in TRAIN:
        for loss, name in (("pseudolikelihood", "joint"), ("nodewise", "separate")):
            model = best(table.iloc[:n], test, loss)
            scores = model.node_scores(test)
            columns[f"{name}, n = {n:,}"] = {
                **scores,
                "all columns": sum(scores.values()),
                "lam": model.lam_,
                "edges": len(model.edges_),
            }
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for row in next(iter(columns.values())):
        cells = [f"{found[row]:.4g}" for found in columns.values()]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

"""The penguins' measurements -> partial correlations by qgraph and by mixedgm, side by side.

Run it where R has qgraph: ``python docs/studies/qgraph.py``.  It writes ``qgraph.csv`` beside this
file: one row per method and pair; 0 is a pair without an edge.
"""

import io
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

import mixedgm as mg

HERE = Path(__file__).resolve().parent
COLUMNS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
METHODS = {
    "mixedgm": {},
    "mixedgm, EBIC": {"select": "ebic"},
    "mixedgm, EBIC, shrunken": {"select": "ebic", "refit": False},
    "mixedgm, likelihood, EBIC": {"select": "ebic", "loss": "likelihood"},
}


def main() -> None:
    """Fit the same rows by all methods, and write what they find."""
    table = mg.datasets.load_penguins("pandas")[COLUMNS].dropna()
    frames = [by_qgraph(table), *(by_mixedgm(table, name) for name in METHODS)]
    pd.concat(frames).to_csv(HERE / "qgraph.csv", index=False)


def by_qgraph(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the script in R finds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.to_csv(path, index=False)
        command = ["Rscript", str(HERE / "qgraph.R"), str(path)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
    return pd.read_csv(io.StringIO(said.stdout))


def by_mixedgm(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the partial correlations of a model."""
    model = mg.MixedGraphicalModel(transforms=None, **METHODS[name]).fit(table)
    found = {(e.source, e.target): e.partial_correlation for e in model.edges_}
    pairs = [(a, b) for k, a in enumerate(COLUMNS) for b in COLUMNS[k + 1 :]]
    values = [found.get(pair, found.get(pair[::-1], 0.0)) for pair in pairs]
    rows = [(name, *pair, round(value, 6)) for pair, value in zip(pairs, values, strict=True)]
    return pd.DataFrame(rows, columns=["method", "source", "target", "value"])


if __name__ == "__main__":
    main()

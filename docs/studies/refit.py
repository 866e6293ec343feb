"""Tables, split again and again -> how well rows held out are predicted with and without shrinkage.

The graph that EBIC chooses is estimated in two ways: without shrinkage, which is the default, and
with that of its lam (``refit=False``).  Beside them the shrunken estimate that cross-validation
chooses.  What is compared is the mean log pseudolikelihood of other rows, in nats per row.

Run it when a criterion or the refit changes: ``python docs/studies/refit.py``.  It takes about
two minutes on one core, writes docs/studies/refit.csv row by row, goes on where that ends, and
prints the table of docs/selection.md.  A folder as argument adds the tables of Parquet files there,
which take ten minutes more.
"""

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import mixedgm as mg

SPLITS = {300: 5, 1000: 5, 5000: 3}
TEST_ROWS = 5000
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("table", "rows", "split", "edges", "ridge", "default", "shrunken", "cv")
# Of files: columns that say where a row comes from.
LEFT_OUT = ("split", "calendar_year")


def tables(folder: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Names and tables, levels declared so that a split may lack some."""
    yield "wage", mg.datasets.load_wage("pandas")
    yield "taxunits", mg.datasets.load_taxunits("pandas")
    for name in ("atus_wage", "census_income_kdd", "adult") if folder else ():
        table = pd.read_parquet(Path(str(folder)) / f"{name}.parquet")
        yield name, table.drop(columns=[each for each in LEFT_OUT if each in table])


def scored(table: pd.DataFrame, rows: int, split: int) -> dict[str, float]:
    """Edges and ridges of the default, and the scores of all three."""
    order = np.random.default_rng(split).permutation(len(table))
    train, test = table.iloc[order[:rows]], table.iloc[order[rows : rows + TEST_ROWS]]
    varies = train.columns[train.nunique() > 1]
    train, test = train[varies], test[varies]
    default = mg.MixedGraphicalModel(select="ebic", n_jobs=1).fit(train)
    shrunken = mg.MixedGraphicalModel(select="ebic", n_jobs=1, refit=False).fit(train)
    assert shrunken.lam_ == default.lam_
    by_cv = mg.MixedGraphicalModel(n_jobs=1, select="cv", random_state=split).fit(train)
    return {
        "edges": len(default.edges_),
        "ridge": len(default.fitted_.report.ridge),
        "default": round(default.score(test), 5),
        "shrunken": round(shrunken.score(test), 5),
        "cv": round(by_cv.score(test), 5),
    }


def run(folder: str | None) -> None:
    """Score every split that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["table"], known["rows"], known["split"], strict=True))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name, table in tables(folder):
            for rows, splits in SPLITS.items():
                for split in range(splits):
                    if (name, rows, split) in done or rows + 1000 > len(table):
                        continue
                    found = scored(table, rows, split)
                    writer.writerow({"table": name, "rows": rows, "split": split, **found})
                    stream.flush()


def report() -> None:
    """Print the table: means over splits, and how many of them the default wins."""
    found = pd.read_csv(FILE)
    found["gain"] = found["default"] - found["shrunken"]
    found["wins"] = found["gain"] > 0
    found["table"] = pd.Categorical(found["table"], found["table"].unique())
    means = found.groupby(["table", "rows"], observed=True).agg("mean").reset_index()
    head = "table, rows, edges, with a ridge, default, `refit=False`, `cv`, gain, better"
    lines = [head.replace(",", " |"), " | ".join(["---"] * len(head.split(",")))]
    for row in means.itertuples():
        scores = f"{row.default:.3f} | {row.shrunken:.3f} | {row.cv:.3f} | {row.gain:+.3f}"
        counts = f"{row.edges:.1f} | {row.ridge:.1f}"
        lines.append(f"{row.table} | {row.rows:,} | {counts} | {scores} | {100 * row.wins:.0f} %")
    sys.stdout.write("\n".join(f"| {line} |" for line in lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mg.TableWarning)
    warnings.simplefilter("ignore", mg.SelectionWarning)
    run(sys.argv[1] if len(sys.argv) > 1 else None)
    report()

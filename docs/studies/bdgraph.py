"""Tables of 100 normal numbers -> what BDgraph finds, beside the default of mixedgm.

The tables are those of `error_rates.py`, whose counts stand beside.  Run it where R has BDgraph
(Debian: r-cran-bdgraph): ``python docs/studies/bdgraph.py``.  It writes docs/studies/bdgraph.csv
row by row, goes on where that ends, and prints a table.  ``--tables 5`` says how many of each
setting, ``--report`` counts nothing.
"""

import argparse
import csv
import io
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import default
import error_rates
import pandas as pd

TABLES = 5
ITERATIONS = 10_000
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("tables", "seed", "edges", "true", "false", "said", "seconds")
SETTINGS = tuple(name for name in error_rates.SETTINGS if "100 numbers" in name)


def counted(name: str, seed: int) -> dict[str, object]:
    """What BDgraph finds in a table: pairs whose edge has a probability above a half."""
    table, truth = error_rates.drawn(name, seed, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.frame.to_csv(path, index=False)
        command = ["Rscript", str(FILE.with_suffix(".R")), str(path), str(ITERATIONS)]
        before = sum(os.times()[2:4])
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds = sum(os.times()[2:4]) - before  # of the processor, as those of error_rates.py
    pairs = pd.read_csv(io.StringIO(said), dtype={"source": str})
    pairs = pairs[(pairs["source"] != "version") & (pairs["probability"] > 0.5)]
    ends = zip(pairs["source"].astype(int), pairs["target"].astype(int), strict=True)
    graph = frozenset(ends)
    return {
        "tables": name,
        "seed": seed,
        "edges": len(truth),
        "true": len(graph & truth),
        "false": len(graph - truth),
        "said": f"{(1.0 - pairs['probability']).sum():.3f}",
        "seconds": f"{seconds:.1f}",
    }


def stored() -> pd.DataFrame:
    """Everything counted so far."""
    return pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=FIELDS)


def run(n_tables: int) -> None:
    """Count what the file does not have yet."""
    known, is_new = stored(), not FILE.exists()
    done = set(zip(known["tables"], known["seed"], strict=True))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for seed in range(n_tables):
            for name in SETTINGS:
                if (name, seed) not in done:
                    writer.writerow(counted(name, seed))
                    stream.flush()


def lines() -> Iterator[tuple[str, ...]]:
    """A row of the report for every setting and method, over the same tables."""
    ours, theirs = error_rates.stored(error_rates.FILE), stored()
    for name in SETTINGS:
        some = theirs[theirs["tables"] == name]
        same = ours[(ours["tables"] == name) & ours["seed"].isin(some["seed"])]
        for method, counts in (("BDgraph", some), ("mixedgm", same)):
            if len(counts):
                f1 = [default.f1(*row) for row in counts[["edges", "true", "false"]].to_numpy()]
                means = counts[["false", "said", "seconds"]].astype(float).mean()
                yield (
                    *(name, method, f"{len(counts)}", f"{sum(f1) / len(f1):.3f}"),
                    *(f"{means['false']:.1f}", f"{means['said']:.1f}", f"{means['seconds']:.1f}"),
                )


def main() -> None:
    """Count or report, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        run(args.tables)
    heading = ("tables", "method", "number", "F1", "false", "said false", "seconds")
    default.printed(heading, lines())


if __name__ == "__main__":
    main()

"""Tables of the published design -> differences that R's NetworkComparisonTest would find.

Its method, for numbers, is written anew from its description (van Borkulo and others 2022): a
graphical lasso in each group, with 100 penalties and the one that EBIC chooses (gamma 0.25), and
for every pair a permutation test of the difference of both partial correlations.  There are 100
permutations where the package has 1,000.  The package's own results are published for 431 and 1,467
rows a group, which says how alike both are; the tables are those of `compare.py`.

``python docs/studies/nct.py --tables 50`` writes docs/studies/nct.csv row by row, goes on where
that ends, and prints sensitivity and precision.
"""

import argparse
import csv
import sys
from pathlib import Path

import compare
import numba
import numpy as np
import pandas as pd
from numpy.typing import NDArray

FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("rows", "seed", "different", "true", "false")
ROWS = (233, 431, 795, 1467, 2708)
PERMUTATIONS, GAMMA, N_LAMS, SMALLEST = 100, 0.25, 100, 0.01
LEVEL = 0.05
TOL, MOST = 1e-4, 200

Floats = NDArray[np.float64]


@numba.njit(cache=True)
def columns_fitted(s: Floats, w: Floats, beta: Floats, lam: float) -> None:
    """Solve the graphical lasso without a penalty on the diagonal, from a start, in place.

    `w` is the covariance, and column j of `beta` what the other columns predict of column j
    (Friedman, Hastie and Tibshirani 2008).
    """
    p = len(s)
    enough = TOL * (np.abs(s).sum() - np.trace(s)) / (p * (p - 1))
    for _ in range(MOST):
        moved = 0.0
        for j in range(p):
            for _ in range(MOST):
                largest = 0.0
                for k in range(p):
                    if k == j:
                        continue
                    pull = s[k, j]
                    for m in range(p):
                        if m not in (j, k):
                            pull -= w[k, m] * beta[m, j]
                    new = np.sign(pull) * max(abs(pull) - lam, 0.0) / w[k, k]
                    largest = max(largest, abs(new - beta[k, j]))
                    beta[k, j] = new
                if largest < 0.1 * enough:
                    break
            for k in range(p):
                if k != j:
                    value = 0.0
                    for m in range(p):
                        if m != j:
                            value += w[k, m] * beta[m, j]
                    moved += abs(value - w[k, j])
                    w[k, j] = w[j, k] = value
        if moved / (p * (p - 1)) < enough:
            break


@numba.njit(cache=True)
def network(s: Floats, n: int) -> Floats:
    """Partial correlations of the graphical lasso that EBIC chooses, from a correlation matrix."""
    p = len(s)
    top = np.abs(s - np.eye(p)).max()
    w, beta = s * np.eye(p), np.zeros((p, p))
    best, chosen = np.inf, np.zeros((p, p))
    for step in range(N_LAMS):
        columns_fitted(s, w, beta, top * SMALLEST ** (step / (N_LAMS - 1)))
        k = np.zeros((p, p))
        for j in range(p):
            k[j, j] = 1.0 / (w[j, j] - (w[:, j] * beta[:, j]).sum())
            k[:, j] -= beta[:, j] * k[j, j] * (np.arange(p) != j)
        k = 0.5 * (k + k.T)
        edges = (np.count_nonzero(k) - p) // 2
        fit = n * (np.linalg.slogdet(k)[1] - np.trace(k @ s))
        ebic = -fit + edges * np.log(n) + 4.0 * edges * GAMMA * np.log(p)
        if ebic < best:
            best, chosen = ebic, k
    unit = np.sqrt(np.diag(chosen))
    return -chosen / np.outer(unit, unit)


def tested(first: Floats, second: Floats, rng: np.random.Generator) -> Floats:
    """(columns, columns) p-values of the difference of every partial correlation."""

    def difference(a: Floats, b: Floats) -> Floats:
        return np.abs(network(np.corrcoef(a.T), len(a)) - network(np.corrcoef(b.T), len(b)))

    seen, both = difference(first, second), np.vstack([first, second])
    larger = np.zeros_like(seen)
    for _ in range(PERMUTATIONS):
        mixed = rng.permutation(both)
        larger += difference(mixed[: len(first)], mixed[len(first) :]) >= seen
    return np.asarray(larger / PERMUTATIONS)


def row_of(n: int, seed: int) -> dict[str, int]:
    """Test one table."""
    drawn = compare.published(0.1)(n, seed)
    p = tested(*drawn.groups, np.random.default_rng([seed, n]))
    found = {(int(u), int(v)) for u, v in np.argwhere(np.triu(p < LEVEL, 1))}
    true = len(found & drawn.different)
    counts = {"true": true, "false": len(found) - true}
    return {"rows": n, "seed": seed, "different": len(drawn.different)} | counts


def main() -> None:
    """Test what the file does not have yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--tables", type=int, default=0)
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    known = pd.read_csv(given.file) if given.file.exists() else pd.DataFrame(columns=FIELDS)
    done = set(zip(known["rows"], known["seed"], strict=True))
    with given.file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for n, seed in [(n, seed) for seed in range(given.tables) for n in ROWS]:
            if (n, seed) not in done:
                writer.writerow(row_of(n, seed))
                stream.flush()
    lines = compare.head("rows a group", "tables", "NCT, written anew: sensitivity / precision")
    for n, part in pd.read_csv(given.file).groupby("rows"):
        sensitivity, precision, _ = compare.scores(part["true"], part["false"], part["different"])
        lines.append(compare.line((f"{n:,}", len(part), f"{sensitivity:.2f} / {precision:.2f}")))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

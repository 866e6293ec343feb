"""Ordinal items cut from normal numbers -> graphs and weights of EBICglasso and of mixedgm.

EBICglasso on polychoric correlations is what is usual for such tables.  Here it is not the package
qgraph but the same method on top of scikit-learn: correlations by maximum likelihood given the
thresholds of both columns, the graphical lasso at 40 penalties, EBIC with gamma = 0.5.  Counted are
edges found, and the correlation of weights with the true partial correlations over all pairs.

Run it when the default changes: ``python docs/studies/items.py``.  It takes about five minutes on
one core, writes docs/studies/items.csv row by row, goes on where that ends, and prints the table of
docs/selection.md.
"""

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import default
import numpy as np
import pandas as pd
from default import Floats, Generator, Pair
from scipy.stats import norm
from sklearn.covariance import graphical_lasso

import mixedgm as mg

TABLES, ROWS, LEVELS = 10, 250, 5
SETTINGS = {
    "15 items, 20 edges of 0.18 to 0.35": (15, 20, (0.18, 0.35)),
    "20 items, 50 edges of 0.08 to 0.3": (20, 50, (0.08, 0.3)),
    "20 items, 50 edges of 0.05 to 0.2": (20, 50, (0.05, 0.2)),
}
FILE = Path(__file__).with_suffix(".csv")
FIELDS = ("tables", "seed", "method", "edges", "true", "found", "correlation")
RHO = np.linspace(-0.95, 0.95, 191)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def drawn(
    n_columns: int, n_edges: int, sizes: tuple[float, float], rng: Generator
) -> tuple[Floats, Floats, set[Pair]]:
    """Items, true partial correlations, and edges."""
    while True:
        precision, pairs = np.eye(n_columns), default.random(n_edges)(n_columns, rng)
        for u, v in pairs:
            size = rng.uniform(*sizes) * rng.choice([-1, 1], p=[0.25, 0.75])
            precision[u, v] = precision[v, u] = -size
        if np.linalg.eigvalsh(precision)[0] > 0.15:
            break
    covariance = np.linalg.inv(precision)
    normal = rng.multivariate_normal(np.zeros(n_columns), covariance, ROWS)
    normal /= np.sqrt(np.diag(covariance))
    cuts = np.array([-1.2, -0.4, 0.4, 1.2]) + rng.uniform(-0.4, 0.4, (n_columns, 1))
    columns = [np.searchsorted(cut, column) for cut, column in zip(cuts, normal.T, strict=True)]
    return np.column_stack(columns), np.eye(n_columns) - precision, set(pairs)


def polychoric(x: Floats, y: Floats) -> float:
    """The correlation of two normal numbers that have been cut, by maximum likelihood."""
    counts, (a, b) = np.zeros((LEVELS, LEVELS)), (thresholds(x), thresholds(y))
    np.add.at(counts, (x, y), 1)
    half = np.diff(a)[:, None] / 2
    points = (a[:-1] + a[1:])[:, None] / 2 + half * NODES
    weights = half * WEIGHTS * norm.pdf(points)
    rho = RHO[:, None, None, None]
    below = norm.cdf((b - rho * points[:, :, None]) / np.sqrt(1 - rho**2))
    cells = np.einsum("ip,ripj->rij", weights, np.diff(below, axis=3)).clip(1e-12)
    score = (counts * np.log(cells)).sum(axis=(1, 2))
    k = int(np.clip(np.argmax(score), 1, len(RHO) - 2))
    bend = score[k - 1] - 2 * score[k] + score[k + 1]
    return float(RHO[k] + (RHO[1] - RHO[0]) * (score[k - 1] - score[k + 1]) / (2 * bend))


def thresholds(codes: Floats) -> Floats:
    """Where a normal number is cut so that levels have these shares."""
    shares = np.bincount(codes, minlength=LEVELS).cumsum()[:-1] / len(codes)
    return np.concatenate([[-8.0], norm.ppf(shares.clip(1e-4, 1 - 1e-4)), [8.0]])


def ebicglasso(correlations: Floats, gamma: float = 0.5) -> Floats:
    """Penalised partial correlations."""
    values, axes = np.linalg.eigh(correlations)
    matrix = (axes * values.clip(1e-3)) @ axes.T
    matrix /= np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    p, most = len(matrix), np.abs(matrix - np.eye(len(matrix))).max()
    upper, best = np.triu_indices(p, 1), (np.inf, np.eye(p))
    for lam in np.geomspace(most, 0.01 * most, 40):
        try:
            _, precision = graphical_lasso(matrix, lam, max_iter=200)
        except FloatingPointError:
            continue
        n_edges = int((np.abs(precision[upper]) > 1e-8).sum())
        fit = np.linalg.slogdet(precision)[1] - np.trace(matrix @ precision)
        score = -ROWS * fit + n_edges * (np.log(ROWS) + 4 * gamma * np.log(p))
        best = min(best, (score, precision), key=lambda each: each[0])
    scales = np.sqrt(np.diag(best[1]))
    return -best[1] / np.outer(scales, scales)


def by_mixedgm(items: Floats, **options: object) -> Floats:
    """Strengths with their signs."""
    names = [f"v{k:03d}" for k in range(items.shape[1])]
    model = mg.MixedGraphicalModel(types=dict.fromkeys(names, "ordinal"), n_jobs=1, **options)
    out = np.zeros((len(names),) * 2)
    for edge in model.fit(pd.DataFrame(items, columns=names)).edges_:
        u, v = names.index(edge.source), names.index(edge.target)
        out[u, v] = out[v, u] = edge.strength * (
            -1.0 if edge.sign in ("-", "negative", -1) else 1.0
        )
    return out


def methods(items: Floats) -> Iterator[tuple[str, Floats]]:
    """Matrices of weights."""
    p, matrix = items.shape[1], np.eye(items.shape[1])
    for u in range(p):
        for v in range(u):
            matrix[u, v] = matrix[v, u] = polychoric(items[:, u], items[:, v])
    yield "EBICglasso, polychoric", ebicglasso(matrix)
    yield "EBICglasso, Pearson", ebicglasso(np.corrcoef(items.T))
    yield "mixedgm", by_mixedgm(items)
    yield "mixedgm, EBIC", by_mixedgm(items, select="ebic")


def run() -> None:
    """Try all methods on every table that the file does not have yet."""
    done = set()
    if FILE.exists():
        known = pd.read_csv(FILE)
        done = set(zip(known["tables"], known["seed"], strict=True))
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for seed in range(TABLES):
            for name, setting in SETTINGS.items():
                if (name, seed) in done:
                    continue
                rng = np.random.default_rng([seed, *name.encode()])
                items, weights, truth = drawn(*setting, rng)
                upper = np.triu_indices(len(weights), 1)
                for method, matrix in methods(items):
                    there = np.abs(matrix[upper]) > 1e-8
                    found = {(int(u), int(v)) for u, v in np.transpose(upper)[there]}
                    spread = matrix[upper].std()
                    fit = np.corrcoef(matrix[upper], weights[upper])[0, 1] if spread > 0 else 0.0
                    key = {"tables": name, "seed": seed, "method": method, "edges": len(truth)}
                    counts = {"true": len(found & truth), "found": len(found)}
                    writer.writerow(key | counts | {"correlation": round(fit, 4)})
                stream.flush()


def report() -> None:
    """Print means over tables, with standard errors."""
    counts = pd.read_csv(FILE)
    counts["f1"] = 2 * counts["true"] / (counts["found"] + counts["edges"])
    heads = ("tables", "method", "true", "false", "F1", "correlation of weights")
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for (name, method), part in counts.groupby(["tables", "method"], sort=False):
        false = part["found"] - part["true"]
        cells = [name, method, f"{part['true'].mean():.1f}", f"{false.mean():.1f}"]
        for each in ("f1", "correlation"):
            cells.append(f"{part[each].mean():.2f} ± {part[each].std() / len(part) ** 0.5:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--report" not in sys.argv:
        run()
    report()

"""How often intervals of strengths hold the truth: pairs of 1, 4 and 12 parameters.

    python docs/studies/strength_intervals.py 200        -> strength_intervals.csv beside this file
    python docs/studies/strength_intervals.py --report   -> coverage by number of parameters

Two columns and a third that is related to one of them; the pair is fixed in advance.  The true
strength is that of the distribution itself, by quadrature over the third column.  Counts are
written setting by setting, and a second run with more tables goes on where the first one ended.
"""

from __future__ import annotations

import csv
import sys
import warnings
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import mixedgm as mg

KINDS = {
    "numbers": (1, 1),
    "number and 2 levels": (1, 2),
    "2 x 2 levels": (2, 2),
    "number and 5 levels": (1, 5),
    "3 x 3 levels": (3, 3),
    "5 x 4 levels": (5, 4),
}
TRUTHS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
ROWS = (300, 1_000, 5_000)
FILE = Path(__file__).with_suffix(".csv")
COUNTS = ("tables", "held", "too_high", "too_low", "contradictions")
STEP = 40
"""Tables of a setting between two writes."""
Z = np.linspace(-7.0, 8.0, 101)


def strength(nats: float) -> float:
    """sqrt(1 - exp(-2 I))."""
    return float(np.sqrt(-np.expm1(-2.0 * max(nats, 0.0))))


def entropy(share: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Entropies of distributions along axes."""
    return np.asarray(-(share * np.log(np.maximum(share, 1e-300))).sum(axis=axis))


class World:
    """Columns u and v with a pattern between them, and z, normal about a mean of every level."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.k, self.m = KINDS[kind]
        self.is_number = self.k == 1, self.m == 1
        self.pattern = rng.normal(size=(self.k, self.m))
        self.own = np.log(rng.dirichlet(np.full(self.k, 6.0)))[:, None]
        self.own = self.own + np.log(rng.dirichlet(np.full(self.m, 6.0)))

    @cached_property
    def shift(self) -> np.ndarray:
        """Means of z at every level of u, or of v where u is a number."""
        return np.linspace(0.0, 1.0, self.m if self.is_number[0] else self.k)

    def cells(self, size: float) -> np.ndarray:
        """Shares of the cells of two columns with levels, at a size of the pattern."""
        logits = self.own + size * self.pattern
        share = np.exp(logits - logits.max())
        return np.asarray(share / share.sum())

    def truth(self, size: float) -> float:
        """The strength of the pair given the third column."""
        if all(self.is_number):
            return float(np.tanh(size))
        of_z = np.exp(-0.5 * (Z[:, None] - self.shift) ** 2)
        if self.is_number[0]:  # u given v is normal, and z depends on v alone
            joint = of_z * np.exp(self.own[0])
            density = joint.sum(axis=1)
            given = joint / density[:, None]
            mean = size * self.pattern[0]
            x = np.arange(mean.min() - 8.0, mean.max() + 8.0, 0.1)
            normal = np.exp(-0.5 * (x - mean[:, None]) ** 2)
            normal /= normal.sum(axis=1, keepdims=True)
            nats = entropy(given @ normal, 1) - given @ entropy(normal, 1)
            return strength(float(np.average(nats, weights=density)))
        joint = of_z[:, :, None] * self.cells(size)
        density = joint.sum(axis=(1, 2))
        given = joint / density[:, None, None]
        nats = entropy(given.sum(axis=1), 1) + entropy(given.sum(axis=2), 1)
        return strength(float(np.average(nats - entropy(given, (1, 2)), weights=density)))

    def size(self, truth: float) -> float | None:
        """The size of the pattern at which the pair has this strength; None if it never has."""
        if truth == 0.0:
            return 0.0
        sizes = np.arange(0.25, 8.0, 0.25)  # beyond a size that is too large strengths fall again
        above = next((size for size in sizes if self.truth(size) > truth), None)
        if above is None:
            return None
        return float(brentq(lambda size: self.truth(size) - truth, 0.0, above))

    def draw(self, size: float, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a table."""
        if all(self.is_number):
            u, z = rng.normal(size=n), rng.normal(size=n)
            r = self.truth(size)
            v = r * u + np.sqrt(1.0 - r**2) * rng.normal(size=n)
            return pd.DataFrame({"u": u + 0.5 * z, "v": v, "z": z})
        if self.is_number[0]:
            v = rng.choice(self.m, size=n, p=np.exp(self.own[0]))
            u = size * self.pattern[0, v] + rng.normal(size=n)
            z = self.shift[v] + rng.normal(size=n)
            return pd.DataFrame({"u": u, "v": v.astype(str), "z": z})
        cell = rng.choice(self.k * self.m, size=n, p=self.cells(size).ravel())
        u, v = np.divmod(cell, self.m)
        z = self.shift[u] + rng.normal(size=n)
        return pd.DataFrame({"u": u.astype(str), "v": v.astype(str), "z": z})


def drawn(kind: str, truth: float, n: int, seed: int) -> pd.DataFrame:
    """Draw a table of a setting; patterns that cannot carry so strong an edge are drawn again."""
    place = list(KINDS).index(kind)
    rng = np.random.default_rng([seed, n, round(100 * truth), place])
    while True:
        world = World(kind, rng)
        size = world.size(truth)
        if size is not None:
            return world.draw(size, n, rng)


def tested(table: pd.DataFrame) -> tuple[float, float, float, float]:
    """Strength, lower, upper and p of the pair, all other pairs adjusted for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mg.MixedGraphicalModel(lam=0.05, n_jobs=1).fit(table)
        tests = mg.edge_tests(model, table, method="free", n_jobs=1).edges()
    row = tests[(tests["source"] != "z") & (tests["target"] != "z")].iloc[0]
    return row["strength"], row["lower"], row["upper"], row["p_free"]


def counted(kind: str, truth: float, n: int, seeds: range) -> dict[str, float]:
    """Count how often intervals hold the truth, and how often they contradict the test."""
    out = dict.fromkeys((*COUNTS, "mean_strength", "mean_width"), 0.0)
    for seed in seeds:
        found, lower, upper, p = tested(drawn(kind, truth, n, seed))
        out["tables"] += 1
        out["held"] += lower <= truth <= upper
        out["too_high"] += lower > truth
        out["too_low"] += not upper >= truth
        out["contradictions"] += (lower > 0.0) != (p < 0.05)
        out["mean_strength"] += found / len(seeds)
        out["mean_width"] += (upper - lower) / len(seeds)
    return out


def read() -> dict[tuple[str, float, int], dict[str, float]]:
    """Read the counts of earlier runs."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = (*COUNTS, "mean_strength", "mean_width")
    return {
        (row["pair"], float(row["truth"]), int(row["rows"])): {k: float(row[k]) for k in names}
        for row in rows
    }


def write(known: dict[tuple[str, float, int], dict[str, float]]) -> None:
    """Write all counts."""
    rows = []
    for (kind, truth, n), counts in known.items():
        k, m = KINDS[kind]
        row = {"pair": kind, "parameters": max(k - 1, 1) * max(m - 1, 1), "truth": truth, "rows": n}
        row |= {name: round(counts[name]) for name in COUNTS}
        row |= {name: round(counts[name], 4) for name in ("mean_strength", "mean_width")}
        rows.append(row | {"coverage": round(counts["held"] / counts["tables"], 4)})
    with FILE.with_suffix(".new").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    FILE.with_suffix(".new").replace(FILE)


def main(n_tables: int) -> None:
    """Count until every setting has so many tables, a few of each at a time."""
    settings = [(kind, truth, n) for kind in KINDS for truth in TRUTHS for n in ROWS]
    known = read()
    for goal, setting in product(range(STEP, n_tables + STEP, STEP), settings):
        old = known.get(setting, dict.fromkeys((*COUNTS, "mean_strength", "mean_width"), 0.0))
        done, goal = round(old["tables"]), min(goal, n_tables)
        if done >= goal:
            continue
        new = counted(*setting, range(done, goal))
        means = {
            name: (done * old[name] + (goal - done) * new[name]) / goal
            for name in ("mean_strength", "mean_width")
        }
        known[setting] = {name: old[name] + new[name] for name in COUNTS} | means
        write({key: known[key] for key in settings if key in known})


def report() -> None:
    """Print coverage by number of parameters and strength, and how often tests disagree."""
    counts = pd.read_csv(FILE)
    sums = counts.groupby(["parameters", "truth"])[["tables", "held"]].sum().unstack()
    lines = [
        (100.0 * sums["held"] / sums["tables"]).round(1).to_string(),
        f"tables: {sums['tables'].min(axis=1).to_dict()}",
        f"contradictions: {counts['contradictions'].sum()} of {counts['tables'].sum():,} tables",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--report"]:
        report()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

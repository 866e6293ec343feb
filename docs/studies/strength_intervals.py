"""How often intervals of strengths hold the truth: pairs of 1, 4 and 12 parameters.

    python docs/studies/strength_intervals.py 200     -> strength_intervals.csv beside this file

Two columns and a third that is related to the first; the pair is fixed in advance.  The true
strength is that of the distribution itself, by quadrature over the third column.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import mixedgm as mg

KINDS = {"numbers": (1, 1), "number-binary": (1, 2), "3 x 3": (3, 3), "5 x 4": (5, 4)}
TRUTHS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
ROWS = (300, 1_000, 5_000)
Z = np.linspace(-7.0, 8.0, 301)


def strength(nats: float) -> float:
    """sqrt(1 - exp(-2 I))."""
    return float(np.sqrt(-np.expm1(-2.0 * max(nats, 0.0))))


class World:
    """z given level i of the first column is normal with mean c_i; the cells have a pattern."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.kind, (k, m) = kind, KINDS[kind]
        self.k, self.m = k, m
        self.pattern = rng.normal(size=(k, m))
        self.shift = np.linspace(0.0, 1.0, k)
        self.own = np.log(rng.dirichlet(np.full(k, 6.0))), np.log(rng.dirichlet(np.full(m, 6.0)))

    def share(self, size: float) -> np.ndarray:
        """Shares of the cells at a size of the pattern."""
        if self.kind == "number-binary":
            return np.exp(self.own[1])[None, :]
        logits = self.own[0][:, None] + self.own[1] + size * self.pattern
        share = np.exp(logits - logits.max())
        return share / share.sum()

    def truth(self, size: float) -> float:
        """The strength of the pair given the third column."""
        if self.kind == "numbers":
            return float(np.tanh(size))
        if self.kind == "number-binary":  # z depends on the binary column
            own, x = np.exp(self.own[1]), np.linspace(-8.0, 8.0 + size, 600)
            of_z = own[:, None] * np.exp(-0.5 * (Z - np.array([0.0, 0.7])[:, None]) ** 2)
            density = np.exp(-0.5 * (x - np.array([0.0, size])[:, None]) ** 2)
            density /= density.sum(axis=1, keepdims=True)
            given = of_z / of_z.sum(axis=0)
            mixed = given.T @ density
            own_part = given.T @ (density * np.log(density + 1e-300)).sum(axis=1)
            nats = own_part - (mixed * np.log(mixed + 1e-300)).sum(axis=1)
            return strength(float(np.average(nats, weights=of_z.sum(axis=0))))
        cells = self.share(size)[:, :, None] * np.exp(-0.5 * (Z - self.shift[:, None, None]) ** 2)
        weight = cells.sum(axis=(0, 1))
        cells = cells / weight
        rows, columns = cells.sum(axis=1, keepdims=True), cells.sum(axis=0, keepdims=True)
        nats = (cells * np.log(cells / (rows * columns))).sum(axis=(0, 1))
        return strength(float(np.average(nats, weights=weight)))

    def size(self, truth: float) -> float:
        """The size of the pattern at which the pair has this strength."""
        if truth == 0.0:
            return 0.0
        sizes = np.arange(0.0, 8.0, 0.25)  # beyond a size that is too large strengths fall again
        above = [size for size in sizes if self.truth(size) > truth]
        if not above:
            raise ValueError("this pattern does not carry so much")
        return float(brentq(lambda size: self.truth(size) - truth, 0.0, above[0]))

    def draw(self, size: float, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a table."""
        if self.kind == "numbers":
            z = rng.normal(size=n)
            r = self.truth(size)
            u = rng.normal(size=n)
            v = r * u + np.sqrt(1.0 - r**2) * rng.normal(size=n)
            return pd.DataFrame({"u": u + 0.5 * z, "v": v, "z": z})
        if self.kind == "number-binary":
            v = rng.choice(2, size=n, p=np.exp(self.own[1]))
            u, z = size * v + rng.normal(size=n), 0.7 * v + rng.normal(size=n)
            return pd.DataFrame({"u": u, "v": np.array(["a", "b"])[v], "z": z})
        cell = rng.choice(self.k * self.m, size=n, p=self.share(size).ravel())
        u, v = np.divmod(cell, self.m)
        z = self.shift[u] + rng.normal(size=n)
        return pd.DataFrame({"u": u.astype(str), "v": v.astype(str), "z": z})


def main(n_tables: int) -> None:
    """Count how often intervals hold the truth, and write the table."""
    rows = []
    for kind in KINDS:
        for truth in TRUTHS:
            for n in ROWS:
                held, found, contradict = 0, [], 0
                done = 0
                for seed in range(n_tables):
                    rng = np.random.default_rng([seed, n, round(100 * truth), len(kind)])
                    world = World(kind, rng)
                    try:
                        size = world.size(truth)
                    except ValueError:  # this pattern does not carry so much
                        continue
                    table = world.draw(size, n, rng)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model = mg.MixedGraphicalModel(lam=0.05, n_jobs=1).fit(table)
                        tests = mg.edge_tests(model, table, method="free", n_jobs=1).edges()
                    row = tests[(tests["source"] != "z") & (tests["target"] != "z")].iloc[0]
                    held += row["lower"] <= truth <= row["upper"]
                    contradict += (row["lower"] > 0.0) and (row["p"] > 0.05)
                    found.append(row["strength"])
                    done += 1
                if not done:
                    continue
                rows.append(
                    {
                        "pair": kind,
                        "parameters": max(KINDS[kind][0] - 1, 1) * max(KINDS[kind][1] - 1, 1),
                        "truth": truth,
                        "rows": n,
                        "tables": done,
                        "coverage": round(held / done, 4),
                        "mean_strength": round(float(np.mean(found)), 4),
                        "contradictions": int(contradict),
                    }
                )
    with Path(__file__).with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

"""A name -> a small problem with fixed numbers, for every solver to be tried on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from . import conic, plain

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Data in its own units, the penalty, and what a row and a pair count."""

    name: str
    X: Floats
    Y: NDArray[np.int64]
    n_levels: tuple[int, ...]
    lam: float
    weights: str = "calibrated"
    row_weights: Floats | None = None
    factors: Floats | None = None

    @property
    def node_names(self) -> tuple[str, ...]:
        """c0, c1, ... then k0, k1, ...: the order of all blocks."""
        numbers = [f"c{s}" for s in range(self.X.shape[1])]
        return (*numbers, *(f"k{r}" for r in range(len(self.n_levels))))

    def frame(self):
        """The table as a pandas frame; levels are l0, l1, ... in that order."""
        import pandas as pd

        columns: dict[str, object] = {f"c{s}": x for s, x in enumerate(self.X.T)}
        for r, m in enumerate(self.n_levels):
            levels = [f"l{a}" for a in range(m)]
            columns[f"k{r}"] = pd.Categorical.from_codes(self.Y[:, r], categories=levels)
        return pd.DataFrame(columns)

    @property
    def penalty_factors(self) -> dict[tuple[str, str], float] | None:
        """Factors other than one, by pair of names."""
        if self.factors is None:
            return None
        names = self.node_names
        return {
            (names[u], names[v]): float(self.factors[u, v])
            for u, v in plain.pairs(self.X.shape[1], len(self.n_levels))
            if self.factors[u, v] != 1
        }

    @property
    def edge_weights(self) -> plain.Table:
        """Weight of each pair of nodes, in the own units, factors included."""
        return plain.edge_weights(
            self.weights, self.X, self.Y, self.n_levels, self.row_weights, self.factors
        )


@dataclass(frozen=True)
class Recipe:
    """How to draw a problem; `fraction` places lambda below the lambda of the empty graph."""

    seed: int
    n_rows: int
    n_gaussian: int
    n_levels: tuple[int, ...]
    fraction: float
    weights: str = "calibrated"
    rows: str = "equal"
    scale: tuple[float, ...] = ()
    mean: tuple[float, ...] = ()
    factors: dict[tuple[int, int], float] = field(default_factory=dict)
    unseen: tuple[int, int] | None = None  # (categorical column, level) without rows


def _shapes() -> dict[str, Recipe]:
    """Four shapes of table, two kinds of weights, three places on the path."""
    tables = {
        "mixed": (1, 60, 3, (2, 3)),
        "many-levels": (2, 80, 2, (2, 4, 9)),
        "continuous": (3, 40, 5, ()),
        "categorical": (4, 70, 0, (2, 3, 5, 2)),
    }
    return {
        f"{table}-{weights}-{fraction}": Recipe(*shape, fraction, weights)
        for table, shape in tables.items()
        for weights in ("calibrated", "uniform")
        for fraction in (0.7, 0.3, 0.08)
    }


RECIPES: dict[str, Recipe] = {
    **_shapes(),
    "near-empty": Recipe(5, 50, 2, (2, 3), 0.97),
    "near-full": Recipe(6, 80, 3, (2, 3), 0.01),
    "six-columns": Recipe(7, 80, 3, (7, 2, 5), 0.25),
    "binary-only": Recipe(38, 60, 0, (2, 2, 2, 2, 2, 2), 0.2),
    "row-weights-mixed": Recipe(9, 60, 2, (3, 4), 0.25, rows="counts"),
    "row-weights-uniform": Recipe(10, 60, 2, (2, 3), 0.2, "uniform", rows="fractions"),
    "row-weights-zero": Recipe(11, 70, 2, (2, 3), 0.2, rows="zeros"),
    "row-weights-continuous": Recipe(12, 30, 4, (), 0.15, rows="fractions"),
    "row-weights-categorical": Recipe(33, 80, 0, (2, 3, 4, 2), 0.2, rows="counts"),
    "bad-units-mixed": Recipe(14, 60, 3, (2, 4), 0.2, scale=(1e-3, 1e3, 1.0), mean=(0.0, 1e4, 1e4)),
    "bad-units-continuous": Recipe(
        15, 50, 4, (), 0.15, scale=(1e-3, 1e3, 1e3, 1e-3), mean=(1.0, 1e4, -1e4, 0.0)
    ),
    "bad-units-uniform": Recipe(
        16, 60, 2, (2, 3), 0.1, "uniform", scale=(0.05, 20.0), mean=(-3.0, 1e3)
    ),
    "factors": Recipe(17, 60, 2, (2, 3), 0.3, factors={(0, 1): 0.3, (1, 3): 2.0, (2, 3): 0.5}),
    "factors-free": Recipe(18, 60, 2, (2, 3), 0.3, factors={(0, 1): 0.0, (1, 3): 0.0}),
    "factors-free-categorical": Recipe(19, 80, 1, (2, 3, 2), 0.4, factors={(1, 2): 0.0}),
    "factors-forbidden": Recipe(20, 60, 2, (2, 3), 0.1, factors={(0, 2): np.inf, (2, 3): np.inf}),
    "unseen-level": Recipe(23, 70, 2, (2, 4), 0.35, unseen=(1, 2)),
    "unseen-level-categorical": Recipe(22, 70, 0, (3, 2, 4, 2), 0.15, "uniform", unseen=(0, 0)),
}
NAMES = tuple(RECIPES)


@cache
def get(name: str) -> Problem:
    """Draw the problem of that name; the same numbers every time."""
    recipe = RECIPES[name]
    rng = np.random.default_rng(recipe.seed)
    X, Y = _draw(rng, recipe)
    rows = _row_weights(rng, recipe)
    size = recipe.n_gaussian + len(recipe.n_levels)
    factors = np.ones((size, size)) if recipe.factors else None
    for (u, v), factor in recipe.factors.items():
        factors[u, v] = factors[v, u] = factor
    # Lambda is placed by the weights without factors: with free pairs it has no closed form.
    top = plain.lam_max(
        X, Y, recipe.n_levels, plain.edge_weights(recipe.weights, X, Y, recipe.n_levels, rows), rows
    )
    lam = float(f"{recipe.fraction * top:.4g}")
    return Problem(name, X, Y, recipe.n_levels, lam, recipe.weights, rows, factors)


def _draw(rng: np.random.Generator, recipe: Recipe) -> tuple[Floats, NDArray[np.int64]]:
    """Columns that share two hidden causes, so that some pairs are related and others hardly."""
    n, p, q = recipe.n_rows, recipe.n_gaussian, len(recipe.n_levels)
    hidden = rng.normal(size=(n, 2))
    loads = rng.normal(size=(2, p)) * rng.integers(0, 2, size=(2, p))
    X = hidden @ loads + rng.normal(size=(n, p))
    Y = np.zeros((n, q), dtype=np.int64)
    for r, m in enumerate(recipe.n_levels):
        tendency = rng.normal(size=(2, m)) * rng.integers(0, 2, size=(2, 1)) * 1.2
        noise = rng.gumbel(size=(n, m))
        Y[:, r] = np.argmax(hidden @ tendency + noise, axis=1)
        Y[:m, r] = rng.permutation(m)  # every level has a row
        if recipe.unseen is not None and recipe.unseen[0] == r:
            Y[Y[:, r] == recipe.unseen[1], r] = (recipe.unseen[1] + 1) % m
    scale = np.array(recipe.scale or (1.0,) * p)
    mean = np.array(recipe.mean or (0.0,) * p)
    return mean + scale * X, Y


def _row_weights(rng: np.random.Generator, recipe: Recipe) -> Floats | None:
    """None, counts 1 to 3, positive fractions, or counts with zeros after the first rows."""
    n = recipe.n_rows
    if recipe.rows == "equal":
        return None
    if recipe.rows == "counts":
        return rng.integers(1, 4, size=n).astype(float)
    if recipe.rows == "fractions":
        return rng.uniform(0.2, 1.8, size=n)
    counts = rng.integers(0, 3, size=n).astype(float)
    counts[: max(recipe.n_levels)] = 1.0  # the rows that hold every level
    return counts


@cache
def optimum(name: str) -> conic.ConicOptimum:
    """Solve the problem of that name with the conic reference, once per session."""
    problem = get(name)
    return conic.solve(
        problem.X,
        problem.Y,
        problem.n_levels,
        problem.lam,
        problem.weights,
        problem.factors,
        problem.row_weights,
    )

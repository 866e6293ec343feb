"""A shape and a sparse random graph -> rows of a mixed table, by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shape:
    """Continuous columns, categorical columns by their levels, and rows."""

    n_gaussian: int
    n_levels: tuple[int, ...]
    n_rows: int

    @property
    def n_nodes(self) -> int:
        return self.n_gaussian + len(self.n_levels)

    @property
    def n_columns(self) -> int:
        """Design columns, d."""
        return self.n_gaussian + sum(self.n_levels)

    def __str__(self) -> str:
        levels = sorted(set(self.n_levels))
        kind = f" x {levels[0]} levels" if len(levels) == 1 else " categorical"
        discrete = f" + {len(self.n_levels)}{kind}" if levels else ""
        return f"{self.n_gaussian}{discrete}, {self.n_rows:,} rows"


def sparse_table(
    shape: Shape, rng: np.random.Generator, *, degree: float = 3.0, sweeps: int = 20
) -> tuple[Floats, NDArray[np.int64]]:
    """Continuous columns and level codes of a table whose nodes have `degree` edges on average.

    All rows are chains of their own and take every step together.
    """
    start = np.concatenate([np.arange(shape.n_gaussian), _offsets(shape)])
    coupling, neighbours = _model(shape, start, rng, degree)
    diagonal = 1.0 + np.abs(coupling[: shape.n_gaussian, : shape.n_gaussian]).sum(axis=1)
    n = shape.n_rows
    Z = np.zeros((n, shape.n_columns))
    Z[:, : shape.n_gaussian] = rng.normal(size=(n, shape.n_gaussian)) / np.sqrt(diagonal)
    codes = np.column_stack(
        [rng.integers(0, m, size=n) for m in shape.n_levels] or [np.zeros((n, 0), dtype=np.int64)]
    )
    rows = np.arange(n)
    for j in range(len(shape.n_levels)):
        Z[rows, start[shape.n_gaussian + j] + codes[:, j]] = 1.0
    for _ in range(sweeps):
        for v, near in enumerate(neighbours):
            own = slice(start[v], start[v + 1])
            eta = Z[:, near] @ coupling[near, own]
            if v < shape.n_gaussian:
                Z[:, v] = eta[:, 0] / diagonal[v] + rng.normal(size=n) / np.sqrt(diagonal[v])
            else:
                drawn = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
                Z[:, own] = 0.0
                Z[rows, start[v] + drawn] = 1.0
                codes[:, v - shape.n_gaussian] = drawn
    return Z[:, : shape.n_gaussian].copy(), codes


def _offsets(shape: Shape) -> NDArray[np.int64]:
    return shape.n_gaussian + np.concatenate([[0], np.cumsum(shape.n_levels)]).astype(np.int64)


def _model(
    shape: Shape, start: NDArray[np.int64], rng: np.random.Generator, degree: float
) -> tuple[Floats, list[NDArray[np.int64]]]:
    """The symmetric coupling of design columns, and the columns that each node depends on."""
    n_nodes = shape.n_nodes
    n_edges = min(round(degree * n_nodes / 2), n_nodes * (n_nodes - 1) // 2)
    u, v = np.triu_indices(n_nodes, 1)
    chosen = rng.choice(len(u), size=n_edges, replace=False)
    coupling = np.zeros((shape.n_columns, shape.n_columns))
    near: list[list[NDArray[np.int64]]] = [[] for _ in range(n_nodes)]
    for a, b in zip(u[chosen], v[chosen], strict=True):
        rows, columns = np.arange(*start[a : a + 2]), np.arange(*start[b : b + 2])
        block = _block(len(rows), len(columns), rng)
        coupling[np.ix_(rows, columns)] = block
        coupling[np.ix_(columns, rows)] = block.T
        near[a].append(columns)
        near[b].append(rows)
    none = np.zeros(0, dtype=np.int64)
    return coupling, [np.concatenate([none, *columns]) for columns in near]


def _block(n_rows: int, n_columns: int, rng: np.random.Generator) -> Floats:
    """Strong enough to be found in some thousand rows, zero sums over levels."""
    if n_rows == n_columns == 1:
        return rng.choice([-0.5, 0.5], size=(1, 1))
    block = rng.normal(size=(n_rows, n_columns))
    if n_rows > 1:
        block -= block.mean(axis=0)
    if n_columns > 1:
        block -= block.mean(axis=1, keepdims=True)
    strength = 0.6 if min(n_rows, n_columns) == 1 else 1.2
    size = strength * np.sqrt(max(n_rows, n_columns)) / np.linalg.norm(block)
    return np.asarray(size * block)

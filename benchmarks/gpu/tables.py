"""Sizes and a seed -> a wide table with a sparse graph, drawn column by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import encoded
from mixedgm.table.encode import Design

Floats = NDArray[np.float64]

PARENTS = 1.5
"""Earlier columns that a column depends on, on average: three edges per column."""


@dataclass(frozen=True)
class Size:
    """Numbers, categories of three levels each, rows."""

    n_numbers: int
    n_categories: int
    n_rows: int
    n_levels: int = 3

    @property
    def n_nodes(self) -> int:
        return self.n_numbers + self.n_categories

    @property
    def n_columns(self) -> int:
        """Design columns, d."""
        return self.n_numbers + self.n_levels * self.n_categories

    def __str__(self) -> str:
        return (
            f"{self.n_numbers:,} numbers + {self.n_categories:,} x {self.n_levels} levels "
            f"(d = {self.n_columns:,}), {self.n_rows:,} rows"
        )


def sparse_design(size: Size, seed: int = 0) -> Design:
    """Every column depends on one or two of those before it, in a random order of columns.

    A number depends linearly on numbers and by a shift for each level on categories; a category has
    logits of that form.
    """
    rng = np.random.default_rng(seed)
    n, order = size.n_rows, rng.permutation(size.n_nodes)
    numbers = np.empty((n, size.n_numbers), order="F")
    codes = np.empty((n, size.n_categories), dtype=np.uint8, order="F")

    def effect(node: int, width: int) -> Floats:
        """(width, n) what an earlier column adds."""
        if node < size.n_numbers:
            return rng.choice([-0.6, 0.6], size=(width, 1)) * numbers[:, node]
        shift = rng.normal(size=(width, size.n_levels))
        shift -= shift.mean(axis=1, keepdims=True)
        return shift[:, codes[:, node - size.n_numbers]]

    for at, node in enumerate(order.tolist()):
        count = min(at, int(rng.integers(1, 3)))
        parents = order[rng.choice(at, size=count, replace=False)] if at else order[:0]
        is_number = node < size.n_numbers
        width = 1 if is_number else size.n_levels
        total = np.zeros((width, n))
        for parent in parents.tolist():
            total += effect(parent, width)
        if is_number:
            drawn = total[0] + rng.normal(size=n)
            numbers[:, node] = (drawn - drawn.mean()) / drawn.std()
        else:
            share = np.cumsum(np.exp(total - total.max(axis=0)), axis=0)
            codes[:, node - size.n_numbers] = (rng.random(n) * share[-1] > share[:-1]).sum(axis=0)
    return encoded(numbers, codes, (size.n_levels,) * size.n_categories)

"""Rows that StARS and stability selection take with a `random_state`, written out with NumPy."""

from __future__ import annotations

import numpy as np


def _orders(n_rows: int, n: int, random_state: int) -> list[np.ndarray]:
    (root,) = np.random.SeedSequence(random_state).spawn(1)
    return [np.random.default_rng(seed).permutation(n_rows) for seed in root.spawn(n)]


def subsamples(n_rows: int, size: int, n: int, random_state: int) -> list[np.ndarray]:
    """Rows of n subsamples, each without replacement."""
    return [np.sort(order[:size]) for order in _orders(n_rows, n, random_state)]


def halves(n_rows: int, n: int, random_state: int) -> list[np.ndarray]:
    """Rows of n halves of a table with an even number of rows, two by two."""
    orders = _orders(n_rows, n // 2, random_state)
    return [np.sort(half) for order in orders for half in np.split(order, 2)]

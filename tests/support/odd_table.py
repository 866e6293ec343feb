"""A table with interactions of more than two columns, which no model here fits."""

from __future__ import annotations

import numpy as np
import pandas as pd

LETTERS = "abcde"


def odd_table(seed: int = 54, n: int = 600) -> pd.DataFrame:
    """Few of all states occur, so that no pairwise model fits: higher interactions all over."""
    rng = np.random.default_rng(seed)
    state = rng.choice(32, size=n, p=rng.dirichlet(np.full(32, 0.15)))
    y = (state[:, None] >> np.arange(5)) & 1
    table = {name: np.where(y[:, k], "yes", "no") for k, name in enumerate(LETTERS)}
    x = rng.normal(size=n) + 2.0 * (y[:, 0] & y[:, 1]) - 1.5 * (y[:, 2] & y[:, 3])
    return pd.DataFrame({**table, "x": 50.0 + 10.0 * x})

"""Name of a survey -> rows to learn from and rows to score on."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd

import mixedgm as mg

GRID = np.geomspace(0.7, 5e-5, 50)
"""The values of lam of the paper's survey experiments."""
TARGETS = ("logwage", "education", "jobclass")
"""What the paper's conditional model describes, given all other columns."""
HELD_OUT = {"atus_wage": 87_492, "taxunits": 100_000, "wage": 2_000}


@cache
def shuffled(survey: Path | str) -> pd.DataFrame:
    """All rows in random order: the first order in which every column varies in 100 rows."""
    if isinstance(survey, Path):
        table = pd.read_parquet(survey).iloc[:, :11]
    else:
        table = {"taxunits": mg.datasets.load_taxunits, "wage": mg.datasets.load_wage}[survey]()
    for seed in count():
        order = table.sample(frac=1.0, random_state=seed).reset_index(drop=True)
        if (order.iloc[:100].nunique() > 1).all():
            return order
    raise AssertionError("count() has no end")


def split(survey: Path | str, n: int, draw: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The draw-th n rows to learn from, and the last rows to score on, which no draw contains."""
    table = shuffled(survey)
    held_out = HELD_OUT[survey.stem if isinstance(survey, Path) else survey]
    pool = len(table) - held_out
    if (draw + 1) * n > pool:
        raise ValueError(f"{draw + 1} draws of {n} rows are more than the {pool} rows there are")
    return table.iloc[draw * n : (draw + 1) * n], table.iloc[pool:]

"""A seed -> a small table that can be fitted, with rare levels, nearly constant columns, gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[Any]
Maker = Callable[[np.random.Generator, NDArray[np.float64]], Cells]

KINDS = ("continuous", "categorical", "ordinal", "count", "hurdle")
GAPS = ("none", "few", "one column", "many", "rare rows")


@dataclass
class MildTable:
    """Columns of cells by name, their kinds, and what the fit is told."""

    n: int
    library: str
    columns: dict[str, Cells]
    types: dict[str, str]
    gaps: str
    options: dict[str, Any] = field(default_factory=dict)
    sample_weight: Any = None
    declared: bool = False
    """Whether categories, as pandas has them, include one that no row has."""

    @property
    def table(self) -> Any:
        """The frame that the user has."""
        return self.of(list(self.columns))

    def of(self, names: list[str]) -> Any:
        """The columns of these names, in this order, as a frame."""
        cells = {name: self.columns[name].tolist() for name in names}
        if self.library == "polars":
            import polars as pl

            return pl.DataFrame(cells)
        if self.library == "pyarrow":
            import pyarrow as pa

            return pa.table(cells)
        import pandas as pd

        frame = pd.DataFrame(cells)
        for name in names if self.declared else ():
            if self.types[name] == "categorical":
                frame[name] = frame[name].astype("category").cat.add_categories(["never"])
        return frame

    def with_column(self, name: str, cells: Cells, kind: str) -> MildTable:
        """The table with one more column."""
        types = {**self.types, name: kind}
        columns, options = {**self.columns, name: cells}, {**self.options, "types": types}
        return replace(self, columns=columns, types=types, options=options)


def mild_table(seed: int) -> MildTable:
    """The table of a seed: 30 to 200 rows of 3 to 6 columns that have something in common."""
    rng = np.random.default_rng([33, seed])
    n = int(rng.choice([32, 45, 60, 90, 120, 200], p=[0.1, 0.15, 0.2, 0.2, 0.2, 0.15]))
    count = int(rng.integers(3, 7))
    common = rng.normal(size=n)
    kinds = [*map(str, rng.permutation(KINDS)), *map(str, rng.choice(KINDS, 6))]
    kinds = kinds[:count] if rng.random() < 0.6 else kinds[-count:]  # of all kinds, or any
    columns = {}
    for at, kind in enumerate(kinds):
        makers = _ODD if rng.random() < 0.3 else _PLAIN
        columns[f"{kind}{at}"] = makers[kind](rng, common)
    types = dict(zip(columns, kinds, strict=True))
    gaps = str(rng.choice(GAPS, p=[0.4, 0.2, 0.2, 0.15, 0.05]))
    library = str(rng.choice(["pandas", "polars", "pyarrow"], p=[0.7, 0.15, 0.15]))
    found = MildTable(n, library, _with_gaps(rng, columns, gaps), types, gaps)
    found.options = {"types": types, **_options(rng, found)}
    if rng.random() < 0.2:
        found.sample_weight = _weights(rng, n)
    found.declared = bool(rng.random() < 0.2)
    return found


# -- columns ---------------------------------------------------------------------------------------


def _continuous(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    unit, origin = float(rng.choice([1.0, 1.0, 1e-3, 250.0])), float(rng.choice([0.0, 0.0, 50.0]))
    return unit * (origin + rng.uniform(0.2, 1.0) * common + rng.normal(size=len(common)))


def _codes(rng: np.random.Generator, common: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Numbers from 0 to count - 1 that grow with what columns have in common."""
    x = rng.uniform(0.2, 1.0) * common + rng.normal(size=len(common))
    cuts = np.quantile(x, np.sort(rng.uniform(0.1, 0.9, count - 1)))
    return np.searchsorted(cuts, x).astype(np.int64)


def _categorical(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    return np.array(["a", "b", "c", "d"], dtype=object)[
        _codes(rng, common, int(rng.integers(2, 5)))
    ]


def _ordinal(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    return 1 + _codes(rng, common, int(rng.integers(3, 6)))


def _count(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    return rng.poisson(np.exp(rng.uniform(-0.5, 1.5) + 0.4 * common))


def _hurdle(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    n, unit = len(common), float(rng.choice([1.0, 250.0]))
    amount = unit * np.exp(1.0 + 0.4 * common + 0.4 * rng.normal(size=n))
    return np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-common)), amount, 0.0)


def _rows(rng: np.random.Generator, n: int, most: int = 3, fewest: int = 1) -> NDArray[np.int64]:
    """`fewest` to `most` rows."""
    return rng.choice(n, int(rng.integers(fewest, most + 1)), replace=False)


def _odd_continuous(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    cells = np.full(len(common), 2.5)
    at = _rows(rng, len(cells), 5, 2)
    cells[at] += rng.normal(size=len(at))
    return cells


def _odd_categorical(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    cells = _categorical(rng, common)
    if rng.random() < 0.4:
        cells[:] = "a"
    cells[_rows(rng, len(cells))] = "rare"
    return cells


def _odd_ordinal(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    cells = _ordinal(rng, common)
    if rng.random() < 0.3:
        cells[:] = np.where(cells < 3, 1, 2)
    cells[_rows(rng, len(cells))] = int(rng.choice([0, 7]))
    return cells


def _odd_count(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    cells = np.zeros(len(common), dtype=np.int64)
    at = _rows(rng, len(cells), 4, 2)
    cells[at] = 1 + np.arange(len(at))
    return cells


def _odd_hurdle(rng: np.random.Generator, common: NDArray[np.float64]) -> Cells:
    cells, amounts = np.zeros(len(common)), np.exp(1.0 + 0.4 * rng.normal(size=len(common)))
    if rng.random() < 0.5:
        at = _rows(rng, len(cells), 10, 7)
        cells[at] = amounts[at]
        return cells
    amounts[_rows(rng, len(cells))] = 0.0
    return amounts


_PLAIN: dict[str, Maker] = {
    "continuous": _continuous,
    "categorical": _categorical,
    "ordinal": _ordinal,
    "count": _count,
    "hurdle": _hurdle,
}
_ODD: dict[str, Maker] = {
    "continuous": _odd_continuous,
    "categorical": _odd_categorical,
    "ordinal": _odd_ordinal,
    "count": _odd_count,
    "hurdle": _odd_hurdle,
}


def nearly_constant(rng: np.random.Generator, n: int, kind: str) -> Cells:
    """A column of this kind that is the same in all but a few rows, and unrelated to any other."""
    if kind == "categorical":
        cells = np.full(n, "a", dtype=object)
        cells[_rows(rng, n)] = "b"
        return cells
    if kind == "ordinal":
        kind = "count"
    return _ODD[kind](rng, np.zeros(n))


# -- gaps, weights, options ------------------------------------------------------------------------


def _with_gaps(rng: np.random.Generator, columns: dict[str, Cells], gaps: str) -> dict[str, Cells]:
    found = {name: np.array(cells, dtype=object) for name, cells in columns.items()}
    names, n = list(found), len(next(iter(found.values())))
    if gaps == "few":
        for name in rng.choice(names, 2):
            found[str(name)][_rows(rng, n, 2)] = None
    elif gaps == "one column":
        found[str(rng.choice(names))][rng.random(n) < rng.uniform(0.05, 0.3)] = None
    elif gaps == "many":
        for name in names:
            found[name][rng.random(n) < rng.uniform(0.0, 0.12)] = None
    elif gaps == "rare rows":
        # A gap in some of the rows that tell a column from a constant.
        values, at, often = np.unique(
            found[names[0]].astype(str), return_inverse=True, return_counts=True
        )
        found[names[-1]][np.flatnonzero(at == often.argmin())[:2]] = None
    return found


def _weights(rng: np.random.Generator, n: int) -> Any:
    choices = (rng.uniform(0.5, 2.0, n), rng.integers(1, 4, n), rng.integers(0, 3, n))
    return choices[int(rng.integers(3))]


def _options(rng: np.random.Generator, table: MildTable) -> dict[str, Any]:
    found: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    chosen = rng.random()
    if chosen < 0.6:
        found["lam"] = float(rng.choice([0.05, 0.1, 0.2]))
    elif chosen < 0.75:
        found["select"] = "ebic"
    more: tuple[dict[str, Any], ...] = (
        {"loss": "nodewise"},
        {"refit": True},
        {"transforms": "nonparanormal"},
        {"covariates": [list(table.columns)[0]]},
        {"penalty_weights": "adaptive"},
    )
    if rng.random() < 0.25:
        found |= more[int(rng.integers(len(more)))]
    if table.gaps != "none":
        found["missing"] = str(rng.choice(["model", "drop", "error"], p=[0.6, 0.38, 0.02]))
    elif rng.random() < 0.1:
        found["missing"] = "model"
    return found

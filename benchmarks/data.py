"""The context -> encoded tables: the survey, simulated sets, and tables of any size."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.context import Context
from benchmarks.simulate import Shape, sparse_table
from mixedgm.families import COUNT, ORDINAL, Scored
from mixedgm.table.encode import Design, code_dtype, learn
from mixedgm.table.schema import Column, Kind, Schema

PAPER_GRID = np.geomspace(0.7, 5e-5, 50)
SURVEY_LEVELS = (7, 2, 5, 4, 5, 9, 2, 2, 2)

# Shapes of the simulated sets, for where the sets themselves are not at hand.
SETS = {
    "a": Shape(10, (2,) * 10, 1_000),
    "b": Shape(50, (4,) * 50, 2_000),
    "c10k": Shape(2, SURVEY_LEVELS, 10_000),
    "d": Shape(20, (5,) * 20 + (30,) * 10 + (4,) * 10, 5_000, (ORDINAL,) * 20 + (COUNT,) * 10),
}


def survey(context: Context, n_rows: int, seed: int = 0) -> Design:
    """A sample of the survey, without repeated rows as long as it has enough."""
    whole = whole_survey(context)
    if n_rows > whole.n_rows:
        return enlarged(whole, n_rows, seed)
    rows = np.random.default_rng(seed).choice(whole.n_rows, size=n_rows, replace=False)
    return whole.take(np.sort(rows))


def whole_survey(context: Context) -> Design:
    """All of its rows."""
    return _survey(context.data("atus_wage.parquet"))


def survey_note(context: Context) -> str:
    """Which table stands for the survey."""
    if context.data("atus_wage.parquet") is not None:
        return "atus_wage, first 11 columns"
    return "bundled tax units (12 columns), because atus_wage was not found"


@cache
def _survey(path: Path | None) -> Design:
    from mixedgm.datasets import load_taxunits

    if path is None:
        frame = load_taxunits("pandas")
    else:
        import pandas as pd

        frame = pd.read_parquet(path).iloc[:, :11]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(frame)[0]


def enlarged(design: Design, n_rows: int, seed: int) -> Design:
    """Rows drawn with repetition, continuous values blurred so that no two rows are equal."""
    rng = np.random.default_rng(seed)
    drawn = design.take(rng.integers(0, design.n_rows, size=n_rows))
    blur = 0.05 * design.numbers.std(axis=0)
    drawn.numbers[:] += rng.normal(size=drawn.numbers.shape) * blur
    return Design(drawn.schema, drawn.numbers, drawn.codes)


def simulated_set(context: Context, name: str) -> tuple[Design, str]:
    """A named set and where it is from."""
    path = context.data(f"sim/{name}.npz")
    if path is None:
        shape = SETS[name]
        return simulated(shape), f"simulated in the shape of set {name}, which was not found"
    with np.load(path) as file:
        levels = tuple(int(m) for m in file["levels"])
        return encoded(file["X"], file["Y"], levels), f"set {name}"


def simulated(shape: Shape, *, degree: float = 3.0, seed: int = 0) -> Design:
    """A table with a sparse random graph behind it."""
    numbers, codes = sparse_table(shape, np.random.default_rng(seed), degree=degree)
    return encoded(numbers, codes, shape.n_levels, shape.scored)


def encoded(
    numbers: NDArray[np.float64],
    codes: NDArray[np.integer],
    n_levels: tuple[int, ...],
    scored: tuple[Scored, ...] = (),
) -> Design:
    """Arrays -> Design, with made-up names; the first columns with values are of kinds `scored`."""
    columns = [Column(f"x{s}", "continuous") for s in range(numbers.shape[1])]
    kinds = [kind.name for kind in scored] + ["categorical"] * (len(n_levels) - len(scored))
    for j, (kind, m) in enumerate(zip(kinds, n_levels, strict=True)):
        if kind == "count":
            columns.append(Column(f"y{j}", "count", largest=m - 1))
        else:
            columns.append(Column(f"y{j}", cast(Kind, kind), levels=tuple(range(m))))
    schema = Schema(tuple(columns))
    small: Any = np.ascontiguousarray(codes, dtype=code_dtype(schema))
    return Design(schema, np.ascontiguousarray(numbers, dtype=np.float64), small)


def encoded_bytes(design: Design) -> int:
    """Size of the encoded table."""
    return design.numbers.nbytes + design.codes.nbytes

"""Part "levels": default fits of tables whose columns have many levels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import mixedgm as mg
from benchmarks.context import THREADS, TOL, Context
from benchmarks.report import Result, at_most, holds, shown
from benchmarks.timing import seconds_of

# Levels of a housing table: a neighbourhood, a kind of dwelling, many grades and yes-or-no columns.
HOUSING = (28, 16, 10, 9, 8, 8, 7, 7, *(6,) * 4, *(5,) * 7, *(4,) * 5, *(3,) * 6, *(2,) * 6)
SIZES = {"full": 1.0, "quick": 0.2, "smoke": 0.05}
REPEATS = {"full": 3, "quick": 1, "smoke": 1}
LEVELS = {"full": (50, 200, 400), "quick": (50, 200, 400), "smoke": (5, 20, 40)}
"""Of two columns, of two more, and of an identifier."""


@dataclass(frozen=True)
class Fit:
    """A table, how it is fitted, and how long that may take on two cores."""

    name: str
    table: pd.DataFrame
    options: dict[str, Any]
    seconds: float
    repeats: int = 3


def run(context: Context) -> Result:
    result = Result("levels")
    for fit in _fits(context):
        _measure(result, context, fit)
    return result


def _measure(result: Result, context: Context, fit: Fit) -> None:
    models = []

    def work() -> None:
        model = mg.MixedGraphicalModel(n_jobs=THREADS, random_state=0, **fit.options)
        models.append(model.fit(fit.table))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # findings about the table are not the point
        seconds = [seconds_of(work) for _ in range(min(fit.repeats, context.pick(REPEATS)))]
    model = models[-1]
    if context.size == "full":
        result.add(at_most(f"{fit.name}: seconds", min(seconds), fit.seconds, "s"))
    else:
        result.add(shown(f"{fit.name}: seconds", f"{min(seconds):.3g}"))
    kkt = float(model.kkt_)
    result.add(holds(f"{fit.name}: KKT", f"<= {TOL:g}", kkt <= TOL, f"{kkt:.2e}"))
    result.figures[fit.name] = {
        "seconds": seconds,
        "rows": len(fit.table),
        "columns": fit.table.shape[1],
        "edges": len(model.edges_),
        "lams": len(model.path_),
        "lam": model.lam_,
    }


def _fits(context: Context) -> list[Fit]:
    share = context.pick(SIZES)
    housing = housing_table(max(150, int(2930 * share)))
    if context.size == "smoke":
        housing = housing.iloc[:, ::12]
    few, many, every = context.pick(LEVELS)
    kept = {"types": {"id": "categorical"}}
    found = [
        Fit(f"two columns of {few} levels", unrelated(few, int(5000 * share)), {}, 1.0),
        Fit(f"two columns of {many} levels", unrelated(many, int(5000 * share)), {}, 3.0),
        Fit("an identifier", identified(every), {}, 1.0),
        Fit("an identifier that is kept", identified(every), kept, 1.0),
        Fit("housing", housing, {}, 30.0),
    ]
    if context.size != "smoke":
        found.append(Fit("housing, cross-validated", housing, {"select": "cv"}, 180.0, repeats=1))
    adult = context.data("adult.parquet")
    if adult is not None:
        table = pd.read_parquet(adult).sample(int(5000 * share), random_state=0).iloc[:, :12]
        found.insert(0, Fit("adult", table, {}, 2.0))
    return found


def unrelated(n_levels: int, n_rows: int) -> pd.DataFrame:
    """Two columns of so many levels and a number, all independent."""
    rng = np.random.default_rng(0)
    columns = {name: _named(rng.integers(0, n_levels, n_rows), name) for name in "ab"}
    # Declared, so that the levels are not taken for the names of rows.
    frame = pd.DataFrame(columns | {"x": rng.normal(size=n_rows)})
    return frame.astype({"a": "category", "b": "category"})


def identified(n_rows: int) -> pd.DataFrame:
    """A few columns, and one of text that is different in every row."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "id": [f"person {row:05d}" for row in range(n_rows)],
            "x": x,
            "y": x + rng.normal(size=n_rows),
            "group": rng.choice(list("abcd"), n_rows),
            "sex": rng.choice(list("fm"), n_rows),
        }
    )


def housing_table(n_rows: int = 2930) -> pd.DataFrame:
    """36 numbers and 36 categories of 2 to 28 levels, many of them rare, some nested in others."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, 6))
    columns: dict[str, Any] = {}
    for s in range(36):
        load = rng.normal(size=6) * (rng.random(6) < 0.4)
        columns[f"n{s}"] = factors @ load + rng.normal(size=n_rows) * rng.uniform(0.4, 1.5)
    codes = [_drawn(rng, factors, n_levels) for n_levels in HOUSING]
    place = codes[0]
    codes[2] = place // 3
    codes[8] = np.where(rng.random(n_rows) < 0.97, place % 6, codes[8])
    columns["n0"] = columns["n0"] + 2.0 * rng.normal(size=HOUSING[0])[place]
    columns |= {f"c{j}": _named(code, f"c{j}_") for j, code in enumerate(codes)}
    return pd.DataFrame(columns)


def _drawn(rng: np.random.Generator, factors: np.ndarray, n_levels: int) -> np.ndarray:
    """Levels whose frequencies fall like those of words, and depend on some of the factors."""
    rare = -rng.uniform(0.6, 1.3) * np.log(np.arange(1, n_levels + 1))
    load = rng.normal(size=(factors.shape[1], n_levels)) * rng.uniform(0.5, 1.5)
    load *= rng.random((factors.shape[1], 1)) < 0.4
    return (rare + factors @ load + rng.gumbel(size=(len(factors), n_levels))).argmax(axis=1)


def _named(codes: np.ndarray, prefix: str) -> list[str]:
    return [f"{prefix}{code}" for code in codes.tolist()]

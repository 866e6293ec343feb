"""Part "tests": the default fit against that by EBIC, and tests of all pairs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

import mixedgm as mg
from benchmarks import data
from benchmarks.context import THREADS, Context
from benchmarks.report import Result, at_most, shown
from benchmarks.timing import interleaved, seconds_of
from mixedgm.fit.fitting import fit_design
from mixedgm.fit.options import Options
from mixedgm.table.encode import Design

REPEATS = {"full": 5, "quick": 2, "smoke": 1}
ROWS = {"full": 1.0, "quick": 0.2, "smoke": 0.05}
LIMIT = 2.0


def run(context: Context) -> Result:
    result = Result("tests")
    for name, design in _designs(context).items():
        _compare(result, context, name, design)
    _tests(result, context)
    return result


def _designs(context: Context) -> dict[str, Design]:
    if context.size == "smoke":
        return {"set a": data.simulated_set(context, "a")[0]}
    sets = {f"set {name}": data.simulated_set(context, name)[0] for name in ("a", "b", "c10k")}
    of_d = data.SETS["d"]
    of_d = replace(of_d, n_rows=int(context.pick(ROWS) * of_d.n_rows))
    return sets | {"set d": data.simulated(of_d)}


def _compare(result: Result, context: Context, name: str, design: Design) -> None:
    def fit(select: str) -> None:
        options = Options(select=select, n_jobs=THREADS)
        fit_design(design, options, runtime=options.runtime)

    candidates = {select: partial(fit, select) for select in ("local-fdr", "ebic")}
    times = interleaved(candidates, context.pick(REPEATS))
    ratio = times["local-fdr"].best / times["ebic"].best
    result.add(at_most(f"{name}: the default fit, of one by EBIC", ratio, LIMIT))
    result.add(shown(f"{name}: the default fit", f"{times['local-fdr'].best:.3g} s"))
    result.figures[name] = {select: each.seconds.tolist() for select, each in times.items()}


def _tests(result: Result, context: Context) -> None:
    """Of the wage survey, and of set b, which has 31,125 parameters."""
    wage = mg.datasets.load_wage()
    model = mg.MixedGraphicalModel(n_jobs=THREADS).fit(wage)
    tables = {"wage survey": (model, wage, 1.0)}
    if context.size == "full":
        design = data.simulated_set(context, "b")[0]
        frame = _frame(design)
        types = dict(zip(frame.columns, [c.kind for c in design.schema.columns], strict=True))
        of_b = mg.MixedGraphicalModel(types=types, n_jobs=THREADS, select="ebic").fit(frame)
        tables["set b"] = (of_b, frame, 60.0)
    for name, (fitted, table, limit) in tables.items():
        for covariance in ("rows", "model"):
            options = {"covariance": covariance, "random_state": 0, "n_jobs": THREADS}
            work = partial(mg.edge_tests, fitted, table, **options)
            seconds = min(seconds_of(work) for _ in range(2))
            what = f"{name}: tests of all pairs, variances from the {covariance}"
            result.add(at_most(what, seconds, limit, "s"))


def _frame(design: Design) -> pd.DataFrame:
    """Numbers, then level codes, as columns of the schema."""
    names = [column.name for column in design.schema.columns]
    columns = [*design.numbers.T, *design.codes.astype(int).T]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))

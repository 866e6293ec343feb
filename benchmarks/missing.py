"""Part "missing": a fit of rows with gaps against one of as many rows as complete them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.context import THREADS, Context
from benchmarks.memory import in_fresh_process, traced
from benchmarks.report import Result, at_most, shown
from benchmarks.timing import interleaved
from mixedgm.fit.fitting import fit_design, fit_gaps
from mixedgm.fit.options import Options
from mixedgm.path.rounds import Incomplete
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps

REPEATS = {"full": 3, "quick": 1, "smoke": 1}
ROWS = {"full": 10_000, "quick": 2_000, "smoke": 100}
SHARES = {"full": (0.1, 0.3), "quick": (0.1, 0.3), "smoke": (0.1,)}
LIMIT, MOST_MEMORY = 4.0, 3.0


def run(context: Context) -> Result:
    result = Result("missing")
    for share in context.pick(SHARES):
        name = f"survey, {context.pick(ROWS):,} rows, {share:.0%} of the cells missing"
        _time(result, context, name, share)
        of_completed, of_gaps = in_fresh_process(memory, context, share)
        what = f"{name}: memory, of a fit of the completed rows"
        result.add(at_most(what, of_gaps / of_completed, MOST_MEMORY))
    return result


def gaps(context: Context, share: float) -> Gaps:
    """The survey of set c10k without some of its cells."""
    design = data.simulated_set(context, "c10k")[0].take(slice(0, context.pick(ROWS)))
    rng, schema = np.random.default_rng(0), design.schema
    missing = rng.random((design.n_rows, len(schema.nodes))) < share
    missing[missing.all(axis=1), 0] = False
    p = schema.n_gaussian
    numbers, codes = design.numbers.copy(), design.codes.astype(np.int32)
    numbers[missing[:, :p]], codes[missing[:, p:]] = np.nan, -1
    return Gaps(schema, numbers, codes)


def completed(rows: Gaps, options: Options) -> Design:
    """As many rows with weights as complete them."""
    ends = Incomplete.of(rows, options.recipe(rows.schema), None, THREADS).weak()
    return replace(ends.design, row=None)


def _time(result: Result, context: Context, name: str, share: float) -> None:
    rows = gaps(context, share)
    for select in ("local-fdr", "ebic"):
        options = Options(select=select, n_jobs=THREADS)
        design = completed(rows, options)
        work = {
            "gaps": partial(fit_gaps, rows, options, runtime=options.runtime),
            "completed": partial(fit_design, design, options, runtime=options.runtime),
        }
        times = interleaved(work, context.pick(REPEATS))
        ratio = times["gaps"].best / times["completed"].best
        what = "the default" if select == "local-fdr" else "EBIC"
        result.add(at_most(f"{name}: fit by {what}, of the completed rows", ratio, LIMIT))
        seconds = f"{times['gaps'].best:.3g} s, {design.n_rows:,} completed rows"
        result.add(shown(f"{name}: fit by {what}", seconds))
        result.figures[f"{share} {select}"] = {
            key: each.seconds.tolist() for key, each in times.items()
        }


def memory(context: Context, share: float) -> tuple[int, int]:
    """Bytes of the completed rows and of what a fit of them allocates; of a fit of the gaps."""
    rows, options = gaps(context, share), Options(select="ebic", n_jobs=1)
    design = completed(rows, options)
    assert design.weights is not None
    size = design.numbers.nbytes + design.codes.nbytes + design.weights.nbytes
    _, of_completed = traced(lambda: fit_design(design, options, runtime=options.runtime))
    _, of_gaps = traced(lambda: fit_gaps(rows, options, runtime=options.runtime))
    return size + of_completed, of_gaps

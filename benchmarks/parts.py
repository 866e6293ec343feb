"""Part "parts": tables in parts against tables in memory, and a Dask cluster against threads."""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path as Folder
from typing import Any

import numpy as np

from benchmarks import data, product
from benchmarks.context import THREADS, TOL, Context
from benchmarks.memory import forget_peak, in_fresh_process, peak_resident
from benchmarks.report import Result, at_most, holds, shown
from mixedgm.fit.estimates import certified, chosen_estimate
from mixedgm.fit.options import Options
from mixedgm.path.path import solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import prepare
from mixedgm.select.evidence import Choice
from mixedgm.table.encode import Design, learn
from mixedgm.table.parted.design import PartedDesign, learn_parts, parts_of

ROWS = {
    "full": (1_000_000, 100_000_000),
    "quick": (200_000, 1_000_000),
    "smoke": (1_000, 3_000),
}
"""Of a table that is read in parts, and of one that is larger."""
CLUSTER_ROWS = {"full": 10_000_000, "quick": 400_000, "smoke": 2_000}
FILE_ROWS = 1_000_000
N_LAMS = 20
GRID = np.geomspace(0.5, 0.005, N_LAMS)
MOST_TIME, MOST_PEAK, MOST_CLUSTER = 1.15, 5e9, 1.3


@dataclass(frozen=True)
class Found:
    """One path in a process of its own, from the files to the last lam."""

    n_rows: int
    seconds: float
    reading: float
    """Of these, until the table is encoded."""
    peak: int
    """Most resident bytes."""
    kkt: float
    """Of the last lam, computed once more from the rows."""
    objective: float


def run(context: Context) -> Result:
    result = Result("parts")
    small, large = context.pick(ROWS)
    lams = GRID if context.size != "smoke" else GRID[:10:3]
    found = []
    for n_rows in (small, large):
        with tempfile.TemporaryDirectory() as name:
            write(context, n_rows, Folder(name))
            found.append(in_fresh_process(by_parts, name, lams))
        _show(result, f"{n_rows:,} rows in parts", found[-1], lams)
    first, last = found
    growth = last.seconds / first.seconds / (large / small)
    what = f"{large:,} rows in parts: seconds, of {large / small:g} x those of {small:,}"
    result.add(at_most(what, growth, MOST_TIME))
    if context.size == "full":
        what = f"{large:,} rows in parts: peak memory"
        result.add(at_most(what, last.peak / 1e9, MOST_PEAK / 1e9, "GB"))
    result.figures["parts"] = [asdict(one) for one in found]
    _cluster(result, context, lams)
    return result


def _cluster(result: Result, context: Context, lams: product.Floats) -> None:
    n_rows = context.pick(CLUSTER_ROWS)
    with tempfile.TemporaryDirectory() as name:
        write(context, n_rows, Folder(name))
        memory = in_fresh_process(in_memory, name, lams)
        cluster = in_fresh_process(on_workers, name, lams)
    _show(result, f"{n_rows:,} rows in memory, {THREADS} threads", memory, lams)
    _show(result, f"{n_rows:,} rows on Dask, {THREADS} workers of one core", cluster, lams)
    what = f"{n_rows:,} rows on Dask: seconds, of those in memory"
    result.add(at_most(what, cluster.seconds / memory.seconds, MOST_CLUSTER))
    apart = abs(cluster.objective - memory.objective)
    equal = apart <= 10.0 * TOL * abs(memory.objective)
    result.add(holds("objective on Dask, less that in memory", "same", equal, f"{apart:.1e}"))
    result.figures["cluster"] = [asdict(memory), asdict(cluster)]


def _show(result: Result, what: str, found: Found, lams: product.Floats) -> None:
    text = f"{found.seconds:.3g} s, of which {found.reading:.3g} s to read and encode"
    result.add(shown(f"{what}: {len(lams)}-point path", f"{text}, {found.peak / 1e6:.0f} MB"))
    result.add(holds(f"{what}: KKT from the rows", f"<= {TOL:g}", found.kkt <= 1.001 * TOL))


def write(context: Context, n_rows: int, folder: Folder) -> None:
    """Write the survey, blown up as for the growth with rows, to Parquet files."""
    import pandas as pd

    whole = data.whole_survey(context)
    names = whole.schema.names
    for at, first in enumerate(range(0, n_rows, FILE_ROWS)):
        part = data.enlarged(whole, min(FILE_ROWS, n_rows - first), seed=at)
        columns: dict[str, Any] = {}
        for k, column in enumerate(part.schema.nodes[: part.schema.n_gaussian]):
            columns[column.name] = part.numbers[:, k]
        for k, column in enumerate(part.schema.discrete):
            levels = [str(level) for level in column.levels]
            columns[column.name] = pd.Categorical.from_codes(part.codes[:, k], levels)
        pd.DataFrame({name: columns[name] for name in names}).to_parquet(
            folder / f"part-{at:04}.parquet"
        )


def by_parts(name: str, lams: product.Floats) -> Found:
    """Read, encode and solve part by part; for a process of its own."""
    product.warm_up()
    forget_peak()
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = parts_of(name)
        assert reader is not None
        design = learn_parts(reader)[0]
    return _solved(design, lams, clock)


def in_memory(name: str, lams: product.Floats) -> Found:
    """Read the table whole, and solve on threads; for a process of its own."""
    import pandas as pd

    product.warm_up()
    forget_peak()
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        design = learn(pd.read_parquet(name))[0]
    return _solved(design, lams, clock)


def on_workers(name: str, lams: product.Floats) -> Found:
    """Read, encode and solve on the workers of a cluster; for a process of its own."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    cluster: Any = LocalCluster
    client: Any = Client
    product.warm_up()
    how = {"n_workers": THREADS, "threads_per_worker": 1, "dashboard_address": ":0"}
    with cluster(**how) as workers, client(workers) as connected:
        connected.run(product.warm_up)
        forget_peak()
        clock = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = parts_of(dd.read_parquet(name))
            assert reader is not None
            design = learn_parts(reader)[0]
        return _solved(design, lams, clock)


def _solved(design: Design | PartedDesign, lams: product.Floats, clock: float) -> Found:
    read = time.perf_counter()
    recipe = Recipe(tol=TOL)
    task = prepare(design, recipe, n_threads=THREADS)
    path = solve_path(task, lams, recipe)
    seconds = time.perf_counter() - clock
    options = Options(lam=float(lams[-1]), tol=TOL)
    ends = chosen_estimate(task, path, Choice(len(path) - 1, "", {}), options)
    report = certified(design, task, replace(ends))
    return Found(
        design.n_rows,
        seconds,
        read - clock,
        peak_resident(),
        report.kkt,
        float(path.objective[-1]),
    )

"""Part "scale": wide tables of numbers and a few categories, whose pairs are not all laid out."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import cores, data, product, wide_models
from benchmarks.certificate import worst_kkt
from benchmarks.context import THREADS, TOL, Context
from benchmarks.memory import MB, in_fresh_process, peak_resident, traced
from benchmarks.peers import external
from benchmarks.report import Result, at_most, certified, grows, holds, shown
from benchmarks.simulate import Shape
from benchmarks.timing import exponent
from mixedgm.base.parallel import Runtime
from mixedgm.fit.fitting import fit_design
from mixedgm.fit.options import Options
from mixedgm.path.path import Path, solve_path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Task, prepare
from mixedgm.table.encode import Design

SPARSE = {"full": [1000, 2000, 4000], "quick": [500, 1000, 2000], "smoke": [20, 30]}
WIDE = {"full": 5000, "quick": 3000, "smoke": 20}
N_DISCRETE = {"full": 20, "quick": 20, "smoke": 3}
N_ROWS = {"full": 500, "quick": 300, "smoke": 100}
N_LAMS = {"full": 10, "quick": 10, "smoke": 3}
SMALLEST = 0.35
"""Share of lam_max down to which paths go."""
SECONDS, GIGABYTES = 60.0, 2.0
SOME = 30
"""Columns that another package regresses, for the time of all."""


def run(context: Context) -> Result:
    result = Result("scale")
    _sparse(result, context)
    _omics(result, context)
    wide_models.rows(result, context)
    cores.rows(result, context)
    return result


@dataclass(frozen=True)
class Found:
    """One path in a process of its own."""

    d: int
    edges: int
    candidates: int
    seconds: float
    """Of a lam."""
    memory: int
    """Most bytes that Python and NumPy had allocated, second moments of all columns not counted."""
    kkt: float


def _shape(context: Context, n_numbers: int) -> Shape:
    return Shape(n_numbers, (3,) * context.pick(N_DISCRETE), context.pick(N_ROWS))


def _sparse(result: Result, context: Context) -> None:
    """Sparse graphs of more and more columns."""
    found = [
        in_fresh_process(sparse_path, _shape(context, size), context.pick(N_LAMS))
        for size in context.pick(SPARSE)
    ]
    result.figures["sparse"] = [asdict(one) for one in found]
    for one in found:
        text = (
            f"{one.seconds:.3g} s per lam, {one.memory / MB:.0f} MB and {8 * one.d**2 / MB:.0f} MB "
            f"of moments, {one.edges:,} edges, {one.candidates:,} candidates"
        )
        result.add(shown(f"wide and sparse, d = {one.d}: path", text))
    result.add(certified("wide and sparse paths", max(one.kkt for one in found), TOL))
    d = np.array([one.d for one in found], dtype=float)
    seconds, memory = (
        np.array([getattr(one, of) for one in found], dtype=float) for of in ("seconds", "memory")
    )
    result.add(grows("wide and sparse: seconds of a lam ~ d", exponent(d, seconds), 2, 0.1))
    result.add(grows("wide and sparse: memory beyond moments ~ d", exponent(d, memory), 1, 0.3))


def sparse_path(shape: Shape, n_lams: int) -> Found:
    """Simulate, solve for the memory, solve thrice for the time; for a process of its own."""
    product.warm_up()
    design = data.simulated(shape, degree=2.0)
    _solved(data.simulated(Shape(30, shape.n_levels, 60)), n_lams)  # compiles
    (task, path), peak = traced(lambda: _solved(design, n_lams))
    seconds = []
    for _ in range(3):
        clock = time.perf_counter()
        _solved(design, n_lams)
        seconds.append((time.perf_counter() - clock) / n_lams)
    d, layout = path.layout.n_columns, path.layout
    kkt = worst_kkt(task, path, 3)
    return Found(d, int(path.n_edges[-1]), layout.n_groups, min(seconds), peak - 8 * d**2, kkt)


def _solved(design: Design, n_lams: int) -> tuple[Task, Path]:
    """A path with candidates, from the encoded table on, and the task with all of them."""
    recipe = Recipe(tol=TOL, most_parameters=0)
    task = prepare(design, recipe, n_threads=THREADS)
    path = solve_path(task, product.grid(task, n_lams, SMALLEST), recipe)
    assert path.grown is not None
    return path.grown, path


@dataclass(frozen=True)
class Fit:
    """A default fit in a process of its own."""

    seconds: float
    peak: int
    """Most bytes resident, the interpreter and the table included."""
    n_lams: int
    edges: int
    kkt: float
    notes: tuple[str, ...]


def _omics(result: Result, context: Context) -> None:
    """Few rows, thousands of numbers, some categories: path, criterion, refit, certificate."""
    shape = _shape(context, context.pick(WIDE))
    found = in_fresh_process(default_fit, shape)
    result.figures["omics"] = asdict(found)
    name = f"{shape}, default fit on two cores"
    result.add(shown(name, f"{found.n_lams} lams, {found.edges:,} edges"))
    result.add(at_most(f"{name}: time", found.seconds, SECONDS, "s"))
    result.add(at_most(f"{name}: peak memory", found.peak / 1e9, GIGABYTES, "GB"))
    result.add(holds(f"{name}: certified", f"<= {TOL:g}", found.kkt <= TOL, f"{found.kkt:.1e}"))
    try:
        other = in_fresh_process(against_glmnet, shape, context.pick(N_LAMS))
    except external.UnavailableError as error:
        result.add(shown(f"{shape}: glmnet, one regression per column", f"skipped: {error}"))
        return
    result.figures["glmnet"] = asdict(other)
    text = (
        f"{other.ours:.3g} s against {other.columns} x {other.per_column:.3g} s on {THREADS} cores"
    )
    result.add(shown(f"{shape}: path of all pairs, against glmnet {other.version}", text))
    ratio = other.ours / (other.columns * other.per_column / THREADS)
    result.add(at_most(f"{shape}: path / regressions by glmnet, same grid", ratio, 1.0))


@dataclass(frozen=True)
class Against:
    """Our path, and the regressions of some columns."""

    ours: float
    per_column: float
    """Mean seconds of a column's regression over the same grid, on one core."""
    columns: int
    version: str


def against_glmnet(shape: Shape, n_lams: int) -> Against:
    """Simulate, solve, and regress some of the continuous columns; for a process of its own."""
    product.warm_up()
    design = data.simulated(shape, degree=2.0)
    _solved(data.simulated(Shape(30, shape.n_levels, 60)), n_lams)  # compiles
    clock = time.perf_counter()
    task, path = _solved(design, n_lams)
    ours = time.perf_counter() - clock
    some = np.linspace(0, shape.n_gaussian - 1, min(SOME, shape.n_gaussian)).astype(np.int64)
    found = external.glmnet_columns(external.Table.of(task, path.lams), some)
    return Against(ours, found["seconds"], shape.n_nodes, found["version"])


def default_fit(shape: Shape) -> Fit:
    """Simulate and fit; for a process of its own."""
    product.warm_up()
    design = data.simulated(shape, degree=2.0)
    _solved(data.simulated(Shape(30, shape.n_levels, 60)), 3)  # compiles
    runtime = Runtime(THREADS, THREADS)
    clock = time.perf_counter()
    model = fit_design(design, Options(), runtime=runtime, certify=True)
    seconds = time.perf_counter() - clock
    assert model.path is not None
    return Fit(
        seconds,
        peak_resident(),
        len(model.path),
        len(model.edges),
        model.report.kkt,
        model.report.notes,
    )

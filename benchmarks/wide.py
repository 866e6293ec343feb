"""Part "wide": what a lam costs on sparse graphs, in full gradients, and the memory of a path.

Set b is wide in categories; set d has all kinds of columns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.memory import MB, extra_resident, in_fresh_process, traced
from benchmarks.report import Result, at_most, certified, holds, shown
from benchmarks.simulate import Shape
from benchmarks.timing import seconds_of
from mixedgm.base.threads import single_threaded_blas
from mixedgm.path.task import Task
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.table.encode import Design

SHAPES = {
    "full": [Shape(200, (3,) * 200, 2_000), Shape(500, (3,) * 500, 1_000)],
    "quick": [Shape(100, (3,) * 100, 1_000)],
    "smoke": [Shape(8, (3,) * 8, 200)],
}
ROWS_OF_D = {"full": 5_000, "quick": 1_000, "smoke": 200}
N_LAMS = {"full": 20, "quick": 20, "smoke": 4}
REPEATS = {"full": 8, "quick": 2, "smoke": 1}
SECONDS = {"full": 30.0, "quick": 2.0, "smoke": 0.0}
"""Repeats at least, and seconds that they take at least: short paths are repeated more often."""
RATIO = 0.1
EDGES_PER_NODE = 3.0
LIMIT = 4.0


def run(context: Context) -> Result:
    result = Result("wide")
    of_d = replace(data.SETS["d"], n_rows=context.pick(ROWS_OF_D))
    tables: list[tuple[str, Shape | None]] = [
        ("set d", of_d),
        *((str(shape), shape) for shape in context.pick(SHAPES)),
    ]
    if context.size != "smoke":
        tables.insert(0, ("set b", None))
    for name, shape in tables:
        _costs(result, context, name, shape)
        _memory(result, context, name, shape)
    # What a lam takes whatever the rows counts ten times less.
    _costs(result, context, "set d, ten times the rows", replace(of_d, n_rows=10 * of_d.n_rows))
    return result


def _design(context: Context, shape: Shape | None) -> Design:
    return data.simulated_set(context, "b")[0] if shape is None else data.simulated(shape)


def _costs(result: Result, context: Context, name: str, shape: Shape | None) -> None:
    task = product.task_of(_design(context, shape))
    lams = product.grid(task, context.pick(N_LAMS), RATIO)
    runs, gradients = [], []
    clock = time.perf_counter()
    while len(runs) < context.pick(REPEATS) or time.perf_counter() - clock < context.pick(SECONDS):
        # Path and gradients by turns: the machine has moods.
        runs.append(product.solve(task, lams))
        path = runs[0].path
        gradients.append([_gradient_seconds(task, path.theta(k)) for k in range(len(path))])
    # Other work on the machine only adds time: the best of the repeats, lam by lam.
    per_lam = np.min([run.per_lam for run in runs], axis=0)
    gradient = np.min(gradients, axis=0)
    sparse = path.n_edges <= EDGES_PER_NODE * task.layout.n_nodes
    ratio = per_lam / gradient
    result.add(at_most(f"{name}: dearest lam / full gradient", ratio[sparse].max(), LIMIT))
    result.add(
        shown(
            f"{name}: median lam / full gradient",
            f"{np.median(ratio[sparse]):.3g} x over {sparse.sum()} of {len(path)} lams "
            f"(gradient {1e3 * np.median(gradient):.3g} ms, path {per_lam.sum():.3g} s, "
            f"{path.n_edges[-1]} edges at the end)",
        )
    )
    alone = [run.path.pass_seconds + run.path.curvature_seconds for run in runs]
    rows_only = (np.min(alone, axis=0) / gradient)[sparse]
    models = (np.min([run.model_seconds for run in runs], axis=0) / gradient)[sparse]
    result.add(
        shown(
            f"{name}: passes and curvature alone / full gradient",
            f"{rows_only.max():.3g} x for the dearest lam, {np.median(rows_only):.3g} x median "
            f"({np.median(path.passes[sparse]):.3g} passes, "
            f"{np.median(path.curvature_passes[sparse]):.2g} for curvature)",
        )
    )
    result.add(
        shown(
            f"{name}: these and quadratic models / full gradient",
            f"{(rows_only + models).max():.3g} x for the dearest lam, "
            f"{np.median(rows_only + models):.3g} x median",
        )
    )
    exact = product.solve(task, lams, solver=ProximalNewton(hessian="exact")).path
    of_rows = (exact.pass_seconds + exact.curvature_seconds) / gradient
    result.add(
        shown(
            f"{name}: with curvature from all rows in every step",
            f"{np.median(exact.passes[sparse]):.3g} passes a lam, passes and curvature alone "
            f"{np.median(of_rows[sparse]):.3g} x median",
        )
    )
    result.add(certified(name, worst_kkt(task, path, 5), TOL))
    result.figures[name] = {
        "seconds per lam": per_lam.tolist(),
        "gradient seconds": gradient.tolist(),
        "edges": path.n_edges.tolist(),
        "passes": path.passes.tolist(),
        "pass seconds": min(run.pass_seconds for run in runs),
        "curvature seconds": min(run.curvature_seconds for run in runs),
        "model seconds": min(float(run.model_seconds.sum()) for run in runs),
    }


def _gradient_seconds(task: Task, theta: product.Floats) -> float:
    """One full gradient at a solution, as the certificate takes it."""
    with single_threaded_blas():
        return min(seconds_of(lambda: task.smooth.evaluate(theta)) for _ in range(3))


@dataclass(frozen=True)
class PathMemory:
    """What a path allocates, and the size of what it must not allocate."""

    traced: int
    resident: int
    n_theta: int
    most_active: int
    """Parameters of the densest solution, node terms included."""


def path_memory(context: Context, shape: Shape | None) -> PathMemory:
    """For a process of its own."""
    product.warm_up()
    task = product.task_of(_design(context, shape))
    lams = product.grid(task, context.pick(N_LAMS), RATIO)
    resident = extra_resident(lambda: product.solve(task, lams))
    solved, peak = traced(lambda: product.solve(task, lams))
    active = max(len(point.values) + len(point.node_terms) for point in solved.path.points)
    return PathMemory(peak, resident, task.layout.n_theta, active)


def _memory(result: Result, context: Context, name: str, shape: Shape | None) -> None:
    found = in_fresh_process(path_memory, context, shape)
    square = 8.0 * found.n_theta**2
    result.add(
        holds(
            f"{name}: memory of the path, far below (parameters)^2",
            f"< {0.1 * square / MB:,.0f} MB",
            found.traced < 0.1 * square,
            f"{found.traced / MB:.3g} MB allocated, {found.resident / MB:.3g} MB resident "
            f"({found.n_theta:,} parameters, at most {found.most_active:,} active)",
        )
    )
    result.figures[name]["memory"] = vars(found)

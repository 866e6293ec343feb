"""Growth with the number of columns, for dense and for sparse graphs, and with that of edges."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.memory import MB, in_fresh_process, traced
from benchmarks.report import Result, certified, grows, shown
from benchmarks.simulate import Shape
from benchmarks.timing import exponent, interleaved, one_blas_thread, seconds_of
from mixedgm.solve.proximal_gradient import ProximalGradient
from mixedgm.solve.working_set import Start, solve

DENSE_PASS = {
    "full": [20, 40, 80, 160, 320, 640],
    "quick": [20, 40, 80, 160],
    "smoke": [6, 10],
}
DENSE_PATH = {
    "full": [10, 20, 40, 80, 160],
    "quick": [10, 20, 40],
    "smoke": [6, 8],
}
BEYOND = {"full": 320, "quick": 80, "smoke": 6}
SPARSE = {
    "full": [100, 200, 400, 800],
    "quick": [50, 100, 200],
    "smoke": [8, 12],
}
EDGES = {"full": 200, "quick": 100, "smoke": 12}
"""Numbers of columns; half of them are continuous, half have three levels."""
N_ROWS = {"full": 2_000, "quick": 1_000, "smoke": 200}
N_LAMS = {"full": 10, "quick": 10, "smoke": 3}
REPEATS = {"full": 5, "quick": 3, "smoke": 1}
FIRST_ORDER_STEPS = 300


def dense(result: Result, context: Context) -> None:
    """A pass where every edge is active; a path down to a nearly complete graph."""
    n_rows, times = context.pick(N_ROWS), {}
    for nodes in context.pick(DENSE_PASS):
        task = product.task_of(data.simulated(_shape(nodes, n_rows)))
        theta = product.dense_theta(task)
        with one_blas_thread():
            pass_ = {"pass": lambda task=task, theta=theta: task.smooth.evaluate(theta)}
            times[task.layout.n_columns] = interleaved(pass_, context.pick(REPEATS))["pass"].best
    result.figures["dense pass"] = {"d": list(times), "seconds": list(times.values())}
    larger = _upper(list(times))
    power = exponent(np.array(larger, float), np.array([times[d] for d in larger]))
    result.add(grows("dense: seconds of a pass ~ d", power, 2, 0.1))
    found = [
        in_fresh_process(solve_simulated, _shape(nodes, n_rows), 6.0, context.pick(N_LAMS), 0.01)
        for nodes in context.pick(DENSE_PATH)
    ]
    _report(result, "dense", found)
    _beyond(result, _shape(context.pick(BEYOND), n_rows), context.pick(N_LAMS))


def _beyond(result: Result, shape: Shape, n_lams: int) -> None:
    """Where curvature, which is cubic in d, is most of the time; and a solver that needs none."""
    one = in_fresh_process(solve_twice, shape, 6.0, n_lams, 0.01)
    result.figures["dense, beyond"] = asdict(one)
    name = f"dense, d = {one.d}, beyond the fit"
    text = f"{one.seconds:.3g} s, {one.edges:,} edges at the end, the last lam {one.last:.3g} s"
    result.add(shown(f"{name}: path", text))
    result.add(certified(name, one.kkt, TOL))
    text = f"{one.first_order:.3g} s for {one.steps} steps: KKT {one.first_order_kkt:.1e}"
    result.add(shown(f"{name}: last lam without curvature", text))


def sparse(result: Result, context: Context) -> None:
    """Wide tables with about three edges per column."""
    found = [
        in_fresh_process(
            solve_simulated, _shape(nodes, context.pick(N_ROWS)), 3.0, context.pick(N_LAMS), 0.3
        )
        for nodes in context.pick(SPARSE)
    ]
    _report(result, "sparse", found)


def edges(result: Result, context: Context) -> None:
    """One table, along its path: what a lam costs beyond its full gradient."""
    shape = _shape(context.pick(EDGES), context.pick(N_ROWS))
    task = product.task_of(data.simulated(shape, degree=8.0))
    lams = product.grid(task, 30, 0.1)
    runs = [product.solve(task, lams) for _ in range(context.pick(REPEATS))]
    path = runs[0].path
    seconds = np.min([run.per_lam for run in runs], axis=0)
    with one_blas_thread():
        gradient = min(
            seconds_of(lambda: task.smooth.evaluate(path.theta(len(path) // 2))) for _ in range(3)
        )
    result.figures["edges"] = {
        "edges": path.n_edges.tolist(),
        "seconds": seconds.tolist(),
        "gradient seconds": gradient,
    }
    result.add(certified(f"{shape}, 30 lams", worst_kkt(task, path, 5), TOL))
    beyond = seconds - gradient
    used = (path.n_edges >= shape.n_nodes // 2) & (beyond > 0.0)
    if used.sum() > 2:
        power = exponent(path.n_edges[used].astype(float), beyond[used])
        result.add(grows("sparse: seconds of a lam beyond its gradient ~ edges", power, 1, 0.3))


@dataclass(frozen=True)
class Found:
    """One path in a process of its own."""

    d: int
    edges: int
    seconds: float
    gradient: float
    """Seconds of one full gradient at the last solution."""
    memory: int
    """Most bytes that Python and NumPy had allocated for the path."""
    kkt: float


def solve_simulated(shape: Shape, degree: float, n_lams: int, ratio: float) -> Found:
    """Simulate, solve for the memory, solve thrice for the time; for a process of its own."""
    product.warm_up()
    task = product.task_of(data.simulated(shape, degree=degree))
    lams = product.grid(task, n_lams, ratio)
    _, memory = traced(lambda: product.solve(task, lams))
    solved = min((product.solve(task, lams) for _ in range(3)), key=lambda run: run.seconds)
    path = solved.path
    with one_blas_thread():
        last = path.theta(len(path) - 1)
        gradient = min(seconds_of(lambda: task.smooth.evaluate(last)) for _ in range(3))
    return Found(
        task.layout.n_columns,
        int(path.n_edges[-1]),
        solved.seconds,
        gradient,
        memory,
        worst_kkt(task, path, 3),
    )


@dataclass(frozen=True)
class Twice:
    """One path, and its last lam once more by accelerated proximal gradient."""

    d: int
    edges: int
    seconds: float
    last: float
    """Seconds of the last lam."""
    kkt: float
    steps: int
    first_order: float
    first_order_kkt: float


def solve_twice(shape: Shape, degree: float, n_lams: int, ratio: float) -> Twice:
    """Simulate, solve; then some steps of the other solver; for a process of its own."""
    product.warm_up()
    task = product.task_of(data.simulated(shape, degree=degree))
    lams = product.grid(task, n_lams, ratio)
    solved = product.solve(task, lams)
    before = solved.path.theta(n_lams - 2)
    start = Start(before, task.smooth.evaluate(before), float(lams[-2]))
    clock = time.perf_counter()
    other = solve(
        task.problem(float(lams[-1])),
        ProximalGradient("nesterov-1983"),
        start,
        tol=TOL,
        max_iter=FIRST_ORDER_STEPS,
    )
    seconds = time.perf_counter() - clock
    return Twice(
        task.layout.n_columns,
        int(solved.path.n_edges[-1]),
        solved.seconds,
        float(solved.per_lam[-1]),
        worst_kkt(task, solved.path, 3),
        other.n_iter,
        seconds,
        other.kkt,
    )


def _report(result: Result, kind: str, found: list[Found]) -> None:
    result.figures[f"{kind} path"] = [asdict(one) for one in found]
    for one in found:
        text = f"{one.seconds:.3g} s, {one.memory / MB:.0f} MB, {one.edges:,} edges at the end"
        result.add(shown(f"{kind}, d = {one.d}: path", text))
    result.add(certified(f"{kind} paths", max(one.kkt for one in found), TOL))
    larger = found[-len(_upper([one.d for one in found])) :]
    for what in ("seconds", "memory"):
        # As for a pass: at small sizes fixed costs hide the growth.
        name = f"{kind}: {what} of a path ~ larger d"
        result.add(grows(name, _power(larger, what), 2, 0.1))
    result.add(
        shown(f"{kind}: seconds of a path ~ d, all sizes", f"{_power(found, 'seconds'):.2f}")
    )


def _power(found: list[Found], of: str) -> float:
    d = np.array([one.d for one in found], dtype=float)
    return exponent(d, np.array([getattr(one, of) for one in found], dtype=float))


def _upper(sizes: list[int]) -> list[int]:
    """The larger sizes, where fixed costs do not hide the growth."""
    return sizes[-max(2, 2 * len(sizes) // 3) :]


def _shape(nodes: int, n_rows: int) -> Shape:
    return Shape(nodes // 2, (3,) * (nodes - nodes // 2), n_rows)

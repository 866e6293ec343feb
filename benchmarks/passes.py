"""Part "pass": value + gradient over all rows against the two matrix products in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from benchmarks import certificate, data, product
from benchmarks.context import THREADS, Context
from benchmarks.matrix_products import MatrixProducts
from benchmarks.memory import MB, extra_resident, in_fresh_process
from benchmarks.report import Result, at_least, at_most, holds, shown
from benchmarks.simulate import Shape
from benchmarks.timing import Times, interleaved, one_blas_thread
from mixedgm.fit.certificate import Claim, Standardised, kkt
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.path.task import Task
from mixedgm.rows.contract import Coefficients
from mixedgm.table.encode import Design

BLOCKS = (64, 256, 512)
"""Rows per block of the baseline: the package's own blocks are not outside of this range."""
SURVEY = Shape(2, data.SURVEY_LEVELS, 100_000)
SHAPES = {
    "full": [
        SURVEY,
        Shape(50, (4,) * 50, 20_000),
        Shape(100, (5,) * 100, 5_000),
        Shape(200, (3,) * 200, 5_000),
        data.SETS["d"],
    ],
    "quick": [
        replace(SURVEY, n_rows=20_000),
        Shape(50, (4,) * 50, 4_000),
        replace(data.SETS["d"], n_rows=1_000),
    ],
    "smoke": [replace(SURVEY, n_rows=300), replace(data.SETS["d"], n_rows=300)],
}
_LAM = 0.1
REPEATS = {"full": 30, "quick": 7, "smoke": 1}
DESIGN_BYTES = {"full": 200 * MB, "quick": 200 * MB, "smoke": 0.1 * MB}
"""Size of n x d where memory is measured: far beyond what is summed up per share of the rows."""


def run(context: Context) -> Result:
    result = Result("pass")
    for shape in context.pick(SHAPES):
        with one_blas_thread():
            _against_products(result, shape, context.pick(REPEATS))
            _same_for_all_threads(result, shape)
        _memory(result, shape, context.pick(DESIGN_BYTES))
    return result


def _against_products(result: Result, shape: Shape, repeats: int) -> None:
    task = _task(shape)
    theta = product.dense_theta(task)
    smooth, coef = _full(task), _coefficients(task, theta)
    products = _products(task, theta)
    candidates: dict[str, Callable[[], object]] = {}
    for threads in (1, THREADS):
        own = _with_threads(smooth, threads)
        rows = own.rows
        candidates[f"evaluate, {threads}"] = lambda own=own: own.evaluate(theta)  # type: ignore[misc]
        candidates[f"softmax, {threads}"] = lambda rows=rows: rows.softmax(coef, "all")  # type: ignore[misc]
        for block in BLOCKS:
            for made in (False, True):
                name = f"products, {threads}, Z {'made' if made else 'there'}, blocks of {block}"
                candidates[name] = lambda t=threads, b=block, m=made: products.run(b, t, made=m)  # type: ignore[misc]
    own_number = _returned(shape, task, theta)
    candidates["certificate"] = own_number
    gap = abs(own_number() / task.problem(_LAM).optimality(theta).kkt - 1.0)
    what = f"{_name(shape)}: certificate of a returned model against the solvers' own"
    result.add(holds(what, "<= 1e-10", gap <= 1e-10, f"{gap:.1e}"))
    times = interleaved(candidates, repeats)
    result.figures[_name(shape)] = {name: found.to_dict() for name, found in times.items()}
    _ratio_rows(result, shape, times)


def _ratio_rows(result: Result, shape: Shape, times: dict[str, Times]) -> None:
    def fastest(threads: int) -> float:
        return min(t.best for name, t in times.items() if name.startswith(f"products, {threads}"))

    name, limit = _name(shape), 1.3 if shape.n_columns >= 250 else 2.0
    if shape.scored:
        limit = 1.5
    passing = {threads: times[f"evaluate, {threads}"].best for threads in (1, THREADS)}
    floor = fastest(THREADS)
    result.add(at_most(f"{name}: pass / its two products", passing[THREADS] / floor, limit))
    certified = times["certificate"].best / passing[1]
    result.add(
        at_most(f"{name}: certificate of a returned model / pass, one thread", certified, 5.0)
    )
    kernel = times[f"softmax, {THREADS}"].best
    result.add(
        shown(
            f"{name}: one pass, two threads",
            f"{1e3 * passing[THREADS]:.3g} ms (rows alone {1e3 * kernel:.3g} ms, "
            f"products {1e3 * floor:.3g} ms, one-thread ratio {passing[1] / fastest(1):.3g} x)",
        )
    )
    result.add(at_least(f"{name}: two threads / one", passing[1] / passing[THREADS], 1.7))
    result.add(shown(f"{name}: products, two threads / one", f"{fastest(1) / floor:.3g} x"))
    noise = max(found.median / found.best for found in times.values())
    result.add(shown(f"{name}: noise, largest median / best", f"{noise:.3g} x"))


def _same_for_all_threads(result: Result, shape: Shape) -> None:
    task = _task(shape)
    theta = product.dense_theta(task)
    found = [_with_threads(_full(task), k).evaluate(theta) for k in (1, 2, 3)]
    same = all(
        other.value == found[0].value and np.array_equal(other.gradient, found[0].gradient)
        for other in found[1:]
    )
    result.add(holds(f"{_name(shape)}: 1, 2, 3 threads give one result", "to the bit", same))
    gap = float(np.abs(found[0].gradient - certificate.gradient(task, theta)).max())
    what = f"{_name(shape)}: gradient against whole matrices"
    result.add(holds(what, "<= 1e-12", gap <= 1e-12, f"{gap:.1e}"))


def _memory(result: Result, shape: Shape, size: float) -> None:
    """Twice the rows must not take more memory during a pass."""
    n_rows = int(size / (8 * shape.n_columns))
    extra = [in_fresh_process(pass_memory, replace(shape, n_rows=k * n_rows)) for k in (1, 2)]
    result.add(
        holds(
            f"d = {shape.n_columns}: no n x d temporary, so a pass over n more rows takes",
            f"< {0.05 * size / MB:.3g} MB",
            extra[1] - extra[0] < 0.05 * size,
            f"{(extra[1] - extra[0]) / MB:.3g} MB more (n x d: {size / MB:.3g} MB; "
            f"a pass: {extra[0] / MB:.3g} MB)",
        )
    )
    result.figures[_name(shape)]["extra bytes at n, 2n"] = [n_rows, *extra]


def pass_memory(shape: Shape) -> int:
    """Bytes that a pass holds beyond the rows themselves; for a process of its own."""
    product.warm_up()
    task = _task(shape)
    theta = product.dense_theta(task)
    smooth = _full(task)
    # What is computed once per layout does not belong to a pass.
    for kept in (task.layout.edge_position, task.layout.incidence):
        del kept
    with one_blas_thread():
        return extra_resident(lambda: smooth.evaluate(theta))


def _name(shape: Shape) -> str:
    table = "set d" if shape.scored else f"d = {shape.n_columns}"
    return f"{table} ({shape.n_rows:,} rows)"


def _task(shape: Shape) -> Task:
    return product.task_of(_design(shape))


def _design(shape: Shape) -> Design:
    if shape.scored:
        return data.simulated(shape)
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(shape.n_rows, shape.n_gaussian))
    codes = np.column_stack(
        [rng.integers(0, m, size=shape.n_rows, dtype=np.uint8) for m in shape.n_levels]
    )
    return data.encoded(numbers, codes, shape.n_levels)


def _returned(shape: Shape, task: Task, theta: product.Floats) -> Callable[[], float]:
    """What a fit computes once, for the model that it returns."""
    design, problem = _design(shape), task.problem(_LAM)
    rows = Standardised(task.units.centre, task.units.scale, task.observed)
    claim = Claim(task.layout, theta, _LAM * problem.penalty.weights, task.yardstick)
    return lambda: kkt(design, rows, claim)


def _full(task: Task) -> Pseudolikelihood:
    return cast(Pseudolikelihood, task.smooth)


def _with_threads(smooth: Pseudolikelihood, n_threads: int) -> Pseudolikelihood:
    rows = replace(cast(Any, smooth.rows), n_threads=n_threads)
    return replace(smooth, rows=rows)


def _coefficients(task: Task, theta: product.Floats) -> Coefficients:
    layout, incidence = task.layout, task.layout.incidence
    values, bias = theta[incidence.theta_index], layout.nodes.own_logits(theta[layout.biases])
    return Coefficients(incidence, values, bias, layout.softmax_targets)


def _products(task: Task, theta: product.Floats) -> MatrixProducts:
    rows: Any = _full(task).rows
    nodes = rows.nodes
    coef = np.ascontiguousarray(task.layout.to_matrix(theta)[:, nodes.n_gaussian :])
    codes = np.ascontiguousarray(rows.codes[:, nodes.n_scored :])  # scores are among the numbers
    return MatrixProducts(rows.numbers, codes, nodes.n_levels[nodes.n_scored :], coef)

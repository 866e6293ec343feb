"""One thread against more of them on a table with more pairs of columns than rows.

`python -m benchmarks.cores` measures one thread against all cores of the machine, and prints a
table; `--threads 1,2,4,16` names others.  Its last column is how much faster the matrix products of
a pass are, alone.  Part "scale" has the rows of two cores.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from benchmarks import data, product
from benchmarks.context import THREADS, Context
from benchmarks.report import Result, at_least, holds, shown
from benchmarks.simulate import Shape
from benchmarks.timing import interleaved, one_blas_thread
from mixedgm.base.parallel import n_cores
from mixedgm.rows.by_column import RowsByColumn
from mixedgm.table.encode import Design

SHAPES = {
    "full": Shape(500, (3,) * 500, 2_000),
    "quick": Shape(200, (3,) * 200, 2_000),
    "smoke": Shape(6, (3,) * 6, 200),
}
N_LAMS, RATIO = 20, 0.1
REPEATS = {"full": 3, "quick": 2, "smoke": 1}


@dataclass(frozen=True)
class Found:
    """The fastest of some repeats, from the encoded table to the last solution."""

    seconds: float
    prepare: float
    """Seconds of moments, layout and the gradient without edges."""
    passes: float
    curvature: float
    models: float
    """Seconds of minimising quadratic models."""
    objective: float
    """Sum over the path: the same to the bit for all numbers of threads."""

    @property
    def others(self) -> float:
        """Seconds of everything else."""
        return self.seconds - self.prepare - self.passes - self.curvature - self.models

    def at_most(self, products: float) -> float:
        """Of one thread: how much faster a path can be where products are so much faster."""
        return self.seconds / (self.models + (self.seconds - self.models) / products)


def measured(design: Design, threads: list[int], repeats: int) -> dict[int, Found]:
    """Solve a path with each number of threads in turn."""
    found: dict[int, Found] = {}
    for _ in range(repeats):
        for count in threads:
            one = _once(design, count)
            if count not in found or one.seconds < found[count].seconds:
                found[count] = one
    return found


def _once(design: Design, n_threads: int) -> Found:
    clock = time.perf_counter()
    task = product.task_of(design, n_threads)
    lams = product.grid(task, N_LAMS, RATIO)
    prepare = time.perf_counter() - clock
    solved = product.solve(task, lams)
    return Found(
        time.perf_counter() - clock,
        prepare,
        solved.pass_seconds,
        solved.curvature_seconds,
        float(solved.model_seconds.sum()),
        float(solved.path.objective.sum()),
    )


def products_alone(design: Design, threads: list[int], repeats: int) -> dict[int, float]:
    """Seconds of the matrix products of one pass with each number of threads: what can be had."""
    turned = RowsByColumn.of(design.numbers, design.codes, design.schema.spans)
    expected = np.random.default_rng(0).random((turned.kept.n_targets, design.n_rows))
    with one_blas_thread():
        times = interleaved(
            {str(k): partial(turned.products, expected, 1.0, k) for k in threads}, 5 * repeats
        )
    return {count: times[str(count)].best for count in threads}


def rows(result: Result, context: Context) -> None:
    """Two cores against one."""
    shape = context.pick(SHAPES)
    found = measured(data.simulated(shape), [1, THREADS], context.pick(REPEATS))
    result.figures["cores"] = {str(count): asdict(one) for count, one in found.items()}
    name, one, two = f"{shape}, {N_LAMS} lams", found[1], found[THREADS]
    result.add(at_least(f"{name}: two cores / one", one.seconds / two.seconds, 1.8))
    result.add(
        shown(f"{name}: path, two cores", f"{two.seconds:.3g} s ({one.seconds:.3g} s on one)")
    )
    same = one.objective == two.objective
    result.add(holds(f"{name}: one and two threads give one result", "to the bit", same))


def main() -> None:
    """Print one line per number of threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("--threads", default=f"1,{n_cores()}", metavar="N,...")
    parser.add_argument("--size", choices=list(SHAPES), default="full")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    threads = [int(count) for count in options.threads.split(",")]
    product.warm_up()
    shape = SHAPES[options.size]
    design = data.simulated(shape)
    found = measured(design, threads, options.repeats)
    products = products_alone(design, threads, options.repeats)
    first = found[threads[0]]
    print(f"{shape}, {N_LAMS} lams to lam_max * {RATIO}; {n_cores()} cores")
    heads = ["threads", "seconds", "x", "prepare", "passes", "curvature", "models", "others"]
    print(f"| {' | '.join([*heads, 'same bits', 'products', 'at most'])} |")
    print(f"|{' ---: |' * len(heads)} --- | ---: | ---: |")
    for count, one in found.items():
        parts = (one.prepare, one.passes, one.curvature, one.models, one.others)
        cells = " | ".join(f"{part:.3f}" for part in parts)
        same = "same" if one.objective == first.objective else "OTHERS"
        ratio = first.seconds / one.seconds
        alone = products[threads[0]] / products[count]
        limits = f"{alone:.2f} x | {first.at_most(alone):.2f} x"
        print(f"| {count} | {one.seconds:.3f} | {ratio:.2f} | {cells} | {same} | {limits} |")


if __name__ == "__main__":
    main()

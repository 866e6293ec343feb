"""Command line -> where the time of single values of lam goes: python -m benchmarks.profiling.

Solves the path of a simulated set as part "wide" does, then profiles the named values (by their
number, from 0) again, each from the solution before it.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from pathlib import Path

import numpy as np

from benchmarks import data, product
from benchmarks.context import TOL, Context
from mixedgm.base.threads import single_threaded_blas
from mixedgm.solve.choose import solver_for
from mixedgm.solve.working_set import Start, screened, solve

REPEATS = 10


def main() -> None:
    """Print the working sets and the profile."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiling")
    parser.add_argument("--set", default="b", choices=("a", "b", "c10k"))
    parser.add_argument("--lams", type=int, nargs="+", default=[18, 19])
    parser.add_argument("--shared", type=Path, default=None)
    args = parser.parse_args()
    context = Context("full", args.shared, None, Path())
    product.warm_up()
    task = product.task_of(data.simulated_set(context, args.set)[0])
    lams, solver = product.grid(task, 20, 0.1), solver_for("auto")
    start, starts = Start(task.null.theta, task.null.evaluation, task.lam_max), []
    with single_threaded_blas():
        for lam in lams:
            starts.append(start)
            found = solve(task.problem(float(lam)), solver, start, tol=TOL, max_iter=1000)
            start = Start(found.theta, found.evaluation, float(lam), found.memory)
        profile = cProfile.Profile()
        profile.enable()
        for k in args.lams * REPEATS:
            solve(task.problem(float(lams[k])), solver, starts[k], tol=TOL, max_iter=1000)
        profile.disable()
    for k in args.lams:
        groups = screened(task.problem(float(lams[k])), starts[k])
        before = np.count_nonzero(task.layout.group_norms(starts[k].theta))
        print(f"lam {k}: {len(groups)} groups in the working set, {before} active before")  # noqa: T201
    print(f"seconds of {REPEATS} x {len(args.lams)} solves:")  # noqa: T201
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()

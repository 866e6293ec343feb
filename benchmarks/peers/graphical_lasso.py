"""An all-continuous table: the path of mixedgm beside scikit-learn's GraphicalLasso."""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.report import Result, certified, shown
from benchmarks.simulate import Shape

SHAPES = {
    "full": Shape(100, (), 2_000),
    "quick": Shape(50, (), 1_000),
    "smoke": Shape(6, (), 200),
}
N_LAMS = 20
RATIO = 0.1


def compare(result: Result, context: Context) -> None:
    """For orientation: the likelihood is another objective, at half the lam."""
    shape = context.pick(SHAPES)
    design = data.simulated(shape)
    task = product.task_of(design)
    lams = product.grid(task, N_LAMS, RATIO)
    clock = time.perf_counter()
    solved = product.solve(product.task_of(design), lams)
    own = time.perf_counter() - clock
    theirs, failed = _graphical_lasso(design.numbers, lams / 2.0)
    text = f"mixedgm {own:.3g} s, GraphicalLasso {theirs:.3g} s"
    if failed:
        text += f" ({failed} of {len(lams)} values did not converge)"
    name = f"{shape.n_gaussian} continuous columns, {shape.n_rows:,} rows, {len(lams)} lams"
    result.add(shown(name, text))
    result.add(certified(name, worst_kkt(task, solved.path, len(lams)), TOL))
    result.figures[name] = {"mixedgm seconds": own, "GraphicalLasso seconds": theirs}


def _graphical_lasso(X: product.Floats, alphas: product.Floats) -> tuple[float, int]:
    """Seconds, and for how many alphas it gave up."""
    from sklearn.covariance import graphical_lasso
    from sklearn.exceptions import ConvergenceWarning

    covariance, failed = np.corrcoef(X, rowvar=False), 0
    clock = time.perf_counter()
    for alpha in alphas:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                graphical_lasso(covariance, alpha)
            except (ConvergenceWarning, FloatingPointError):
                failed += 1
    return time.perf_counter() - clock, failed

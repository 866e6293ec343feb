"""Part "path": passes per lam on the survey, and the time of everything that is not a pass."""

from __future__ import annotations

import time

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.report import Result, at_most, certified, shown

SIZES: dict[str, dict[int, float | None]] = {
    "full": {10_000: 3.0, 90_000: 1.0, 1_000: None},
    "quick": {10_000: 3.0, 1_000: None},
    "smoke": {400: None},
}
"""Rows -> the goal for (everything else) / (passes)."""
REPEATS = {"full": 3, "quick": 1, "smoke": 1}


def run(context: Context) -> Result:
    result = Result("path")
    result.figures["table"] = data.survey_note(context)
    lams = data.PAPER_GRID[:: 1 if context.size != "smoke" else 10]
    result.add(shown("table, grid", f"{data.survey_note(context)}; {len(lams)} lams, 0.7 to 5e-5"))
    for n_rows, limit in context.pick(SIZES).items():
        design = data.survey(context, n_rows)
        clock = time.perf_counter()
        task = product.task_of(design)
        setup = time.perf_counter() - clock
        runs = [product.solve(task, lams) for _ in range(context.pick(REPEATS))]
        best = min(runs, key=lambda run: run.seconds)
        name = f"{n_rows:,} rows"
        result.add(at_most(f"{name}: passes per lam", best.passes_per_lam, 6.0, "passes"))
        ratio = best.other_seconds / best.pass_seconds
        if limit is None:
            result.add(shown(f"{name}: everything else / passes", f"{ratio:.3g} x"))
        else:
            result.add(at_most(f"{name}: everything else / passes", ratio, limit))
        result.add(shown(f"{name}: seconds", _where(best)))
        result.add(certified(name, worst_kkt(task, best.path, 50 if n_rows < 20_000 else 10), TOL))
        result.figures[name] = _figures(best) | {"setup seconds": setup}
    return result


def _where(solved: product.Solved) -> str:
    rest = solved.other_seconds - solved.curvature_seconds
    return (
        f"{solved.seconds:.3g} s: passes {solved.pass_seconds:.3g}, "
        f"curvature {solved.curvature_seconds:.3g}, other {rest:.3g}"
    )


def _figures(solved: product.Solved) -> dict[str, object]:
    path = solved.path
    return {
        "seconds": solved.seconds,
        "pass seconds": solved.pass_seconds,
        "curvature seconds": solved.curvature_seconds,
        "passes per lam": solved.passes_per_lam,
        "curvature passes per lam": float(path.curvature_passes.mean()),
        "edges at the end": int(path.n_edges[-1]),
        "per lam": {
            "seconds": [round(float(x), 5) for x in solved.per_lam],
            "passes": path.passes.tolist(),
            "edges": path.n_edges.tolist(),
        },
    }

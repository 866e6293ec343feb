"""Part "peers": the same paths by other solvers, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data, product
from benchmarks.certificate import worst_kkt
from benchmarks.context import TOL, Context
from benchmarks.peers import external, graphical_lasso, yardstick
from benchmarks.report import Result, Row, at_least, at_most, certified, shown
from mixedgm.path.task import Task
from mixedgm.table.encode import Design

SETS = {"a": (0.05, 15.0), "b": (0.1, 30.0), "c10k": (0.01, 30.0)}
"""Set -> smallest lam as a share of lam_max, and the goal against the yardstick."""
CHOSEN = {"full": ["a", "b", "c10k"], "quick": ["a"], "smoke": ["a"]}
N_LAMS = {"full": 20, "quick": 20, "smoke": 3}
REPEATS = {"full": 5, "quick": 3, "smoke": 1}
NODEWISE: dict[str, Callable[[external.Table], dict[str, Any]]] = {
    "adelie": external.adelie,
    "glmnet": external.glmnet,
}


def run(context: Context) -> Result:
    result = Result("peers")
    for name in context.pick(CHOSEN):
        _set(result, context, name)
    graphical_lasso.compare(result, context)
    return result


def _set(result: Result, context: Context, name: str) -> None:
    design, note = data.simulated_set(context, name)
    ratio, _ = SETS[name]
    lams = product.grid(product.task_of(design), context.pick(N_LAMS), ratio)
    own: list[tuple[float, Task, product.Solved]] = []

    def ours() -> None:
        for _ in range(context.pick(REPEATS)):
            clock = time.perf_counter()
            task = product.task_of(design)
            solved = product.solve(task, lams)
            own.append((time.perf_counter() - clock, task, solved))

    ours()
    walked = _walk(result, context, name, design, lams)
    ours()
    taken = [found[0] for found in own]
    seconds, fastest = float(np.median(taken)), min(taken)
    _, task, solved = own[0]
    figures: dict[str, Any] = {"table": note, "mixedgm seconds": taken}
    result.figures[name] = figures
    result.add(shown(f"{note}: mixedgm, {len(lams)} lams", f"{seconds:.3g} s"))
    result.add(certified(f"{note}: mixedgm", worst_kkt(task, solved.path, 20), TOL))
    if walked is not None:
        _against_yardstick(result, name, note, seconds, walked, _standardised(task, solved))
        figures["yardstick seconds"] = walked.seconds
    if context.size == "smoke":
        return
    table = external.Table.of(task, lams)
    for peer, solve in NODEWISE.items():
        try:
            found = solve(table)
        except external.UnavailableError as reason:
            result.add(Row(f"{note}: nodewise {peer}", "not slower", f"skipped: {reason}"))
            continue
        figures[peer] = found
        # Both cores for the peer, too, where that helps it; fastest repeats on both sides.
        theirs = min(found["one process"], found["two processes"])
        result.add(
            at_most(f"{note}: mixedgm / nodewise {peer} {found['version']}", fastest / theirs, 1.0)
        )
        result.add(
            shown(
                f"{note}: nodewise {peer}",
                f"{found['one process']:.3g} s, on two processes {found['two processes']:.3g} s; "
                f"its worst KKT {found['kkt']:.1e}",
            )
        )
        if "default" in found:
            default = found["default"]
            result.add(
                shown(
                    f"{note}: nodewise {peer} at its default accuracy",
                    f"{default['seconds']:.3g} s, worst KKT {default['kkt']:.1e}; mixedgm takes "
                    f"{fastest / default['seconds']:.3g} x that",
                )
            )


def _walk(
    result: Result, context: Context, name: str, design: Design, lams: product.Floats
) -> yardstick.Walked | None:
    if context.yardstick is None:
        goal = f">= {SETS[name][1]:.0f} x"
        result.add(Row(f"set {name}: yardstick / mixedgm", goal, "skipped: no --yardstick FILE"))
        return None
    return yardstick.walk(yardstick.load(context.yardstick), design, lams, TOL)


def _standardised(task: Task, solved: product.Solved) -> product.Floats:
    """Objectives in the units that the yardstick uses."""
    return solved.path.objective - task.log_jacobian


def _against_yardstick(
    result: Result,
    name: str,
    note: str,
    seconds: float,
    walked: yardstick.Walked,
    objective: product.Floats,
) -> None:
    result.add(at_least(f"{note}: yardstick / mixedgm", walked.seconds / seconds, SETS[name][1]))
    result.add(shown(f"{note}: yardstick", f"{walked.seconds:.3g} s, worst KKT {walked.kkt:.1e}"))
    gap = float(np.abs(objective - walked.objective).max())
    result.add(
        Row(f"{note}: largest difference of objectives", "<= 1e-06", f"{gap:.1e}", gap <= 1e-6)
    )

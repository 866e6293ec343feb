"""Rows of part "scale": what can be asked of a model of 1,000 columns, and its file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import data, product
from benchmarks.context import THREADS, Context
from benchmarks.memory import MB, in_fresh_process
from benchmarks.report import Result, at_most, shown
from benchmarks.simulate import Shape
from benchmarks.timing import seconds_of
from mixedgm.base.parallel import Runtime
from mixedgm.fit.fitting import fit_design
from mixedgm.fit.options import Options
from mixedgm.results.summary import summarise
from mixedgm.results.tables import edges_columns
from mixedgm.store import load, save

SHAPES = {
    "full": [
        Shape(500, (3,) * 500, 2_000),
        Shape(1_000, (), 2_000),
        Shape(1_000, (3,) * 1_000, 500),
    ],
    "quick": [Shape(500, (3,) * 500, 500)],
    "smoke": [Shape(6, (3,) * 6, 200)],
}
REPEATS = 5
SECONDS = 0.3
LAMS = (0.5, 0.4, 0.3)


def rows(result: Result, context: Context) -> None:
    """Seconds of edges, summary, save and load; goals are those of 1,000 columns."""
    for shape in context.pick(SHAPES):
        found = in_fresh_process(seconds_of_questions, shape)
        result.figures[f"model of {shape}"] = found
        for what in ("edges", "summary", "save", "load"):
            name = f"model of {shape}: {what}"
            if shape.n_nodes <= 1_000:
                result.add(at_most(name, found[what], SECONDS, "s"))
            else:
                result.add(shown(name, f"{found[what]:.3g} s"))
        text = f"{found['bytes'] / MB:.3g} MB, {found['n_edges']:,.0f} edges"
        result.add(shown(f"model of {shape}: file", text))


def seconds_of_questions(shape: Shape) -> dict[str, float]:
    """Fit a short path, and time what a user asks next; for a process of its own."""
    design = data.simulated(shape)
    # A path without the refits by which a criterion would choose from it, which take longest.
    path = product.solve(product.task_of(design), np.array(LAMS)).path
    fitted = fit_design(design, Options(lam=LAMS[-1]), runtime=Runtime(THREADS))
    fitted = replace(fitted, path=path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.mgm"
        questions: dict[str, Callable[[], object]] = {
            # Copies have computed nothing yet.
            "edges": lambda: edges_columns(replace(fitted)),
            "summary": lambda: str(summarise(replace(fitted))),
            "save": lambda: save(replace(fitted), file),
            "load": lambda: load(file),
        }
        found = {
            name: min(seconds_of(ask) for _ in range(REPEATS)) for name, ask in questions.items()
        }
        found["bytes"] = float(file.stat().st_size)
    return found | {"n_edges": float(len(fitted.edges))}

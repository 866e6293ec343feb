"""Part "growth": time and memory against rows, columns and edges, with fitted exponents."""

from __future__ import annotations

from benchmarks import growth_columns, growth_rows, plots
from benchmarks.context import Context
from benchmarks.report import Result


def run(context: Context) -> Result:
    result = Result("growth")
    growth_rows.run(result, context)
    growth_columns.dense(result, context)
    growth_columns.sparse(result, context)
    growth_columns.edges(result, context)
    plots.growth(result.figures, context.out / "growth.png")
    return result

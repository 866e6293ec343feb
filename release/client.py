"""A program of someone else's, which ``mypy --strict`` checks against the installed package."""

from __future__ import annotations

from pathlib import Path

import mixedgm as mg


def strongest(table: str | Path, limit: int) -> list[tuple[str, str, float]]:
    """Return the names and the strength of the strongest edges."""
    model: mg.MixedGraphicalModel = mg.MixedGraphicalModel(select=mg.EBIC(gamma=0.25)).fit(table)
    edges: tuple[mg.Edge, ...] = model.edges_
    return [(edge.source, edge.target, edge.strength) for edge in edges[:limit]]


def share_of_women(model: mg.MixedGraphicalModel) -> float:
    """Ask a fitted model a question."""
    answer: mg.Distribution = model.conditional("sex", {"age": 40})
    return 1.0 if answer.exact else 0.0


def describe(model: mg.MixedGraphicalModel, table: str) -> str:
    """Return what a report would say."""
    tests: mg.EdgeTests = mg.edge_tests(model, table, random_state=0)
    boot: mg.Bootstrap = mg.bootstrap(model, table, n_boot=100, n_jobs=2)
    version: str = mg.__version__
    lines = [version, str(tests.summary()), str(boot.summary()), f"KKT {model.kkt_:.1e}"]
    try:
        schema: mg.Schema = mg.check_table(table).schema
    except mg.TableError as error:
        lines += [str(finding) for finding in error.findings]
    else:
        lines += [column.name for column in schema.columns]
    return "\n".join(lines)

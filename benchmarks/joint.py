"""Part "joint": log Z and all pairwise marginals against peers; rows per second of samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.context import Context
from benchmarks.peers import fields
from benchmarks.peers.external import UnavailableError
from benchmarks.report import Result, Row, at_most, shown
from benchmarks.timing import interleaved, seconds_of
from mixedgm.model.conditional_gaussian import ConditionalGaussian

LEVELS = 3
COLUMNS = {"full": 60, "quick": 30, "smoke": 6}
SIDE = {"full": 6, "quick": 5, "smoke": 2}
REPEATS = {"full": 15, "quick": 5, "smoke": 1}
ROWS = {"full": 1_000_000, "quick": 200_000, "smoke": 1_000}
AGREE = 1e-8


def run(context: Context) -> Result:
    result = Result("joint")
    n, side = context.pick(COLUMNS), context.pick(SIDE)
    graphs = {
        f"chain of {n}": nx.path_graph(n),
        f"tree of {n}": nx.random_labeled_tree(n, seed=1),
        f"grid of {side} x {side}": nx.grid_2d_graph(side, side),
    }
    for name, graph in graphs.items():
        _field(result, f"{name} columns with {LEVELS} levels", graph, context)
    _samplers(result, context.pick(ROWS))
    return result


def _field(result: Result, name: str, graph: nx.Graph[Any], context: Context) -> None:
    from mixedgm.joint.exact import expectations, log_partition

    params, edges = fields.field(graph, LEVELS)
    times = interleaved(
        {
            "log Z": lambda: _afresh(log_partition, params),
            "all pairs": lambda: _afresh(expectations, params),
        },
        context.pick(REPEATS),
    )
    figures: dict[str, Any] = {what: found.to_dict() for what, found in times.items()}
    result.figures[name] = figures
    result.add(at_most(f"{name}: log Z", times["log Z"].best, 0.5, "s"))
    result.add(at_most(f"{name}: all pairs of columns", times["all pairs"].best, 0.5, "s"))
    for peer in fields.PEERS:
        try:
            answer = fields.ask(peer, params, edges)
        except UnavailableError as reason:
            result.add(Row(f"{name}: mixedgm / {peer}", "not slower", f"skipped: {reason}"))
            continue
        figures[peer] = {"version": answer.version, **answer.seconds}
        for what, found in times.items():
            row = f"{name}: {what}, mixedgm / {peer} {answer.version}"
            result.add(at_most(row, found.best / answer.seconds[what], 1.0))
        result.add(_agreement(f"{name}: largest difference to {peer}", params, answer))


def _afresh(
    question: Callable[[ConditionalGaussian], object], params: ConditionalGaussian
) -> object:
    """With the elimination order to be found, too: plans are remembered otherwise."""
    from mixedgm.joint.plan import make_plan

    make_plan.cache_clear()
    return question(params)


def _agreement(what: str, params: ConditionalGaussian, answer: fields.Answer) -> Row:
    """Log Z and all probabilities of pairs."""
    from mixedgm.joint.exact import expectations

    found = expectations(params)
    gap = max(
        abs(found.log_partition - answer.log_z),
        float(np.abs(found.pairs - answer.pairs).max()),
    )
    return Row(what, f"<= {AGREE:g}", f"{gap:.1e}", gap <= AGREE)


def _samplers(result: Result, n_rows: int) -> None:
    """The wage survey: rows as numbers, and as a table with names and levels."""
    import mixedgm as mg
    from mixedgm.joint.sampled import draw

    model = mg.MixedGraphicalModel(lam=0.1).fit(mg.datasets.load_wage())
    rng = np.random.default_rng(0)
    figures = result.figures["rows per second"] = dict[str, float]()
    for method in ("exact", "gibbs"):
        draw(model.params_.joint, 100, rng=rng, method=method)

        def rows(method: Any = method) -> object:
            return draw(model.params_.joint, n_rows, rng=rng, method=method)

        figures[method] = n_rows / min(seconds_of(rows) for _ in range(3))
        name = {"exact": "exact sampler", "gibbs": "Gibbs sampler"}[method]
        result.add(shown(f"wage survey, {name}", f"{figures[method]:.3g} rows per second"))
    model.sample(100, random_state=0)
    seconds = min(seconds_of(lambda: model.sample(n_rows, random_state=0)) for _ in range(3))
    figures["sample()"] = n_rows / seconds
    result.add(at_most(f"wage survey, {n_rows:,} rows as a data frame", seconds, 5.0, "s"))

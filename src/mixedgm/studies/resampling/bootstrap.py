"""A fitted model and its table -> Bootstrap: how far edges and centralities can be trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from mixedgm.base.checkpoint import Outcome, Record, fingerprint
from mixedgm.base.errors import MixedGMError, NotYetError, ParameterError
from mixedgm.base.parallel import (
    RandomState,
    check_checkpoint,
    check_n_jobs,
    check_n_tasks,
    run,
    seeds,
)
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import quoted
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.options import Options, of_estimator, to_plain
from mixedgm.inference.pairs import left_by_predictors
from mixedgm.inference.strength import RestRows
from mixedgm.model.layout import Ints, Layout, pair_numbers
from mixedgm.path.recipe import by_conditionals
from mixedgm.path.rounds import ROUGH, Incomplete, Unpenalised
from mixedgm.results.text import lam_text
from mixedgm.select.evidence import Traits
from mixedgm.solve.contrasts import Contrasts
from mixedgm.studies.edges.estimates import shares_of
from mixedgm.studies.edges.tests import FEWEST_ROWS, held_graph
from mixedgm.studies.resampling.replicates import Failure, PairReplicates, Replicates, all_pairs
from mixedgm.studies.resampling.resamples import (
    HeldGraph,
    Kind,
    ResamplingPlan,
    estimate_record,
    fitted_record,
    has_empty_cells,
    pair_record,
    resample,
)
from mixedgm.studies.resampling.result import Bootstrap
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps, read_rows
from mixedgm.table.labels import row_labels
from mixedgm.table.read import Frame, as_frame

_KINDS = ("nonparametric", "case-dropping")
_SELECTS = ("fixed", "again")
_SHARES = tuple(np.linspace(0.05, 0.75, 10).tolist())
_CLOSE = 0.005
_AT_MOST = 300
"""Rows at which strengths of resamples are computed."""
_MOST_NUMBERS = 2**28
"""That resamples may keep of all pairs: 2 GiB."""


def bootstrap(
    model: object,
    X: object,
    n_boot: int = 1000,
    kind: str = "nonparametric",
    select: str = "fixed",
    groups: object = None,
    *,
    intervals: bool = True,
    drop: Sequence[float] | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Bootstrap:
    """Fit the model again to many resamples of its table.

    Parameters
    ----------
    model : MixedGraphicalModel
        A fitted model.  Its options apply to every resample; its schema and transforms are kept.
    X : data frame, 2-D array or path
        The table that the model was fitted to.
    n_boot : int
        Number of resamples.
    kind : {"nonparametric", "case-dropping"}
        Draw as many rows as there are, with replacement, for intervals of all pairs and for how
        often edges are found; or leave out a growing share of the rows, for the stability of
        strengths and centralities.
    select : {"fixed", "again"}
        Keep the model's lam, or choose it again in every resample as the model did.  A graph that
        tests chose is tested again in every resample in any case: from the graph at the model's lam
        ("fixed", much faster), or from a path of its own.
    groups : str or array (n,), optional
        Rows that belong together, as a column of `X` or one label per row: whole groups are drawn.
    intervals : bool
        Whether every pair that may have an edge is estimated without shrinkage in every resample,
        whether it is found there or not.  Without it resamples take about half the time, and there
        are no `intervals()` and `parameters()`.
    drop : sequence of float, optional
        Shares of the rows that a case-dropping bootstrap leaves out, in turn; by default ten values
        from 0.05 to 0.75.
    sample_weight : array (n,) or str, optional
        The weights that the model was fitted with, or the name of their column.  Whole numbers
        count identical rows, which are drawn one by one; otherwise a row that is drawn brings its
        weight.
    n_jobs : int, optional
        Processes: all cores by default, or as `joblib.parallel_config` says.  It never changes a
        result.
    random_state : int, Generator, RandomState or None
        The same seed gives the same resamples.
    checkpoint : path of a folder, optional
        Finished resamples are kept there.  The same call with the same folder goes on where it was,
        however it was ended.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    Bootstrap
        Tables, tests and pictures.

    Notes
    -----
    Two questions are kept apart.  How large is an edge?  `intervals()` has every pair, estimated
    without shrinkage: given all other pairs where every column has at least eight rows for each of
    its predictors, else given the edges that pass a test in the whole table (as in `edge_tests`).
    These intervals cover true values about as often as they promise.  Is it found again?
    `selection()` has the share of the resamples that have the edge, and its weight as the model
    estimates it.  At a fixed lam, an edge that barely made it into the model is missing from many
    resamples; ``select="again"`` tells how often it would have been chosen.

    Intervals are by the pseudolikelihood, whatever the loss of the model.

    Examples
    --------
    >>> import numpy as np, pandas as pd, mixedgm as mg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> table = pd.DataFrame({"x": x, "y": x + rng.normal(size=300), "z": rng.normal(size=300)})
    >>> model = mg.MixedGraphicalModel(lam=0.2).fit(table)
    >>> found = mg.bootstrap(model, table, n_boot=50, random_state=0, n_jobs=1)
    >>> found
    <Bootstrap: 50 resamples, nonparametric, lam fixed>
    >>> found.selection()[["source", "target", "inclusion"]].values.tolist()[0]
    ['x', 'y', 1.0]
    >>> size = found.parameters().iloc[0]
    >>> bool(size["lower"] < 1.0 < size["upper"])  # what x adds to y
    True
    """
    check_n_tasks("n_boot", n_boot, 1)
    check_n_jobs(n_jobs)
    check_checkpoint(checkpoint, random_state, "the same resamples are drawn")
    fitted, plan = prepared(model, X, kind, select, groups, sample_weight)
    ensure(isinstance(intervals, bool), "intervals", "True or False", intervals)
    drawn, shares = seeds(random_state, n_boot), _shares(plan, drop, int(n_boot))
    missing = "intervals=False" if not intervals else _no_intervals(plan, int(n_boot))
    if plan.gaps is not None:  # completed by the model here, and then by the graph that is held
        _check_same_table(plan, fitted)
    if not missing:
        plan = _with_held_graph(plan, fitted)
    if plan.gaps is None:
        _check_same_table(plan, fitted)
    outcomes = run(
        partial(resample, plan),
        list(zip(drawn, shares, strict=True)),
        n_jobs=n_jobs,
        what="resamples",
        show=bool(verbose),
        checkpoint=checkpoint,
        identity=fingerprint(plan.key, drawn[0].entropy, drawn[0].spawn_key, np.array(shares)),
    )
    return _result(fitted, plan, select, outcomes, shares, missing)


# -- what is given -----------------------------------------------------------------------------


def prepared(
    model: object,
    X: object,
    kind: str = "nonparametric",
    select: str = "fixed",
    groups: object = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[FittedModel, ResamplingPlan]:
    """Check what `bootstrap` is given; return the model and what all its resamples share."""
    for name, value, allowed in (("kind", kind, _KINDS), ("select", select, _SELECTS)):
        ensure(value in allowed, name, " or ".join(map(quoted, allowed)), value)
    fitted, options = _checked_model(model)
    frame = as_frame(X)
    rows = _rows(frame, fitted, options, sample_weight)
    clusters = None if groups is None else _clusters(groups, frame, rows)
    design = rows if isinstance(rows, Design) else _completed(fitted, options, rows)
    plan = plan_of(fitted, options, design, select, cast(Kind, kind), clusters)
    plan = replace(plan, at=RestRows.of(design, _AT_MOST))
    return fitted, plan if isinstance(rows, Design) else replace(plan, gaps=rows)


def _completed(fitted: FittedModel, options: Options, gaps: Gaps) -> Design:
    """The rows, completed by the model."""
    incomplete = Incomplete.of(gaps, options.recipe(gaps.schema))
    return incomplete.completer.completed(fitted.completing_params)


def _checked_model(model: Any) -> tuple[FittedModel, Options]:
    fitted, options = of_estimator(model)
    if fitted.moderators:
        raise NotYetError(
            "the bootstrap does not cover deviations of moderated edges yet; fit the model with "
            "its moderators as covariates to resample the edges themselves."
        )
    return fitted, options


def _rows(
    frame: Frame, fitted: FittedModel, options: Options, sample_weight: ArrayLike | None
) -> Design | Gaps:
    """The table by the model's schema; it must be as large as the one the model was fitted to."""
    design = read_rows(frame, fitted.schema, options.missing, sample_weight=sample_weight)
    report = fitted.report
    if design.n_rows != report.n_rows:
        raise ParameterError(
            f"the model was fitted to {report.n_rows:,} rows and this table has {design.n_rows:,}; "
            "give the table that the model was fitted to."
        )
    if not np.isclose(design.total_weight, report.total_weight, rtol=1e-6):
        raise ParameterError(
            f"the model was fitted with a total weight of {report.total_weight:,.6g}, and these "
            f"rows have {design.total_weight:,.6g}; give the same sample_weight."
        )
    return design


def _clusters(groups: object, frame: Frame, design: Design | Gaps) -> Ints:
    """Number of the group of every row of the design, in the order in which groups appear."""
    numbered: dict[Any, int] = {}
    labels = row_labels("groups", groups, frame, design)
    codes = [numbered.setdefault(label, len(numbered)) for label in labels]
    if len(numbered) < 2:
        raise ParameterError("groups must have at least two different labels. Got one.")
    return np.array(codes, dtype=np.int64)


def _shares(plan: ResamplingPlan, drop: Sequence[float] | None, n_boot: int) -> list[float]:
    """Share of the units that each resample leaves out."""
    if plan.kind == "nonparametric":
        if drop is not None:
            raise ParameterError("drop is for kind='case-dropping'; leave it out.")
        return [0.0] * n_boot
    shares = list(_SHARES if drop is None else drop)
    for share in shares:
        between = isinstance(share, Real) and 0.0 < float(share) < 1.0
        ensure(between, "drop", "a list of numbers in (0, 1)", drop)
    if not shares or (1.0 - max(shares)) * plan.n_units < 2.0:
        raise ParameterError(
            f"drop must leave at least two of the {plan.n_units} rows or groups. Got "
            f"{quoted(drop)}."
        )
    return [float(shares[k % len(shares)]) for k in range(n_boot)]


# -- what is done ------------------------------------------------------------------------------


def plan_of(
    fitted: FittedModel,
    options: Options,
    design: Design,
    select: str,
    kind: Kind = "nonparametric",
    clusters: Ints | None = None,
) -> ResamplingPlan:
    """What all resamples share; `select` "fixed" keeps the lam of the model, "again" does not."""
    given = {name: getattr(options, name) for name in options.__dataclass_fields__}
    given |= {"n_jobs": 1, "verbose": 0}
    if Traits.of(options.select).checkpoint is not None:  # the study has one of its own
        given["select"] = replace(options.select, checkpoint=None)
    if select == "fixed" and fitted.edge_probability is not None:
        given["lams"] = [fitted.report.lam]
    elif select == "fixed":
        given |= {"lam": fitted.report.lam, "lams": None, "select": "ebic"}
        given["refit"] = fitted.report.refitted
    told = {name: to_plain(value) for name, value in given.items() if name != "random_state"}
    params = fitted.params
    key = fingerprint(
        json.dumps(told, sort_keys=True, default=repr),
        json.dumps(design.schema.to_dict(), sort_keys=True, default=repr),
        design.numbers,
        design.codes,
        design.weights,
        params.coef,
        params.diagonal,
        params.bias,
        kind,
        clusters,
        fitted.report.ridge,
    )
    return ResamplingPlan(
        key, design, Options(**given), params, kind, clusters, fitted.report.ridge
    )


def _no_intervals(plan: ResamplingPlan, n_boot: int) -> str:
    """Why pairs are not estimated without shrinkage; empty if they are."""
    if plan.kind != "nonparametric":
        return "case-dropping"
    if plan.whole_by_pairs.beyond is not None:
        return "the table is so wide that estimates of all pairs would not fit in memory"
    layout, n = plan.whole_by_pairs.layout, plan.rows.total_weight
    if n < FEWEST_ROWS:
        return f"{n:,.6g} rows are too few for estimates without shrinkage"
    if layout.n_groups == 0:
        return "no pair of columns may have an edge"
    if n_boot * layout.n_theta > _MOST_NUMBERS:
        return f"{layout.n_theta:,} parameters in {n_boot:,} resamples are too many to keep"
    return ""


def _with_held_graph(plan: ResamplingPlan, fitted: FittedModel) -> ResamplingPlan:
    """The plan with the graph given which every pair is estimated."""
    whole = plan.whole_by_pairs
    if plan.gaps is not None:
        incomplete = Incomplete.of(plan.gaps, by_conditionals(plan.recipe))
        whole = replace(whole, incomplete=incomplete)
        groups, method = held_graph(whole, fitted, plan.options)
        tol = ROUGH / 20.0 / np.sqrt(whole.total_weight)
        goal = Unpenalised(whole.layout.triples[groups])
        ends = incomplete.settle(goal, fitted.completing_params, tol=tol)
        plan = replace(plan, design=ends.design)
        held = HeldGraph.of(ends.task, goal.groups(ends.task), method)
    else:
        held = HeldGraph.of(whole, *held_graph(whole, fitted, plan.options))
    return replace(plan, held=held, key=fingerprint(plan.key, held.method, held.edges))


def _check_same_table(plan: ResamplingPlan, fitted: FittedModel) -> None:
    """Fitting the whole table at the model's lam must give the model.

    A sampled fit, or one of rows that were drawn, does so up to its error only, and is not checked;
    nor are separate regressions with gaps, which a model of all columns at once completes.
    """
    completion = fitted.report.completion
    drawn = fitted.report.loss == "likelihood-mc" or (
        completion is not None and (completion.drawn or fitted.params.nodewise)
    )
    if plan.options.lam is None or not fitted.report.solved or drawn:
        return
    record = fitted_record(plan, plan.design)
    columns = Layout.without_edges(fitted.schema.spans)
    known = pair_numbers(columns.n_nodes, np.argwhere(np.triu(fitted.edge_norms)))
    pairs = np.union1d(known, record["pairs"])
    found = Replicates.gather(columns, [record], pairs)
    norms, (u, v) = found.norms[0], found.ends.T
    expected = fitted.edge_norms[u, v]
    off = np.abs(norms - expected)
    if fitted.edge_probability is not None:
        # Tests may settle on another graph from here, but not on a very different one.
        off *= np.count_nonzero((norms > 0.0) & (expected > 0.0)) < 0.5 * (expected > 0.0).sum()
    if off.max(initial=0.0) > _CLOSE:
        worst = int(off.argmax())
        names = [fitted.schema.nodes[end].name for end in found.ends[worst]]
        raise ParameterError(
            f"fitting this table at the model's lam = {lam_text(fitted.report.lam)} does not give "
            f"the model: the edge of {quoted(names[0])} and {quoted(names[1])} has norm "
            f"{norms[worst]:.3g} instead of {expected[worst]:.3g}. Give the table that the model "
            "was fitted to. If its edges were chosen apart from lam, as by stability selection, "
            "use select='again'."
        )


def _result(
    fitted: FittedModel,
    plan: ResamplingPlan,
    select: str,
    outcomes: list[Outcome],
    shares: list[float],
    missing: str,
) -> Bootstrap:
    done = [(outcome.index, outcome.record) for outcome in outcomes if outcome.record is not None]
    failures = [Failure(o.index, o.error) for o in outcomes if o.error is not None]
    if not done:
        raise MixedGMError(
            f"all {len(failures)} resamples failed, the first because: {failures[0].message}"
        )
    records: list[Record] = [record for _, record in done]
    whole = estimate_record(plan, fitted)
    u, v = Layout.part_of_complete(plan.declared.nodes, whole["pairs"].astype(np.int64)).pairs.T
    whole["strengths"] = fitted.edge_strengths[u, v]
    pairs, columns = all_pairs([*records, whole]), Layout.without_edges(fitted.schema.spans)
    dropped = np.array([shares[index] for index, _ in done])
    return Bootstrap(
        fitted=fitted,
        kind=plan.kind,
        select=select,
        n_boot=len(shares),
        estimate=Replicates.gather(columns, [whole], pairs),
        replicates=Replicates.gather(columns, records, pairs),
        failures=tuple(failures),
        dropped=dropped if plan.kind == "case-dropping" else None,
        refit=plan.options.refits,
        pair_replicates=_pair_replicates(fitted, plan, records) if not missing else None,
        no_intervals=missing,
    )


def _pair_replicates(
    fitted: FittedModel, plan: ResamplingPlan, records: list[Record]
) -> PairReplicates:
    assert plan.held is not None
    task, whole = plan.whole_by_pairs, pair_record(plan, plan.design)
    layout = plan.declared.restrict(plan.declared.groups_of(task.layout.triples))
    values, own = (np.array([r[name] for r in records]) for name in ("pair_values", "own"))
    held = task.layout.groups_of(plan.held.edges)
    left = left_by_predictors(Contrasts(task.layout).reduced, held, task.total_weight)
    return PairReplicates(
        fitted=fitted,
        rows=RestRows.of(plan.design),
        method=plan.held.method,
        layout=layout,
        estimate=whole["pair_values"],
        values=values,
        own_estimate=whole["own"],
        own_values=own,
        is_open=has_empty_cells(task, plan.design),
        params=plan.held.params,
        left=left,
        shares=shares_of(task),
    )

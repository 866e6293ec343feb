"""A model's graph and rows -> its estimate without shrinkage, there and in tables drawn from it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError, level_of_caller
from mixedgm.fit.fitted import FittedModel
from mixedgm.fit.fitting import table_margins
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.pair_weights import PairWeights
from mixedgm.model.params import Params
from mixedgm.path.recipe import Recipe
from mixedgm.path.refits import refit_of_resample, too_dense, unshrunken
from mixedgm.path.rounds import FEWEST, Incomplete, Unpenalised
from mixedgm.path.task import Reference, Task, prepare
from mixedgm.solve.working_set import Start
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.transform import Nonparanormal

_TOL = 1e-3  # of the standard error of a mean gradient
_ROUNDS = 6  # in which a simulated table with gaps is completed


@dataclass(frozen=True, eq=False)
class GraphRefit:
    """A graph that is estimated without shrinkage, by the pseudolikelihood."""

    fitted: FittedModel
    """The estimate on the rows that were given."""
    design: Design
    """These rows."""
    recipe: Recipe
    whole: Task
    settled: Ints
    """Edges (triples) that need no ridge in the whole table."""
    missing: NDArray[np.bool_] | None = None
    """(n, nodes) the missing cells of the rows that were given, if there are some."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """A task is prepared anew in another process."""
        return _restored, (self.fitted, self.design, self.recipe, self.settled, self.missing)

    @cached_property
    def _reference(self) -> Reference:
        return replace(Reference.of(self.design), layout=self.whole.layout)

    def again(self, design: Design) -> tuple[FittedModel, Design]:
        """The same estimate on other rows, and these with normal scores of their own.

        Where the rows that were given have gaps, the others are given the same ones.
        """
        if self.missing is not None:
            return self._again_with_gaps(design)
        rows = rescored(design)
        task = prepare(rows, self.recipe, self._reference)
        groups = np.arange(task.layout.n_groups)
        start, tol = Start(task.theta_of(self.fitted.params), task.null.evaluation), _tol(rows)
        refit = refit_of_resample(task, self.whole, groups, self.settled, start, tol=tol)
        params = task.params(refit.solution.theta)
        scales = task.node_scales
        return self._with(params, scales), rows

    def _again_with_gaps(self, design: Design) -> tuple[FittedModel, Design]:
        assert self.missing is not None
        missing = self.missing
        if len(missing) != design.n_rows:  # as many as the weights sum to
            missing = missing[np.arange(design.n_rows) % len(missing)]
        gaps = punched(design, missing)
        incomplete = Incomplete.of(gaps, self.recipe, self._reference, n_draws=FEWEST)
        goal, tol = Unpenalised(None), 20.0 * _tol(design)
        ends = incomplete.settle(goal, self.fitted.params, tol=tol, most=_ROUNDS)
        scales = ends.task.node_scales
        return self._with(ends.params, scales), ends.design

    def _with(self, params: Params, scales: Floats) -> FittedModel:
        """The model with another estimate of its edges."""
        return replace(
            self.fitted,
            params=params,
            node_scales=scales,
            margins=None,
            known_strengths=None,
            rows=None,
        )


def punched(design: Design, missing: NDArray[np.bool_]) -> Gaps:
    """The rows without these cells (n, nodes)."""
    spans = design.schema.spans
    numbers, codes = design.numbers.copy(), design.codes.astype(np.int32)
    numbers[missing[:, : spans.n_real]] = np.nan  # hurdle columns are numbers and codes
    codes[missing[:, spans.discrete_nodes]] = -1
    return Gaps(design.schema, numbers, codes, design.weights)


def _restored(
    fitted: FittedModel,
    design: Design,
    recipe: Recipe,
    settled: Ints,
    missing: NDArray[np.bool_] | None,
) -> GraphRefit:
    return GraphRefit(fitted, design, recipe, prepare(design, recipe), settled, missing)


def refit_graph(fitted: FittedModel, design: Design | Gaps) -> GraphRefit:
    """Estimate the edges that the model has, and no others, on these rows.

    Transformed columns get the normal scores of these rows, unless some have gaps.  Raises
    ParameterError where the graph has too many parameters for the rows.
    """
    missing = None
    if isinstance(design, Gaps):
        missing, rows = design.missing, _completed(fitted, design)
    else:
        rows = rescored(design)
    recipe = _recipe(fitted)
    task = prepare(rows, recipe)
    groups = np.arange(task.layout.n_groups)
    dense = too_dense(task, groups)
    if dense:
        raise ParameterError(
            f"the graph cannot be refitted to these rows, {dense}. To fix: check the model as it "
            "is with refit=False, or fit one with fewer edges."
        )
    refit = unshrunken(task, groups, task.null, tol=_tol(rows))
    if not refit.solution.converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            "the refit of the graph has not converged (KKT number "
            f"{refit.solution.kkt:.1e}), so the check is rough",
            ConvergenceWarning,
            stacklevel=level_of_caller(),
        )
    nodes = task.schema.nodes
    names = [(nodes[u].name, nodes[v].name) for u, v in task.layout.pairs[refit.ridge].tolist()]
    report = replace(
        fitted.report,
        n_rows=rows.n_rows,
        total_weight=rows.total_weight,
        refitted=True,
        ridge=tuple(names),
    )
    model = FittedModel(
        schema=fitted.schema,
        params=task.params(refit.solution.theta),
        node_scales=task.node_scales,
        report=report,
        library=fitted.library,
        # Tables that are drawn have the margins of this one.  With hurdle columns matching them
        # takes chains, and those of the fit have to do.
        margins=None if task.layout.nodes.n_spiked else table_margins(task),
    )
    settled = task.layout.triples[np.setdiff1d(groups, refit.ridge)]
    return GraphRefit(model, rows, recipe, task, settled, missing)


def _recipe(fitted: FittedModel) -> Recipe:
    """The pseudolikelihood of the edges that the model has."""
    edges = np.argwhere(np.triu(fitted.edge_norms > 0.0))
    return Recipe(factors=PairWeights.only(len(fitted.schema.nodes), edges))


def _completed(fitted: FittedModel, gaps: Gaps) -> Design:
    """The rows, completed by the graph's own refit."""
    incomplete = Incomplete.of(gaps, _recipe(fitted), n_draws=FEWEST)
    tol = _TOL / np.sqrt(max(gaps.total_weight, 1.0))
    return incomplete.settle(Unpenalised(None), fitted.pairwise_params, tol=float(tol)).design


def _tol(design: Design) -> float:
    return float(_TOL / np.sqrt(max(design.total_weight, 1.0)))


def rescored(design: Design) -> Design:
    """The rows with normal scores of their own in transformed columns."""
    columns = [
        at
        for at, column in enumerate(design.schema.nodes)
        if column.transform is not None and np.ptp(design.numbers[:, at]) > 0.0
    ]
    if not columns:
        return design
    numbers = design.numbers.copy()
    for at in columns:
        scores = Nonparanormal.fit(numbers[:, at], design.weights)
        numbers[:, at] = scores.forward(numbers[:, at])
    return replace(design, numbers=numbers)

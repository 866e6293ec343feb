"""Rows with gaps -> predictions and losses of cells, given what a row has.

The conditional of a column needs the columns that it has edges to, and nothing else.  Where one of
these is missing, the cell and the missing columns that it is connected with are unknown together,
given all columns around them; rows with the same unknown columns are worked on at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from mixedgm.base.errors import DistributionError, ParameterError, SamplingWarning, level_of_caller
from mixedgm.base.printable import quoted
from mixedgm.base.printable import rows as rows_text
from mixedgm.base.progress import track
from mixedgm.families import HurdleKind
from mixedgm.fit.fitted import FittedModel, Points
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.density import share_with_unseen
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params, with_unknown
from mixedgm.rows.predict import cell_losses
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Schema, with_names

if TYPE_CHECKING:
    from mixedgm.joint.conditioning import KnownColumns
    from mixedgm.joint.posteriors import Posterior


T = TypeVar("T")
# A node, rows, and what is said about the cells of the node in these rows.
About = tuple[int, Ints, Floats]

# Entries of the tables of one row, beyond which Gibbs chains are faster than exact answers.
_ENTRIES = 2**16
# Probability of a level that no chain visited: half a visit among those that the chains make.
_LEAST = 0.5 / 1600


@dataclass(frozen=True, eq=False)
class _Question:
    """Columns that are unknown together, and the rows in which each of them is asked for."""

    unknown: tuple[int, ...]
    rows: dict[int, Ints]

    @property
    def all_rows(self) -> Ints:
        return np.unique(np.concatenate(list(self.rows.values())))


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """The unknown columns and those that they have edges to, all of which are known."""

    nodes: Ints
    params: ConditionalGaussian | Params
    known: KnownColumns


class JointCells:
    """Answers about cells of one table; on leaving, one warning about all that were sampled."""

    def __init__(self, fitted: FittedModel, gaps: Gaps, limit: int = _ENTRIES) -> None:
        self.fitted, self.gaps, self.limit = fitted, gaps, limit
        self.sampled = np.zeros(len(gaps.numbers), dtype=bool)
        self.worst = 0.0

    def __enter__(self) -> JointCells:
        return self

    def __exit__(self, kind: type | None, *details: object) -> None:
        if kind is None and self.sampled.any():
            note = sampled_note(int(self.sampled.sum()), self.worst, "answered", self._table[0])
            warnings.warn(note, stacklevel=level_of_caller())

    def means(self, nodes: Sequence[int]) -> Iterator[About]:
        """Yield means of those of these nodes that have real numbers; of spiked ones, `parts`."""
        spans = self.fitted.schema.spans
        for question in self._questions([node for node in nodes if spans.is_real(node)]):
            rows, answer = self._posterior(question)
            unknown, states = spans.places(question.unknown)
            for node, asked in question.rows.items():
                at, number = np.searchsorted(rows, asked), unknown.index(node)
                kind = spans.kinds[node]
                mean = answer.mean[at, number]
                if isinstance(kind, HurdleKind):
                    place = 2 * states.index(spans.place(node)) + 1  # spiked ones come first
                    variance = answer.variance[at, number]
                    mean = kind.parts(mean, variance, answer.levels[at, place])
                yield node, asked, mean

    def log_probs(self, nodes: Sequence[int], *, observed: bool = False) -> Iterator[About]:
        """Yield (values, rows) log probabilities of these nodes, none of which is Gaussian.

        With `observed`, only in rows that have a level of the node.
        """
        spans, params = self.fitted.schema.spans, self.fitted.params
        for question in self._questions(nodes, observed=observed):
            rows, answer = self._posterior(question)
            for node, asked in question.rows.items():
                first = self._first_value(question, node)
                n_levels = params.n_levels[spans.place(node)]
                chance = answer.levels[np.searchsorted(rows, asked), first : first + n_levels]
                bias = params.bias_of(node)
                # What is possible has a probability, though it may be too small for a double.
                least = np.finfo(np.float64).tiny if answer.exact else _LEAST
                chance = np.maximum(chance, np.where(np.isneginf(bias), 0.0, least))
                if not answer.exact:
                    chance /= chance.sum(axis=1, keepdims=True)
                with np.errstate(divide="ignore"):
                    log_prob = np.log(chance.T)
                share_with_unseen(log_prob, bias, self.fitted.n_observed)
                yield node, asked, log_prob

    def _first_value(self, question: _Question, node: int) -> int:
        """Where the values of a node begin among those of all that are unknown with it."""
        spans, n_levels = self.fitted.schema.spans, self._table[0].n_levels
        unknown = spans.places(question.unknown)[1]
        return sum(n_levels[at] for at in unknown[: unknown.index(spans.place(node))])

    def log_densities(self, nodes: Sequence[int]) -> Iterator[About]:
        """Yield log densities of the values of those of these nodes that have real numbers."""
        from mixedgm.joint.posteriors import log_density_of

        real = [node for node in nodes if self.fitted.schema.spans.is_real(node)]
        for question in self._questions(real, observed=True):
            for node, rows in question.rows.items():
                part, values = self._part(question, rows), self.gaps.numbers[rows, node]
                at = int(np.searchsorted(part.nodes, node))
                log_density, exact = self._ask(log_density_of, part, at, values)
                self.sampled[rows] |= not exact
                yield node, rows, log_density

    def _posterior(self, question: _Question) -> tuple[Ints, Posterior]:
        from mixedgm.joint.posteriors import posterior

        rows = question.all_rows
        answer = self._ask(posterior, self._part(question, rows))
        self.sampled[rows] |= not answer.exact
        self.worst = max(self.worst, float(answer.levels_error.max(initial=0.0)))
        return rows, answer

    def _questions(self, nodes: Sequence[int], *, observed: bool = False) -> Iterator[_Question]:
        wanted = np.zeros(len(self._used), dtype=bool)
        wanted[list(nodes)] = True
        questions: dict[tuple[int, ...], dict[int, list[Ints]]] = {}
        for rows, gap in self.gaps.patterns():
            missing = np.flatnonzero(gap)
            asked = wanted & self._used[missing].any(axis=0) & ~(gap & observed)
            if not asked.any():
                continue
            _, part = connected_components(self._used[np.ix_(missing, missing)], directed=False)
            for node in np.flatnonzero(asked).tolist():
                touched = part[self._used[missing, node] | (missing == node)]
                unknown = {node, *missing[np.isin(part, touched)].tolist()}
                by_node = questions.setdefault(tuple(sorted(unknown)), {})
                by_node.setdefault(node, []).append(rows)
        steps = track(questions.items(), what="rows with gaps", seconds=None)
        for together, by_node in steps:
            yield _Question(
                together, {node: np.sort(np.concatenate(rows)) for node, rows in by_node.items()}
            )

    def _part(self, question: _Question, rows: Ints) -> _Neighbourhood:
        from mixedgm.joint.conditioning import KnownColumns, among

        params, codes = self._table
        unknown = np.array(question.unknown)
        nodes = np.union1d(unknown, np.flatnonzero(self._used[:, unknown].any(axis=1)))
        spans = self.fitted.schema.spans
        numbers, discrete = (np.array(part, dtype=np.int64) for part in spans.places(nodes))
        places = spans.places(np.setdiff1d(nodes, unknown))
        known = KnownColumns(
            np.flatnonzero(np.isin(numbers, places[0])).tolist(),
            np.flatnonzero(np.isin(discrete, places[1])).tolist(),
            self.gaps.numbers[rows[:, None], places[0]],
            codes[rows[:, None], places[1]],
        )
        if isinstance(params, Params):
            return _Neighbourhood(nodes, params.take(nodes), known)
        return _Neighbourhood(nodes, among(params, numbers, discrete), known)

    def _ask(self, function: Callable[..., T], part: _Neighbourhood, *first: Any) -> T:
        columns = Schema(tuple(self.fitted.schema.nodes[node] for node in part.nodes))
        try:
            return with_names(columns, function, part.params, *first, part.known, limit=self.limit)
        except DistributionError as error:
            raise self._refusal(error) from None

    @cached_property
    def _used(self) -> NDArray[np.bool_]:
        """(u, v) whether the conditional of node v uses node u."""
        params = self.fitted.params
        used = params.block_norms(params.coef) > 0.0
        if params.moderation is not None:
            for deviations in params.moderation.deviations:
                used |= params.block_norms(np.abs(deviations).max(axis=0)) > 0.0
        return np.asarray(used)

    @cached_property
    def _table(self) -> tuple[ConditionalGaussian | Params, NDArray[np.int32]]:
        """Parameters of the joint distribution, and codes that have a place in them."""
        try:
            params = self.fitted.joint_params
        except (DistributionError, ParameterError) as error:
            raise self._refusal(error) from None
        return with_unseen_levels(params, self.gaps)

    def _refusal(self, error: DistributionError | ParameterError) -> Exception:
        gaps = self.gaps.missing
        partly = gaps & ~gaps.all(axis=0)  # a column that is asked for may be absent
        gaps = partly if partly.any() else gaps
        ranked = sorted(
            zip(gaps.sum(axis=0).tolist(), self.fitted.schema.nodes, strict=True),
            key=lambda pair: -pair[0],
        )
        named = [f"{quoted(node.name)} ({count})" for count, node in ranked if count]
        listed = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
        gappy = f"{rows_text(int(gaps.any(axis=1).sum()))} with gaps, in {listed}"
        return type(error)(
            f"{gappy}: what has an edge to a missing cell is answered through the joint "
            f"distribution, but {str(error).rstrip('.')}; or drop these rows, or fill them in first"
        )


def with_unseen_levels(
    params: Params, gaps: Gaps
) -> tuple[ConditionalGaussian | Params, NDArray[np.int32]]:
    """Parameters and codes in which an unseen level is a further value of its column.

    Cells that are missing get code 0, which means nothing.
    """
    n_levels = np.array(params.n_levels, dtype=np.int64)
    unseen = gaps.codes == -2
    more = unseen.any(axis=0)
    codes = np.where(unseen, n_levels, np.maximum(gaps.codes, 0)).astype(np.int32)
    params = with_unknown(params, more) if more.any() else params
    return (params if params.nodes.n_spiked else params.joint), codes


def sampled_note(
    n_rows: int, worst: float, done: str, params: ConditionalGaussian | Params, remedy: str = ""
) -> SamplingWarning:
    """A warning that rows were imputed or answered by sampling."""
    note = f"{rows_text(n_rows)} {'was' if n_rows == 1 else 'were'} {done} from Gibbs chains, "
    if isinstance(params, Params):
        note, remedy = note + "because with hurdle columns there is no exact answer", ""
    else:
        note += "because exact tables do not fit the limit"
    if worst:
        note += f"; the largest standard error of a level's probability is {worst:.2g}"
    return SamplingWarning(f"{note}. To change it: {remedy}" if remedy else note)


# -- rows with gaps --------------------------------------------------------------------------------


def predicted(
    fitted: FittedModel, gaps: Gaps, targets: Sequence[int], points: Points | None = None
) -> dict[int, NDArray[Any]]:
    """Predictions of the cells of some nodes, given the rest of their row.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    gaps : Gaps
        The rows; their covariates are known.
    targets : sequence of int
        The nodes that are predicted.
    points : mapping of int to callable, optional
        What makes a prediction of the conditional of every node, as `FittedModel.points`.

    Returns
    -------
    dict of int to ndarray
        Of every node that is predicted: by default, means, or codes of values.
    """
    every = fitted.points() if points is None else points
    points = {node: every[node] for node in targets}
    out = fitted.predict(gaps.design, points)
    with JointCells(fitted, gaps) as cells:
        for node, rows, mean in cells.means(targets):
            out[node][rows] = points[node](mean)
        for node, rows, log_prob in cells.log_probs(_discrete(fitted, targets)):
            out[node][rows] = points[node](log_prob.T)
    return out


def level_probabilities(fitted: FittedModel, gaps: Gaps, column: str) -> Floats:
    """(n, values) probabilities of the values of a column, given the rest of every row."""
    out = fitted.predict_proba(gaps.design, column)
    with JointCells(fitted, gaps) as cells:
        for _, rows, log_prob in cells.log_probs([fitted.schema.node_index(column)]):
            out[rows] = np.exp(log_prob).T
    return out


def node_losses(fitted: FittedModel, gaps: Gaps) -> dict[str, float]:
    """Mean negative log likelihood of the observed cells of every target column, by name.

    NaN for a column without any observed cell.
    """
    if not gaps.missing.any():
        return fitted.node_losses(gaps.design)
    losses, weights = _losses(fitted, gaps)
    total = weights @ ~np.isnan(losses)
    sums = weights @ np.nan_to_num(losses, posinf=np.inf)
    mean = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0.0)
    named = dict(zip(_targets(fitted), mean.tolist(), strict=True))
    return {name: named[fitted.schema.node_index(name)] for name in fitted.schema.targets}


def row_score(fitted: FittedModel, gaps: Gaps) -> float:
    """Mean over rows of the log likelihoods of a row's observed cells, added up."""
    if not gaps.missing.any():
        return -sum(fitted.node_losses(gaps.design).values())
    losses, weights = _losses(fitted, gaps)
    return -float(weights @ np.nansum(losses, axis=1) / weights.sum())


def _targets(fitted: FittedModel) -> list[int]:
    return [fitted.schema.node_index(name) for name in fitted.schema.targets]


def _discrete(fitted: FittedModel, nodes: Sequence[int]) -> list[int]:
    """Those of the nodes that have finitely many values."""
    return [node for node in nodes if not fitted.schema.spans.is_real(node)]


def _losses(fitted: FittedModel, gaps: Gaps) -> tuple[Floats, Floats]:
    """Negative log likelihood of the cells of all targets, NaN where missing; weights of rows."""
    design, place, targets = gaps.design, fitted.schema.spans.place, _targets(fitted)
    out = cell_losses(fitted.params, design.numbers, design.codes, fitted.n_observed)
    with JointCells(fitted, gaps) as cells:
        for node, rows, log_density in cells.log_densities(targets):
            out[rows, node] = -log_density
        for node, rows, log_prob in cells.log_probs(_discrete(fitted, targets), observed=True):
            codes = gaps.codes[rows, place(node)]
            seen = np.flatnonzero(codes >= 0)  # an unseen level counts half a row, whatever else
            out[rows[seen], node] = -log_prob[codes[seen], seen]
    out[gaps.missing] = np.nan
    return out[:, targets], np.ones(len(out)) if gaps.weights is None else gaps.weights

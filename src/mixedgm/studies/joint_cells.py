"""Rows with gaps -> the cells that need the joint distribution, and what it says about them.

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

from mixedgm.errors import DistributionError, ParameterError, SamplingWarning, level_of_caller
from mixedgm.fitted import FittedModel
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.density import share_with_unseen
from mixedgm.model.kinds import HurdleKind
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.params import Params, with_unknown
from mixedgm.printable import quoted
from mixedgm.printable import rows as rows_text
from mixedgm.progress import track
from mixedgm.table.gaps import Gaps
from mixedgm.table.naming import with_names
from mixedgm.table.schema import Schema

if TYPE_CHECKING:
    from mixedgm.joint import KnownColumns, Posterior

__all__ = ["JointCells", "sampled_note", "with_unseen_levels"]

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
                at, kind, number = (
                    np.searchsorted(rows, asked),
                    spans.kinds[node],
                    unknown.index(node),
                )
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
                first, n_levels = (
                    self._first_value(question, node),
                    params.n_levels[spans.place(node)],
                )
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
        from mixedgm.joint import log_density_of

        real = [node for node in nodes if self.fitted.schema.spans.is_real(node)]
        for question in self._questions(real, observed=True):
            for node, rows in question.rows.items():
                part, values = self._part(question, rows), self.gaps.numbers[rows, node]
                at = int(np.searchsorted(part.nodes, node))
                log_density, exact = self._ask(log_density_of, part, at, values)
                self.sampled[rows] |= not exact
                yield node, rows, log_density

    def _posterior(self, question: _Question) -> tuple[Ints, Posterior]:
        from mixedgm.joint import posterior

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
        from mixedgm.joint import KnownColumns, among

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

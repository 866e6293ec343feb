"""A fitted model -> JointDiscrepancy: how far its joint distribution is from the table's pairs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError, ParameterError
from mixedgm.families import ends_of
from mixedgm.fit.fitted import FittedModel
from mixedgm.joint.margins import MOST_COLUMNS, NodeTerms
from mixedgm.model.layout import Floats, Ints
from mixedgm.penalty.weights import edge_kind
from mixedgm.results.result import result_html, result_text
from mixedgm.table.read import Columns, frame
from mixedgm.table.schema import Schema, with_names

_LIMITS = (0.1, 0.2, 0.05)
"""Difference from which on a pair is notable: of correlations, of means of a level in standard
deviations, of shares of rows."""
_ERRORS = 3.0
_CHEAP = 2**14


class PairGap(NamedTuple):
    """Where two columns are furthest from the table.

    `joint` and `table` are the correlation of two continuous columns; the mean of a continuous
    column in one level, less its overall mean and in its standard deviations; or the share of rows
    with one level of each of two categorical columns.  `notable` means that they differ by more
    than 0.1, 0.2 or 0.05, and by more than three standard errors of the table's value.
    """

    source: str
    target: str
    kind: str
    source_level: str | None
    target_level: str | None
    joint: float
    table: float
    difference: float
    standard_error: float
    notable: bool

    def __str__(self) -> str:
        """Return it as a sentence."""
        if self.source_level is None and self.target_level is None:
            return (
                f"the correlation of {self.source} and {self.target} is {_number(self.joint)} in "
                f"the joint distribution, {_number(self.table)} in the table"
            )
        if self.source_level is None:
            return (
                f"where {self.target} = {self.target_level}, the mean of {self.source} is "
                f"{_number(self.joint)} standard deviations from its overall mean in the joint "
                f"distribution, {_number(self.table)} in the table"
            )
        cell = f"{self.source} = {self.source_level} & {self.target} = {self.target_level}"
        return (
            f"the joint distribution has {cell} in {100 * self.joint:.1f} % of the rows, the table "
            f"in {100 * self.table:.1f} %"
        )


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"  # no minus sign before zero


@dataclass(frozen=True, eq=False, repr=False)
class JointDiscrepancy:
    """How far the joint distribution of a fitted model is from the table, pair by pair.

    Parameters
    ----------
    pairs : tuple of PairGap
        Every pair of columns where it is furthest from the table, the worst pair first.
    margin_error : float
        Largest difference left between margins: of shares, and of means and variances of
        standardised columns.
    sampled : bool
        Whether the joint distribution was sampled; its values then have errors of some thousandths.
    library : str
        Of the frame.
    """

    pairs: tuple[PairGap, ...]
    margin_error: float
    sampled: bool
    library: str

    @property
    def largest(self) -> PairGap | None:
        """The worst pair; None for a single column."""
        return self.pairs[0] if self.pairs else None

    def frame(self) -> Any:
        """One row for every pair, as a frame of the library of the training table.

        Columns: source, target, kind, source_level, target_level (missing for a continuous
        column), joint, table, difference, standard_error, notable.
        """
        return frame(self._columns(PairGap._fields), self.library)

    def _columns(self, names: Collection[str]) -> dict[str, list[Any]]:
        return {name: [getattr(pair, name) for pair in self.pairs] for name in names}

    def _shown(self) -> Columns:
        shown = self._columns(("source", "target"))
        ends = [(pair.source_level, pair.target_level) for pair in self.pairs]
        shown["level"] = [" & ".join(level for level in pair if level is not None) for pair in ends]
        for name, values in self._columns(("joint", "table", "difference")).items():
            shown[name] = [round(value, 3) + 0.0 for value in values]
        return {**shown, "notable": ["yes" if pair.notable else "" for pair in self.pairs]}

    def _notes(self) -> list[str]:
        from mixedgm.joint.margins import GOOD

        far = f", up to {self.margin_error:.1g}" if self.margin_error > GOOD else ""
        count = sum(pair.notable for pair in self.pairs)
        return [
            *(["sampled"] if self.sampled else []),
            f"margins: those of the table{far}",
            f"{count} of {len(self.pairs)} pairs notable",
        ]

    def __repr__(self) -> str:
        return result_text(_TITLE, self._shown(), self._notes())

    def _repr_html_(self) -> str:
        """Return the same as HTML, with everything from the data escaped."""
        return result_html(_TITLE, self._shown(), self._notes())


_TITLE = "Joint distribution and table, pairs furthest apart first"


def joint_discrepancy(fitted: FittedModel) -> JointDiscrepancy:
    """Compare the joint distribution of a model with the table it was fitted to."""
    fitted.require_joint()
    if fitted.schema.covariates:
        raise ParameterError(
            "with covariates there is no joint distribution of all columns to compare with the "
            "table; model.check_fit(X) compares rows with simulated ones, given their covariates."
        )
    if fitted.schema.spans.n_spiked:
        raise DistributionError(
            "with hurdle columns the joint distribution can only be sampled, and pairs are "
            "compared where it is exact. To fix: model.check_fit(X) compares rows with simulated "
            "ones"
        )
    if fitted.margins is None:
        raise ParameterError(
            "the model has no table to compare with: its parameters were given, or its file is "
            "older than this comparison. model.check_fit(X) compares rows with simulated ones."
        )
    terms = fitted.joint_terms
    if terms is None:
        from mixedgm.joint.field import gaussian

        with_names(fitted.schema, gaussian, fitted.joint_density)
        raise DistributionError("there is no joint distribution to compare with the table")
    if terms.covariance is None or fitted.margins.covariance is None:
        raise ParameterError(
            f"pairs are kept for tables of at most {MOST_COLUMNS} design columns (a continuous "
            "column counts one, a categorical one its levels); model.check_fit(X) compares rows "
            "with simulated ones."
        )
    entries = _Entries.of(fitted, terms)
    gaps = tuple(entries.gap(fitted.schema, at) for at in range(len(entries.pairs)))
    return JointDiscrepancy(gaps, terms.error, terms.sampled, fitted.library)


def pair_notes(
    fitted: FittedModel,
    names: Collection[str],
    one_of: Collection[str] | None = None,
    *,
    large: bool = False,
) -> tuple[str, ...]:
    """Return the worst notable pair among these columns as a sentence, where pairs are known.

    With `one_of`, at least one column of the pair is one of these.  With `large`, rare levels count
    less.
    """
    terms = None if fitted.margins is None else fitted.joint_terms
    if terms is None or terms.covariance is None or len(set(names)) < 2:
        return ()
    inside, wanted = (
        np.array([node.name in some for node in fitted.schema.nodes])
        for some in (names, names if one_of is None else one_of)
    )
    entries = _Entries.of(fitted, terms)
    u, v = entries.pairs.T
    asked = (entries.size > 1.0) & entries.notable if large else entries.notable
    asked = asked & inside[u] & inside[v] & (wanted[u] | wanted[v])
    return tuple(str(entries.gap(fitted.schema, at)) for at in np.flatnonzero(asked)[:1])


def margin_notes(fitted: FittedModel) -> tuple[str, ...]:
    """Return how far the margins may be from the table's, where that is more than rounding."""
    from mixedgm.joint.margins import GOOD

    terms = None if fitted.margins is None else fitted.joint_terms
    if terms is None and fitted.margins is not None and fitted.schema.spans.n_spiked:
        return ("margins are those of the fit, not exactly the table's",)
    if terms is None or terms.error <= GOOD:
        return ()
    how = "sampled" if terms.sampled else "not reached"
    return (f"the table's margins were {how}: off by up to {terms.error:.1g}",)


def summary_notes(fitted: FittedModel) -> tuple[str, ...]:
    """Return the worst notable pair of all as a sentence, where it takes little time to know."""
    return pair_notes(fitted, fitted.schema.names, large=True) if _cheap(fitted) else ()


def _cheap(fitted: FittedModel) -> bool:
    """Whether the tables of an exact answer are small."""
    from mixedgm.joint.field import integrate_out
    from mixedgm.joint.tree import discrete, plan_for

    if fitted.margins is None or fitted.margins.covariance is None:
        return False
    try:
        joint = fitted.params.joint
        rest, _ = integrate_out(joint, range(joint.n_numbers))
        plan_for(discrete(rest), limit=_CHEAP)
    except DistributionError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class _Entries:
    """The worst entry of every pair of columns, the worst pair first."""

    pairs: Ints
    """(k, 2) nodes."""
    levels: Ints
    """(k, 2) level codes; 0 for a continuous column."""
    values: Floats
    """(k, 3) joint distribution, table, standard error."""
    notable: NDArray[np.bool_]
    size: Floats
    """Differences over what is notable; those of means in a level times twice the square root of
    the level's share, which makes them differences of correlations over 0.1."""

    @classmethod
    def of(cls, fitted: FittedModel, terms: NodeTerms) -> _Entries:
        assert fitted.margins is not None
        joint, table, error, limit = _values(fitted, terms)
        nodes = fitted.params.nodes
        start, node = nodes.column_start, nodes.column_node
        numeric = np.array([kind.is_numeric for kind in nodes.kinds])[node]
        row, column = np.nonzero(node[:, None] < node)
        gap = np.abs(joint - table)[row, column]
        size = gap / limit[row, column]
        notable = (size > 1.0) & (gap > _ERRORS * error[row, column])
        mixed = numeric[row] & ~numeric[column]
        size[mixed] *= 2.0 * np.sqrt(fitted.margins.mean[column[mixed]])
        order = np.lexsort((-size, ~notable))
        pairs = np.column_stack([node[row], node[column]])[order]
        _, first = np.unique(pairs @ [len(node), 1], return_index=True)
        kept = order[np.sort(first)]
        row, column = row[kept], column[kept]
        pairs = np.column_stack([node[row], node[column]])
        values = np.column_stack([part[row, column] for part in (joint, table, error)])
        levels = np.column_stack([row, column]) - start[pairs]
        return cls(pairs, levels, values, notable[kept], size[kept])

    def gap(self, schema: Schema, at: int) -> PairGap:
        """One of them, with names."""
        (u, v), (joint, table, error) = self.pairs[at], self.values[at].tolist()
        source, target = schema.nodes[u], schema.nodes[v]
        kind = edge_kind(schema, int(u), int(v))
        ends = zip(ends_of(kind), (source, target), self.levels[at], strict=True)
        first, second = (None if end.is_numeric else c.level_names[code] for end, c, code in ends)
        names, notable = (source.name, target.name), bool(self.notable[at])
        return PairGap(*names, kind, first, second, joint, table, joint - table, error, notable)


def _values(fitted: FittedModel, terms: NodeTerms) -> tuple[Floats, Floats, Floats, Floats]:
    """(d, d) what is compared of two design columns: joint, table, its error, what is notable."""
    margins, p = fitted.margins, fitted.params.nodes.n_numeric
    assert margins is not None
    assert margins.covariance is not None
    assert terms.covariance is not None
    share = margins.mean[p:]
    unit = np.concatenate([1.0 / margins.units.scale, np.ones(len(share))])
    # The mean of x in a level is a covariance over the level's share; a cell adds the product.
    by_level = np.ones((len(unit), len(unit)))
    by_level[:p, p:] = 1.0 / np.where(share > 0.0, share, np.inf)
    added = np.zeros_like(by_level)
    added[p:, p:] = np.outer(share, share)
    joint, table = (
        covariance * np.outer(unit, unit) * by_level + added
        for covariance in (terms.covariance, margins.covariance)
    )
    variance = np.ones_like(by_level)
    variance[:p, :p] = (1.0 - np.minimum(joint[:p, :p] ** 2, 1.0)) ** 2
    variance[:p, p:] = by_level[:p, p:]
    cell = np.clip(np.maximum(joint, table)[p:, p:], 0.0, 1.0)
    variance[p:, p:] = cell * (1.0 - cell)
    limit = np.full_like(by_level, _LIMITS[2])
    limit[:p, :p], limit[:p, p:] = _LIMITS[:2]
    return joint, table, np.sqrt(variance / fitted.report.total_weight), limit

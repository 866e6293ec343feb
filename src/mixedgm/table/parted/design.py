"""A table in parts -> PartedDesign: inspected and encoded part by part, never put together.

Every part is read once: its columns become arrays, with a summary that is added up over parts.
The same checks as for a table in memory decide kinds and levels by the summaries, and ask the parts
where these are not enough.  Then every part becomes a `Design`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol, Unpack, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding, NotYetError, TableError, near_matches
from mixedgm.base.parts.contract import Parts, Sums, View
from mixedgm.base.parts.local import LocalParts
from mixedgm.base.printable import quoted, rows
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.checks.check import (
    ONE_WEIGHT,
    Checked,
    ColumnOptions,
    Inspection,
    Reading,
    missing_of,
    raise_or_warn,
    resolve_options,
    size_findings,
)
from mixedgm.table.checks.columns import family_finding, shape_findings, text_finding
from mixedgm.table.checks.dependence import (
    FEWEST_ROWS,
    Sample,
    dependence_findings,
    sample_positions,
)
from mixedgm.table.checks.structural_gaps import StructuralGap, gap_counts, structural_gaps
from mixedgm.table.encode import Design, Matched, design_of
from mixedgm.table.missing import (
    Missing,
    WeightSummary,
    columns_gone,
    empty_findings,
    gap_finding,
    length_finding,
    ranked_gaps,
    weight_array,
    weight_finding,
)
from mixedgm.table.parted.columns import (
    MOST_LEVELS,
    ColumnSummary,
    PartedNumbers,
    PartPlan,
    PartSummary,
    RawPart,
    merged_columns,
    read_part,
)
from mixedgm.table.parted.sources import Source, is_dask, part_names, rows_at_once, source_of
from mixedgm.table.read import Frame, as_frame, without_column
from mixedgm.table.schema import Column, Level, Schema, drop_line
from mixedgm.table.values import Factor, Numbers, Values, as_levels


@dataclass(frozen=True, eq=False)
class PartedDesign:
    """A table in parts as numbers: every part is a `Design`.

    Examples
    --------
    >>> import polars as pl
    >>> from mixedgm.table.parted.sources import source_of
    >>> frame = pl.LazyFrame({"height": [1.7, 1.8, 1.6], "group": ["a", "b", "a"]})
    >>> design, _ = learn_parts(LocalReader(source_of(frame)))
    >>> design.n_rows, design.schema.names
    (3, ('height', 'group'))
    """

    schema: Schema
    parts: Parts[Design]
    sizes: tuple[int, ...]
    """Rows of every part; none is empty."""
    weight_sums: tuple[float, ...]
    """Sums of the weights of every part."""
    kept: None = field(default=None, init=False)
    row: None = field(default=None, init=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of observations, as criteria count them."""
        return float(sum(self.weight_sums))

    @cached_property
    def value_counts(self) -> NDArray[np.int64]:
        """(sum of levels,) how many rows have every value of every discrete column."""
        (counts,) = self.parts.total(_value_counts)
        return np.asarray(counts)

    @cached_property
    def number_moments(self) -> tuple[Floats, Floats]:
        """Means and variances of all design columns that are numbers."""
        total = self.total_weight
        (sums,) = self.parts.total(_number_sums)
        centre = np.asarray(sums / total)
        (squares,) = self.parts.total(_number_squares, centre)
        return centre, np.asarray(squares / total)

    def weight_of(self, chosen: NDArray[Any]) -> float:
        """Return the sum of the weights of some rows, by position in order."""
        return self.take(chosen).total_weight

    def take(self, chosen: NDArray[Any]) -> PartedDesign:
        """Return some of the rows: positions in order, none of them twice.

        They are taken anew whenever a part is visited.
        """
        ends = np.searchsorted(chosen, np.cumsum([0, *self.sizes]))
        starts = np.cumsum([0, *self.sizes[:-1]])
        masks = []
        for (a, b), start, size in zip(pairwise(ends), starts, self.sizes, strict=True):
            mask = np.zeros(size, dtype=bool)
            mask[chosen[a:b] - start] = True
            masks.append(np.packbits(mask))
        some = np.flatnonzero(np.diff(ends)).tolist()
        masks = [masks[k] for k in some]
        view = View(self.parts.only(some), _taken, each=masks)
        sizes, sums = zip(*view.map(_size), strict=True)
        return PartedDesign(self.schema, view, tuple(sizes), tuple(sums))


def _taken(part: Design, packed: NDArray[np.uint8]) -> Design:
    mask = np.unpackbits(packed, count=part.n_rows).view(np.bool_)
    return replace(part.take(mask), kept=None)


def _size(part: Design) -> tuple[int, float]:
    return part.n_rows, part.total_weight


def _n_rows(part: Design) -> int:
    return part.n_rows


def _value_counts(part: Design) -> Sums:
    columns = zip(part.codes.T, part.schema.n_levels, strict=True)
    counts = [np.bincount(column, minlength=n) for column, n in columns]
    return (np.concatenate([np.zeros(0, dtype=np.int64), *counts]),)


def _number_sums(part: Design) -> Sums:
    return (_weighted_sums(part, part.schema.spans.numbers(part.numbers, part.codes)),)


def _number_squares(part: Design, centre: Floats) -> Sums:
    columns = part.schema.spans.numbers(part.numbers, part.codes) - centre
    return (_weighted_sums(part, columns * columns),)


def _weighted_sums(part: Design, columns: Floats) -> Floats:
    return np.asarray(columns.sum(axis=0) if part.weights is None else part.weights @ columns)


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReadParts:
    """All parts of a table as arrays, with their summaries."""

    parts: Parts[RawPart]
    summaries: Sequence[PartSummary]
    labels: Sequence[str]
    """What messages call the parts."""
    findings: tuple[Finding, ...] = ()
    """About weights that do not fit the rows."""


@runtime_checkable
class Reader(Protocol):
    """Reads a table in parts, wherever they are."""

    @property
    def library(self) -> str:
        """The frame library of the parts."""

    def first(self) -> Any:
        """Return a frame with the columns and types of the first part, with or without rows."""

    def read(self, plan: PartPlan, weights: Floats | None) -> ReadParts:
        """Return all parts by this plan; `weights` of all rows, if they are given so."""


class LocalReader:
    """Reads parts in this process, one after the other; beyond `limit` bytes they go to files."""

    def __init__(self, source: Source, limit: int | None = None) -> None:
        self.limit, self.library = limit, source.library
        self._frames = source.frames()
        self._waiting = [next(self._frames)]

    def first(self) -> Any:
        """Return the first part, which is not read again."""
        return self._waiting[0][1]

    def read(self, plan: PartPlan, weights: Floats | None) -> ReadParts:
        """Return all parts by this plan."""
        parts: LocalParts[RawPart] = LocalParts(limit=self.limit)
        summaries, labels, at = [], [], 0
        for label, native in self._every():
            frame = as_frame(native)
            n = frame.n_rows
            some = None if weights is None else _padded(weights[at : at + n], n)
            part, at = read_part(frame, plan, some), at + n
            summaries.append(part.summary)
            labels.append(label)
            parts.append(replace(part, summary=_NO_SUMMARY))
        return ReadParts(parts, summaries, labels)

    def _every(self) -> Iterator[tuple[str, Any]]:
        while self._waiting:
            yield self._waiting.pop()
        yield from self._frames


_NO_SUMMARY = PartSummary((), 0, 0, {})


def _padded(weights: Floats, n: int) -> Floats:
    """Weights that are too few are an error, which is found when all rows are counted."""
    return weights if len(weights) == n else np.pad(weights, (0, n - len(weights)))


# -- learning --------------------------------------------------------------------------------------


def parts_of(X: object) -> Reader | None:
    """Return the reader of a table in parts; None for a table that is read whole.

    Examples
    --------
    >>> parts_of([[1.0, 2.0]]) is None
    True
    """
    if isinstance(X, Reader):
        return X
    if is_dask(X):
        from mixedgm.table.parted.dask_tables import dask_reader

        return dask_reader(X)
    source = source_of(X)
    return None if source is None else LocalReader(source)


def learn_parts(reader: Reader, **how: Unpack[Reading]) -> tuple[PartedDesign, tuple[Finding, ...]]:
    """Infer the schema of a table in parts and encode the parts by it.

    The parameters are those of `check_table`, and `sample_weight` may name a column.  Warnings are
    returned, and issued together as one TableWarning.

    Raises
    ------
    TableError
        With everything that is wrong with the table.
    NotYetError
        For what needs all rows at once.
    """
    checked = check_parts(reader, **how)
    raise_or_warn(checked.findings)
    return checked.design(), checked.findings


@dataclass(frozen=True, eq=False, repr=False)
class CheckedParts(Checked):
    """What a check of a table in parts shows; see `Checked`."""

    parts: Parts[RawPart] | None = None
    used: tuple[str, ...] = ()
    """Columns of which rows that are kept have a value."""
    dropped: bool = False
    """Whether rows with gaps are dropped."""

    def design(self) -> PartedDesign:
        """Return the parts, encoded by the schema; those that were read are given up."""
        assert self.parts is not None
        drops = self.used if self.dropped else ()
        schema = self._located(drops)
        levels = {c.name: c.levels for c in schema.discrete if c.has_levels}
        designs = self.parts.replaced(_encoded, schema, levels, drops)
        if isinstance(designs, LocalParts):
            designs = designs.joined(_joined, _n_rows, rows_at_once(len(schema.columns)))
        every = list(designs.map(_size))
        some = [k for k, (n, _) in enumerate(every) if n]
        sizes, sums = zip(*(every[k] for k in some), strict=True)
        kept = designs if len(some) == len(every) else designs.only(some)
        return PartedDesign(schema, kept, tuple(sizes), tuple(sums))

    def _located(self, drops: Collection[str]) -> Schema:
        """Return the schema with the means of hurdle columns where they are not zero."""
        assert self.parts is not None
        columns = list(self.schema.columns)
        for at, column in enumerate(columns):
            if column.node_kind.has_spike:
                total, sums = self.parts.total(_amounts, column.name, drops)
                columns[at] = replace(column, location=float(sums / total) if total else 0.0)
        return replace(self.schema, columns=tuple(columns))


def _amounts(part: RawPart, name: str, drops: Collection[str]) -> Sums:
    values = part.numbers(name)
    there = part.complete(drops) & ~np.isnan(values) & (values != 0.0)
    counts = there.astype(np.float64) if part.weights is None else there * part.weights
    return float(counts.sum()), float(counts[there] @ values[there])


def _encoded(
    part: RawPart,
    schema: Schema,
    levels: Mapping[str, Sequence[Level]],
    drops: Collection[str],
) -> Design:
    """Return the rows of a part that have all columns `drops`, by the schema."""
    values: dict[str, Values] = {}
    codes: dict[str, NDArray[np.int32]] = {}
    for column in schema.columns:
        name = column.name
        if name in levels:
            codes[name] = part.codes(name, levels[name])
        elif column.is_discrete:  # a count is its own code
            numbers = part.numbers(name)
            codes[name] = np.where(np.isnan(numbers), -1, numbers).astype(np.int32)
        else:
            values[name] = Values(name, part.numbers(name), "numpy", "number", "float64")
    keep = part.complete(drops) if drops else None
    keep = None if keep is None or keep.all() else keep
    weights = part.weights if part.weights is None or keep is None else part.weights[keep]
    matched = Matched((), values, codes, keep, weights, part.n_rows)
    return replace(design_of(schema, matched), kept=None)


def _joined(parts: Sequence[Design]) -> Design:
    if len(parts) == 1:
        return parts[0]
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    return Design(
        parts[0].schema,
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.codes for part in parts]),
        weights,
    )


def check_parts(
    reader: Reader, *, most_levels: int = MOST_LEVELS, **how: Unpack[Reading]
) -> CheckedParts:
    """Look at a table in parts and collect everything that is wrong or worth knowing.

    Text with more than `most_levels` levels is left out.
    """
    missing, sample_weight = missing_of(how), how.get("sample_weight")
    if missing == "model":
        raise NotYetError(
            "missing='model' needs all rows at once, and this table comes in parts. Use "
            "missing='drop', or load the table first if it fits in memory."
        )
    first = as_frame(reader.first())
    by_name = sample_weight if isinstance(sample_weight, str) else None
    first, findings = _without_weights(first, by_name)
    options, option_findings = resolve_options(first, how)
    if any(options.transformed(name) for name in first.names):
        raise NotYetError(
            "transforms rank all rows of a column at once, and this table comes in parts. "
            "Transform its columns before, or load the table first if it fits in memory."
        )
    given = None
    if sample_weight is not None and by_name is None:
        given, bad = weight_array(sample_weight)
        if bad is not None:
            raise TableError([bad])
    ignored = tuple(options.left_out)
    plan = PartPlan(first.names, options.kinds, by_name, ignored, most_levels)
    read = reader.read(plan, given)
    frame = replace(first, columns=(), n_rows=sum(each.n_read for each in read.summaries))
    findings += _name_findings(read, first.names, by_name)
    findings += size_findings(frame, minimum=2) + option_findings
    findings += _weight_findings(read, frame.n_rows, given)
    inspection = PartedInspection(frame, options, read, plan)
    inspection.read()
    gap = inspection.missing(missing)
    if inspection.n_rows > 1:
        inspection.decide(gap.empty)
        inspection.compare_complete(gap)
        inspection.look_for_dependence(gap.leave_out)
    findings += inspection.gap_findings(gap, missing, how.get("forbid"))
    return CheckedParts(
        Schema(tuple(inspection.schema), tuple(inspection.left_out)),
        tuple(findings + inspection.findings + shape_findings(inspection.shapes)),
        frame,
        options,
        inspection.values,
        inspection.factors,
        None,
        None,
        gap.leave_out,
        gap.n_kept if gap.dropped else inspection.n_rows,
        read.parts,
        tuple(name for name in inspection.values if name not in gap.empty),
        gap.dropped,
    )


def _without_weights(frame: Frame, name: str | None) -> tuple[Frame, list[Finding]]:
    """Return the frame without the column of weights, and the error that it has none."""
    if name is None:
        return frame, []
    if name not in frame.positions:
        hint = near_matches(name, frame.names)
        what = f"sample_weight names {quoted(name)}, which is not a column"
        return frame, [Finding(None, what, hint)]
    return without_column(frame, name), []


def _name_findings(read: ReadParts, names: Sequence[str], weights: str | None) -> list[Finding]:
    """Return errors about parts that have other columns than the first, or a column twice."""
    wanted = {*names} | ({weights} if weights is not None else set())
    findings = []
    for what, remedy, differ in (
        ("is absent in", "add it there, or leave it out everywhere", wanted.difference),
        ("is not in the first part, but in", "leave it out there", _others(wanted)),
        (
            "is the name of several columns in",
            "give each its own name",
            lambda part: _repeated(part) - _repeated(names),  # size_findings has those of the first
        ),
    ):
        where: dict[str, list[str]] = {}
        for label, part in zip(read.labels, read.summaries, strict=True):
            for name in differ(part.names):
                where.setdefault(name, []).append(label)
        findings += [
            Finding(name, f"{what} {part_names(labels)}", remedy) for name, labels in where.items()
        ]
    return findings


def _others(wanted: set[str]) -> Callable[[Sequence[str]], set[str]]:
    return lambda names: set(names) - wanted


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def _weight_findings(read: ReadParts, n_rows: int, given: Floats | None) -> list[Finding]:
    """Return what is wrong with the weights of all parts, or odd about them."""
    if given is not None and len(given) != n_rows:
        return [length_finding(len(given), n_rows)]
    total = WeightSummary()
    for part in read.summaries:
        if part.weights is None:
            return list(read.findings)
        total = total.merged(part.weights)
    found = weight_finding(total)
    findings = [] if found is None else [found]
    if n_rows > 1 and total.n_used == 1:
        findings.append(ONE_WEIGHT)
    return [*read.findings, *findings]


# -- inspection ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Values(Values):
    """One column of a table in parts."""

    summary: ColumnSummary | None = None

    def factor(self) -> Factor:
        """Return its levels with their counts; the codes are in the parts."""
        assert self.summary is not None
        return _CountedFactor.of(self.summary)

    def shown(self, *, text: bool) -> str:
        """Return the commonest values with counts."""
        return self.factor().listed()


@dataclass(frozen=True, eq=False)
class _CountedFactor(Factor):
    """Levels with their counts, and no codes."""

    level_counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, summary: ColumnSummary) -> _CountedFactor:
        levels, counts = summary.levels or (), summary.counts
        if summary.family == "number" and summary.numbers is not None:
            values = summary.numbers.values
            if not levels and values is not None:  # numbers that turned out to be codes
                levels, counts = tuple(values.tolist()), tuple(summary.numbers.counts.tolist())
            levels = as_levels([float(level) for level in levels])
        return cls(np.zeros(0, dtype=np.int32), levels, summary.ordered, counts)

    def counts(self, rows: Mask | None = None) -> NDArray[np.intp]:
        """Return how often each level occurs in all rows that count."""
        return np.array(self.level_counts, dtype=np.intp)

    def matched(self, levels: Sequence[Level], *, ordered: bool) -> Factor:
        """Return the same column with other levels, which has all that occur."""
        known = dict(zip(self.levels, self.level_counts, strict=True))
        counts = tuple(known.get(level, 0) for level in levels)
        return _CountedFactor(self.codes, tuple(levels), ordered, counts)


class PartedInspection(Inspection):
    """The columns of a table in parts while they are checked."""

    def __init__(
        self, frame: Frame, options: ColumnOptions, read: ReadParts, plan: PartPlan
    ) -> None:
        super().__init__(frame, options, None)
        self.most_levels = plan.most_levels
        self.parts, self.summaries = read.parts, read.summaries
        self.labels = read.labels
        self.n_rows = sum(part.n_rows for part in read.summaries)
        by_text = frame.library == "polars"  # its categories are sorted, those of others declared
        self.columns = merged_columns(read.summaries, plan, by_text=by_text)

    def _values(self, name: str, at: int) -> Values:
        summary = self.columns[name]
        family, dtype, whole = summary.family, summary.dtype, summary.whole
        nothing, library = np.zeros(0), self.frame.library
        return _Values(name, nothing, library, family, dtype, whole, summary)

    def _family_finding(self, values: Values, declared: Any) -> Finding | None:
        summary, name = self.columns[values.name], values.name
        if summary.conflict is not None:
            one, other = summary.conflict
            what = (
                f"its type changes between parts: {_NOUNS[one]} in some, {_NOUNS[other]} in others"
            )
            return Finding(name, what, "give it the same type in all parts")
        return summary.finding or family_finding(values, declared)

    def _text_finding(self, values: Values, factor: Factor) -> tuple[Finding | None, str | None]:
        if not self.columns[values.name].too_many:
            return text_finding(values, factor, factor.counts())
        size = f"more than {self.most_levels:,} distinct texts in {rows(self.n_rows)}"
        what = f"looks like an identifier or free text, so it is left out: {size}"
        remedy = f"{drop_line(values.name)} to silence this warning"
        return Finding(values.name, what, remedy, "warning"), f"identifier or free text: {size}"

    def _numbers(self, values: Values) -> Numbers:
        name, summary = values.name, self.columns[values.name]
        every = [part.columns.get(name) for part in self.summaries]
        counts = [0 if c is None or c.numbers is None else c.numbers.count for c in every]
        amounts = [0 if c is None or c.amounts is None else c.amounts.count for c in every]
        assert summary.numbers is not None
        of_summary = (summary.numbers, counts, summary.amounts, amounts)
        return PartedNumbers(name, self.parts, *of_summary)

    def _count_factor(self, values: Values, numbers: Numbers, largest: int) -> Factor:
        counts = tuple(numbers.tally(largest).tolist())
        nothing = np.zeros(0, dtype=np.int32)
        return _CountedFactor(nothing, tuple(range(largest + 1)), False, counts)

    # -- gaps --------------------------------------------------------------------------------------

    def missing(self, missing: str) -> Missing:
        """Return which columns have gaps, and what is to be done about them."""
        names, n_rows = list(self.values), self.n_rows
        if not n_rows or not names:
            return Missing(None, ())
        by_name = {name: self.columns[name].n_missing for name in names}
        empty = tuple(name for name, count in by_name.items() if count == n_rows)
        findings = tuple(empty_findings(empty))
        some = {name: count for name, count in by_name.items() if count and name not in empty}
        if not some:
            return Missing(None, findings, empty)
        ranked = ranked_gaps(some)
        by_last, n_nothing = self.parts.total(_by_last, list(ranked))
        n_gone, n_then = columns_gone(by_last, len(names) - len(empty))
        gone = list(ranked)[:n_gone]
        (costs,) = self.parts.total(_costs, list(ranked), gone)
        leave_out = tuple(name for name, n in zip(gone, costs, strict=True) if n)
        n_kept = int(by_last[0])
        n_usable = n_rows - (int(n_nothing) if len(ranked) == len(names) else 0)
        of_rows = (n_rows - n_kept, n_kept, n_usable)
        about = partial(gap_finding, ranked, of_rows, missing, True, (leave_out, n_then))
        dropped = missing == "drop"
        gaps = {name: np.zeros(0, dtype=np.uint8) for name in ranked}
        return Missing(None, findings, empty, leave_out, dropped, gaps, about, n_kept)

    def compare_complete(self, gap: Missing) -> None:
        """Find columns and levels that vary in the table, but not in its complete rows."""
        if not gap.dropped or gap.n_kept < 2:
            return
        used = list(self.values)
        flat: dict[str, Any] = {}
        lost: dict[str, list[Level]] = {}
        gone: dict[str, list[Level]] = {}
        for column in self.schema:
            name = column.name
            if not column.has_levels:
                ends = list(self.parts.map(_kept_range, used, name))
                low, high = min(a for a, _ in ends), max(b for _, b in ends)
                if low == high:
                    flat[name] = low
                continue
            factor = self.factors[name]
            (counts,) = self.parts.total(_kept_counts, used, name, factor.levels)
            here = np.flatnonzero((counts == 0) & (factor.counts() > 0))
            rest = [factor.levels[at] for at in here.tolist()]
            if np.count_nonzero(counts) == 1:
                flat[name] = rest
            elif rest:
                lost[name] = gone[name] = rest
        if lost:
            self.findings.append(gap.levels_finding(lost, self._gaps_among(gap, gone)))
        if flat:
            self.findings.append(gap.constant_finding(list(flat), self._gaps_among(gap, flat)))

    def _gaps_among(self, gap: Missing, other: Mapping[str, Any]) -> dict[str, int]:
        """Return gaps by column in rows with these levels, or with another number than this."""
        levels = {name: self.factors[name].levels for name in other if name in self.factors}
        (counts,) = self.parts.total(_gaps_where, list(gap.gaps), dict(other), levels)
        return {name: int(n) for name, n in zip(gap.gaps, counts, strict=True) if n}

    # -- dependence --------------------------------------------------------------------------------

    def look_for_dependence(self, leave_out: tuple[str, ...]) -> None:
        """Find columns that follow from others."""
        if self.n_rows < FEWEST_ROWS or not self.schema:
            return
        numeric, discrete = self._compared()
        view = _Decoded(numeric, {c.name: self._levels(c) for c in self.schema if c.is_discrete})
        # The sample stays where the parts are.
        found = partial(_sample_findings, discrete, leave_out, self._undeclared())
        names = list(numeric), list(discrete)
        self.findings += self.parts.combined(found, _piece, view, *names, each=self._some())

    def _some(self) -> list[NDArray[np.intp]]:
        """Return the positions of a sample of the rows, by part."""
        positions = sample_positions(self.n_rows, len(self.schema))
        ends = np.cumsum([0, *(part.n_rows for part in self.summaries)])
        cuts = np.searchsorted(positions, ends)
        return [positions[a:b] - at for (a, b), at in zip(pairwise(cuts), ends, strict=False)]

    def _structural_gaps(self) -> list[StructuralGap]:
        """Find columns that are missing where another has certain values."""
        names = [column.name for column in self.schema]
        if not names:
            return []
        levels = self._few_levels()
        sample = self.parts.combined(_put_together, _raw_piece, names, levels, each=self._some())

        def counts(by: str, column: str, marks: Sequence[Any] | None) -> NDArray[np.int64]:
            (total,) = self.parts.total(_gap_counts, by, column, marks, levels.get(by))
            return np.asarray(total)

        return structural_gaps(sample, levels, counts)

    def _levels(self, column: Column) -> Sequence[Level] | None:
        return self.factors[column.name].levels if column.has_levels else None


_NOUNS = {
    "number": "numbers",
    "boolean": "truth values",
    "text": "text",
    "category": "categories",
    "mixed": "mixed values",
    "other": "other values",
    "empty": "nothing",
}


def _by_last(part: RawPart, ranked: Sequence[str]) -> Sums:
    """Rows by how many of the ranked columns go before a row is complete; rows without any."""
    last, nothing = np.zeros(part.n_rows, dtype=np.intp), np.ones(part.n_rows, dtype=bool)
    for at, name in enumerate(ranked, 1):
        missing = part.missing(name)
        last[missing] = at
        nothing &= missing
    return np.bincount(last, minlength=len(ranked) + 2), int(np.count_nonzero(nothing))


def _costs(part: RawPart, ranked: Sequence[str], gone: Sequence[str]) -> Sums:
    """By column that goes: rows that are complete only without it and the others that go."""
    then = part.complete([name for name in ranked if name not in gone])
    return (np.array([np.count_nonzero(part.missing(name) & then) for name in gone], dtype=int),)


def _kept_range(part: RawPart, used: Sequence[str], name: str) -> tuple[float, float]:
    kept = part.numbers(name)[part.complete(used)]
    return float(kept.min(initial=np.inf)), float(kept.max(initial=-np.inf))


def _kept_counts(part: RawPart, used: Sequence[str], name: str, levels: Sequence[Level]) -> Sums:
    codes = part.codes(name, levels)[part.complete(used)]
    return (np.bincount(codes[codes >= 0], minlength=len(levels)),)


def _gaps_where(
    part: RawPart,
    gaps: Sequence[str],
    other: Mapping[str, Any],
    levels: Mapping[str, Sequence[Level]],
) -> Sums:
    vary = np.zeros(part.n_rows, dtype=bool)
    for name, what in other.items():
        if name in levels:
            codes = part.codes(name, levels[name])
            wanted = np.isin(np.arange(len(levels[name])), [levels[name].index(k) for k in what])
            vary |= np.append(wanted, False)[codes]
        else:
            numbers = part.numbers(name)
            vary |= ~np.isnan(numbers) & (numbers != what)
    return (np.array([np.count_nonzero(part.missing(name) & vary) for name in gaps], dtype=int),)


def _raw(part: RawPart, name: str, levels: Sequence[Level] | None) -> NDArray[Any]:
    return part.numbers(name) if levels is None else part.codes(name, levels)


def _raw_piece(
    part: RawPart,
    names: Sequence[str],
    levels: Mapping[str, Sequence[Level]],
    positions: NDArray[np.intp],
) -> dict[str, NDArray[Any]]:
    return {name: _raw(part, name, levels.get(name))[positions] for name in names}


def _put_together(pieces: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _gap_counts(
    part: RawPart,
    by: str,
    column: str,
    marks: Sequence[Any] | None,
    levels: Sequence[Level] | None,
) -> Sums:
    size = len(levels) if levels is not None else len(marks or ()) + 1
    return (gap_counts(_raw(part, by, levels), marks, size, part.missing(column)),)


@dataclass(frozen=True, eq=False)
class _Decoded:
    """How columns of a part are compared with each other."""

    numeric: Mapping[str, Column]
    levels: Mapping[str, Sequence[Level] | None]
    """Of discrete columns; None for counts, which are their own codes."""

    def numbers(self, part: RawPart, name: str) -> Floats:
        column = self.numeric[name]
        if not column.is_discrete:
            return part.numbers(name)
        codes = self.codes(part, name)
        return np.where(codes < 0, np.nan, column.own_scores[codes])

    def codes(self, part: RawPart, name: str) -> NDArray[np.int32]:
        levels = self.levels[name]
        if levels is not None:
            return part.codes(name, levels)
        numbers = part.numbers(name)
        return np.where(np.isnan(numbers), -1, numbers).astype(np.int32)


def _piece(
    part: RawPart,
    view: _Decoded,
    numeric: Sequence[str],
    discrete: Sequence[str],
    positions: NDArray[np.intp],
) -> tuple[dict[str, Floats], dict[str, NDArray[np.int32]]]:
    numbers = {name: view.numbers(part, name)[positions] for name in numeric}
    return numbers, {name: view.codes(part, name)[positions] for name in discrete}


def _sample_findings(
    n_levels: Mapping[str, int],
    sparse: Sequence[str],
    undeclared: Sequence[str],
    pieces: list[tuple[dict[str, Any], dict[str, Any]]],
) -> list[Finding]:
    numbers, codes = (_put_together([piece[k] for piece in pieces]) for k in (0, 1))
    return dependence_findings(Sample(numbers, codes, n_levels, sparse, undeclared))

"""Weights and gaps of the rows in -> the rows that are used, and columns to leave out for more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedgm.base.errors import Finding
from mixedgm.base.printable import counted, few, literal, number_of, quoted, rows
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.schema import drop_line
from mixedgm.table.values import as_doubles

Packed = NDArray[np.uint8]

_MOST = 10  # columns named in one finding
# Doubles do not hold every whole number of observations beyond this one.
_MOST_WEIGHT = 2.0**53
_LIGHT = 1e-12  # share of the sum below which a weight is lost to rounding


def read_weights(
    sample_weight: ArrayLike | None, n_rows: int
) -> tuple[Floats | None, list[Finding]]:
    """Return sample weights as floats, None when there are none or they cannot be used.

    The findings are errors, or a warning when the sum is far from the number of rows.
    """
    if sample_weight is None:
        return None, []
    weights, bad = weight_array(sample_weight)
    if bad is None and len(weights) != n_rows:
        bad = length_finding(len(weights), n_rows)
    if bad is not None or not n_rows:
        return None, [] if bad is None else [bad]
    found = weight_finding(WeightSummary.of(weights), weights)
    usable = found is None or found.severity == "warning"
    return weights if usable else None, [] if found is None else [found]


def weight_array(sample_weight: ArrayLike) -> tuple[Floats, Finding | None]:
    """Return weights as an array, and the error that they are not numbers or not 1-D."""
    try:
        weights = as_doubles(sample_weight)
    except (TypeError, ValueError):
        return np.zeros(0), Finding(None, "sample_weight holds values that are not numbers", "")
    if weights.ndim == 1:
        return weights, None
    what = f"sample_weight must be a 1-D array, one weight for each row; got shape {weights.shape}"
    return np.zeros(0), Finding(None, what, "")


def present_rows(weights: Floats | None) -> Mask | None:
    """Return where weights are positive; None when that is everywhere."""
    return None if weights is None or (weights > 0).all() else weights > 0


def length_finding(n_weights: int, n_rows: int) -> Finding:
    """Return the error that weights are not as many as rows."""
    what = f"sample_weight has {_entries(n_weights)}, but the table has {rows(n_rows)}"
    return Finding(None, what, "")


@dataclass(frozen=True, eq=False)
class WeightSummary:
    """Sums of weights, and what is wrong with them."""

    total: float = 0.0
    n_used: int = 0
    n_infinite: int = 0
    n_negative: int = 0
    smallest: float = np.inf

    @classmethod
    def of(cls, weights: Floats) -> WeightSummary:
        """Summarise weights; missing ones count as infinite."""
        finite = np.isfinite(weights)
        good = weights[finite & (weights > 0.0)]
        with np.errstate(over="ignore"):
            total = float(good.sum())
        return cls(
            total,
            len(good),
            int(np.count_nonzero(~finite)),
            int(np.count_nonzero(weights < 0.0)),
            float(good.min(initial=np.inf)),
        )

    def merged(self, other: WeightSummary) -> WeightSummary:
        """Return the summary of both."""
        return WeightSummary(
            self.total + other.total,
            self.n_used + other.n_used,
            self.n_infinite + other.n_infinite,
            self.n_negative + other.n_negative,
            min(self.smallest, other.smallest),
        )


def _entry_error(infinite: int, negative: int) -> Finding | None:
    if infinite:
        entries = f"{_entries(infinite)} that {'is' if infinite == 1 else 'are'}"
        what = f"sample_weight has {entries} missing or infinite (NaN or inf)"
        return Finding(None, what, "weight 0 leaves a row out")
    if negative:
        what = f"sample_weight has {_entries(negative, 'negative ')}"
        return Finding(None, what, "use weights >= 0")
    return None


def weight_finding(summary: WeightSummary, weights: Floats | None = None) -> Finding | None:
    """Return what is wrong with weights, or odd about them; `weights` where they are at hand."""
    total, smallest = summary.total, summary.smallest
    bad = _entry_error(summary.n_infinite, summary.n_negative)
    if bad is not None:
        return bad
    if not summary.n_used:
        return Finding(None, "every sample_weight is zero, so no row counts", "")
    if total > _MOST_WEIGHT:
        what = f"sample_weight sums to {total:g}; the sum is a number of observations"
        return Finding(None, f"{what}, at most {_MOST_WEIGHT:g}", "divide it by its largest value")
    least = _LIGHT * total
    if smallest < least:
        some = "entries"
        if weights is not None:
            some = _entries(int(np.count_nonzero((weights > 0.0) & (weights < least))))
        what = f"sample_weight has {some} too small to count, down to {smallest:g}"
        remedy = f"set those below {least:.2g} to 0, which leaves their rows out"
        return Finding(None, f"{what}, in a sum of {total:g}", remedy)
    return _sum_finding(total, summary.n_used)


def _sum_finding(total: float, n_used: int) -> Finding | None:
    if 0.5 * n_used <= total <= 2 * n_used:
        return None
    what = (
        f"sample_weight sums to {total:g} over {rows(n_used)} with positive weight; the sum is the "
        "number of observations that every criterion counts"
    )
    remedy = "sample_weight * (n / sample_weight.sum()), unless the weights are frequencies"
    return Finding(None, what, remedy, "warning")


def _entries(count: int, sort: str = "") -> str:
    return number_of(count, f"{sort}entry", f"{sort}entries")


@dataclass(frozen=True, eq=False)
class Missing:
    """Which rows are usable, and findings about missing values."""

    keep: Mask | None  # rows with positive weight and without gaps; None when that is all rows
    findings: tuple[Finding, ...]
    empty: tuple[str, ...] = ()  # columns in which every value is missing
    leave_out: tuple[str, ...] = ()  # without them, most cells of the table are in complete rows
    dropped: bool = False  # whether rows with positive weight are dropped
    gaps: Mapping[str, Packed] = field(default_factory=dict)  # by column, the most gaps first
    about_gaps: Callable[[Collection[str]], Finding] | None = None  # given structural gaps
    n_kept: int = 0  # rows without gaps, where others are dropped

    def all_findings(self, structural: Collection[str] = ()) -> list[Finding]:
        """Return all findings; columns with `structural` gaps have to be settled before a model."""
        last = [self.about_gaps(structural)] if self.about_gaps is not None else []
        return [*self.findings, *last]

    def kept(self, weights: Floats | None) -> Floats | None:
        """Return the weights of the rows that are kept."""
        return weights if weights is None or self.keep is None else weights[self.keep]

    def constant_finding(self, names: Sequence[str], counts: Mapping[str, int]) -> Finding:
        """Return the error about columns that vary in the table, but not in its complete rows.

        `counts` are gaps by column in the rows with another value than the complete rows have, in
        any of the columns.  The error names the columns whose gaps are the cause.
        """
        one, n_kept = len(names) == 1, self.n_kept
        what = (
            f"{'it is' if one else f'{len(names)} columns are'} constant in the {n_kept:,} "
            "complete rows, though not in the table"
        )
        what += "" if one else f": {few(names)}"
        cause = f"the other values are in rows with gaps in {counted(counts.items())}"
        remedy = f"{drop_line(*self._blamed(counts))}, or fill in the gaps"
        return Finding(names[0] if one else None, f"{what}; {cause}", remedy)

    def levels_finding(
        self, lost: Mapping[str, Sequence[object]], counts: Mapping[str, int]
    ) -> Finding:
        """Return the warning about levels that occur in dropped rows only.

        `counts` are gaps by column in those rows.
        """
        listed = few(list(lost.items()), 5, lambda pair: f"{quoted(pair[0])} ({few(pair[1], 3)})")
        what = f"levels without complete rows: {listed}{' columns' if len(lost) > 5 else ''}"
        gaps = counted(counts.items())
        remedy = f"fill in the gaps of {gaps}, or {drop_line(*self._blamed(counts))}"
        return Finding(None, what, remedy, "warning")

    def counts_among(self, among: Mask) -> dict[str, int]:
        """Return how many of some rows have a gap, by column."""
        packed = np.packbits(among)
        counts = {n: int(np.bitwise_count(gap & packed).sum()) for n, gap in self.gaps.items()}
        return {name: count for name, count in counts.items() if count}

    def _blamed(self, counts: Mapping[str, int]) -> list[str]:
        """Return the proposed columns that have gaps there, or else the column with most gaps."""
        proposed = [name for name in self.leave_out if name in counts]
        return proposed or [max(counts, key=counts.__getitem__)]


def empty_findings(names: Iterable[str]) -> list[Finding]:
    """Return errors about columns without any value."""
    return [Finding(name, "all of its values are missing", drop_line(name)) for name in names]


def check_missing(
    gaps: Iterable[tuple[str, Mask]],
    weights: Floats | None,
    missing: str,
    *,
    learning: bool,
    covariates: Collection[str] = (),
) -> Missing:
    """Find the rows without missing values; those with weight zero count as absent.

    Gaps are an error, or their rows are dropped, or (`missing="keep"`) they are left alone, or
    ("model") kept where they can be modelled: in rows that have any value, and not in covariates.
    Where a schema is being learnt, a column without any value is an error, and two rows have to
    remain; new data needs one.
    """
    present = present_rows(weights)
    counts: dict[str, int] = {}
    packed: dict[str, Packed] = {}
    empty: list[str] = []
    incomplete: Mask | None = None
    n_columns = 0
    for name, gap in gaps:
        n_columns += 1
        gap = gap if present is None else gap & present
        count = int(np.count_nonzero(gap))
        n_present = len(gap) if present is None else int(np.count_nonzero(present))
        if learning and count == n_present:
            empty.append(name)
        elif count:
            counts[name] = count
            incomplete = gap if incomplete is None else incomplete | gap
            if learning:
                packed[name] = np.packbits(gap)
    findings = empty_findings(empty)
    if incomplete is None or missing == "keep":
        return Missing(present, tuple(findings), tuple(empty))
    if missing == "model":
        return _modelled(packed, present, len(incomplete), n_columns, empty, covariates)
    keep = ~incomplete if present is None else present & ~incomplete
    n_kept = int(np.count_nonzero(keep))
    ranked = ranked_gaps(counts)
    packed = {name: packed[name] for name in ranked if learning}
    leave_out, n_then = _proposal(packed, keep, present, n_columns - len(empty))
    n_incomplete = int(np.count_nonzero(incomplete))
    n_usable = n_kept + n_incomplete
    if learning:
        n_usable -= int(np.count_nonzero(_nothing_known(packed, n_columns, len(keep)) & ~keep))
    of_rows = (n_incomplete, n_kept, n_usable)
    about = partial(gap_finding, ranked, of_rows, missing, learning, (leave_out, n_then))
    dropped = missing == "drop"
    return Missing(keep, tuple(findings), tuple(empty), leave_out, dropped, packed, about, n_kept)


def ranked_gaps(counts: Mapping[str, int]) -> dict[str, int]:
    """Return gaps by column, the most first."""
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def gap_finding(
    ranked: Mapping[str, int],
    of_rows: tuple[int, int, int],
    missing: str,
    learning: bool,
    proposal: tuple[tuple[str, ...], int],
    structural: Collection[str] = (),
) -> Finding:
    """Return the finding about gaps, ranked by column, where they are refused or dropped.

    of_rows = (rows with gaps, complete ones, all that have any value); proposal = (columns to leave
    out, how many rows are then complete).
    """
    (n_incomplete, n_kept, _), (leave_out, n_then) = of_rows, proposal
    advice = ""
    if leave_out:
        those = f"{n_then:,} of {n_kept + n_incomplete:,} rows are then complete"
        advice = f"{drop_line(*leave_out)}: {those}, instead of {n_kept:,}"
    if missing == "drop" and n_kept < 1 + learning:
        left = "no row is" if n_kept == 0 else "only 1 row (1 sample) is"
        what = f'{left} left after missing="drop": gaps in {counted(ranked.items())}'
        remedy = advice or "leave out the columns with most missing values, or fill them in"
        return Finding(None, what, remedy)
    unsettled = [name for name in ranked if name in structural]
    return _missing_finding(ranked, of_rows, missing, learning, advice, unsettled)


def _proposal(
    packed: Mapping[str, Packed], keep: Mask, present: Mask | None, n_columns: int
) -> tuple[tuple[str, ...], int]:
    """Return columns to leave out, and the number of rows that are then complete.

    Columns are dropped one after the other, the one with most gaps first, as long as the number of
    cells in complete rows (rows times columns) grows. One that costs no row is then put back.
    """
    n_rows = len(keep)
    last = np.zeros(n_rows, dtype=np.intp)  # how many columns go before a row is complete
    for at, gap in enumerate(packed.values(), 1):
        last[np.unpackbits(gap, count=n_rows).view(np.bool_)] = at
    if present is not None:
        last[~present] = len(packed) + 1
    n_gone, n_then = columns_gone(np.bincount(last, minlength=len(packed) + 2), n_columns)
    then = np.packbits(last <= n_gone)
    gone = list(packed)[:n_gone]
    return tuple(name for name in gone if (packed[name] & then).any()), n_then


def columns_gone(by_last: NDArray[np.intp], n_columns: int) -> tuple[int, int]:
    """Return how many of the columns with gaps, the most first, are best left out.

    `by_last` counts the rows by how many of these columns have to go before a row is complete; the
    last entry is that of rows which do not count.  And how many rows are then complete.
    """
    complete = np.cumsum(by_last[:-1])
    n_gone = int(np.argmax(complete * (n_columns - np.arange(len(complete)))))
    return n_gone, int(complete[n_gone])


def _missing_finding(
    ranked: Mapping[str, int],
    n_rows: tuple[int, int, int],
    missing: str,
    learning: bool,
    more: str,
    unsettled: Sequence[str],
) -> Finding:
    """Return the finding that ranks columns by the rows that each alone costs.

    n_rows = (rows with gaps, complete ones, all that have any value); `more` is other advice, and
    columns that are `unsettled` have gaps that another column decides about.
    """
    n_gappy, n_complete, n_usable = n_rows
    model = f'missing="model" uses all {n_usable:,} rows'
    if unsettled:
        settled = "is settled" if len(unsettled) == 1 else "are settled"
        model += f", once {few(unsettled)} {settled} (see below)"
    listed = few(list(ranked.items()), _MOST, lambda pair: f"{quoted(pair[0])} ({pair[1]:,})")
    if missing == "drop":
        what = f"{rows(n_gappy)} dropped because of missing values (NaN or null) in {listed}"
        lead = f"{model}; or "
        lead += f"{more}; or " if more else ""
        return Finding(None, what, f"{lead}fill in the values first", "warning")
    column = next(iter(ranked)) if len(ranked) == 1 else None
    if column is not None:
        what = f"{n_gappy:,} missing {'value' if n_gappy == 1 else 'values'} (NaN or null)"
    else:
        what = f"missing values (NaN or null) in {rows(n_gappy)}, by column: {listed}"
    those, them = ("row", "it") if n_gappy == 1 else (f"{n_gappy:,} rows", "them")
    if not learning:  # predict and score have no such option
        return Finding(column, what, f"drop the {those}, or fill {them} in")
    complete = {0: "none, as no row is complete", 1: "the 1 complete one"}
    dropped = complete.get(n_complete, f"the {n_complete:,} complete ones")
    remedy = f'{model}, missing="drop" {dropped}'
    remedy += f"; or {more}" if more else ""
    return Finding(column, what, f"{remedy}; or fill {them} in")


def _nothing_known(packed: Mapping[str, Packed], n_columns: int, n_rows: int) -> Mask:
    """Return the rows in which every column is missing."""
    if len(packed) < n_columns:
        return np.zeros(n_rows, dtype=bool)
    together = np.bitwise_and.reduce(list(packed.values()))
    return np.unpackbits(together, count=n_rows).view(np.bool_)


def _modelled(
    packed: Mapping[str, Packed],
    present: Mask | None,
    n_rows: int,
    n_columns: int,
    empty: Sequence[str],
    covariates: Collection[str],
) -> Missing:
    """Return the rows with any value, and what their gaps mean for a model of them."""
    nothing = _nothing_known(packed, n_columns, n_rows)
    keep = ~nothing if present is None else present & ~nothing
    n_kept, counted_rows = int(np.count_nonzero(keep)), np.packbits(keep)
    findings = empty_findings(empty)
    n_empty_rows = int(np.count_nonzero(nothing if present is None else nothing & present))
    if n_empty_rows:
        what = f"{rows(n_empty_rows)} left out: every value is missing"
        findings.append(Finding(None, what, "", "warning"))
    there = {name: counted_rows & ~gap for name, gap in packed.items()}
    known = {name: int(np.bitwise_count(mask).sum()) for name, mask in there.items()}
    for name, count in known.items():
        if name in covariates:
            what = f"it is a covariate, and {rows(n_kept - count)} lack it"
            remedy = (
                "leave it out of covariates, so that it is modelled too; or fill in its values, or "
                "drop those rows: the model describes the effects of covariates, not their values"
            )
            findings.append(Finding(name, what, remedy))
        elif count < min(FEW_KNOWN, 0.5 * n_kept):
            what = f"only {number_of(count, 'value is', 'values are')} known, in {rows(n_kept)}"
            what += ", so its edges rest on few rows"
            findings.append(Finding(name, what, drop_line(name), "warning"))
    n_gaps = sum(n_kept - count for count in known.values())
    if n_kept and n_gaps > 0.4 * n_kept * n_columns:
        what = (
            f"{n_gaps / (n_kept * n_columns):.0%} of all values are missing; missing_report() says "
            "how much that takes from every edge"
        )
        findings.append(Finding(None, what, "", "warning"))
    findings += _never_together(there)
    return Missing(keep, tuple(findings), tuple(empty), gaps=packed)


FEW_KNOWN = 30


def _never_together(there: Mapping[str, Packed]) -> list[Finding]:
    """Return the warning about pairs of columns that no row has both of."""
    names = list(there)
    if not names:
        return []
    known = np.unpackbits(np.array([there[name] for name in names]), axis=1).astype(np.float32)
    pairs = np.argwhere(np.triu(known @ known.T == 0.0, 1)).tolist()
    if not pairs:
        return []
    named = [f"{quoted(names[u])} and {quoted(names[v])}" for u, v in pairs[:5]]
    more = f" and {len(pairs) - 5:,} more pairs" if len(pairs) > 5 else ""
    what = (
        f"no row has both {', '.join(named)}{more}: an edge between them rests on the penalty and "
        "on other columns alone"
    )
    u, v = pairs[0]
    return [Finding(None, what, f"forbid=[({literal(names[u])}, {literal(names[v])})]", "warning")]

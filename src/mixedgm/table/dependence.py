"""Some rows of all columns in -> findings about columns that (nearly) follow from others.

Candidates come from a sample of the rows, by a few products of matrices for all pairs at once;
each is then confirmed on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mixedgm.errors import Finding
from mixedgm.printable import few, quoted, rows
from mixedgm.table.schema import drop_line

__all__ = [
    "FEWEST_ROWS",
    "MOST_VALUES",
    "AllRows",
    "Candidates",
    "Sample",
    "SampledNames",
    "WholeColumns",
    "dependence_findings",
    "sample_rows",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_SAMPLE_ROWS = 5_000
_SAMPLE_CELLS = 20_000_000
FEWEST_ROWS = 20
MOST_VALUES = 200
"""Of a column that is compared value by value; a count may have many more."""
_UNEXPLAINED = 1e-5  # share of the variance that rounding may leave
_WRONG = 0.01  # share of the rows off the commonest level that may be exceptions
_ROWS_PER_LEVEL = 5  # fewer are no evidence about a level
_MOST_NUMBERS = 2_000  # beyond, only exact multiples are looked for
_MOST_LEVELS = 3_000  # beyond, only copies of categories
_MOST_WORK = 2e10  # multiplications in one product
_MOST_CANDIDATES = 1_000
_MOST_FINDINGS = 10


Pairs = list[tuple[str, str]]


class SampledNames(NamedTuple):
    """The columns that are compared."""

    numbers: Sequence[str]  # continuous columns and scores
    codes: Sequence[str]  # columns with few values


class Candidates(Protocol):
    """What a sample of the rows suggests, by names of columns."""

    def multiples(self) -> Pairs:
        """Pairs of numbers with a correlation of about 1 or -1."""

    def sums(self, repeated: Collection[str]) -> list[list[str]]:
        """Numbers that follow from others, the last of each list; `repeated` are left out."""

    def nested(self) -> Pairs:
        """Categories of which the first seems to determine the second."""

    def determined(self, tied: Collection[str]) -> Pairs:
        """Categories, and numbers that they seem to determine; `tied` numbers are left out."""


class AllRows(Protocol):
    """What is confirmed on all rows, by names of columns."""

    def unexplained(self, first: str, second: str) -> float:
        """1 - r^2 of two numbers, over the rows that have both; 1 where these are few."""

    def smallest_share(self, members: Sequence[str]) -> float:
        """The smallest eigenvalue of the correlations of numbers, over rows that have all.

        1 where these are few.
        """

    def table(self, first: str, second: str, sizes: tuple[int, int]) -> Floats:
        """(levels, levels) how often two levels go together."""

    def within(self, category: str, number: str) -> tuple[int, Floats]:
        """How many rows have both; and by level its rows, its sum and sum of squares.

        Of a number with mean 0 and variance 1.
        """


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table."""

    numbers: Mapping[str, Floats]  # continuous columns and scores; NaN where a value is missing
    codes: Mapping[str, Codes]  # columns with few values; -1 where a value is missing
    n_levels: Mapping[str, int]  # of these columns
    sparse: Collection[str] = ()  # so many gaps that they are not looked at together with others

    def multiples(self) -> Pairs:
        """Pairs of numbers with a correlation of about 1 or -1."""
        names, columns = list(self.numbers), list(self.numbers.values())
        z = _standardised(columns)
        if len(names) <= _MOST_NUMBERS:
            pairs = _correlated_pairs(z, np.column_stack(columns))
        else:
            pairs = _equal_projections(z)
        return [(names[i], names[j]) for i, j in pairs[:_MOST_CANDIDATES]]

    def sums(self, repeated: Collection[str]) -> list[list[str]]:
        """Numbers that follow from others, the last of each list."""
        return _dependent_members(self, repeated)

    def nested(self) -> Pairs:
        """Categories of which the first seems to determine the second."""
        names = list(self.codes)
        total = sum(self.n_levels[name] for name in names)
        pairs = _nested_pairs(self, total) if total <= _MOST_LEVELS else _copied_pairs(self)
        return [(names[a], names[b]) for a, b in pairs[:_MOST_CANDIDATES]]

    def determined(self, tied: Collection[str]) -> Pairs:
        """Categories, and numbers that they seem to determine."""
        return _determined_pairs(self, tied)


@dataclass(frozen=True, eq=False)
class WholeColumns:
    """All rows of a table in memory, a column at a time."""

    numbers: Callable[[str], Floats]
    codes: Callable[[str], Codes]

    def unexplained(self, first: str, second: str) -> float:
        """1 - r^2 of two numbers over the rows that have both."""
        x, y = self.numbers(first), self.numbers(second)
        both = ~(np.isnan(x) | np.isnan(y))
        if np.count_nonzero(both) < FEWEST_ROWS:
            return 1.0
        table = _standardised([x[both], y[both]])
        if not table.any(axis=0).all():
            return 1.0
        correlation = float((table[:, 0] * table[:, 1]).mean())
        return 1.0 - correlation**2

    def smallest_share(self, members: Sequence[str]) -> float:
        """The smallest eigenvalue of correlations over the rows that have all members."""
        table = np.column_stack([self.numbers(name) for name in members])
        table = table[~np.isnan(table).any(axis=1)]
        if len(table) < len(members) + FEWEST_ROWS:
            return 1.0
        z = _standardised(list(table.T))
        return float(np.linalg.eigvalsh(z.T @ z / len(z))[0])

    def table(self, first: str, second: str, sizes: tuple[int, int]) -> Floats:
        """How often two levels go together."""
        return joint_counts(self.codes(first), self.codes(second), sizes)

    def within(self, category: str, number: str) -> tuple[int, Floats]:
        """Rows, sums and sums of squares of a standardised number, by level."""
        codes, numbers = self.codes(category), self.numbers(number)
        both = (codes >= 0) & ~np.isnan(numbers)
        return int(np.count_nonzero(both)), sums_by_level(
            codes[both], _standardised([numbers[both]])[:, 0], int(codes.max(initial=0)) + 1
        )


def joint_counts(a: Codes, b: Codes, sizes: tuple[int, int]) -> Floats:
    """Return (levels, levels) how often two levels go together."""
    both = (a >= 0) & (b >= 0)
    pairs = a[both].astype(np.int64) * sizes[1] + b[both]
    return np.bincount(pairs, minlength=sizes[0] * sizes[1]).reshape(sizes).astype(np.float64)


def sums_by_level(codes: Codes, x: Floats, n_levels: int) -> Floats:
    """Return (3, levels) rows, sums and sums of squares by level."""
    weights = (None, x, x * x)
    return np.array([np.bincount(codes, each, n_levels) for each in weights], dtype=np.float64)


def sample_rows(rows: NDArray[np.intp], n_columns: int) -> NDArray[np.intp]:
    """Return evenly spaced rows, as many as are enough to find candidates."""
    return rows[sample_positions(len(rows), n_columns)]


def sample_positions(n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Return evenly spaced positions, as many as are enough to find candidates."""
    most = min(_SAMPLE_ROWS, max(200, _SAMPLE_CELLS // max(1, n_columns)))
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.intp)


def dependence_findings(
    names: SampledNames, sample: Candidates, every: AllRows, n_levels: Mapping[str, int]
) -> list[Finding]:
    """Return warnings about columns that are determined by others, or nearly so.

    Numbers that are linear functions of one or of several others, categories that are nested in
    others, and numbers that a category determines. At most ten findings of each kind.
    """
    findings, repeated, tied = _multiples(names, sample, every)
    findings += _sums(names, sample, every, repeated)
    findings += _nested(names, sample, every, n_levels)
    return findings + _determined_numbers(names, sample, every, tied)


# -- numbers ---------------------------------------------------------------------------------------


def _standardised(columns: Sequence[Floats]) -> Floats:
    """Return columns with mean 0 and variance 1 over their values, zeros where these are missing.

    A column that does not vary in the sample is zero.
    """
    table = np.column_stack(columns)
    gap = np.isnan(table)
    count = np.maximum(len(table) - gap.sum(axis=0), 1)
    table[gap] = 0.0
    table -= table.sum(axis=0) / count
    table[gap] = 0.0
    largest = np.abs(table).max(axis=0)
    table /= np.where(largest > 0, largest, 1.0)
    scale = np.sqrt((table * table).sum(axis=0) / count)
    table /= np.where(scale > 0, scale, 1.0)
    return table


def _multiples(
    names: SampledNames, sample: Candidates, every: AllRows
) -> tuple[list[Finding], set[str], set[str]]:
    """Return findings about columns that are linear functions of one other, and all but one.

    Scores of columns with few values are left to the comparison of values; the numbers that are
    linear functions of such scores come last.
    """
    if len(names.numbers) < 2:
        return [], set(), set()
    linked = [pair for pair in sample.multiples() if every.unexplained(*pair) < _UNEXPLAINED]
    findings: list[Finding] = []
    repeated: set[str] = set()
    coded = set(names.codes)
    for members in _clusters(linked, names.numbers):
        first, *rest = members
        repeated |= set(rest)
        if coded >= set(members):
            continue
        which = f"{few(rest)} {'is a' if len(rest) == 1 else 'are'} linear "
        which += f"{'function' if len(rest) == 1 else 'functions'} of {quoted(first)}"
        what = f"{which} (1 - r^2 below {_UNEXPLAINED:g}): such an edge outweighs all others"
        findings.append(Finding(None, what, drop_line(*rest), "warning"))
    tied = {name for pair in linked if coded & set(pair) for name in pair}
    return findings[:_MOST_FINDINGS], repeated, tied


def _correlated_pairs(z: Floats, table: Floats) -> list[tuple[int, int]]:
    """Return pairs of columns with a correlation of about 1 or -1 over the rows that have both."""
    here = (~np.isnan(table)).astype(np.float64)
    count: Floats | int
    if here.all():
        correlation, count = z.T @ z / len(z), len(z)
    else:
        count = here.T @ here
        squares = (z * z).T @ here
        sums = z.T @ here
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = squares - sums**2 / count
            correlation = (z.T @ z - sums * sums.T / count) / np.sqrt(spread * spread.T)
    near = np.triu((np.abs(correlation) > 1.0 - _UNEXPLAINED) & (count >= FEWEST_ROWS), 1)
    return [(int(i), int(j)) for i, j in np.argwhere(near)[:_MOST_CANDIDATES]]


def _equal_projections(z: Floats) -> list[tuple[int, int]]:
    """Return neighbours in the order of a random projection that agree in another one."""
    weights = np.random.default_rng(0).normal(size=(2, len(z)))
    first, second = np.abs(weights @ z)
    order = np.argsort(first, kind="stable")
    close = 1e-6 * len(z) ** 0.5
    equal = (np.diff(first[order]) < close) & (np.abs(np.diff(second[order])) < close)
    at = np.flatnonzero(equal)
    return [(int(min(pair)), int(max(pair))) for pair in zip(order[at], order[at + 1], strict=True)]


def _clusters(pairs: Sequence[tuple[str, str]], names: Sequence[str]) -> list[list[str]]:
    """Return the groups of names that pairs tie together, each in the order of the table."""
    root: dict[str, str] = {}

    def top(name: str) -> str:
        while name in root:
            name = root[name]
        return name

    for a, b in pairs:
        one, other = top(a), top(b)
        if one != other:
            root[other] = one
    groups: dict[str, list[str]] = {}
    tied = {name for pair in pairs for name in pair}
    for name in names:
        if name in tied:
            groups.setdefault(top(name), []).append(name)
    return list(groups.values())


def _sums(
    names: SampledNames, sample: Candidates, every: AllRows, repeated: set[str]
) -> list[Finding]:
    """Return findings about columns that are linear functions of several others."""
    if len(names.numbers) < 3:
        return []
    findings = []
    for members in sample.sums(repeated):
        dependent = members[-1]
        members = [name for name in names.numbers if name in set(members)]
        if not every.smallest_share(members) < _UNEXPLAINED:
            continue
        what = (
            f"{few(members, 10)} are linearly dependent: each follows from the others "
            f"(1 - R^2 below {_UNEXPLAINED:g}), as a total does from its parts"
        )
        remedy = f"{drop_line(dependent)}, or another one of them"
        findings.append(Finding(None, what, remedy, "warning"))
    return findings


def _dependent_members(sample: Sample, repeated: Collection[str]) -> list[list[str]]:
    """Return columns that are linear functions of others, each behind those."""
    from scipy.linalg import cho_solve, lapack

    names = [n for n in sample.numbers if n not in repeated and n not in sample.sparse]
    if not 3 <= len(names) <= _MOST_NUMBERS:
        return []
    table = np.column_stack([sample.numbers[name] for name in names])
    table = table[~np.isnan(table).any(axis=1)]
    if len(table) < len(names) + FEWEST_ROWS:
        return []
    z = _standardised(list(table.T))
    varies = np.flatnonzero(z.any(axis=0))
    names, z = [names[at] for at in varies], z[:, varies]
    correlation = z.T @ z / len(z)
    factor, pivots, rank, _ = lapack.dpstrf(correlation, tol=_UNEXPLAINED, lower=1)
    basis, others = pivots[:rank] - 1, pivots[rank:] - 1
    weights = cho_solve((factor[:rank, :rank], True), correlation[np.ix_(basis, others)])
    found = []
    for k, other in enumerate(others[:_MOST_FINDINGS]):
        part = np.flatnonzero(np.abs(weights[:, k]) > 1e-3 * np.abs(weights[:, k]).max())
        found.append([names[at] for at in (*basis[part].tolist(), int(other))])
    return found


# -- categories ------------------------------------------------------------------------------------


def _indicators(sample: Sample, work_per_row: float) -> tuple[NDArray[np.float32], Codes, int]:
    """Return a column of zeros and ones for each level, where each category starts, a stride.

    As many rows are used as the work allows: every stride-th.
    """
    sizes = np.array([sample.n_levels[name] for name in sample.codes], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    codes = np.column_stack(list(sample.codes.values()))
    stride = max(1, int(np.ceil(len(codes) * work_per_row / _MOST_WORK)))
    codes = codes[::stride]
    table = np.zeros((len(codes), int(sizes.sum())), dtype=np.float32)
    row, column = np.nonzero(codes >= 0)
    table[row, starts[column] + codes[row, column]] = 1.0
    return table, starts, stride


def _nested(
    sampled: SampledNames, sample: Candidates, every: AllRows, n_levels: Mapping[str, int]
) -> list[Finding]:
    """Return findings about categories whose levels each go with one level of another."""
    names = list(sampled.codes)
    if len(names) < 2:
        return []
    exceptions: dict[str, dict[str, int]] = {}
    for a, b in sample.nested():
        n_wrong = _exceptions(every.table(a, b, (n_levels[a], n_levels[b])))
        if n_wrong is not None:
            exceptions.setdefault(a, {})[b] = n_wrong
    same = [
        (a, b) for a, others in exceptions.items() for b in others if a in exceptions.get(b, ())
    ]
    findings: list[Finding] = []
    repeated: set[str] = set()
    for first, *rest in _clusters(same, names):
        repeated |= set(rest)
        what = (
            f"{few(rest)} and {quoted(first)} carry the same information: each level of one "
            "goes with one of the other"
        )
        findings.append(Finding(None, what, drop_line(*rest), "warning"))
    for name, others in exceptions.items():
        inside = [b for b in others if b not in repeated and name not in exceptions.get(b, ())]
        if inside and name not in repeated:
            most = max(others[b] for b in inside)
            but = f" except in {rows(most)}" if most else ""
            what = f"each of its levels goes with one level of {few(inside)}{but}"
            remedy = f"{drop_line(*inside)}, or {drop_line(name)}"
            those = "that column" if len(inside) == 1 else "those columns"
            findings.append(Finding(name, f"{what}, so it determines {those}", remedy, "warning"))
    return findings[:_MOST_FINDINGS]


def _nested_pairs(sample: Sample, total: int) -> list[tuple[int, int]]:
    """Return pairs (a, b) such that the level of a nearly always determines that of b."""
    table, starts, _ = _indicators(sample, float(total) ** 2)
    counts = table.T @ table
    in_common = np.maximum.reduceat(counts, starts, axis=1)  # rows of a level with b's commonest
    correct = np.add.reduceat(in_common, starts, axis=0)
    of_level = np.add.reduceat(counts, starts, axis=0)  # rows of b's levels that have a value of a
    both = np.add.reduceat(of_level, starts, axis=1)
    commonest = np.maximum.reduceat(of_level, starts, axis=1)
    nested = (both - correct <= 2 * _WRONG * (both - commonest)) & (both > commonest)
    np.fill_diagonal(nested, False)
    return [(int(a), int(b)) for a, b in np.argwhere(nested)[:_MOST_CANDIDATES]]


def _copied_pairs(sample: Sample) -> list[tuple[int, int]]:
    """Return pairs of categories that split the rows of the sample in the same way."""
    seen: dict[bytes, int] = {}
    pairs = []
    for at, codes in enumerate(sample.codes.values()):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        key = np.argsort(np.argsort(first))[inverse].astype(np.int32).tobytes()
        if key in seen:
            pairs += [(seen[key], at), (at, seen[key])]
        seen.setdefault(key, at)
    return pairs


def _exceptions(counts: Floats) -> int | None:
    """Return for how many rows the level of a column does not determine that of another.

    `counts` says how often levels go together. None when exceptions are too many; levels with fewer
    than five rows are not looked at.
    """
    total = counts.sum()
    counts = counts[counts.sum(axis=1) >= _ROWS_PER_LEVEL]
    off = counts.sum() - counts.sum(axis=0).max(initial=0.0)
    wrong = counts.sum() - counts.max(axis=1, initial=0.0).sum()
    enough = counts.sum() >= 0.9 * total and off >= FEWEST_ROWS
    return int(wrong) if enough and wrong <= _WRONG * off else None


def _determined_numbers(
    names: SampledNames, sample: Candidates, every: AllRows, tied: set[str]
) -> list[Finding]:
    """Return findings about categories that determine the value of a number."""
    if not names.codes or not names.numbers:
        return []
    determined: dict[str, list[str]] = {}
    for category, number in sample.determined(tied):
        if _determines(*every.within(category, number)):
            determined.setdefault(category, []).append(number)
    findings = []
    for name, values in list(determined.items())[:_MOST_FINDINGS]:
        what = f"its levels determine the value of {few(values)}, which hardly varies within one"
        remedy = f"{drop_line(*values)}, or {drop_line(name)}"
        findings.append(Finding(name, what, remedy, "warning"))
    return findings


def _determined_pairs(sample: Sample, tied: Collection[str]) -> Pairs:
    """Return categories, and numbers that hardly vary within their levels."""
    names = list(sample.codes)
    numbers = [name for name in sample.numbers if name not in sample.codes and name not in tied]
    total = sum(sample.n_levels[name] for name in names)
    if not names or not numbers or total * len(numbers) > _MOST_LEVELS * _MOST_NUMBERS:
        return []
    table, starts, stride = _indicators(sample, float(total) * len(numbers))
    columns = [sample.numbers[name][::stride] for name in numbers]
    # Single precision is enough for candidates: their bound is ten times that of the findings.
    z = _standardised(columns).astype(np.float32)
    here = (~np.isnan(np.column_stack(columns))).astype(np.float32)
    count = table.sum(axis=0)[:, None] if here.all() else table.T @ here
    sums, squares = table.T @ z, table.T @ (z * z)
    between = np.add.reduceat(sums**2 / np.maximum(count, 1), starts, axis=0)
    squares, sums, count = (
        np.add.reduceat(each, starts, axis=0) for each in (squares, sums, count)
    )
    spread = squares - sums**2 / np.maximum(count, 1)
    candidates = np.argwhere((squares - between <= 1e-4 * spread) & (spread > 0))
    return [(names[a], numbers[x]) for a, x in candidates[:_MOST_CANDIDATES].tolist()]


def _determines(n_rows: int, by_level: Floats) -> bool:
    """Return whether a number hardly varies within levels that have five rows or more.

    by_level = (rows, sums, sums of squares), of a number with mean 0 and variance 1.
    """
    count, sums, squares = by_level[:, by_level[0] >= _ROWS_PER_LEVEL]
    if count.sum() < max(FEWEST_ROWS, 0.9 * n_rows):
        return False
    within = float((squares - sums**2 / count).sum())
    spread = float(squares.sum() - sums.sum() ** 2 / count.sum())
    return spread > 0 and within <= _UNEXPLAINED * spread

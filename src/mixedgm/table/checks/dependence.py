"""Some rows of all columns in -> findings about columns that (nearly) follow from others.

One rule for all kinds: leave out exceptions, at most 1 % of the rows that differ from the
commonest value; if the other columns then explain 99 % of the variance of a number, or every level
of a category, the column is determined.  Candidates come from products of matrices for all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding
from mixedgm.base.printable import few, quoted, rows
from mixedgm.model.nodes import Floats, Mask
from mixedgm.table.schema import drop_line, types_line

Codes = NDArray[np.int32]
Pair = tuple[str, str]

_SAMPLE_ROWS = 5_000
_SAMPLE_CELLS = 20_000_000
FEWEST_ROWS = 20
MOST_VALUES = 200
"""Largest number of values of a column that is compared value by value; a count may have many
more."""
_UNEXPLAINED = 0.01  # share of the variance that may be left
_EXCEPTIONS = 0.01  # share of the rows off the commonest value that may be exceptions
_LOOSE = 0.15  # unexplained share, exceptions included, up to which columns are looked at
_ROWS_PER_LEVEL = 5  # fewer are no evidence about a level
_MOST_SUMS = 100  # that are looked at
_MOST_PARTS = 20  # columns of which another is a sum
_MOST_NUMBERS = 2_000  # beyond, only exact multiples are looked for
_MOST_LEVELS = 3_000  # beyond, only copies of categories
_MOST_WORK = 2e10  # multiplications in one product
_MOST_CANDIDATES = 1_000
_MOST_FINDINGS = 10


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table."""

    numbers: Mapping[str, Floats]  # continuous columns and scores; NaN where a value is missing
    codes: Mapping[str, Codes]  # columns with few values; -1 where a value is missing
    n_levels: Mapping[str, int]  # of these columns
    sparse: Collection[str] = ()  # so many gaps that they are not looked at together with others
    undeclared: Collection[str] = ()  # numbers whose kind is inferred


def sample_positions(n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Return random positions in order, as many as are enough to judge by; always the same."""
    most = min(_SAMPLE_ROWS, max(200, _SAMPLE_CELLS // max(1, n_columns)))
    if n_rows <= most:
        return np.arange(n_rows)
    # Not evenly spaced: the rows of a panel come in periods.
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False, shuffle=False))


def dependence_findings(sample: Sample) -> list[Finding]:
    """Return warnings about columns that are determined by others, or nearly so.

    Numbers that follow from one or from several others, categories that are nested in others,
    numbers that a category determines, and numbers that are codes.  At most ten of each.
    """
    ranks = {name: mid_ranks(x) for name, x in sample.numbers.items()}
    findings, repeated, tied = _copies(sample, ranks)
    findings += _sums(sample, repeated)
    findings += _nested(sample)
    findings += _determined_numbers(sample, ranks, tied)
    return findings + _codes_in_numbers(sample, ranks)


# -- the rule --------------------------------------------------------------------------------------


def _unexplained(y: Floats, fitted: Callable[[Mask], Floats], n_terms: int) -> float:
    """Return the share of the variance of y that is left without exceptions; 1 for few rows.

    `fitted` predicts all rows from some of them.  Rows that deviate most, and those with the most
    extreme values, are left out: the first may hide a dependence, the second feign one.
    """
    _, counts = np.unique(y, return_counts=True)
    n_off = len(y) - int(counts.max(initial=0))
    n_out = int(_EXCEPTIONS * n_off)
    if n_off < FEWEST_ROWS or len(y) < n_terms + FEWEST_ROWS:
        return 1.0
    extreme = _largest(np.abs(y - np.median(y)), n_out)
    used = ~extreme
    for _ in range(3 if n_out else 1):
        left = y - fitted(used)
        used = ~(extreme | _largest(np.abs(left), n_out))
    left, n_used = (y - fitted(used))[used], int(np.count_nonzero(used))
    spread = float(np.var(y[used]))
    share = float(np.mean(left**2)) / spread if spread > 0.0 else 1.0
    return share * (n_used - 1) / (n_used - n_terms)


def _largest(sizes: Floats, n: int) -> Mask:
    """Return where the n largest are."""
    mask = np.zeros(len(sizes), dtype=np.bool_)
    mask[np.argpartition(sizes, len(sizes) - n - 1)[len(sizes) - n :]] = True
    return mask


def _linear(X: Floats, y: Floats) -> float:
    """Return the share of y that a linear function of the columns of X leaves."""
    columns = np.column_stack([np.ones(len(y)), _standardised(list(X.T))])
    y = _standardised([y])[:, 0]

    def fitted(used: Mask) -> Floats:
        beta = np.linalg.lstsq(columns[used], y[used], rcond=None)[0]
        return np.asarray(columns @ beta)

    return _unexplained(y, fitted, columns.shape[1])


def _by_level(codes: Codes, y: Floats) -> float:
    """Return the share of y that the means of levels with five rows or more leave."""
    here = (codes >= 0) & ~np.isnan(y)
    size = np.bincount(codes[here], minlength=1)
    here[here] = size[codes[here]] >= _ROWS_PER_LEVEL
    if np.count_nonzero(here) < max(FEWEST_ROWS, 0.9 * size.sum()):
        return 1.0
    levels, level = np.unique(codes[here], return_inverse=True)
    y = _standardised([y[here]])[:, 0]

    def fitted(used: Mask) -> Floats:
        count = np.bincount(level[used], minlength=len(levels))
        sums = np.bincount(level[used], y[used], len(levels))
        return np.asarray(sums / np.maximum(count, 1))[level]

    return _unexplained(y, fitted, len(levels))


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
    return int(wrong) if enough and wrong <= _EXCEPTIONS * off else None


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


def mid_ranks(numbers: Floats) -> Floats:
    """Return mid-ranks, NaN where a value is missing."""
    _, where, counts = np.unique(numbers, return_inverse=True, return_counts=True, equal_nan=True)
    ranks = np.cumsum(counts) - counts / 2
    return np.where(np.isnan(numbers), np.nan, ranks[where])


def _copies(
    sample: Sample, ranks: Mapping[str, Floats]
) -> tuple[list[Finding], set[str], set[str]]:
    """Return findings about columns that follow from one other, and all but one of those.

    Scores of columns with few values are left to the comparison of values; the numbers that follow
    from such scores come last.
    """
    names = list(sample.numbers)
    if len(names) < 2:
        return [], set(), set()
    linked = [pair for pair in _alike(sample, ranks) if _is_copy(sample, ranks, *pair)]
    findings: list[Finding] = []
    repeated: set[str] = set()
    coded = set(sample.codes)
    for members in _clusters(linked, names):
        first, *rest = members
        repeated |= set(rest)
        if coded >= set(members):
            continue
        follow = "follows" if len(rest) == 1 else "follow"
        what = (
            f"{few(rest)} {follow} from {quoted(first)} (R^2 above {1 - _UNEXPLAINED:g}, of values "
            "or of ranks): such an edge outweighs all others"
        )
        findings.append(Finding(None, what, drop_line(*rest), "warning"))
    tied = {name for pair in linked if coded & set(pair) for name in pair}
    return findings[:_MOST_FINDINGS], repeated, tied


def _alike(sample: Sample, ranks: Mapping[str, Floats]) -> list[Pair]:
    """Return pairs of numbers with similar ranks; of very many, pairs that are multiples."""
    names = list(sample.numbers)
    if len(names) <= _MOST_NUMBERS:
        pairs = _correlated_pairs(np.column_stack(list(ranks.values())))
    else:
        pairs = _equal_projections(_standardised(list(sample.numbers.values())))
    return [(names[i], names[j]) for i, j in pairs[:_MOST_CANDIDATES]]


def _is_copy(sample: Sample, ranks: Mapping[str, Floats], first: str, second: str) -> bool:
    """Return whether one of two numbers is a linear, or any rising or falling function."""
    for columns in (sample.numbers, ranks):
        x, y = columns[first], columns[second]
        both = ~(np.isnan(x) | np.isnan(y))
        x, y = x[both], y[both]
        if min(_linear(x[:, None], y), _linear(y[:, None], x)) < _UNEXPLAINED:
            return True
    return False


def _correlated_pairs(table: Floats) -> list[tuple[int, int]]:
    """Return pairs of columns by correlation over the rows that have both, the largest first."""
    z, here = _standardised(list(table.T)), (~np.isnan(table)).astype(np.float64)
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
    size = np.triu(np.where(count >= FEWEST_ROWS, correlation**2, 0.0), 1)
    first, second = np.nonzero(size > 1.0 - _LOOSE)
    order = np.argsort(-size[first, second], kind="stable")[:_MOST_CANDIDATES]
    return [(int(first[k]), int(second[k])) for k in order]


def _equal_projections(z: Floats) -> list[tuple[int, int]]:
    """Return neighbours in the order of a random projection that agree in another one."""
    weights = np.random.default_rng(0).normal(size=(2, len(z)))
    first, second = np.abs(weights @ z)
    order = np.argsort(first, kind="stable")
    close = 1e-6 * len(z) ** 0.5
    equal = (np.diff(first[order]) < close) & (np.abs(np.diff(second[order])) < close)
    at = np.flatnonzero(equal)
    return [(int(min(pair)), int(max(pair))) for pair in zip(order[at], order[at + 1], strict=True)]


def _clusters(pairs: Iterable[Pair], names: Sequence[str]) -> list[list[str]]:
    """Return the groups of names that pairs tie together, each in the order of the table."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    at = {name: k for k, name in enumerate(names)}
    ends = np.array([(at[a], at[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    ties = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (len(at), len(at)))
    _, group = connected_components(ties, directed=False)
    groups: dict[int, list[str]] = {}
    for k in np.unique(ends).tolist():
        groups.setdefault(int(group[k]), []).append(names[k])
    return list(groups.values())


def _sums(sample: Sample, repeated: Collection[str]) -> list[Finding]:
    """Return findings about numbers that are linear functions of several others."""
    names = [n for n in sample.numbers if n not in repeated and n not in sample.sparse]
    if not 3 <= len(names) <= _MOST_NUMBERS:
        return []
    table = np.column_stack([sample.numbers[name] for name in names])
    table = table[~np.isnan(table).any(axis=1)]
    if len(table) < len(names) + FEWEST_ROWS:
        return []
    # Without the tails, which may hide a sum.
    ends = (_EXCEPTIONS / 2, 1 - _EXCEPTIONS / 2)
    low, high = np.quantile(table, ends, axis=0, method="nearest")
    z = _standardised(list(np.clip(table, low, high).T))
    correlation = z.T @ z / len(z)
    findings = []
    for target, parts in _dependent(correlation, np.asarray(z.any(axis=0)), len(z)):
        left = _linear(table[:, parts], table[:, target])
        if left > _UNEXPLAINED:
            continue
        parts_named = [names[k] for k in sorted(parts)]
        what = (
            f"it follows from {few(parts_named, 10)} (R^2 {_floored(1 - left)}), "
            "as a total does from its parts"
        )
        remedy = f"{drop_line(names[target])}, or one of the others"
        findings.append(Finding(names[target], what, remedy, "warning"))
        if len(findings) == _MOST_FINDINGS:
            break
    return findings


def _floored(share: float) -> str:
    return f"{np.floor(1e4 * share) / 1e4:.4g}"


def _dependent(correlation: Floats, varies: Mask, n_rows: int) -> Iterable[tuple[int, list[int]]]:
    """Yield columns that others explain, and few of these: the best explained first.

    A column that is yielded is no longer looked at.
    """
    at = np.flatnonzero(varies)
    precision = np.linalg.inv(correlation[np.ix_(at, at)] + 1e-8 * np.eye(len(at)))
    degrees = (n_rows - 1) / max(n_rows - len(at), 1)
    for _ in range(min(_MOST_SUMS, len(at) - 2)):
        left = degrees / np.diag(precision)
        k = int(np.argmin(left))
        if left[k] > _LOOSE:
            return
        yield int(at[k]), _few_parts(correlation, int(at[k]), np.delete(at, k))
        rest = np.arange(len(at)) != k
        precision = precision[np.ix_(rest, rest)] - (
            np.outer(precision[rest, k], precision[k, rest]) / precision[k, k]
        )
        at = at[rest]


def _few_parts(correlation: Floats, target: int, others: NDArray[np.intp]) -> list[int]:
    """Return few columns that explain the target: added one by one, then taken away again."""
    at = np.array([target, *others])
    left = correlation[np.ix_(at, at)]  # covariances, given the columns that are chosen
    chosen: list[int] = []
    while left[0, 0] > _UNEXPLAINED / 2 and len(chosen) < _MOST_PARTS:
        spread = np.diag(left)
        gain = np.where(spread > 1e-6, left[0] ** 2 / np.maximum(spread, 1e-6), 0.0)
        gain[0] = 0.0
        best = int(np.argmax(gain))
        if gain[best] < 0.05 * left[0, 0]:
            break
        chosen.append(int(at[best]))
        left = left - np.outer(left[:, best], left[best]) / left[best, best]
    most = max(1.1 * left[0, 0], _UNEXPLAINED / 2)
    for part in list(chosen):
        rest = [k for k in chosen if k != part]
        if len(rest) > 1 and _left(correlation, target, rest) <= most:
            chosen = rest
    return chosen


def _left(correlation: Floats, target: int, chosen: Sequence[int]) -> float:
    """Return the share of the target that the chosen columns leave."""
    with_target = correlation[chosen, target]
    weights = np.linalg.lstsq(correlation[np.ix_(chosen, chosen)], with_target, rcond=None)[0]
    return float(1.0 - weights @ with_target)


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


def _nested(sample: Sample) -> list[Finding]:
    """Return findings about categories whose levels each go with one level of another."""
    names = list(sample.codes)
    if len(names) < 2:
        return []
    total = sum(sample.n_levels.values())
    pairs = _nested_pairs(sample, total) if total <= _MOST_LEVELS else _copied_pairs(sample)
    exceptions: dict[str, dict[str, int]] = {}
    for a, b in ((names[a], names[b]) for a, b in pairs[:_MOST_CANDIDATES]):
        sizes = sample.n_levels[a], sample.n_levels[b]
        n_wrong = _exceptions(_joint_counts(sample.codes[a], sample.codes[b], sizes))
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
            n_rows = len(sample.codes[name])
            but = f" except in {most:,} of {rows(n_rows)}" if most else ""
            what = f"each of its levels goes with one level of {few(inside)}{but}"
            remedy = f"{drop_line(*inside)}, or {drop_line(name)}"
            those = "that column" if len(inside) == 1 else "those columns"
            findings.append(Finding(name, f"{what}, so it determines {those}", remedy, "warning"))
    return findings[:_MOST_FINDINGS]


def _joint_counts(a: Codes, b: Codes, sizes: tuple[int, int]) -> Floats:
    """Return (levels, levels) how often two levels go together."""
    both = (a >= 0) & (b >= 0)
    pairs = a[both].astype(np.int64) * sizes[1] + b[both]
    return np.bincount(pairs, minlength=sizes[0] * sizes[1]).reshape(sizes).astype(np.float64)


def _nested_pairs(sample: Sample, total: int) -> list[tuple[int, int]]:
    """Return pairs (a, b) such that the level of a nearly always determines that of b."""
    table, starts, _ = _indicators(sample, float(total) ** 2)
    counts = table.T @ table
    in_common = np.maximum.reduceat(counts, starts, axis=1)  # rows of a level with b's commonest
    correct = np.add.reduceat(in_common, starts, axis=0)
    of_level = np.add.reduceat(counts, starts, axis=0)  # rows of b's levels that have a value of a
    both = np.add.reduceat(of_level, starts, axis=1)
    commonest = np.maximum.reduceat(of_level, starts, axis=1)
    nested = (both - correct <= 2 * _EXCEPTIONS * (both - commonest)) & (both > commonest)
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


def _determined_numbers(
    sample: Sample, ranks: Mapping[str, Floats], tied: Collection[str]
) -> list[Finding]:
    """Return findings about categories that determine the value of a number."""
    determined: dict[str, list[str]] = {}
    for category, number in _determined_pairs(sample, ranks, tied):
        if _by_level(sample.codes[category], sample.numbers[number]) <= _UNEXPLAINED:
            determined.setdefault(category, []).append(number)
    findings = []
    for name, values in list(determined.items())[:_MOST_FINDINGS]:
        what = f"its levels determine the value of {few(values)}, which hardly varies within one"
        remedy = f"{drop_line(*values)}, or {drop_line(name)}"
        findings.append(Finding(name, what, remedy, "warning"))
    return findings


def _determined_pairs(
    sample: Sample, ranks: Mapping[str, Floats], tied: Collection[str]
) -> list[Pair]:
    """Return categories, and numbers whose ranks vary little within their levels."""
    names = list(sample.codes)
    numbers = [name for name in ranks if name not in sample.codes and name not in tied]
    total = sum(sample.n_levels.values())
    if not names or not numbers or total * len(numbers) > _MOST_LEVELS * _MOST_NUMBERS:
        return []
    table, starts, stride = _indicators(sample, float(total) * len(numbers))
    columns = [ranks[name][::stride] for name in numbers]
    z = _standardised(columns).astype(np.float32)
    here = (~np.isnan(np.column_stack(columns))).astype(np.float32)
    count = table.sum(axis=0)[:, None] if here.all() else table.T @ here
    sums, squares = table.T @ z, table.T @ (z * z)
    between = np.add.reduceat(sums**2 / np.maximum(count, 1), starts, axis=0)
    squares, sums, count = (
        np.add.reduceat(each, starts, axis=0) for each in (squares, sums, count)
    )
    spread = squares - sums**2 / np.maximum(count, 1)
    candidates = np.argwhere((squares - between <= _LOOSE * spread) & (spread > 0))
    return [(names[a], numbers[x]) for a, x in candidates[:_MOST_CANDIDATES].tolist()]


# -- codes -----------------------------------------------------------------------------------------


def _codes_in_numbers(sample: Sample, ranks: Mapping[str, Floats]) -> list[Finding]:
    """Return findings about whole numbers whose order other columns do not follow."""
    # A zero often says that there is nothing.
    numbers = {n: np.where(x == 0.0, np.nan, x) for n, x in sample.numbers.items()}
    whole = {n: numbers[n] for n in sample.undeclared if _may_be_codes(numbers[n])}
    if not whole or sum(sample.n_levels.values()) > _MOST_LEVELS or len(ranks) > _MOST_NUMBERS:
        return []
    names, columns = list(ranks), list(ranks.values())
    for name, codes in sample.codes.items():
        share = np.bincount(codes[codes >= 0], minlength=1) / len(codes)
        common = np.flatnonzero((share > _RARE) & (share < 1.0 - _RARE))
        names += [name] * len(common)
        columns += list((codes[:, None] == common).astype(np.float64).T)
    others = _standardised(columns)
    findings = []
    for name, x in list(whole.items())[: 3 * _MOST_FINDINGS]:
        known = _frequent(x)
        by_group, in_order, certain = _explained(x[known], others[known])
        gain = np.where(certain & (in_order < by_group / 3), by_group - in_order, 0.0)
        gain[names.index(name)] = 0.0
        best = int(np.argmax(gain))
        if gain[best] < _LEAST_GAIN:
            continue
        what = (
            f"its {len(np.unique(x[known])):,} whole numbers look like codes: as groups they "
            f"explain {by_group[best]:.0%} of {quoted(names[best])}, as numbers "
            f"{max(in_order[best], 0.0):.0%}"
        )
        keep = f"{types_line(name, 'continuous')} keeps it and silences this warning"
        remedy = f"merge rare codes, and {types_line(name, 'categorical')}; {keep}"
        findings.append(Finding(name, what, remedy, "warning"))
    return findings[:_MOST_FINDINGS]


_LEAST_GAIN = 0.10  # share of a variance that groups explain beyond an order
_RARE = 0.05  # share of the rows below which a level is not looked at
_KNOTS = 10


def _may_be_codes(x: Floats) -> bool:
    """Return whether these are whole numbers, more than knots, nearly all in five rows or more."""
    known = x[~np.isnan(x)]
    frequent = x[_frequent(x)]
    if len(frequent) < max(0.9 * len(known), FEWEST_ROWS):
        return False
    return bool((known == np.floor(known)).all()) and len(np.unique(frequent)) > 2 * _KNOTS


def _frequent(x: Floats) -> Mask:
    """Return where values are that at least five rows have."""
    _, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((counts[where] >= _ROWS_PER_LEVEL) & ~np.isnan(x))


def _explained(x: Floats, others: Floats) -> tuple[Floats, Floats, Mask]:
    """Return shares of others that x explains as groups and in order; whether these differ.

    In order is by straight lines between ten values.  Shares are adjusted for the number of terms,
    and differences are certain that are six standard deviations of F beyond 1.
    """
    order = np.argsort(x, kind="stable")
    x, y = x[order], others[order] - others.mean(axis=0)
    first = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    n, n_values, total = len(x), len(first), (y * y).sum(axis=0)
    count = np.diff(np.r_[first, n])
    in_groups = total - (np.add.reduceat(y, first, axis=0) ** 2 / count[:, None]).sum(axis=0)
    knots = np.unique(np.quantile(x, np.linspace(0.0, 1.0, _KNOTS)))
    basis = np.column_stack([np.interp(x, knots, each) for each in np.eye(len(knots))])
    smooth = y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
    in_order = (smooth * smooth).sum(axis=0)
    degrees = np.array([n - n_values, n - len(knots), n_values - len(knots)], dtype=np.float64)
    total = np.maximum(total, 1e-9) / (n - 1)
    noise = np.maximum(in_groups / degrees[0], 1e-9 * total)
    excess = (in_order - in_groups) / degrees[2] / noise
    certain = excess > 1.0 + 6.0 * np.sqrt(2.0 / degrees[2] + 2.0 / degrees[0])
    return 1.0 - noise / total, 1.0 - in_order / degrees[1] / total, certain

"""One column, and what `types` says about it, in -> its kind, and findings about its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import Finding
from mixedgm.base.printable import counted, few, literal, number_of, quoted, rows
from mixedgm.families import KINDS, CountKind
from mixedgm.model.nodes import Floats
from mixedgm.table.declarations import Ordinal
from mixedgm.table.schema import MOST_COUNT, Kind, Level, drop_line, types_line
from mixedgm.table.values import FEW as _FEW
from mixedgm.table.values import Factor, Numbers, Values, as_numbers

# Limits of what is a category, and of what names the rows.
_FEW_DISTINCT = 10
_SOME_LEVELS = 5  # so few texts never name the rows, however few the rows
_MANY_LEVELS = 50
_FEW_NUMBERS = 10  # up to this many, numbers in text may well be codes
_FEW_WORDS = 10

# The product of two precisions is a fourth power of the units, and has to be a double.
_HUGE = 1e75
_TINY = 1e-75
# Below this ratio of spread to size, most information in a column is lost to rounding.
_CLOSE = 1e-12

_FEWEST_AMOUNTS = 5  # distinct values besides zero, of a hurdle column
_MOVED = 1e-6  # standard deviations that the largest count may move estimates by

# Limits of what is not normal about a distribution.
_FEWEST_ROWS = 20
_SKEWED, _VERY_SKEWED = 1.0, 3.0
_HEAVY = 4.0  # excess kurtosis; that of Laplace's distribution is 3
_SPIKE, _BOUND = 0.10, 0.05
_MOSTLY = 0.50
_COUNT_SKEW = 0.3  # of counts with a mean of 11
_LARGE = 30.0  # the mean from which on a count is as good as a number
_MOST = 5  # columns named in one note
_MOST_IN_LINE = 20  # columns in a line to paste
_LONGEST_LINE = 1200  # characters


# -- kinds -----------------------------------------------------------------------------------------


def family_finding(values: Values, declared: Kind | None) -> Finding | None:
    """Return why a column can be neither continuous nor categorical, or None."""
    if values.family == "empty":
        return Finding(values.name, "all of its values are missing", drop_line(values.name))
    if values.family == "other":
        return _unsupported(values)
    if values.family == "mixed":
        texts = values.shown(text=True)
        if not texts:
            what = "truth values among numbers"
            return Finding(values.name, what, "make all of its values numbers")
        what = f"text among other values: {texts}"
        return Finding(values.name, what, "make all of its values text, or all of them numbers")
    if declared and not KINDS[declared].has_levels and not is_numeric(values):
        what = f"types says {declared}, but it holds text: {values.shown(text=True)}"
        remedy = f"{types_line(values.name, 'categorical')}, or convert the column to numbers"
        return Finding(values.name, what, remedy)
    return None


def is_numeric(values: Values) -> bool:
    """Return whether the values can be read as numbers (truth values are 0 and 1)."""
    if values.family == "category":
        return all(not isinstance(level, str) for level in values.factor().levels)
    return values.family in ("number", "boolean")


def _unsupported(values: Values) -> Finding:
    dtype = values.dtype.lower()
    if dtype == "object":
        types = Counter(type(each).__name__ for each in np.asarray(values.column, dtype=object))
        odd = {name: n for name, n in types.items() if name not in _PLAIN}
        if any(name.startswith("complex") for name in odd):
            return Finding(values.name, "Complex data not supported", _COMPLEX)
        shown = ", ".join(f"{name} ({rows(n)})" for name, n in list(odd.items())[:3])
        what = f"holds {shown}; each cell of the argument must be a string, a bool or a number"
        return Finding(values.name, what, drop_line(values.name), wrong_type=True)
    if "complex" in dtype:
        return Finding(values.name, f"Complex data not supported ({values.dtype})", _COMPLEX)
    remedies = (text for words, text in _REMEDIES.items() if any(word in dtype for word in words))
    what = f"values of type {values.dtype} cannot be modelled"
    return Finding(values.name, what, next(remedies, _OTHER))


_PLAIN = {"str", "int", "float", "bool", "NoneType", "NAType", "NaTType", "str_", "bool_"}
_COMPLEX = "use its real and imaginary parts as two columns"
_OTHER = "turn it into numbers, truth values or text, or leave it out"
_REMEDIES = {
    ("duration", "timedelta"): "turn it into a number, for example of seconds or days",
    ("date", "time", "period"): (
        "turn it into a number (for example days since a first date) or a category (for example "
        "the year), or leave it out"
    ),
    ("sparse",): "make it dense with .sparse.to_dense()",
    ("binary", "bytes", "|s"): "decode it to text",
    ("list", "struct", "array", "map"): "make one column of each entry",
}


def kind_of_numbers(values: Values, numbers: Numbers | Floats) -> tuple[Kind, Finding | None]:
    """Return the inferred kind of a numeric column, with a warning where it could be either.

    Two distinct whole numbers are categorical. Everything else is continuous; two numbers that are
    not whole get a warning with the lines that change it, and `short_values` are left to
    `short_finding`. `numbers` are the column's values without missing ones.
    """
    distinct = as_numbers(numbers).distinct(2)
    if distinct is None or len(distinct) < 2:
        return "continuous", None
    if bool((distinct == np.floor(distinct)).all()):
        return "categorical", None
    shown = ", ".join(f"{value:.15g}" for value in distinct)
    what = f"its 2 distinct values {shown} are taken as continuous"
    keep = f"({types_line(values.name, 'continuous')} keeps it and silences this warning)"
    remedy = f"{types_line(values.name, 'categorical')} {keep}"
    return "continuous", Finding(values.name, what, remedy, "warning")


def short_values(numbers: Numbers | Floats) -> Floats | None:
    """Return the values of a column with three to ten, whole or in equal steps; else None.

    Numbers that are not whole need ten rows for each value. Zeros that are more than half of the
    rows are a spike, not a level, where the others are amounts.

    Examples
    --------
    >>> short_values(np.repeat([0.0, 0.5, 1.0], 20)).tolist()
    [0.0, 0.5, 1.0]
    """
    numbers = as_numbers(numbers)
    distinct = numbers.distinct(_FEW_DISTINCT)
    if distinct is None or len(distinct) < 3 or _inflated(numbers):
        return None
    if bool((distinct == np.floor(distinct)).all()):
        return distinct
    steps = np.diff(distinct)
    equal = numbers.count >= 10 * len(distinct) and np.allclose(steps, steps[0], rtol=1e-6)
    return distinct if equal else None


def _inflated(numbers: Numbers) -> bool:
    """Return whether most values are zero, more than the others suggest.

    Others with a mean of 1.5 would go with 42 % of zeros in a Poisson distribution.
    """
    zeros = numbers.share(0.0)
    several = numbers.distinct(_FEWEST_AMOUNTS) is None
    return several and _MOSTLY < zeros < 1.0 and abs(numbers.mean) >= 1.5 * (1.0 - zeros)


def short_finding(short: Mapping[str, Floats]) -> Finding | None:
    """Return one warning about all columns with few values that are taken as numbers."""
    if not short:
        return None
    names = list(short)
    if len(names) == 1:
        shown = ", ".join(f"{value:.15g}" for value in short[names[0]])
        what = f"its {len(short[names[0]])} distinct values {shown} are taken as continuous"
        ordinal, categorical = (types_line(names, kind) for kind in ("ordinal", "categorical"))
        remedy = (
            f"{ordinal} if their order has a meaning, {categorical} if they are codes "
            f"({types_line(names, 'continuous')} keeps it and silences this warning)"
        )
        return Finding(names[0], what, remedy, "warning")
    listed = few(list(short.items()), _MOST, lambda each: f"{quoted(each[0])} ({_span(each[1])})")
    what = f"{len(names):,} columns with 3 to 10 distinct values are taken as continuous: {listed}"
    line, short_line = types_line(names, "ordinal"), 'types="ordinal"'
    line = f"{line} (in short {short_line})" if len(line) <= _LONGEST_LINE else short_line
    remedy = (
        f'{line} if the order of their values has a meaning, "categorical" for those that are '
        'codes; types="continuous" keeps all of them and silences this warning'
    )
    return Finding(None, what, remedy, "warning")


def _span(values: Floats) -> str:
    """Return "1 to 5", or all values where they have gaps."""
    if len(values) > 3 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]:.15g} to {values[-1]:.15g}"
    return ", ".join(f"{value:.15g}" for value in values)


# -- ordinal levels and counts ---------------------------------------------------------------------


def order_finding(name: str, factor: Factor) -> Finding:
    """Return the error about text that is called ordinal and has no order."""
    levels = list(factor.levels[:_MANY_LEVELS])
    what = f"types says ordinal, but text has no order: {few(levels)}"
    line = types_line(name, "ordinal", levels=levels)
    return Finding(name, what, f"{line}, with the levels from the lowest to the highest")


def order_findings(
    name: str, factor: Factor, counts: NDArray[np.intp], wish: Ordinal
) -> list[Finding]:
    """Return errors about scores and thresholds that do not fit the levels; many levels."""
    n_levels = len(factor.levels)
    findings = []
    if wish.scores is not None and len(wish.scores) != n_levels:
        what = (
            f"types gives it {number_of(len(wish.scores), 'score')}, but it has {n_levels} levels"
        )
        remedy = f"give one score for each of {few(factor.levels, 10)}"
        findings.append(Finding(name, what, remedy))
    if wish.thresholds != "free" and undetermined(np.flatnonzero(counts), n_levels):
        used = [level for level, n in zip(factor.levels, counts, strict=True) if n]
        what = f"quadratic thresholds cannot be estimated from the levels {few(used)} alone"
        findings.append(Finding(name, what, types_line(name, "ordinal")))
    if n_levels > _MANY_LEVELS and wish.thresholds == "free":
        what = f"many levels for an ordinal column: {n_levels:,} in {rows(int(counts.sum()))}"
        line = types_line(name, "ordinal", thresholds="quadratic")
        remedy = f"{line} has two terms instead of one for each level"
        findings.append(Finding(name, what, remedy, "warning"))
    return findings


def undetermined(seen: NDArray[np.intp], n_values: int) -> bool:
    """Return whether values leave a quadratic function of the score without a finite estimate.

    They do if there are two of them, next to each other or the first and the last: the fit would
    go on for ever to make all others impossible.
    """
    return len(seen) < 3 and (seen[-1] - seen[0]) in (0, 1, n_values - 1)


def default_largest(numbers: Numbers | Floats) -> int:
    """Return the largest count that is possible where none is given."""
    top = min(as_numbers(numbers).high, 2.0**62)
    return int(min(2.0 * top + 10.0, max(top, MOST_COUNT)))


def count_findings(name: str, numbers: Numbers | Floats, largest: int) -> list[Finding]:
    """Return errors about finite numbers that cannot be counts up to the largest."""
    findings, numbers = [], as_numbers(numbers)
    above = f"above the largest, {largest:,}, that types gives"
    whats = ("negative", "not whole", above)
    for (n_bad, bad), what in zip(numbers.unfit(largest), whats, strict=True):
        if n_bad:
            some = few(bad.tolist(), 3, lambda value: f"{value:.15g}")
            line = types_line(name, "continuous")
            remedy = f"{line}, or replace such values by missing ones"
            if what.startswith("above"):
                most = default_largest(numbers)
                remedy = f"{types_line(name, 'count', largest=most)}, or leave largest out"
            n_values = number_of(n_bad, "value is", "values are")
            findings.append(
                Finding(name, f"types says count, but {n_values} {what}: {some}", remedy)
            )
    if not findings and largest > MOST_COUNT:
        what = f"its counts, up to {numbers.high:,.0f}, are too large: at most {MOST_COUNT:,}"
        remedy = f"{types_line(name, 'continuous')}, or count in larger units"
        findings.append(Finding(name, what, remedy))
    return findings


def distribution_findings(
    name: str, numbers: Numbers | Floats, largest: int, *, zero_term: bool
) -> list[Finding]:
    """Return the error that counts leave their distribution open; a warning of a near largest."""
    numbers = as_numbers(numbers)
    constant = spread_finding(name, numbers)
    if constant is not None:
        return [constant]
    shares = numbers.tally(largest) / numbers.count
    seen = np.flatnonzero(shares)
    if undetermined(seen, largest + 1):
        what = f"the distribution of a count cannot be estimated from {few(seen.tolist())} alone"
        return [Finding(name, what, types_line(name, "categorical"))]
    if zero_term and (seen[0] != 0 or undetermined(seen[1:] - 1, largest)):
        why = (
            "it has no zeros" if seen[0] != 0 else f"its other counts are {few(seen[1:].tolist())}"
        )
        what = f"a zero term cannot be estimated: {why}"
        return [Finding(name, what, types_line(name, "count"))]
    moved = movement_when_doubled(CountKind(zero_term=zero_term), shares)
    if moved <= _MOVED:
        return []
    what = (
        f"the largest count, {largest:,}, is so near that it matters: one twice as large would "
        f"move its own terms by {moved:.1g} standard deviations"
    )
    line = types_line(name, "count", largest=min(2 * largest, MOST_COUNT))
    remedy = f"{line}, unless larger counts are impossible"
    return [Finding(name, what, remedy, "warning")]


def movement_when_doubled(kind: CountKind, shares: Floats) -> float:
    """Return how far the own terms of a count without neighbours move for twice the largest.

    This is one Newton step, in standard deviations of what multiplies the terms.
    """
    scores = kind.own_scores(len(shares))
    centre = float(shares @ scores)
    kind = replace(kind, centre=centre, scale=float(np.sqrt(shares @ (scores - centre) ** 2)))
    n_values = 2 * len(shares) - 1
    features = kind.features(n_values)
    logits = kind.base(n_values) + features @ kind.marginal(shares)
    weights = np.exp(logits - logits.max())
    inside = np.where(np.arange(n_values) < len(shares), weights, 0.0)
    inside /= inside.sum()
    centred = features - inside @ features
    covariance = (centred * inside[:, None]).T @ centred
    step = np.linalg.lstsq(covariance, weights @ centred / weights.sum(), rcond=None)[0]
    return float(np.abs(step * np.sqrt(np.diag(covariance))).max())


def hurdle_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return an error when finite numbers are not zeros and other numbers that vary, or None.

    Examples
    --------
    >>> print(hurdle_finding("debt", np.array([0.0, 0.0, 250.0, 400.0])).what)
    types says hurdle, but its values besides zero are too few to vary: 250, 400
    """
    numbers = as_numbers(numbers)
    other = numbers.without_zeros
    if other.count == numbers.count:
        what = f"types says hurdle, but none of its {numbers.count:,} values is zero"
        return Finding(name, what, types_line(name, "continuous"))
    if not other.count:
        return spread_finding(name, numbers)
    distinct = other.distinct(_FEWEST_AMOUNTS - 1)
    if distinct is not None:
        listed = few(distinct.tolist(), _FEWEST_AMOUNTS, lambda value: f"{value:.15g}")
        what = f"types says hurdle, but its values besides zero are too few to vary: {listed}"
        return Finding(name, what, types_line(name, "categorical"))
    return spread_finding(name, other) or closeness_finding(name, other)


def amounts_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return a note when a hurdle column is skewed where it is not zero.

    Examples
    --------
    >>> amounts = np.concatenate([np.zeros(50), np.exp(np.linspace(0.0, 4.0, 50))])
    >>> print(amounts_finding("debt", amounts).what)
    skewed where it is not zero (skewness 1.3)
    """
    other = as_numbers(numbers).without_zeros
    shape = shape_of(name, other, settled=True)
    if shape is None or abs(shape.skewness) <= _SKEWED:
        return None
    what = f"skewed where it is not zero (skewness {shape.skewness:.1f})"
    positive = shape.skewness > 0.0 and other.low > 0.0
    function = "np.log1p" if positive else "a function"
    remedy = f"use {function} of it, which keeps zeros and is closer to normal elsewhere"
    strong = abs(shape.skewness) > _VERY_SKEWED
    return Finding(name, what, remedy, "note", strong=strong)


# -- names of rows, not categories -----------------------------------------------------------------


def names_rows(n_levels: int, n_rows: int, *, declared: bool) -> bool:
    """Return whether there are too few rows for each level to learn anything about it.

    That is so for more than 5 levels with fewer than 2 rows each on average, and for more than 50
    levels with fewer than 5. Levels that a data frame declares (pandas category, polars Enum, ...)
    are believed up to 50.

    Examples
    --------
    >>> names_rows(400, 400, declared=False), names_rows(28, 2930, declared=False)
    (True, False)
    """
    few = _MANY_LEVELS if declared else _SOME_LEVELS
    scattered = n_levels > few and n_rows < 2 * n_levels
    return scattered or (n_levels > _MANY_LEVELS and n_rows < 5 * n_levels)


def text_finding(
    values: Values, factor: Factor, counts: NDArray[np.intp]
) -> tuple[Finding | None, str | None]:
    """Return a warning about a column of text that does not look like a category.

    `counts` says how often each level occurs. With the warning comes the reason why the column is
    left out, None when it stays.
    """
    used = [level for level, n in zip(factor.levels, counts, strict=True) if n]
    n_levels, n_rows = len(used), int(counts.sum())
    out = names_rows(n_levels, n_rows, declared=values.family != "text")
    keep = f"{types_line(values.name, 'categorical')} keeps it and silences this warning"
    if values.family == "text" and n_levels > _FEW_NUMBERS:
        words = [level for level in used if not _reads_as_number(level)]
        n_numbers = n_levels - len(words)
        if n_numbers > _FEW_NUMBERS and len(words) <= min(_FEW_WORDS, max(1, n_numbers // 10)):
            return _numbers_as_text(values, factor, counts, words, keep)
    size = f"{n_levels:,} distinct {'texts' if values.family == 'text' else 'levels'}"
    if out:
        what = f"looks like an identifier or free text, so it is left out: {size} in {rows(n_rows)}"
        reason = f"identifier or free text: {n_levels:,} levels in {rows(n_rows)}"
        keep = f"{types_line(values.name, 'categorical')} keeps it as a category"
        remedy = f"{keep} ({drop_line(values.name)} to silence this warning)"
        return Finding(values.name, what, remedy, "warning"), reason
    if values.family != "text" or n_levels <= _MANY_LEVELS:
        return None, None
    what = f"many levels for a category: {size} in {rows(n_rows)}"
    remedy = f"merge rare levels, or {drop_line(values.name)}; {keep}"
    return Finding(values.name, what, remedy, "warning"), None


def _numbers_as_text(
    values: Values, factor: Factor, counts: NDArray[np.intp], words: Sequence[Level], keep: str
) -> tuple[Finding | None, str | None]:
    n_levels, n_rows = int(np.count_nonzero(counts)), int(counts.sum())
    out = n_levels > _MANY_LEVELS or names_rows(n_levels, n_rows, declared=False)
    taken = "left out" if out else f"taken as a category of {n_levels} levels"
    if words:
        each = zip(factor.levels, counts.tolist(), strict=True)
        others = counted((level, n) for level, n in each if level in words)
        odd = number_of(len(words), "word")
        what = (
            f"its {n_levels:,} distinct values are numbers except for {odd}: {others}; "
            f"so it is text, and {taken}"
        )
        remedy = f"{_conversion(values)} turns it into numbers, and the words into missing values"
        reason = f"numbers, except for {odd}"
    elif out:
        what = (
            f"its {n_levels:,} distinct texts in {rows(n_rows)} are numbers, for example "
            f"{quoted(factor.levels[int(np.argmax(counts > 0))])}; as text it is {taken}"
        )
        remedy = f"{_conversion(values)} turns it into numbers, if they measure something"
        reason = "numbers stored as text"
    else:
        return None, None
    return Finding(values.name, what, f"{remedy}; {keep}", "warning"), reason if out else None


def _conversion(values: Values) -> str:
    """Return the line that turns a column into numbers, as the user of a library would write it."""
    name = literal(values.name)
    if values.library == "pandas":
        return f'table[{name}] = pd.to_numeric(table[{name}], errors="coerce")'
    if values.library == "polars":
        return f"table = table.with_columns(pl.col({name}).cast(pl.Float64, strict=False))"
    return "converting it to float, with missing values for what is not a number,"


def _reads_as_number(level: object) -> bool:
    try:
        float(str(level))
    except ValueError:
        return False
    return True


def numbering_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return a warning when whole numbers, none of them missing, count the rows.

    They do when they are 0 to n - 1 or 1 to n in any order, or consecutive from any number on in
    the order of the rows.

    Examples
    --------
    >>> print(numbering_finding("id", np.arange(1.0, 401.0)).what)
    looks like row numbers: the whole numbers 1 to 400, each once
    """
    numbers = as_numbers(numbers)
    n_rows, low = numbers.count, numbers.low
    if n_rows <= _FEW_NUMBERS or numbers.high - low != n_rows - 1 or low != np.floor(low):
        return None
    if not numbers.count_rows():
        return None
    high = low + n_rows - 1
    what = f"looks like row numbers: the whole numbers {low:.15g} to {high:.15g}, each once"
    keep = f"{types_line(name, 'continuous')} keeps it and silences this warning"
    return Finding(name, what, f"{drop_line(name)}; {keep}", "warning")


# -- values ----------------------------------------------------------------------------------------


def infinite_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return an error that counts infinite values, or None."""
    count = as_numbers(numbers).n_infinite
    if not count:
        return None
    what = f"{number_of(count, 'infinite value')} (inf, -inf or beyond 1.8e308)"
    return Finding(name, what, "replace them by finite or missing values")


def size_finding(name: str, numbers: Floats) -> Finding | None:
    """Return an error when finite numbers are so large that answers would not be finite."""
    largest = float(np.abs(numbers).max(initial=0.0, where=~np.isnan(numbers)))
    if largest <= _HUGE or np.isinf(largest):
        return None
    what = f"its values, up to {largest:g} in size, are too large for double precision"
    return Finding(name, what, "look for wrong units, or replace such values by missing ones")


def spread_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return an error when finite numbers do not vary, or vary beyond floating point."""
    numbers = as_numbers(numbers)
    low, high = numbers.low, numbers.high
    if low == high:
        what = f"it is constant: {low:.15g} in {_all_rows(numbers.count)}"
        return Finding(name, what, drop_line(name))
    largest = max(abs(low), abs(high))
    if largest > _HUGE or high - low < _TINY:
        size = "large" if largest > _HUGE else "close together"
        what = f"its values, from {low:g} to {high:g}, are too {size} for double precision"
        return Finding(name, what, "measure it in another unit")
    return None


def closeness_finding(name: str, numbers: Numbers | Floats) -> Finding | None:
    """Return an error when the numbers of a continuous column hardly differ for their size."""
    numbers = as_numbers(numbers)
    mean, deviation = numbers.mean, numbers.deviation
    if deviation > _CLOSE * abs(mean):
        return None
    what = (
        f"its values, with mean {mean:g} and standard deviation {deviation:.2g}, are too close "
        "together for double precision"
    )
    return Finding(name, what, "subtract a constant from it first, for example its smallest value")


def _all_rows(count: int) -> str:
    one = "the only row that has a value"
    return one if count == 1 else f"all {count:,} rows that have a value"


def broken(text: object) -> bool:
    """Return whether a text has half of a character, which no file or library accepts."""
    return isinstance(text, str) and any("\ud800" <= each <= "\udfff" for each in text)


def level_findings(name: str, factor: Factor, counts: NDArray[np.intp]) -> list[Finding]:
    """Return an error for a column with one level in use, a warning for levels without rows."""
    used = np.flatnonzero(counts)
    if len(used) == 1:
        only = factor.levels[int(used[0])]
        what = f"it is constant: {quoted(only)} in {_all_rows(int(counts.sum()))}"
        return [Finding(name, what, drop_line(name))]
    infinite = [level for level in factor.levels if level in (np.inf, -np.inf)]
    if infinite:
        what = f"an infinite number is one of its levels: {quoted(infinite[0])}"
        return [Finding(name, what, "replace it by a missing value")]
    damaged = [(level, int(counts[at])) for at, level in enumerate(factor.levels) if broken(level)]
    if damaged:
        some = ", ".join(f"{quoted(level)} ({rows(n)})" for level, n in damaged[:5])
        what = f"text that is not valid Unicode, half of a character: {some}"
        return [Finding(name, what, "repair the text, for example by reading its file as UTF-8")]
    names = [str(level) for level in factor.levels]
    if len(set(names)) < len(names):
        what = f"two of its levels read {quoted(Counter(names).most_common(1)[0][0])}"
        return [Finding(name, what, "give each level its own name")]
    unused = [level for level, n in zip(factor.levels, counts, strict=True) if not n]
    if not unused:
        return []
    what = f"{'level' if len(unused) == 1 else 'levels'} without rows: {few(unused)}"
    return [Finding(name, what, "declare only levels that occur", "warning")]


# -- shapes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """Shape of the distribution of one column, as far as it is not normal."""

    name: str
    skewness: float
    excess_kurtosis: float  # the fourth standardised moment less 3: 0 for a normal column
    common: float  # the value that occurs most often
    share: float  # of the rows that have the common value
    at_bound: str  # "smallest" or "largest" when the common value is that, else empty
    n_distinct: int  # of a sample when there are many
    n_rows: int
    advised: Kind = "continuous"  # by its values: "hurdle", "count" or "ordinal", if another kind
    largest: float = np.inf


def shape_of(name: str, numbers: Numbers | Floats, *, settled: bool = False) -> Shape | None:
    """Describe the distribution of one column; None with fewer than 20 values.

    The numbers are finite, none of them is missing, and they are not all equal.

    Examples
    --------
    >>> shape = shape_of("hours", np.repeat([0.0, 1.0, 8.0], [70, 20, 10]))
    >>> shape.common, shape.share, shape.at_bound
    (0.0, 0.7, 'smallest')
    """
    numbers = as_numbers(numbers)
    n_rows = numbers.count
    if n_rows < _FEWEST_ROWS:
        return None
    low, high = numbers.low, numbers.high
    skewness, kurtosis = numbers.shape
    commonest, n_distinct = numbers.commonest()
    shares = {value: numbers.share(value) for value in {commonest, low, high}}
    # A pile at a bound comes first: it matters more than a larger one inside the range.
    common = max(shares, key=shares.__getitem__)
    if shares[common] <= _SPIKE:
        common = max((low, high), key=shares.__getitem__)
    bound = {low: "smallest", high: "largest"}.get(common, "")
    advised = "continuous" if settled else _advised(numbers, n_distinct, skewness)
    spike = common, shares[common], bound
    return Shape(name, skewness, kurtosis - 3, *spike, n_distinct, n_rows, advised, high)


def _advised(numbers: Numbers, n_distinct: int, skewness: float) -> Kind:
    """Return the kind that the values suggest, apart from how other columns follow them."""
    zeros = numbers.share(0.0)
    if _inflated(numbers) or (zeros > _MOSTLY and n_distinct > _FEW):
        return "hurdle"
    begins = numbers.low in (0.0, 1.0) and numbers.mean <= _LARGE and skewness > _COUNT_SKEW
    if n_distinct > _FEW_DISTINCT and begins and numbers.dense_whole():
        return "count"
    if 2 < n_distinct <= _FEW and numbers.count >= 10 * n_distinct:
        return "ordinal"
    return "hurdle" if zeros >= _SPIKE and n_distinct > _FEW else "continuous"


def shape_findings(shapes: Sequence[Shape], transformed: Sequence[Shape] = ()) -> list[Finding]:
    """Return at most seven notes: transforms, skew, heavy tails, common values, and other kinds.

    Each lists the columns that it is about, the worst first. `transformed` are the columns that
    get normal scores because of their shape.
    """
    done = {shape.name for shape in transformed}
    spiked, counts, rounded, plain = (
        [s for s in shapes if s.advised == kind]
        for kind in ("hurdle", "count", "ordinal", "continuous")
    )
    piled = [s for s in plain if s.share > (_BOUND if s.at_bound else _SPIKE)]
    piled = [s for s in piled if s.n_distinct > _FEW]
    untouched = [s for s in plain if s.name not in done]
    skewed = [s for s in untouched if abs(s.skewness) > _SKEWED]
    heavy = [s for s in untouched if s.excess_kurtosis > _HEAVY and s not in skewed]
    notes = (
        _note(
            sorted(transformed, key=lambda s: -abs(s.skewness)),
            (
                "is far from normal, so normal scores of its ranks take its place",
                "are far from normal, so normal scores of their ranks take their place",
            ),
            _departing,
            f"{_transform_line(transformed, 'None')} keeps the numbers as they are",
        ),
        _note(
            sorted(skewed, key=lambda s: -abs(s.skewness)),
            ("is skewed, not normal", "are skewed, not normal"),
            lambda s: f"skewness {s.skewness:.1f}",
            _transform_line(skewed),
            strong=any(abs(s.skewness) > _VERY_SKEWED for s in skewed),
        ),
        _note(
            sorted(heavy, key=lambda s: -s.excess_kurtosis),
            ("has heavy tails", "have heavy tails"),
            lambda s: f"kurtosis {s.excess_kurtosis + 3:.1f}; 3 is normal",
            _transform_line(heavy),
        ),
        _note(
            sorted(spiked, key=lambda s: -s.share),
            ("has a spike at zero", "have a spike at zero"),
            lambda s: f"{min(s.share, 0.99):.0%} of the rows",
            f"{_kinds_line(spiked)} models whether it is zero, and how much it is where it is not",
            strong=any(s.share > _MOSTLY for s in spiked),
        ),
        _note(
            sorted(piled, key=lambda s: -s.share),
            ("has one common value", "have one common value"),
            lambda s: (
                f"{s.common:.6g}{f', its {s.at_bound} value,' if s.at_bound else ''} in "
                f"{s.share:.0%} of the rows"
            ),
            "make a category of such a column, for example this value or not; a transform leaves "
            "the spike",
            strong=any(s.share > _MOSTLY for s in piled),
        ),
        _note(
            sorted(rounded, key=lambda s: s.n_distinct),
            ("has few distinct values for a number", "have few distinct values for numbers"),
            lambda s: f"{s.n_distinct} in {s.n_rows:,} rows",
            f'{_kinds_line(rounded)}, or "categorical" if they are codes',
        ),
        _note(
            counts,
            ("looks like a count", "look like counts"),
            lambda s: f"whole numbers up to {s.largest:,.0f}",
            _kinds_line(counts),
        ),
    )
    return [note for note in notes if note is not None]


def _note(
    shapes: Sequence[Shape],
    phrases: tuple[str, str],
    detail: Callable[[Shape], str],
    remedy: str,
    *,
    strong: bool = False,
) -> Finding | None:
    """Return one note about all these columns, the first of them by name."""
    if not shapes:
        return None
    if len(shapes) == 1:
        what = f"{phrases[0].removeprefix('is ')} ({detail(shapes[0])})"
        return Finding(shapes[0].name, what, remedy, "note", strong=strong)
    listed = few(shapes, _MOST, lambda shape: f"{quoted(shape.name)} ({detail(shape)})")
    what = f"{len(shapes):,} columns {phrases[1]}: {listed}"
    return Finding(None, what, remedy, "note", strong=strong)


def _kinds_line(shapes: Sequence[Shape]) -> str:
    """Return the option that gives columns the kind that their values suggest."""
    names = [shape.name for shape in shapes[:_MOST_IN_LINE]]
    return types_line(names, shapes[0].advised) if shapes else ""


def _departing(shape: Shape) -> str:
    if abs(shape.skewness) > _SKEWED / 2:
        return f"skewness {shape.skewness:.1f}"
    return f"kurtosis {shape.excess_kurtosis + 3:.1f}; 3 is normal"


def _transform_line(shapes: Sequence[Shape], how: str = '"nonparanormal"') -> str:
    """Return the option that gives the columns a transform, as the user would write it."""
    if len(shapes) > _MOST:
        return f"transforms={how}, for all columns"
    names = (literal(shape.name) for shape in shapes)
    return "transforms={" + ", ".join(f"{name}: {how}" for name in names) + "}"

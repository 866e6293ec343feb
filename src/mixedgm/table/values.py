"""One column of any frame library in -> its family, and its values as floats or level codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import repeat
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from mixedgm.base.printable import counted
from mixedgm.model.nodes import Floats
from mixedgm.table.read import RawColumn
from mixedgm.table.schema import Level

Family = Literal["number", "boolean", "text", "category", "empty", "mixed", "other"]
Codes = NDArray[np.int32]

_NUMBERS = ("i", "u", "f")
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}


@dataclass(frozen=True, eq=False)
class Factor:
    """A column as positions in a list of levels."""

    codes: Codes  # of the rows, -1 where a value is missing
    levels: tuple[Level, ...]  # in the frame's own order where it has one, else sorted
    ordered: bool = False  # whether the frame says that the order has a meaning

    def in_order(self) -> Factor | None:
        """Return the same with levels in an order that means something; None where there is none.

        Numbers and truth values are sorted, and text that begins with numbers is sorted by them.

        Examples
        --------
        >>> ages = Factor(np.array([0, 1, 2], dtype=np.int32), ("10 and more", "5-9", "0-4"))
        >>> ages.in_order().levels
        ('0-4', '5-9', '10 and more')
        """
        if self.ordered:
            return self
        rank = [
            _leading_number(level) if isinstance(level, str) else level for level in self.levels
        ]
        if None in rank or len(set(rank)) < len(rank):
            return None
        order = sorted(range(len(rank)), key=rank.__getitem__)  # type: ignore[arg-type]
        return self.matched([self.levels[at] for at in order], ordered=False)

    def recoded(self, levels: Sequence[Level], unknown: int) -> Codes:
        """Return the codes as positions in other levels, `unknown` for those not among them."""
        position = {level: at for at, level in enumerate(levels)}
        lookup = [*(position.get(level, unknown) for level in self.levels), -1]
        return np.array(lookup, dtype=np.int32)[self.codes]

    def counts(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """Return how often each level occurs, in all rows or in some."""
        codes = self.codes if rows is None else self.codes[rows]
        return np.bincount(codes[codes >= 0], minlength=len(self.levels))

    def listed(self, rows: NDArray[np.bool_] | None = None) -> str:
        """Return the commonest levels with their counts."""
        return counted(zip(self.levels, self.counts(rows).tolist(), strict=True))

    def listed_outside(self, levels: Sequence[Level]) -> str:
        """Return the commonest of those levels that others lack, with their counts."""
        known = set(levels)
        counts = zip(self.levels, self.counts().tolist(), strict=True)
        return counted([(level, n) for level, n in counts if level not in known and n])

    def matched(self, levels: Sequence[Level], *, ordered: bool) -> Factor:
        """Return the same column as positions in other levels, which has all that occur."""
        return Factor(self.recoded(levels, -1), tuple(levels), ordered)


@dataclass(frozen=True, eq=False)
class Values:
    """One column with what its type says, before its rows are read.

    The family is "category" where the frame declares levels, "empty" where all values are missing,
    "mixed" for text among numbers, and "other" for dates, lists and the like.
    """

    name: str
    column: RawColumn
    library: str  # "pandas", "polars", "pyarrow" or "numpy"
    family: Family
    dtype: str  # the library's own name of the type
    whole: bool = False  # whether the type holds whole numbers only

    def numbers(self) -> Floats:
        """Return the values as float64, NaN where missing; zero-copy where the frame allows it."""
        if self._array is not None:
            return as_doubles(self._array)
        if self.family == "category":
            factor = self.factor()
            table = np.array([*map(nearest_double, factor.levels), np.nan])
            return np.asarray(table[factor.codes], dtype=np.float64)
        if _holds_objects(self.column):
            return _object_numbers(_to_numpy(self.column))
        if isinstance(self.column, nw.Series):
            return _series_numbers(self.column)
        return as_doubles(self.column)

    @cached_property
    def _array(self) -> NDArray[Any] | None:
        """A pandas column of plain numbers, without a copy."""
        if not isinstance(self.column, nw.Series) or _numpy_kind(self.column) not in _NUMBERS:
            return None
        return np.asarray(self.column.to_native().to_numpy())

    def factor(self) -> Factor:
        """Return the values as level codes."""
        if self.family == "category":
            codes, categories, ordered = _category_codes(self.column)
            return _tidied(codes, categories, ordered)
        if self.family == "boolean":
            numbers = self.numbers()
            codes = np.where(np.isnan(numbers), -1.0, numbers).astype(np.int32)
            return Factor(codes, (False, True))
        if self.family == "number":
            return _number_factor(self.numbers())
        if _holds_objects(self.column):
            return _object_factor(_to_numpy(self.column))
        codes, texts = _text_codes(self.column)
        levels = tuple(sorted(texts))
        return Factor(Factor(codes, tuple(texts)).recoded(levels, -1), levels)

    @property
    def is_enum(self) -> bool:
        """Whether it is an Enum of polars: its levels are in order, though it may mean nothing."""
        return self.dtype == "Enum"

    def shown(self, *, text: bool) -> str:
        """Return the commonest values with counts; of a mixed column those that are text or not."""
        if self.family == "mixed":
            cells = _to_numpy(self.column)
            counts = Counter(
                cell for cell in cells if isinstance(cell, str) == text and cell == cell
            )
            counts.pop(None, None)
            return counted(counts.items())
        return self.factor().listed()


def read_values(name: str, column: RawColumn, library: str) -> Values:
    """Return one column with its family; rows are read only where the type does not tell it."""
    dtype = _dtype_name(column)
    whole = False
    if _holds_objects(column):
        family, whole = _object_family(_to_numpy(column))
    elif isinstance(column, nw.Series):
        family, whole = _series_family(column)
    else:
        family = _ARRAY_FAMILIES.get(column.dtype.kind, "other")
        whole = column.dtype.kind in "iu"
    return Values(name, column, library, family, dtype, whole)


_ARRAY_FAMILIES: dict[str, Family] = {
    "b": "boolean",
    "i": "number",
    "u": "number",
    "f": "number",
    "U": "text",
}


def _series_family(series: nw.Series[Any]) -> tuple[Family, bool]:
    kind = _numpy_kind(series)
    if kind in _NUMBERS:
        return "number", kind != "f"
    dtype = series.dtype
    if dtype.is_numeric():
        return "number", dtype.is_integer()
    if dtype == nw.Boolean:
        return "boolean", False
    if dtype == nw.String:
        return "text", False
    if dtype in (nw.Categorical, nw.Enum):
        return "category", False
    return ("empty" if series.null_count() == len(series) else "other"), False


def _object_family(values: NDArray[Any]) -> tuple[Family, bool]:
    """Return the family of a column of Python objects, looking at the types that occur."""
    types = {each for each in set(map(type, values)) if each.__name__ not in _MISSING_TYPES}
    real = {each for each in types if issubclass(each, float | np.floating)}
    if real and not any(value == value for value in values if isinstance(value, tuple(real))):
        types -= real  # NaN marks a missing value among text and truth values, too
    if not types:
        return "empty", False
    if all(issubclass(each, str) for each in types):
        return "text", False
    if all(issubclass(each, bool | np.bool_) for each in types):
        return "boolean", False
    numeric = {each for each in types if issubclass(each, _NUMERIC) and each is not bool}
    if types == numeric:
        return "number", all(issubclass(each, int | np.integer) for each in types)
    known = numeric | {each for each in types if issubclass(each, str | bool | np.bool_)}
    return ("mixed" if types == known else "other"), False


_NUMERIC = (int, float, Decimal, np.integer, np.floating)
_STARTS_WITH_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)")


def _leading_number(text: str) -> float | None:
    match = _STARTS_WITH_NUMBER.match(text)
    return None if match is None else float(match[1])


def _numpy_kind(column: nw.Series[Any]) -> str:
    """The kind of the NumPy type of a pandas column; empty for any other."""
    dtype = getattr(column.to_native(), "dtype", None)
    return dtype.kind if isinstance(dtype, np.dtype) else ""


def _holds_objects(column: RawColumn) -> bool:
    if isinstance(column, nw.Series):
        # narwhals guesses the type of pandas object columns from a few values, so ask pandas.
        kind = _numpy_kind(column)
        return kind == "O" if kind else column.dtype == nw.Object
    return column.dtype.kind == "O"


def _to_numpy(column: RawColumn) -> NDArray[Any]:
    """The objects of a column; a signalling NaN, which cannot be hashed or compared, is a NaN."""
    values = np.asarray(
        column.to_numpy() if isinstance(column, nw.Series) else column, dtype=object
    )
    signals = [isinstance(value, Decimal) and value.is_snan() for value in values]
    return np.where(signals, np.nan, values) if any(signals) else values


def _dtype_name(column: RawColumn) -> str:
    if not isinstance(column, nw.Series):
        return str(column.dtype)
    native = column.to_native()
    if _numpy_kind(column):
        return str(native.dtype)
    if column.implementation.is_pyarrow():
        return str(native.type)
    if column.dtype == nw.Enum and column.implementation.is_polars():
        return "Enum"
    if str(native.dtype) == "category":
        return f"category[{native.cat.categories.dtype}]"
    return str(native.dtype)


def _series_numbers(column: nw.Series[Any]) -> Floats:
    if column.dtype.is_integer() and not column.implementation.is_polars():
        # Arrow refuses whole numbers that doubles do not have; the nearest double will do.
        native = column.to_native()
        if column.implementation.is_pyarrow():
            native = native.cast("float64", safe=False)
            return np.asarray(native.to_numpy(), dtype=np.float64)
        return np.asarray(native.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _object_numbers(values: NDArray[Any]) -> Floats:
    as_float = {
        value: np.nan if type(value).__name__ in _MISSING_TYPES else nearest_double(value)
        for value in set(values)
    }
    return np.fromiter(map(as_float.__getitem__, values), dtype=np.float64, count=len(values))


def _object_factor(values: NDArray[Any]) -> Factor:
    levels = sorted({str(value) for value in set(values) if isinstance(value, str)})
    position = {level: at for at, level in enumerate(levels)}
    codes = np.fromiter(map(position.get, values, repeat(-1)), dtype=np.int32, count=len(values))
    return Factor(codes, tuple(levels))


def _number_factor(numbers: Floats) -> Factor:
    distinct = np.unique(numbers[~np.isnan(numbers)])
    codes = np.searchsorted(distinct, numbers).astype(np.int32)
    codes[np.isnan(numbers)] = -1
    return Factor(codes, as_levels(distinct.tolist()))


def _tidied(codes: Codes, categories: list[Any], ordered: bool) -> Factor:
    """Merge repeated categories and turn a missing category into missing values."""
    categories = [each if isinstance(each, Hashable) else str(each) for each in categories]
    kept = [each for each in dict.fromkeys(categories) if each is not None and each == each]
    return Factor(Factor(codes, tuple(categories)).recoded(kept, -1), as_levels(kept), ordered)


def as_levels(values: list[Any]) -> tuple[Level, ...]:
    """Return distinct values as levels: text, truth values or numbers; anything else by its text.

    Whole numbers become int, whatever their type.

    Examples
    --------
    >>> as_levels([1.0, 2.0]), as_levels([0.5, 1.0])
    ((1, 2), (0.5, 1.0))
    """
    if all(isinstance(value, bool | np.bool_) for value in values):
        return tuple(bool(value) for value in values)
    if all(isinstance(value, _NUMERIC) and not isinstance(value, bool) for value in values):
        if all(isinstance(value, int) or float(value).is_integer() for value in values):
            return tuple(int(value) for value in values)
        return tuple(float(value) for value in values)
    return tuple(str(value) for value in values)


# -- codes by each library's own means -------------------------------------------------------------


def _text_codes(column: RawColumn) -> tuple[Codes, list[str]]:
    """Return codes into a list of distinct strings in no particular order."""
    if not isinstance(column, nw.Series):
        texts, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.int32), [str(each) for each in texts]
    native: Any = column.to_native()
    if column.implementation.is_polars():
        levels = native.drop_nulls().unique().sort().to_list()
        return _polars_codes(native, levels), levels
    if column.implementation.is_pyarrow():
        return _arrow_codes(native)[:2]
    factorized, uniques = native.factorize(use_na_sentinel=True)
    return factorized.astype(np.int32), [str(each) for each in uniques]


def _category_codes(column: RawColumn) -> tuple[Codes, list[Any], bool]:
    """Return codes into the categories that the frame declares, and whether they are ordered."""
    if not isinstance(column, nw.Series):
        raise TypeError("an array has no declared categories")
    native: Any = column.to_native()
    if column.implementation.is_polars():
        # A polars Categorical shares one pool of strings with all other columns and sorts by text,
        # so its levels are the strings in use, sorted. An Enum declares its levels.
        if column.dtype == nw.Enum:
            categories = native.dtype.categories.to_list()
        else:
            native = native.cast(nw.dependencies.get_polars().String)
            categories = native.drop_nulls().unique().sort().to_list()
        return _polars_codes(native, categories), categories, False
    if column.implementation.is_pyarrow():
        return _arrow_codes(native)
    if str(native.dtype) == "category":
        codes = native.cat.codes.to_numpy().astype(np.int32)
        return codes, native.cat.categories.tolist(), bool(native.cat.ordered)
    return _arrow_codes(column.to_arrow())  # pandas holding an arrow dictionary


def _polars_codes(series: Any, levels: list[str]) -> Codes:
    polars = nw.dependencies.get_polars()
    if not levels:
        return np.full(len(series), -1, dtype=np.int32)
    physical = series.cast(polars.Enum(levels)).to_physical().cast(polars.Int32)
    return np.asarray(physical.fill_null(-1).to_numpy(), dtype=np.int32)


def _arrow_codes(column: Any) -> tuple[Codes, list[Any], bool]:
    pyarrow = nw.dependencies.get_pyarrow()
    types = pyarrow.types
    if not types.is_dictionary(column.type):
        if not (types.is_string(column.type) or types.is_large_string(column.type)):
            column = column.cast(pyarrow.large_string())
        column = column.dictionary_encode()
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # some versions, where there are no chunks
        return np.empty(0, dtype=np.int32), [], False
    indices = column.indices.cast(pyarrow.int32()).fill_null(-1)
    codes = np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int32)
    return codes, column.dictionary.to_pylist(), bool(column.type.ordered)


# -- numbers of a column ---------------------------------------------------------------------------

SAMPLE = 10_000
"""Rows that are sorted to find a common value."""
FEW = 20
"""Number of distinct values in a sample up to which they are counted in all rows."""


def as_doubles(values: object) -> Floats:
    """Return numbers as doubles; infinity stands for those that are beyond all doubles.

    Raises TypeError or ValueError for what is no number.

    Examples
    --------
    >>> as_doubles([1, 10**400]).tolist()
    [1.0, inf]
    """
    with np.errstate(over="ignore"):  # of long doubles
        try:
            return np.asarray(values, dtype=np.float64)
        except OverflowError:  # of whole numbers
            cells = np.asarray(values, dtype=object)
            doubles = [nearest_double(cell) for cell in cells.ravel()]
            return np.array(doubles, dtype=np.float64).reshape(cells.shape)


def nearest_double(value: Any) -> float:
    """Return the nearest double; infinity where a whole number is beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if value < 0 else float("inf")


class Numbers(Protocol):
    """The numbers of a column, none of them missing, wherever they are."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def n_infinite(self) -> int:
        """How many of them are infinite."""

    @property
    def low(self) -> float:
        """The smallest."""

    @property
    def high(self) -> float:
        """The largest."""

    @property
    def mean(self) -> float:
        """Mean of the numbers."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the numbers, with n below the fraction line."""

    @property
    def shape(self) -> tuple[float, float]:
        """Skewness and kurtosis, the third and the fourth standardised moment."""

    @property
    def without_zeros(self) -> Numbers:
        """Numbers that are not zero."""

    def distinct(self, most: int) -> Floats | None:
        """The distinct values in order, or None when there are more than `most`."""

    def commonest(self) -> tuple[float, int]:
        """The commonest value of a sample, and how many values are distinct.

        These are those of the sample, where it has more than 20.
        """

    def share(self, value: float) -> float:
        """The share of the numbers that are equal to a value."""

    def dense_whole(self) -> bool:
        """Whether all are whole, and all from the smallest to the third quartile occur."""

    def count_rows(self) -> bool:
        """Whether they are whole numbers in the order of the rows, or a permutation of them.

        The range is known to fit the number of rows.
        """

    def unfit(self, limit: float) -> list[tuple[int, Floats]]:
        """How many are negative, not whole, and above the limit; and which values are."""

    def tally(self, largest: int) -> NDArray[np.intp]:
        """How often every whole number from 0 to the largest occurs; there are no others."""


class ArrayNumbers:
    """The numbers of a column as an array.

    Examples
    --------
    >>> numbers = ArrayNumbers(np.array([3.0, 1.0, 2.0, 2.0]))
    >>> numbers.low, numbers.distinct(10).tolist(), numbers.share(2.0)
    (1.0, [1.0, 2.0, 3.0], 0.5)
    """

    def __init__(self, values: Floats) -> None:
        self.values = values

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def n_infinite(self) -> int:
        """How many of them are infinite."""
        return int(np.count_nonzero(np.isinf(self.values)))

    @cached_property
    def low(self) -> float:
        """The smallest."""
        return float(self.values.min())

    @cached_property
    def high(self) -> float:
        """The largest."""
        return float(self.values.max())

    @property
    def mean(self) -> float:
        """Mean of the numbers."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the numbers, with n below the fraction line."""
        return float(self.values.std())

    @property
    def shape(self) -> tuple[float, float]:
        """Skewness and kurtosis."""
        centred = (self.values - self.values.mean()) / (self.high - self.low)
        squares = centred * centred
        variance = float(squares.mean())
        skewness = float((squares * centred).mean()) / variance**1.5
        return skewness, float((squares * squares).mean()) / variance**2

    @property
    def without_zeros(self) -> ArrayNumbers:
        """Numbers that are not zero."""
        return ArrayNumbers(self.values[self.values != 0.0])

    def distinct(self, most: int) -> Floats | None:
        """The distinct values in order, or None when there are more than `most`."""
        # The first ones settle nearly every continuous column.
        if len(np.unique(self.values[:4096])) > most:
            return None
        distinct = np.unique(self.values)
        return distinct if len(distinct) <= most else None

    def commonest(self) -> tuple[float, int]:
        """The commonest value of a sample, and how many values are distinct."""
        some = self.values[:: max(1, self.count // SAMPLE)]
        distinct, counts = np.unique(some, return_counts=True)
        n_distinct = len(np.unique(self.values)) if len(distinct) <= FEW else len(distinct)
        return float(distinct[int(np.argmax(counts))]), n_distinct

    def share(self, value: float) -> float:
        """The share of the numbers that are equal to a value."""
        return float(np.count_nonzero(self.values == value)) / self.count

    def dense_whole(self) -> bool:
        """Whether all are whole, and all from the smallest to the third quartile occur."""
        numbers, low, high = self.values, self.low, float(np.quantile(self.values, 0.75))
        if high - low > len(numbers) or not bool((numbers == np.floor(numbers)).all()):
            return False
        return bool(np.isin(np.arange(low, high), numbers).all())

    def count_rows(self) -> bool:
        """Whether they are whole numbers in the order of the rows, or a permutation of them."""
        steps = self.values - self.low
        if bool((steps == np.arange(self.count)).all()):
            return True
        whole = self.low in (0.0, 1.0) and bool((steps == np.floor(steps)).all())
        return whole and bool(np.bincount(steps.astype(np.intp)).max() <= 1)

    def unfit(self, limit: float) -> list[tuple[int, Floats]]:
        """How many are negative, not whole, and above the limit; and which values are."""
        numbers = self.values
        bad = (numbers < 0.0, numbers != np.floor(numbers), numbers > limit)
        return [(int(np.count_nonzero(mask)), np.unique(numbers[mask])) for mask in bad]

    def tally(self, largest: int) -> NDArray[np.intp]:
        """How often every whole number from 0 to the largest occurs."""
        return np.bincount(self.values.astype(np.int64), minlength=largest + 1)


def as_numbers(numbers: Numbers | Floats) -> Numbers:
    """Return an array as numbers that can be asked."""
    return ArrayNumbers(numbers) if isinstance(numbers, np.ndarray) else numbers

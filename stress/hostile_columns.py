"""A random generator and a number of rows -> columns of cells that nobody should have."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

Cells = list[Any]
Maker = Callable[[np.random.Generator, int], Cells]

LONG = "n" * 10_000
TEXTS = ("", " ", "  a", "a ", "a", "A", "1", "1.0", "True", "nan", "None", "NA", "x\ty", "x\ny")
ODD_TEXTS = ("\x1b[31mred", "a\u202eb", "$x$y$", "\x00", "=1+1", "é", "e\u0301", "\ud83d", "日本")
NAMES = (*ODD_TEXTS[:5], "", " ", "a b", "a,b", 'a"b', "a\nb", "<b>", "_", "x0", "\U0001f600", LONG)


class Colour(enum.Enum):
    """Levels that are members of an enumeration."""

    RED = 1
    BLUE = 2


class Size(enum.IntEnum):
    """Numbers that are members of an enumeration."""

    SMALL = 1
    LARGE = 2
    HUGE = 3


class Word(str):
    """A text of another type."""

    __slots__ = ()


def _picked(values: Any, rng: np.random.Generator, n: int) -> Cells:
    found = list(values)
    return [found[int(at)] for at in rng.integers(0, len(found), n)]


def _scaled(rng: np.random.Generator, n: int) -> Cells:
    exponent = float(rng.choice([-320, -300, -160, -80, -74, -20, 20, 74, 80, 160, 300, 308]))
    with np.errstate(over="ignore"):
        return (rng.normal(size=n) * 10.0**exponent).tolist()


def _mixed_units(rng: np.random.Generator, n: int) -> Cells:
    return (rng.normal(size=n) * 10.0 ** rng.integers(-150, 150, n)).tolist()


def _shifted(rng: np.random.Generator, n: int) -> Cells:
    return (10.0 ** rng.integers(6, 18) + rng.normal(size=n)).tolist()


def _whole(rng: np.random.Generator, n: int) -> Cells:
    base = int(rng.choice([2, 31, 53, 62, 63, 64, 70, 400, 1100]))
    return [2**base + int(k) for k in rng.integers(-3, 1000, n)]


def _near_constant(rng: np.random.Generator, n: int) -> Cells:
    cells: Cells = [rng.choice([0.0, 1.0, 0.1, 1e10])] * n
    if n:
        cells[int(rng.integers(n))] = float(rng.choice([1.0, 2.0, 1e-9, 1e6, 1e-300]))
    return cells


def _with_infinity(rng: np.random.Generator, n: int) -> Cells:
    cells = rng.normal(size=n).tolist()
    for at in rng.integers(0, max(n, 1), 2):
        cells[at : at + 1] = [float(rng.choice([np.inf, -np.inf]))] * bool(n)
    return cells


def _many_levels(rng: np.random.Generator, n: int) -> Cells:
    count = int(rng.choice([20, 50, 100, 300]))
    return [f"l{k}" for k in rng.integers(0, count, n)]


def _all_levels(rng: np.random.Generator, n: int, count: int) -> list[Cells]:
    """Columns of very many levels, and how many have rows enough to be categories."""
    most = int(rng.choice([max(2, n // 6), max(2, n // 6), max(2, n // 2)]))
    return [[f"l{k}" for k in rng.integers(0, most, n)] for _ in range(count)]


def _stray_word(rng: np.random.Generator, n: int) -> Cells:
    cells = [f"{x:.3f}" for x in rng.normal(size=n)]
    cells[:1] = ["n.a."] * bool(n)
    return cells


def _rare(rng: np.random.Generator, n: int) -> Cells:
    odd = min(n, int(rng.integers(1, 3)))
    return ["odd"] * odd + ["usual"] * (n - odd)


def _dates(rng: np.random.Generator, n: int) -> Cells:
    first = datetime.datetime(2020, 1, 1)
    days = rng.integers(0, 1000, n).tolist()
    kind = int(rng.integers(5))
    if kind == 0:
        return [first + datetime.timedelta(d) for d in days]
    if kind == 1:
        return [(first + datetime.timedelta(d)).date() for d in days]
    if kind == 2:
        return [datetime.timedelta(d) for d in days]
    if kind == 3:
        return [np.datetime64("2020-01-01") + d for d in days]
    return [str((first + datetime.timedelta(d)).date()) for d in days]


def _objects(rng: np.random.Generator, n: int) -> Cells:
    kinds: tuple[Callable[[int], Any], ...] = (
        lambda k: {"a": k},
        lambda k: [k, k],
        lambda k: {k},
        lambda k: (k, "b"),
        lambda k: bytes([k]),
        lambda k: complex(k, 1),
        lambda k: frozenset([k]),
        lambda k: object(),
        lambda k: Ellipsis,
        lambda k: list(Colour)[k % 2],
        lambda k: np.arange(k + 1),
        lambda k: range(k),
        lambda k: datetime.time(k),
    )
    make = kinds[int(rng.integers(len(kinds)))]
    cells = [make(int(k)) for k in rng.integers(0, 4, n)]
    if rng.random() < 0.3:
        return [each if rng.random() < 0.2 else 1.5 for each in cells]
    return cells


def _exact_numbers(rng: np.random.Generator, n: int) -> Cells:
    whole = rng.integers(-50, 50, n).tolist()
    kind = int(rng.integers(6))
    if kind == 0:
        return [Decimal(k) / 4 for k in whole]
    if kind == 1:
        return [Fraction(k, 3) for k in whole]
    if kind == 2:
        return [Decimal("NaN") if k % 7 == 0 else Decimal(k) for k in whole]
    if kind == 3:
        return [Decimal("1E+500") * k for k in whole]
    if kind == 4:
        return [np.float16(k) if k % 2 else np.int8(k) for k in whole]
    return [list(Size)[k % 3] for k in whole]


def _alike(rng: np.random.Generator, n: int) -> Cells:
    pairs = (
        (1, "1"),
        (True, "True"),
        (1.0, True),
        (1, True, 2),
        ("nan", float("nan")),
        (0.0, -0.0),
    )
    return _picked(pairs[int(rng.integers(len(pairs)))], rng, n)


PLAIN: tuple[Maker, ...] = (
    lambda rng, n: rng.normal(size=n).tolist(),
    lambda rng, n: rng.integers(-5, 30, n).tolist(),
    lambda rng, n: rng.poisson(2.0, n).tolist(),
    lambda rng, n: rng.integers(0, 2, n).tolist(),
    lambda rng, n: (rng.random(n) < 0.5).tolist(),
    lambda rng, n: _picked("ab", rng, n),
    lambda rng, n: _picked(["lo", "mid", "high"], rng, n),
    lambda rng, n: _picked("abcdefg", rng, n),
)

HOSTILE: tuple[Maker, ...] = (
    _scaled,
    _scaled,
    _mixed_units,
    _shifted,
    _whole,
    _whole,
    _near_constant,
    _with_infinity,
    _many_levels,
    _stray_word,
    _rare,
    _dates,
    _objects,
    _objects,
    _exact_numbers,
    _alike,
    lambda rng, n: [_picked([0, "a", None, 1.5, False], rng, 1)[0]] * n,
    lambda rng, n: rng.standard_cauchy(n).tolist(),
    lambda rng, n: np.exp(3 * rng.normal(size=n)).tolist(),
    lambda rng, n: np.round(rng.normal(size=n)).tolist(),
    lambda rng, n: list(range(n)),
    lambda rng, n: [f"id-{k}" for k in range(n)],
    lambda rng, n: rng.integers(0, 40, n).tolist(),
    lambda rng, n: [str(k) for k in rng.integers(0, 40, n)],
    lambda rng, n: _picked(TEXTS, rng, n),
    lambda rng, n: _picked(ODD_TEXTS, rng, n),
    lambda rng, n: _picked([LONG, LONG + "b", "c"], rng, n),
    lambda rng, n: _picked([1, "a", 2.5, None, True], rng, n),
    lambda rng, n: _picked(map(Word, "ab"), rng, n),
    lambda rng, n: _picked([10**400, 10**401], rng, n),
    lambda rng, n: _picked([2**70, 2**71, 3], rng, n),
    lambda rng, n: _picked([-1e308, 1e308], rng, n),
    lambda rng, n: _picked([0.5, 1.5], rng, n),
    lambda rng, n: _picked([1, 2, 3], rng, n),
)

MISSING = (None, float("nan"), np.float64("nan"))


def columns(rng: np.random.Generator, n: int, count: int) -> list[Cells]:
    """That many columns: plain ones, hostile ones, and ones that follow from others."""
    share = float(rng.choice([0.0, 0.1, 0.1, 0.2, 0.7]))
    gappy = rng.random() < 0.25
    if rng.random() < 0.03:
        return _all_levels(rng, n, count)
    found: list[Cells] = []
    for _ in range(count):
        if found and rng.random() < 0.12:
            found.append(_following(rng, found))
            continue
        makers = HOSTILE if rng.random() < share else PLAIN
        found.append(makers[int(rng.integers(len(makers)))](rng, n))
    if rng.random() < 0.4:
        _sort_along(rng, found)
    return [_with_gaps(rng, cells) if gappy and rng.random() < 0.3 else cells for cells in found]


def _following(rng: np.random.Generator, others: list[Cells]) -> Cells:
    """A copy, a sum, a threshold or new labels of other columns."""
    cells = others[int(rng.integers(len(others)))]
    if not all(isinstance(cell, float) for cell in cells):
        labels = {repr(cell): f"L{at}" for at, cell in enumerate(cells)}
        return list(cells) if rng.random() < 0.5 else [labels[repr(cell)] for cell in cells]
    x = np.array(cells, dtype=np.float64)
    kind = int(rng.integers(5))
    with np.errstate(all="ignore"):
        if kind == 0:
            return cells[:]
        if kind == 1:
            return (-1e3 * x + 5.0).tolist()
        if kind == 2:
            return np.where(x > np.median(x) if len(x) else x, "up", "down").tolist()
        if kind == 3:
            return (x + 1e-9 * rng.normal(size=len(x))).tolist()
        numeric = [c for c in others if all(isinstance(cell, float) for cell in c)]
        return np.sum(np.array(numeric, dtype=np.float64), axis=0).tolist()


def _sort_along(rng: np.random.Generator, found: list[Cells]) -> None:
    """Order some of the plain columns, so that they are related (ever so perfectly)."""
    for at, cells in enumerate(found):
        if rng.random() < 0.5 and all(isinstance(c, int | float | str) for c in cells):
            found[at] = sorted(cells, key=lambda c: (isinstance(c, str), c))
            for k in range(0, len(cells), 7) if rng.random() < 0.7 else ():
                found[at][k] = cells[k]


def _with_gaps(rng: np.random.Generator, cells: Cells) -> Cells:
    import pandas as pd

    gap = (*MISSING, pd.NA, pd.NaT)[int(rng.choice(5, p=[0.5, 0.3, 0.1, 0.05, 0.05]))]
    share = float(rng.choice([0.02, 0.2, 0.9]))
    return [gap if rng.random() < share else cell for cell in cells]


def names(rng: np.random.Generator, count: int) -> list[Any]:
    """Names of columns: mostly a, b, ...; now and then anything that a frame accepts."""
    found: list[Any] = [f"c{at}" for at in range(count)]
    if rng.random() < 0.75:
        return found
    odd: tuple[Any, ...] = (*NAMES, 0, 1, None, float("nan"), (1, "a"), True, 2.5, b"x")
    for at in range(count):
        if rng.random() < 0.4:
            found[at] = odd[int(rng.integers(len(odd)))]
    return found

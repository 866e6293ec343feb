"""Values and text of any origin -> what JSON can hold and a page can show."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from mixedgm.base.printable import cut, one_line

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_LONGEST = 120
_DIGITS = 4


def shown(text: object, most: int = _LONGEST) -> str:
    r"""Return a name or a level as the page shows it: on one line, its middle cut if it is long.

    Examples
    --------
    >>> shown("a\x00b"), len(shown("x" * 10_000))
    ('a\\x00b', 120)
    """
    return cut(one_line(str(text)), most)


def number(value: Any, digits: int = _DIGITS) -> float | int | None:
    """Return a number with a few digits; None for one that is missing or not finite.

    Examples
    --------
    >>> number(0.123456), number(1234567.0), number(float("nan")), number(3)
    (0.1235, 1235000, None, 3)
    """
    if value is None or not math.isfinite(value):
        return None
    if isinstance(value, Integral):
        return int(value)
    rounded = float(f"{float(value):.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def numbers(values: Iterable[Any], digits: int = _DIGITS) -> list[float | int | None]:
    """Return numbers with a few digits each."""
    return [number(each, digits) for each in values]


def value(cell: Any, digits: int = _DIGITS) -> bool | float | int | str | None:
    """Return a cell of a table: a number, a truth value, text, or None."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, Real):
        return number(cell, digits)
    return shown(cell)


def embedded(content: Json) -> str:
    r"""Return JSON that can stand within HTML: no character of it is markup, or ends a line.

    Examples
    --------
    >>> print(embedded({"a": "</script>&"}))
    {"a":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text

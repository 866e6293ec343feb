"""Text and values of any origin -> text that a terminal shows as it is, and on few lines."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

_MOST = 60
_MOST_IN_ALL = 4_000


def printable(text: str) -> str:
    r"""Return the text with everything but line breaks that cannot be printed made visible.

    Examples
    --------
    >>> print(printable("caf\u00e9 \x1b[31mred\u202e\nnext"))
    café \x1b[31mred\u202e
    next
    """
    return "\n".join(map(one_line, text.split("\n")))


def one_line(text: str) -> str:
    r"""Return the text with line breaks and all else that cannot be printed made visible.

    Terminal escapes, marks that turn the direction of writing, characters without width and
    halves of surrogate pairs are shown as Python writes them.

    Examples
    --------
    >>> print(one_line("two\nlines"))
    two\nlines
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object, most: int = _MOST) -> str:
    """Return a value as Python writes it, on one line, its middle left out where it is long.

    Examples
    --------
    >>> quoted("yes"), quoted(0.5), len(quoted("no" * 10_000))
    ("'yes'", '0.5', 60)
    """
    if isinstance(value, str) and len(value) > 4 * most:  # what is left out needs no writing
        value = value[: 2 * most] + value[-2 * most :]
    text = one_line(repr(value))
    if len(text) <= most:
        return text
    return text[0] + cut(text[1:-1], most - 2) + text[-1]


def few(values: Sequence[object], most: int = 5, show: Callable[[Any], str] = quoted) -> str:
    """Return the first values, and how many more there are.

    Examples
    --------
    >>> few(["age", "sex", "wage"], 2)
    "'age', 'sex' and 1 more"
    """
    shown = ", ".join(map(show, values[:most]))
    return f"{shown} and {len(values) - most:,} more" if len(values) > most else shown


def counted(counts: Iterable[tuple[Any, int]]) -> str:
    """Return values with their counts, the commonest first, at most five.

    Examples
    --------
    >>> counted([("yes", 1), ("no", 1200), ("perhaps", 0)])
    "'no' (1,200 rows), 'yes' (1 row)"
    """
    common = sorted(((value, n) for value, n in counts if n), key=lambda pair: -pair[1])
    return few(common, 5, lambda pair: f"{quoted(pair[0])} ({rows(pair[1])})")


def number_of(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, for example "1 entry" or "12 entries"."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or f'{one}s'}"


def rows(count: float) -> str:
    """Return a number of rows, of which weights may make a fraction.

    Examples
    --------
    >>> rows(1), rows(216.0), rows(10.5)
    ('1 row', '216 rows', '10.5 rows')
    """
    return number_of(int(count), "row") if count == int(count) else f"{count:,.6g} rows"


def literal(name: str) -> str:
    r"""Return a name as a string of Python and of JSON, shortened like `quoted`.

    Examples
    --------
    >>> print(literal("Größe"), literal('a "b"\x1b'))
    "Größe" "a \"b\"\u001b"
    """
    return json_text(cut(name, _MOST))


def json_text(content: object, indent: int | None = None) -> str:
    """Return JSON that any terminal, file and reader takes: what cannot be printed is escaped."""
    text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def bounded(text: str, most: int = _MOST_IN_ALL) -> str:
    """Return a message that a terminal shows as it is, its middle left out where it is long."""
    shown = printable(text[: 2 * most] + text[-2 * most :] if len(text) > 4 * most else text)
    return cut(shown, most) if len(shown) > most else shown


def width(text: str) -> int:
    """Return the columns that the text takes in a terminal: two for wide characters."""
    return len(text) if text.isascii() else sum(_widths(text))


def _widths(text: Iterable[str]) -> Iterable[int]:
    return (
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, size: int) -> str:
    """Return the text with its middle left out: names often differ in their last letters.

    Examples
    --------
    >>> cut("temperature_january", 12)
    'tempe...uary'
    """
    if width(text) <= size and len(text) <= 4 * size:  # accents take no width, but they add up
        return text
    room = max(size - 3, 0)
    head, tail = math.ceil(room / 2), room // 2
    first = sum(end <= head for end in accumulate(_widths(text[: 2 * size])))
    last = sum(end <= tail for end in accumulate(_widths(reversed(text[-2 * size :]))))
    return text[:first] + "..." + text[len(text) - last :]

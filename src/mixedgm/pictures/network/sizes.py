"""Names of columns and strengths of edges -> sizes of nodes and names, and widths of lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixedgm.base.printable import cut, one_line, width

GAP = 2.0
"""Points between a node and its name."""
MOST_INSIDE = 60
"""Columns up to which names can stand inside, and all do stand somewhere."""

_INSIDE, _BESIDE = 0.6, 0.36  # diameter of a node where nodes are at least 1 apart
_MORE = 1.0  # points by which type inside nodes of few columns is larger than the smallest
_LARGEST = 0.72  # the same where there are few columns, so that longer names stand inside
_WIDEST = 72.0  # points: larger nodes hide the lines between few columns
_FEW = 15
_FILLED = 0.8  # share of the diameter that a name may fill
_LONGEST = 24
_RING = 0.8  # diameter of a node that has a ring around it, against one that has none


@dataclass(frozen=True)
class Room:
    """Sizes in points, where neighbouring nodes are at least `unit` apart."""

    unit: float
    node: float
    """Diameter of a node."""
    font: float
    inside: bool
    """Whether the names stand inside their nodes."""
    texts: Mapping[str, str]

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str],
        unit: float | None = None,
        *,
        node: float | None = None,
        rings: bool = False,
        smallest: float = 7.0,
    ) -> Room:
        """Return the sizes for these names; `unit` is that of the usual picture by default.

        Names stand inside where all of them fit there in type of at least `smallest` points.
        """
        n = max(len(texts), 1)
        unit = 190.0 / n**0.34 if unit is None else unit
        shrunk = _RING if rings else 1.0
        longest = max([text_ems(text) for text in texts.values()], default=0.0)
        across = node or _INSIDE * unit * shrunk
        if node is None and n <= _FEW:
            smallest += _MORE
            needed = (smallest + 0.5) * longest / _FILLED
            across = min(max(across, needed), _LARGEST * unit * shrunk, _WIDEST)
        fitting = _FILLED * across / max(longest, 2.0)
        inside = longest > 0.0 and fitting >= smallest and n <= MOST_INSIDE
        if inside:
            return cls(unit, across, min(fitting, 11.0, 0.4 * across), True, texts)
        usual = 10.0 if n < FROM_COLUMNS else 9.0
        font = max(smallest, min(0.17 * unit, usual))
        across = node or min(max(_BESIDE * unit * shrunk, 4.0), 26.0)
        return cls(unit, across, font, False, texts)

    def boxes(self) -> dict[str, tuple[float, float]]:
        """Return width and height of every node with its name, in units."""
        tall = self.node + (0.0 if self.inside else GAP + 1.4 * self.font)
        pad = 5.0
        sizes = {}
        for name, text in self.texts.items():
            wide = 0.0 if self.inside else self.font * text_ems(text)
            sizes[name] = (
                max(1.0, (max(wide, self.node) + pad) / self.unit),
                max(1.0, (tall + pad) / self.unit),
            )
        return sizes


def text_ems(text: str) -> float:
    """Return the width of a text in widths of the letter m, about as sans-serif fonts have it.

    Examples
    --------
    >>> round(text_ems("education"), 1), text_ems("年")
    (5.4, 1.2)
    """
    capitals = sum(letter.isupper() or letter in "mw" for letter in text)
    return 0.6 * width(text) + 0.12 * capitals


def shown_name(name: str, longest: int = _LONGEST) -> str:
    """Return a name as pictures show it: on one line, not too long."""
    return cut(one_line(name), longest)


def abbreviated(names: Sequence[str], longest: int = 4) -> dict[str, str]:
    """Return a short text for every name, no two alike.

    First letters of words, or of one word its consonants; a number at the end stays.

    Examples
    --------
    >>> abbreviated(["Gr_Liv_Area", "Garage_Area", "Lot_Area", "age", "sex"])
    {'Gr_Liv_Area': 'GLA', 'Garage_Area': 'GA', 'Lot_Area': 'LA', 'age': 'age', 'sex': 'sex'}
    >>> abbreviated(["income", "incoming"])
    {'income': 'incm', 'incoming': 'inc2'}
    >>> abbreviated(["work_hours_11", "item12", "year_2007"])
    {'work_hours_11': 'wh11', 'item12': 'it12', 'year_2007': 'y007'}
    """
    found: dict[str, str] = {}
    taken: set[str] = {name for name in names if len(name) <= longest}
    for name in names:
        short = name if len(name) <= longest else _short(one_line(name), longest)
        if len(name) > longest:
            number = 2
            while short in taken:
                short = f"{_short(one_line(name), longest - len(str(number)))}{number}"
                number += 1
        taken.add(short)
        found[name] = short
    return found


def _short(name: str, longest: int) -> str:
    stem = name.rstrip("0123456789")
    number = name[len(stem) :][1 - longest :] if stem and longest > 1 else ""
    if number:
        return _short(stem, longest - len(number)) + number
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    if len(words) > 1:
        return "".join(word[0] for word in words)[:longest]
    word = words[0] if words else name
    letters = word[0] + "".join(letter for letter in word[1:] if letter.lower() not in "aeiou")
    return (letters if len(letters) >= longest else word)[:longest]


# -- widths of lines -------------------------------------------------------------------------------

FROM_COLUMNS = 20
"""Columns from which on weak edges recede."""

_STRONG_PER_COLUMN = 2
_THINNEST, WIDEST = 0.5, 6.5
_FAINTEST = 0.1
_RECEDED_WIDTH, _RECEDED = 0.9, 0.3
_SOLID = 0.45


def automatic_cut(sizes: Sequence[float], n_columns: int) -> float | None:
    """Return the size below which edges recede: as many as two per column stand out.

    None with fewer than 20 columns, or no more edges than that.

    Examples
    --------
    >>> automatic_cut([0.5] * 40 + [0.1] * 60, 20)
    0.5
    """
    n_strong = _STRONG_PER_COLUMN * n_columns
    if n_columns < FROM_COLUMNS or len(sizes) <= n_strong:
        return None
    return sorted(sizes, reverse=True)[n_strong - 1]


def size_text(size: float) -> str:
    """Return a size with two digits after the point, or more where it is very small.

    Examples
    --------
    >>> [size_text(size) for size in (1.0, 0.3, 0.046, 0.0012, 0.0)]
    ['1', '0.30', '0.05', '0.001', '0']
    """
    if size in (0.0, 1.0):
        return f"{size:.0f}"
    return f"{size:.2f}" if size >= 0.01 else f"{size:.1g}"


@dataclass(frozen=True)
class Scale:
    """What the widths of lines mean.

    Edges of size `maximum` or more have the widest line. Width and opacity grow with the size.
    Edges smaller than `cut` are thin and faint.
    """

    maximum: float
    cut: float | None = None
    widest: float = WIDEST
    """Width of the widest line in points."""

    def look(self) -> dict[str, float | None]:
        """Return all that decides widths and opacities, for the page of the report."""
        return {
            "maximum": self.maximum,
            "cut": self.cut,
            "thinnest": _THINNEST,
            "receded": _RECEDED_WIDTH,
            "widest": self.widest,
            "faintest": _FAINTEST,
            "faint": _RECEDED,
            "solid": _SOLID,
        }

    def share(self, size: float) -> float:
        """Return the size as a share of the largest, in [0, 1]."""
        return min(size / self.maximum, 1.0) if self.maximum > 0.0 else 0.0

    def recedes(self, size: float) -> bool:
        """Return whether an edge is below the cut."""
        return self.cut is not None and size < self.cut

    def width(self, size: float) -> float:
        """Return the width of a line in points."""
        if self.recedes(size):
            return _THINNEST + (_RECEDED_WIDTH - _THINNEST) * self._below(size)
        return _RECEDED_WIDTH + (self.widest - _RECEDED_WIDTH) * self._above(size)

    def opacity(self, size: float) -> float:
        """Return how solid a line is, from 0.1 to 1."""
        if self.recedes(size):
            return _FAINTEST + (_RECEDED - _FAINTEST) * self._below(size)
        if self.cut is None:
            return max(_FAINTEST, math.sqrt(self.share(size)))
        return _SOLID + (1.0 - _SOLID) * math.sqrt(self._above(size))

    def _below(self, size: float) -> float:
        return size / self.cut if self.cut else 1.0

    def _above(self, size: float) -> float:
        low = self.cut or 0.0
        span = self.maximum - low
        return min((size - low) / span, 1.0) if span > 0.0 else 1.0

    def keys(self, sizes: Sequence[float]) -> list[float]:
        """Return up to three sizes whose lines a legend shows: largest, middle and smallest.

        Sizes below a tenth of the largest, whose lines can hardly be seen, are not shown.

        Examples
        --------
        >>> Scale(0.61).keys([0.61, 0.3, 0.04])
        [0.6, 0.35, 0.05]
        >>> Scale(0.5).keys([0.5, 0.0])
        [0.5, 0.3, 0.05]
        """
        if not sizes or max(sizes) <= 0.0:
            return []
        largest = min(max(sizes), self.maximum)
        smallest = max(min(sizes), 0.1 * largest, math.ceil(20.0 * (self.cut or 0.0)) / 20.0)
        wanted = [largest, (largest + smallest) / 2.0, smallest]
        rounded = [_round(size) for size in wanted]
        return list(dict.fromkeys(size for size in rounded if size >= (self.cut or 0.0)))


def _round(size: float) -> float:
    """Return a size that is read easily: a multiple of 0.05, or one digit below 0.05."""
    return round(round(size * 20.0) / 20.0, 2) if size >= 0.025 else float(f"{size:.1g}")

"""What is oddest about a column or pair -> what that means and what to do, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mixedgm.printable import cut, literal, one_line
from mixedgm.table.schema import Column

__all__ = ["MEANINGS", "SHARE", "ZEROS", "Flag", "Meaning", "advice", "column_flag", "pair_flag"]

ZEROS = "zeros"
"""How `where` names the share of zeros of a count."""
SHARE = "share of"
"""How it begins where it names that of another count, or of a level without a term of its own."""

_ALIKE = 0.02  # sizes that differ by less, and by less than a tenth, are the same
_NAMED = 5


class Meaning(NamedTuple):
    """What a flag means, and what to do about it.

    In the latter, {transforms}, {categories}, {ordinal} and {zero_terms} stand for arguments about
    the columns concerned, {edge} for the first of the pairs; in both, {columns} for their names.
    """

    text: str
    to_do: str


MEANINGS = {
    # of columns
    "skewed": Meaning(
        "Given the other columns, values lean to one side of what the model expects.",
        "fit with transforms={transforms}, or take logarithms first.",
    ),
    "heavy tails": Meaning(
        "Given the other columns, some values lie farther out than in a normal distribution.",
        "look at these rows; if they are right, fit with transforms={transforms}.",
    ),
    "light tails": Meaning(
        "Given the other columns, values lie closer together than in a normal distribution, as in "
        "a column with bounds, with few values or made of groups.",
        "fit with transforms={transforms}; with few values, make it ordinal or categorical: "
        "types={categories}.",
    ),
    "not normal": Meaning(
        "Given the other columns, values are not normal, although normal scores have replaced "
        "them.",
        "if a pair of this column is flagged, begin there; else cut the numbers into groups, for "
        "another kind: types={categories}.",
    ),
    "moved": Meaning(
        "A mean, a spread or the share of a level is not what the model says.",
        "see whether these rows are like those of the fit; to judge the graph whatever the size of "
        "its parameters, check with refit=True.",
    ),
    "too sure": Meaning(
        "The model is too sure of the levels: some rows have one that it calls very improbable.",
        "if a pair of this column is flagged, begin there; else merge rare levels, or let an edge "
        "vary with a third column (moderators=).",
    ),
    "too unsure": Meaning(
        "The levels are easier to predict than the model says: edges of this column are missing, "
        "too weak, or vary with a third column.",
        "if a pair of this column is flagged, begin there; else let an edge vary with a third "
        "column (moderators=).",
    ),
    "more spread": Meaning(
        "Given the other columns, values vary more than the model says.",
        "if a pair of this column is flagged, begin there; else another kind: types={categories}, "
        "or hurdle for counts with many zeros.",
    ),
    "less spread": Meaning(
        "Given the other columns, values vary less than the model says.",
        "if a pair of this column is flagged, begin there; else another kind: types={categories}.",
    ),
    "amounts": Meaning(
        "Where the column is not zero, values are not normal given the other columns.",
        "look at these rows, or take logarithms first (np.log1p keeps zeros).",
    ),
    "zeros": Meaning(
        "There are more zeros, or fewer, than the model says.",
        "fit with types={zero_terms}; or as a hurdle column, if there are many distinct counts.",
    ),
    "counts": Meaning(
        "Some counts are more frequent, or rarer, than the model says; `where` names the one that "
        "is farthest off.",
        "fit with types={zero_terms}; if that is not enough (some counts are rounded to 5, 10, "
        "...), another kind: types={categories}, or live with it.",
    ),
    "levels": Meaning(
        "Some levels are more frequent, or rarer, than quadratic thresholds can say; `where` names "
        "the one that is farthest off.",
        "fit with a threshold for each level: types={ordinal}.",
    ),
    "not additive": Meaning(
        "The effects of other columns on it do not add up in straight lines: one is curved, or "
        "depends on a third column.",
        "if a neighbour is flagged, or a pair of this column, begin there; else let its edges vary "
        "with one of its neighbours (moderators=).",
    ),
    # of pairs
    "missing edge": Meaning(
        "The rows show a relation, and the model has no edge for it.",
        "fit with require=[{edge}] (and not in forbid=), then check again, because one missing "
        "edge can show in several pairs. A smaller lam, or a smaller gamma of EBIC, lets in more "
        "at once.",
    ),
    "edge too weak": Meaning(
        "The edge is there, but the rows show a stronger relation.",
        "if parameters are shrunken, fit with refit=True; else see whether these rows are like "
        "those of the fit.",
    ),
    "edge too strong": Meaning(
        "The model says more about the pair than the rows show.",
        "see whether these rows are like those of the fit, and look at the edges around the pair.",
    ),
    "other cells": Meaning(
        "The relation is about as strong as the model says, but in other cells; `where` names the "
        "one that is farthest off.",
        "see whether these rows are like those of the fit; to judge the graph whatever the size of "
        "its parameters, check with refit=True.",
    ),
    "curved": Meaning(
        "The relation is not a straight line: it bends with {columns}.",
        "fit with transforms={transforms}; or cut the numbers into groups, for a kind that allows "
        "any shape: types={categories}.",
    ),
    "curved scores": Meaning(
        "The relation does not rise or fall evenly with the values of {columns}.",
        "a kind that allows any shape: types={categories}; or other scores for the levels of an "
        "ordinal column.",
    ),
    "uneven spread": Meaning(
        "The spread of {columns} depends on the other column, and edges are about means only.",
        "fit with transforms={transforms}, or take logarithms, which often makes spreads equal; "
        "else compare the groups (mixedgm.compare), or live with it: edges stay about right, "
        "predicted intervals do not.",
    ),
    "uneven variation": Meaning(
        "The spread of {columns} depends on the other column in a way that its kind does not "
        "allow for.",
        "another kind: types={categories}; else compare the groups (mixedgm.compare), or live with "
        "it: edges stay about right, predicted intervals do not.",
    ),
    "not pairwise": Meaning(
        "The edge is there, but what each column says about the other does not agree, so that one "
        "edge cannot describe it.",
        "if a missing edge, a curved relation or an uneven spread of these columns is flagged, "
        "begin there; else let the edge vary with a third column (moderators=).",
    ),
}


class Flag(NamedTuple):
    """A meaning, the column that it is about (of a pair: if it is about one end), and advice."""

    meaning: str
    about: str
    advice: str

    @classmethod
    def none(cls) -> Flag:
        """Nothing is wrong."""
        return cls("", "", "")


def advice(meaning: str, columns: Sequence[str], pairs: Sequence[tuple[str, str]] = ()) -> str:
    """Return what a meaning says and what to do, about these columns, or about these pairs.

    Examples
    --------
    >>> advice("skewed", ["age"]).partition("To do: ")[2]
    'fit with transforms={"age": "nonparanormal"}, or take logarithms first.'
    """
    names = list(dict.fromkeys(columns))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = {
        "columns": ", ".join(cut(one_line(name), 40) for name in names[:_NAMED]),
        "transforms": _argument(names, '"nonparanormal"'),
        "categories": _argument(names, '"categorical"'),
        "ordinal": _argument(names, '"ordinal"'),
        "zero_terms": _argument(names, "mg.Count(zero_term=True)"),
    }
    values = {key: f"{text}{more}" for key, text in named.items()}
    values["edge"] = f"({', '.join(map(literal, pairs[0]))})" if pairs else ""
    text, to_do = MEANINGS[meaning]
    return f"{text.format(**values)} To do: {to_do.format(**values)}"


def _argument(names: Sequence[str], value: str) -> str:
    return "{" + ", ".join(f"{literal(name)}: {value}" for name in names[:_NAMED]) + "}"


def column_flag(column: Column, statistic: str, size: float) -> Flag:
    """Say what a column's oddest statistic means."""
    meaning = _column_meaning(column, statistic, above=size > 0.0)
    return Flag(meaning, column.name, advice(meaning, [column.name]))


def _column_meaning(column: Column, statistic: str, *, above: bool) -> str:
    kind = column.node_kind
    if statistic.startswith("bend"):
        return "not additive"
    if statistic.startswith(SHARE):
        return "levels" if column.has_levels else "counts"
    if statistic == "dispersion":
        return "too sure" if above else "too unsure"
    if statistic == ZEROS and not kind.has_spike:
        return "zeros"
    if statistic == "residual sd" and not kind.is_gaussian and not kind.has_spike:
        return "more spread" if above else "less spread"
    if statistic not in ("skewness", "kurtosis"):
        return "moved"
    if kind.has_spike:
        return "amounts"
    if column.transform is not None:
        return "not normal"
    tails = "heavy tails" if above else "light tails"
    return "skewed" if statistic == "skewness" else tails


def pair_flag(
    aspect: str,
    ends: tuple[Column, Column],
    sizes: Sequence[float],
    about: Column | None,
    *,
    edge: bool,
    refit: bool,
) -> Flag:
    """Say what the oddest statistics of a pair mean.

    Parameters
    ----------
    aspect : {"relation", "curve", "uneven"}
        What they look at.
    ends : tuple of Column
    sizes : sequence of float
        Observed and simulated.
    about : Column or None
        The end that bends the relation, or whose spread is uneven.
    edge, refit : bool
        Whether the model has the edge, and is estimated on these rows.
    """
    first, second = (column.name for column in ends)
    if about is None:
        meaning = _relation_meaning(ends, sizes, edge=edge, refit=refit)
        return Flag(meaning, "", advice(meaning, [first, second], [(first, second)]))
    plain = about.node_kind.is_gaussian and about.transform is None
    # A number that has another spread at every level bends the odds of the levels, and vice versa.
    by_level = not all(column.node_kind.is_numeric for column in ends)
    if aspect == "curve" and not (by_level and about.node_kind.is_gaussian):
        meaning = "curved" if plain else "curved scores"
    else:
        meaning = "uneven spread" if plain else "uneven variation"
    return Flag(meaning, about.name, advice(meaning, [about.name]))


def _relation_meaning(
    ends: tuple[Column, Column], sizes: Sequence[float], *, edge: bool, refit: bool
) -> str:
    """By its size in the rows and in simulated tables; one number cannot have another shape."""
    if refit:
        return "not pairwise" if edge else "missing edge"
    observed, simulated = map(abs, sizes)
    opposite = sizes[0] * sizes[1] < 0.0 and observed > _ALIKE
    alike = abs(observed - simulated) <= max(_ALIKE, 0.1 * max(observed, simulated))
    if alike and not all(column.node_kind.is_numeric for column in ends):
        return "other cells"
    if observed > simulated or opposite:
        return "edge too weak" if edge else "missing edge"
    return "edge too strong"

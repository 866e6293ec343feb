"""Checks of columns, pairs and levels -> ModelCheck: frames, text, a picture, and meanings."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixedgm.base.printable import cut, literal, one_line
from mixedgm.pictures.canvas import known_options
from mixedgm.pictures.check import CheckPicture, plot_check
from mixedgm.results.result import result_html
from mixedgm.results.text import table_text
from mixedgm.table.read import Columns, frame
from mixedgm.table.schema import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHOWN = 12
_NAMED = 5
_NOTES = (
    "One cause can show in several places: mend one thing, then check again.",
    "With many rows even differences that do not matter are flagged: compare observed and "
    "simulated.",
)


class NodeCheck(NamedTuple):
    """One column: residuals given all other columns, and how odd the column is.

    Numbers of the residuals are those of a continuous column, of a hurdle column where it is not
    zero, of the scores of an ordinal one and of counts, each divided by the standard deviation that
    the model gives its row: mean, standard deviation, skewness, excess kurtosis, the largest in
    size, and how many are beyond 4.
    `dispersion` is the mean squared Pearson residual of a column with finitely many values, or of
    whether a hurdle column is zero, 1 when the model is right.

    `where` names what is oddest about the column, and by how many standard deviations it is off,
    `distance` and `p` how odd that is.  Where the column is flagged, `meaning` says what that
    means in a word or two, and `advice` in sentences, with what to do.
    """

    column: str
    kind: str
    residual_mean: float
    residual_sd: float
    skewness: float
    kurtosis: float
    largest: float
    n_outliers: float
    dispersion: float
    distance: float
    p: float
    p_adjusted: float
    flagged: bool
    where: str
    meaning: str = ""
    advice: str = ""


class PairCheck(NamedTuple):
    """One pair of columns: how strongly it is related in the rows, and in simulated ones.

    `observed` and `simulated` are correlations (no column is categorical; ordinal columns count by
    their scores, counts by their square roots), correlation ratios (one is) or Cramer's V (both);
    with a hurdle column, multiple correlations with its two parts.  They show how large a
    difference is; what is judged are residuals of each column, by the other column, by its square,
    and squared residuals by the other column.  `where` names what is farthest off, in standard
    deviations; `distance`, 1 when the model is right, and `p` how odd that is.  Where the
    pair is flagged, `meaning` and `advice` say what that means and what to do, and `about` names
    the end that it is about, if it is one.
    """

    source: str
    target: str
    kind: str
    edge: bool
    observed: float
    simulated: float
    distance: float
    p: float
    p_adjusted: float
    flagged: bool
    where: str
    meaning: str = ""
    about: str = ""
    advice: str = ""


class LevelCheck(NamedTuple):
    """One level, or one count: rows that have it, and rows expected to."""

    column: str
    level: str
    observed: float
    expected: float
    z: float


class Remedy(NamedTuple):
    """Flags that mean the same, with what to do about all of them."""

    meaning: str
    advice: str
    flags: tuple[NodeCheck | PairCheck, ...]


@dataclass(frozen=True)
class ModelCheck:
    """Where the rows are not as the model says.

    Parameters
    ----------
    node_checks, pair_checks, level_checks : tuple
        The results, as plain values; `nodes()`, `pairs()` and `levels()` give them as frames.
    n_rows : int
        Rows of every simulated table.
    n_simulated : int
        Simulated tables.
    alpha : float
        Chance that a right model has anything flagged.
    library : str
        Library of the frames.
    refit : bool
        Whether the graph's estimate on these rows was judged, rather than the model as it is.
    """

    node_checks: tuple[NodeCheck, ...]
    pair_checks: tuple[PairCheck, ...]
    level_checks: tuple[LevelCheck, ...]
    n_rows: int
    n_simulated: int
    alpha: float
    library: str
    refit: bool = True

    @property
    def p(self) -> float:
        """Chance of a table that is as odd as this anywhere, when the model is right."""
        nodes = [node.p_adjusted for node in self.node_checks]
        return min([*nodes, *(pair.p_adjusted for pair in self.pair_checks)], default=1.0)

    def nodes(self) -> Any:
        """One row per column, as a frame."""
        return self._frame(NodeCheck, self.node_checks)

    def pairs(self) -> Any:
        """One row per pair of columns, oddest first, as a frame."""
        return self._frame(PairCheck, self.pair_checks)

    def flags(self) -> Any:
        """What is flagged, columns first, then pairs: what it means and what to do, as a frame."""
        return frame(self._flags, self.library)

    @property
    def _flags(self) -> Columns:
        fields = ("meaning", "where", "distance", "p_adjusted", "advice")
        nodes = [node for node in self.node_checks if node.flagged]
        pairs = [pair for pair in self.pair_checks if pair.flagged]
        return {
            "column": [*(node.column for node in nodes), *(pair.source for pair in pairs)],
            "other": [*(None for _ in nodes), *(pair.target for pair in pairs)],
            **{name: [getattr(check, name) for check in (*nodes, *pairs)] for name in fields},
        }

    def levels(self) -> Any:
        """Observed and expected counts of every level given the other columns, as a frame."""
        return self._frame(LevelCheck, self.level_checks)

    def _frame(self, row: Any, rows: Sequence[Any]) -> Any:
        return frame({name: [getattr(r, name) for r in rows] for name in row._fields}, self.library)

    @property
    def flagged(self) -> tuple[tuple[str, ...], ...]:
        """Columns and pairs that are not as the model says, oddest pair first."""
        pairs = [(pair.source, pair.target) for pair in self.pair_checks if pair.flagged]
        return (*((n.column,) for n in self.node_checks if n.flagged), *pairs)

    def by_meaning(self) -> tuple[Remedy, ...]:
        """Return what is flagged by what it means, columns before pairs."""
        found: dict[str, list[NodeCheck | PairCheck]] = {}
        checks: tuple[NodeCheck | PairCheck, ...] = (*self.node_checks, *self.pair_checks)
        for check in checks:
            if check.flagged:
                found.setdefault(check.meaning, []).append(check)
        remedies = []
        for meaning, flags in found.items():
            pairs = [flag for flag in flags if isinstance(flag, PairCheck)]
            about = [flag.column for flag in flags if isinstance(flag, NodeCheck)]
            about += [pair.about for pair in pairs if pair.about]
            ends = [(pair.source, pair.target) for pair in pairs]
            remedies.append(Remedy(meaning, advice(meaning, about, ends), tuple(flags)))
        return tuple(remedies)

    @known_options
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw how odd every pair is, and every column beside it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default; the panel of the columns is appended at its right.

        Returns
        -------
        matplotlib Axes
            Of the pairs.
        """
        names = [node.column for node in self.node_checks]
        ends = [name for pair in self.pair_checks for name in (pair.source, pair.target)]
        names += sorted({*ends} - {*names})  # covariates: they are in pairs only
        at = {name: k for k, name in enumerate(names)}
        distance = np.full((len(names), len(names)), np.nan)
        flagged, edge = (np.zeros(distance.shape, dtype=bool) for _ in range(2))
        for pair in self.pair_checks:
            u, v = at[pair.source], at[pair.target]
            distance[u, v] = distance[v, u] = pair.distance
            flagged[u, v] = flagged[v, u] = pair.flagged
            edge[u, v] = edge[v, u] = pair.edge
        nodes = [(n.distance, n.flagged, n.meaning or n.where) for n in self.node_checks]
        meanings = {
            (at[pair.source], at[pair.target]): pair.meaning
            for pair in self.pair_checks
            if pair.flagged
        }
        picture = CheckPicture(names, distance, flagged, edge, nodes, meanings)
        return plot_check(picture, ax=ax)

    @property
    def title(self) -> str:
        """How much is flagged, of what and against what, in a sentence."""
        n_items = len(self.node_checks) + len(self.pair_checks)
        judged = "the graph, refitted to these rows" if self.refit else "the model as it is"
        return (
            f"Model check: {len(self.flagged)} of {n_items} columns and pairs flagged "
            f"(a right model: any with chance {self.alpha:g}); {judged}, against "
            f"{self.n_simulated} simulated tables of {self.n_rows:,} rows"
        )

    def __repr__(self) -> str:
        return check_text(self)

    def _repr_html_(self) -> str:
        columns = dict(self._flags)
        del columns["distance"], columns["p_adjusted"]
        return result_html(self.title, columns, _NOTES if self.flagged else (), "flags()")


def check_text(checked: ModelCheck, reworded: Callable[[str], str] = str) -> str:
    """Return what is flagged, what that means and what to do; `reworded` may rewrite the advice."""
    pairs = [pair for pair in checked.pair_checks if pair.flagged]
    nodes = [node for node in checked.node_checks if node.flagged]
    parts = [textwrap.fill(checked.title, 80, subsequent_indent="  ")]
    parts += _listed("Columns", {"column": [node.column for node in nodes]}, nodes)
    shown = {
        "pair": [f"{pair.source} - {pair.target}" for pair in pairs],
        "observed": [f"{pair.observed:.2f}" for pair in pairs],
        "simulated": [f"{pair.simulated:.2f}" for pair in pairs],
    }
    parts += _listed("Pairs", shown, pairs)
    if nodes or pairs:
        parts += ["", "What the flags mean", *_meanings(checked, reworded)]
        parts += [textwrap.fill(" ".join(_NOTES), 80)]
    return "\n".join(parts)


def _listed(
    what: str, columns: dict[str, list[str]], checks: Sequence[NodeCheck | PairCheck]
) -> list[str]:
    """A heading and the first checks with how far off they are, and where."""
    off = {"where": [c.where for c in checks], "meaning": [c.meaning for c in checks]}
    shown = {name: values[:_SHOWN] for name, values in {**columns, **off}.items()}
    heading = f"{what} ({_SHOWN} of {len(checks)})" if len(checks) > _SHOWN else what
    return ["", heading, table_text(shown)] if checks else []


def _meanings(checked: ModelCheck, reworded: Callable[[str], str]) -> Iterator[str]:
    """One paragraph per meaning of the flags, with the columns and pairs that have it."""
    for each in checked.by_meaning():
        names = [
            flag.column if isinstance(flag, NodeCheck) else f"{flag.source} - {flag.target}"
            for flag in each.flags
        ]
        shown = ", ".join(cut(one_line(name), 40) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        paragraph = f"{shown}{more}: {reworded(each.advice)}"
        yield textwrap.fill(paragraph, 80, initial_indent="  ", subsequent_indent="    ")


# -- meanings --------------------------------------------------------------------------------------

ZEROS = "zeros"
"""How `where` names the share of zeros of a count."""
SHARE = "share of"
"""How it begins where it names that of another count, or of a level without a term of its own."""

_ALIKE = 0.02  # sizes that differ by less, and by less than a tenth, are the same


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

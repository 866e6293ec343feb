"""Evidence -> the lam whose estimates predict rows they have not seen: hold-out and CV."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from mixedgm.base.errors import MixedGMError, ParameterError
from mixedgm.base.parameters import ensure, ensure_in, is_flag, is_integer
from mixedgm.base.printable import quoted, rows
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.rounds import Incomplete
from mixedgm.select.evidence import Choice, Evidence
from mixedgm.select.resamples import ByResamples, Location, Split, checkpoint_field, held_out
from mixedgm.table.encode import Design
from mixedgm.table.labels import given_labels, numbered, refuse_missing
from mixedgm.table.parted.design import PartedDesign

# Held-out losses are smooth in lam: a path down to this share of the best lam has the minimum.
_LOOK_BELOW = 0.5
# So is one at this share, if the loss has risen by so many standard errors of its rise.
_RISEN_BELOW, _RISEN_ERRORS = 0.8, 3.0


class _ByPrediction(ByResamples):
    """Base class of criteria that score held-out rows."""

    part = 5

    @property
    def effort(self) -> float:
        """About how often the work of EBIC's path is done: these paths go further down."""
        return 5.0


@dataclass(frozen=True)
class Holdout(_ByPrediction):
    """Mean negative log pseudolikelihood of rows held out, at the shrunken estimates.

    The other rows are fitted at every lam; the lam with the lowest loss of the rows held out is
    chosen, and the model returned is that of all rows at this lam.

    Parameters
    ----------
    fraction : float
        Share of the rows that is held out, drawn by the estimator's `random_state`.
    rows : array, optional
        The rows that are held out instead: positions in the table, or a boolean array.

    Examples
    --------
    >>> Holdout(fraction=0.3).label
    'hold-out (30% of the rows)'
    """

    fraction: float = 0.2
    rows: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        ensure_in("(0, 1)", fraction=self.fraction)

    @property
    def label(self) -> str:
        """How the choice is described."""
        if self.rows is not None:
            return "hold-out (given rows)"
        return f"hold-out ({100.0 * self.fraction:g}% of the rows)"

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest loss; the largest lam among equals."""
        split = self._split(evidence)
        held = held_out(evidence, [split], "hold-out")
        losses = evidence.joined("holdout", held.losses[0])
        best = int(np.argmin(losses))
        return Choice(
            best,
            self.label,
            {"holdout": losses},
            evidence.all_notes(held.notes),
            down_to=None if held.interrupted else evidence.below(best, _LOOK_BELOW),
            ends=held.ends,
        )

    def _split(self, evidence: Evidence) -> Split:
        n = evidence.rows.n_rows
        if self.rows is None:
            order = np.random.default_rng(evidence.seed).permutation(n)
            test = np.sort(order[: min(max(1, round(self.fraction * n)), n - 1)])
        else:
            test = np.flatnonzero(np.isin(_positions(evidence.rows), _listed(self.rows)))
        train = np.setdiff1d(np.arange(n), test)
        if len(test) == 0 or len(train) == 0:
            raise ParameterError(
                f"hold-out needs rows on both sides: {len(test)} of the {n} rows used are held out."
            )
        return train, test


@dataclass(frozen=True)
class CV(_ByPrediction):
    """Cross-validated mean negative log pseudolikelihood, at the shrunken estimates.

    Parameters
    ----------
    cv : int, scikit-learn splitter, or iterable of (train, test) positions
        An integer gives that many folds, drawn by the estimator's `random_state`; with `groups`,
        folds of whole groups.
    one_se : bool
        Take the largest lam whose mean is within one standard error of the lowest, instead of the
        lowest itself.  The standard error is that of the mean over the k folds: their standard
        deviation divided by sqrt(k).  It does not depend on the units of the columns.
    groups : array (n,) or str, optional
        Which rows belong together, one label per row of the table, or the name of a column.
    checkpoint : path of a folder, optional
        Finished folds are kept there.  The same fit with the same folder goes on where it was,
        however it was ended; needs the estimator's `random_state`.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and regression trees" (the rule of
    one standard error).

    Examples
    --------
    >>> CV(10).label
    '10-fold CV (one standard error)'
    """

    cv: Any = 5
    one_se: bool = True
    groups: Any = field(default=None, compare=False)
    checkpoint: Location = checkpoint_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = is_integer(self.cv)
        ensure(not whole or self.cv >= 2, "cv", "at least 2 folds", self.cv)
        splits = whole or isinstance(self.cv, Iterable) or hasattr(self.cv, "split")
        wanted = (
            "an integer of at least 2, a splitter of scikit-learn, "
            "or a list of (train, test) positions"
        )
        ensure(splits and not isinstance(self.cv, str), "cv", wanted, self.cv)
        ensure(is_flag(self.one_se), "one_se", "True or False", self.one_se)

    @property
    def label(self) -> str:
        """How the choice is described."""
        name = type(self.cv).__name__ if hasattr(self.cv, "split") else "given"
        name = f"{self.cv}-fold" if isinstance(self.cv, Integral) else name
        return f"{name} CV ({'one standard error' if self.one_se else 'lowest mean'})"

    @property
    def effort(self) -> float:
        """About how often the work of EBIC's path is done."""
        n_folds = int(self.cv) if isinstance(self.cv, Integral) else 5
        return 2.0 * (1 + n_folds)

    def choose(self, evidence: Evidence) -> Choice:
        """Lowest mean loss, or the largest lam within one standard error of it."""
        before = evidence.before
        splits = self._splits(evidence) if before is None else before.memory
        held = held_out(evidence, splits, "folds", self.checkpoint)
        scores: dict[str, Floats] = {"cv": np.empty(0), "cv_se": np.empty(0)}
        units = _unit_terms(evidence, splits)
        for at, losses in enumerate(held.losses - units[:, None]):
            scores[f"cv_fold_{at + 1}"] = evidence.joined(f"cv_fold_{at + 1}", losses)
        folds = np.array(list(scores.values())[2:])
        scores["cv"], scores["cv_se"] = _mean_and_error(folds, held.weights)
        best = int(np.argmin(scores["cv"]))
        limit = scores["cv"][best] + (scores["cv_se"][best] if self.one_se else 0.0)
        ended = held.interrupted or _risen(folds, held.weights, evidence.path.lams, best)
        return Choice(
            int(np.argmax(scores["cv"] <= limit)),
            self.label,
            scores,
            evidence.all_notes(held.notes),
            down_to=None if ended else evidence.below(best, _LOOK_BELOW),
            memory=splits,
            ends=held.ends,
        )

    def _splits(self, evidence: Evidence) -> list[Split]:
        design = evidence.rows
        assert not isinstance(design, PartedDesign)  # folds of tables in parts are refused before
        groups = None if self.groups is None else _group_labels(design, self.groups)
        if isinstance(self.cv, Integral):
            return _drawn_folds(int(self.cv), design.n_rows, groups, evidence.seed)
        return _checked(_given_splits(self.cv, design, groups), design)


def _unit_terms(evidence: Evidence, splits: list[Split]) -> Floats:
    """(n_splits,) mean log units of held-out numbers, less those over all rows.

    Zeros of hurdle columns and missing cells have no unit, so that parts with more numbers would
    seem to fit worse, or better, only because of the units.
    """
    rows = evidence.rows
    assert not isinstance(rows, PartedDesign)  # folds of tables in parts are refused before
    table = rows.gaps if isinstance(rows, Incomplete) else rows
    there = ~np.isnan(table.numbers)
    spans = table.schema.spans
    there &= (table.numbers != 0.0) | spans.gaussian_nodes[: spans.n_real]
    by_row = there @ evidence.task.log_units
    weights = np.ones(len(by_row)) if table.weights is None else table.weights
    means = [np.average(by_row[test], weights=weights[test]) for _, test in splits]
    return np.array(means) - np.average(by_row, weights=weights)


def _risen(folds: Floats, weights: Floats, lams: Floats, best: int) -> bool:
    """Whether the last loss is above the lowest by more than the folds disagree about it."""
    if len(folds) < 2:
        return False
    mean, error = _mean_and_error(folds[:, [-1]] - folds[:, [best]], weights)
    return bool(lams[-1] <= _RISEN_BELOW * lams[best] and mean[0] > _RISEN_ERRORS * error[0])


def _mean_and_error(folds: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted mean over the folds that did not fail, and its standard error."""
    whole = np.isfinite(folds).all(axis=1)
    if not whole.any():
        raise MixedGMError("every fold failed at some lam, so none can be compared.")
    losses, share = folds[whole], weights[whole] / weights[whole].sum()
    mean = share @ losses
    spread = share @ (losses - mean) ** 2
    return mean, np.sqrt(spread / max(len(losses) - 1, 1))


def _positions(design: Design | PartedDesign | Incomplete) -> Ints:
    """Position of every row in the table it came from."""
    return np.arange(design.n_rows) if design.kept is None else np.asarray(design.kept)


def _listed(rows: object) -> Ints:
    """Positions, from positions or a boolean array."""
    values = np.asarray(rows)
    if values.dtype == bool:
        return np.flatnonzero(values)
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        raise ParameterError.must_be("rows", "positions of rows or a boolean array", rows)
    return values


def _group_labels(design: Design | Incomplete, groups: object) -> Ints:
    """One integer per row of the design; rows of one group have the same."""
    if isinstance(groups, str):
        node = design.schema.node_index(groups)
        values: Any = design.values_of(node).tolist()
        if isinstance(design, Incomplete):
            gap = design.gaps.missing[:, node]
            values = [None if absent else each for absent, each in zip(gap, values, strict=True)]
    else:
        labels, at = given_labels("groups", groups), _positions(design)
        needed = design.n_rows if design.kept is None else int(at.max()) + 1
        if len(labels) < needed or (design.kept is None and len(labels) != needed):
            raise ParameterError(
                f"groups must have one label per row of the table. Got {len(labels):,} labels for "
                f"{rows(needed)}."
            )
        values = [labels[row] for row in at]
    refuse_missing("groups", values)
    return numbered(values)[1]


def _drawn_folds(
    k: int, n_rows: int, groups: Ints | None, seed: np.random.SeedSequence
) -> list[Split]:
    """Folds of about equal numbers of rows, or of groups, in random order."""
    units = np.arange(n_rows) if groups is None else groups
    n_units = int(units.max()) + 1
    if n_units < k:
        what = "rows" if groups is None else "groups"
        raise ParameterError(f"cv={k} folds need at least {k} {what}; there are {n_units}.")
    fold = np.random.default_rng(seed).permutation(n_units) % k
    return [(np.flatnonzero(fold[units] != f), np.flatnonzero(fold[units] == f)) for f in range(k)]


def _given_splits(
    cv: Any, design: Design | Incomplete, groups: Ints | None
) -> list[tuple[Any, Any]]:
    """Pairs of positions in the table, from a splitter or a list."""
    if not hasattr(cv, "split"):
        return list(cv)
    at = _positions(design)
    n = int(at.max()) + 1
    labels = None
    if groups is not None:
        labels = np.full(n, -1)
        labels[at] = groups
    try:
        return list(cv.split(np.zeros((n, 1)), None, labels))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cv={quoted(cv)} cannot split these {n} rows: {error}") from error


def _checked(pairs: list[tuple[Any, Any]], design: Design | Incomplete) -> list[Split]:
    """Return the splits in positions of the design; rows that are not in it are left out."""
    splits: list[Split] = []
    for number, pair in enumerate(pairs):
        ensure(len(pair) == 2, f"split {number} of cv", "a pair (train, test)", pair)
        train, test = (np.flatnonzero(np.isin(_positions(design), _listed(part))) for part in pair)
        both = np.intersect1d(train, test)
        if len(both) or len(train) == 0 or len(test) == 0:
            raise ParameterError(
                f"split {number} of cv has {len(train)} rows to fit, {len(test)} to score and "
                f"{len(both)} in both; it needs some of each and none in both."
            )
        splits.append((train, test))
    if not splits:
        raise ParameterError("cv has no splits.")
    return splits

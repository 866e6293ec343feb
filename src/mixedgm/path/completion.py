"""Rows with gaps and a model -> completed rows with weights that add up to one per row.

The weight of a completion is what the model says about it, given what the row has.  Missing numbers
are Gaussian given all states, with a covariance that depends on which are missing only; they stand
at points of that distribution.  Points and drawn states stay the same while parameters change, so
that completions are a smooth function of these.

Gaps -> for every row with gaps the states of its missing discrete columns that stand for it.

Where these have few states, all of them stand, and the model gives their weights.  Where there are
many, some are drawn by the model, and their weights follow the model from then on.

How many numbers are missing -> points with weights that stand for a normal distribution.

One number has Gauss and Hermite's points.  Several have random points in antithetic pairs: their
mean is zero, and their covariance the identity, in every set of at least twice as many points as
numbers, or else in all sets together.  There are several sets, so that rows do not share an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError, Finding, TableError
from mixedgm.joint.conditioning import KnownColumns
from mixedgm.joint.kernels import add_level_rows, level_terms
from mixedgm.joint.posteriors import posterior_draw
from mixedgm.joint.validity import factor, repaired
from mixedgm.model.conditional_gaussian import ConditionalGaussian
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Mask
from mixedgm.model.params import Params, over_observed, with_all_levels
from mixedgm.table.encode import Design, code_dtype
from mixedgm.table.gaps import Gaps

_CELLS = 2**18
"""Numbers in the largest arrays that are worked on at once."""
_STATES = 2**16
"""States that are written out at once in order to draw from them."""
_SWEEPS = 50
"""Sweeps of the Gibbs chains whose ends are drawn where nothing else is possible."""
_IMPOSSIBLE = -1e6
"""Log weight of a level without rows."""
_DONORS = 4
"""Values that every gap gets at first."""


@dataclass(frozen=True, eq=False)
class Lacking:
    """States in which so many numbers are missing, and which."""

    at: Small
    """(m,) numbers of the states."""
    pattern: Small
    """(m,) the pattern of each."""
    patterns: Ints
    """(patterns, k) masks of the numbers that are missing."""

    @classmethod
    def of(cls, gap: NDArray[np.bool_], row: Small) -> tuple[Lacking, ...]:
        """The states of these rows, by the number of missing numbers; those without are left out.

        `gap` (n, p) marks the missing numbers of all rows.
        """
        kinds, pattern = np.unique(gap, axis=0, return_inverse=True)
        n_missing, pattern = kinds.sum(axis=1), pattern.ravel()
        missing = np.argsort(~kinds, axis=1, kind="stable")
        of_state = n_missing[pattern][row]
        out = []
        for k in np.unique(of_state[of_state > 0]).tolist():
            here, at = np.flatnonzero(n_missing == k), np.flatnonzero(of_state == k)
            number = np.searchsorted(here, pattern[row[at]])
            out.append(cls(at.astype(np.int32), number.astype(np.int32), missing[here, :k]))
        return tuple(out)

    def roots(self, precision: Floats) -> Iterator[tuple[Small, Ints, Floats]]:
        """Yield states, their missing numbers, and roots R: R'R is the covariance of these."""
        k = self.patterns.shape[1]
        step, patterns = max(1, _CELLS // (k * k)), self.patterns
        lower = np.linalg.cholesky(precision[patterns[:, :, None], patterns[:, None, :]])
        roots = np.linalg.inv(lower)
        for first in range(0, len(self.at), step):
            pattern = self.pattern[first : first + step]
            yield self.at[first : first + step], patterns[pattern], roots[pattern]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """States, and the number of points of each, which stay while parameters change."""

    states: RowStates
    lacking: tuple[Lacking, ...]
    n_points: NDArray[np.int16]
    """(states,)"""

    @cached_property
    def state(self) -> Small:
        """(completions,) the state of each."""
        return np.repeat(np.arange(len(self.n_points), dtype=np.int32), self.n_points)

    @cached_property
    def row(self) -> Small:
        """(completions,) the row of each."""
        return self.states.row[self.state]

    @cached_property
    def first(self) -> Small:
        """(states,) the first completion of each."""
        return np.asarray(np.cumsum(self.n_points, dtype=np.int32) - self.n_points, np.int32)


class Completer:
    """Completes the rows of one table by any model of it.

    All completions have the same levels, and the same columns that vary: those of the values that
    the rows have.

    Parameters
    ----------
    gaps : Gaps
        The table.
    limits : CompletionLimits
        How many completions a row may have.
    possible : list of ndarray, optional
        Values of every discrete column that can occur; by default those that the rows have.
    """

    def __init__(
        self,
        gaps: Gaps,
        limits: CompletionLimits | None = None,
        possible: list[Ints] | None = None,
    ) -> None:
        self.gaps, self.limits = gaps, limits or CompletionLimits()
        self._possible = _values_seen(gaps) if possible is None else possible
        missing = gaps.missing.any(axis=1)
        self.complete, self.gappy = np.flatnonzero(~missing), np.flatnonzero(missing)
        self._skeleton: Skeleton | None = None

    def of(self, gaps: Gaps) -> Completer:
        """One for other rows, with the same limits and possible values."""
        return Completer(gaps, self.limits, self._possible)

    def forget(self) -> None:
        """Let go of the states, which are many."""
        self._skeleton = None

    def reseeded(self) -> Completer:
        """Return a completer with other points and draws."""
        limits = replace(self.limits, seed=self.limits.seed + 1)
        return Completer(self.gaps, limits, self._possible)

    @property
    def has_draws(self) -> bool:
        """Whether some states are drawn."""
        if self.gaps.schema.spans.n_spiked:
            return len(self.gappy) > 0
        return bool((~self._missing_states.all_stand).any())

    @property
    def has_points(self) -> bool:
        """Whether several numbers of a row stand at random points."""
        return not self.limits.sigma and bool((self._missing_states.n_numbers > 1).any())

    # -- starting without a model ------------------------------------------------------------------

    def hot_deck(self) -> Design:
        """Every gap filled with some of the values that its column has, as if there were no edges.

        Examples
        --------
        >>> from mixedgm.table.gaps import learn_gaps
        >>> gaps, _ = learn_gaps([[1.0, "b"], [None, "a"], [0.5, "a"], [3.5, "b"]])
        >>> Completer(gaps).hot_deck().total_weight
        4.0
        """
        gaps, rng = self.gaps, np.random.default_rng([self.limits.seed, 1])
        rows = np.concatenate([self.complete, np.repeat(self.gappy, _DONORS)])
        numbers, codes = gaps.numbers[rows].copy(), gaps.codes[rows].copy()
        missing, spans = gaps.missing[rows], gaps.schema.spans
        for node in range(len(gaps.schema.nodes)):
            there = np.flatnonzero(~gaps.missing[:, node])
            lacking = np.flatnonzero(missing[:, node])
            donors = self._donors(there, len(lacking), rng)
            real, discrete = spans.places([node])
            numbers[lacking[:, None], real] = gaps.numbers[donors[:, None], real]
            codes[lacking[:, None], discrete] = gaps.codes[donors[:, None], discrete]
        weights = self.row_weights[rows]
        weights[len(self.complete) :] /= _DONORS
        return self._design(numbers, codes, weights, rows)

    def _donors(self, there: Ints, n: int, rng: np.random.Generator) -> Ints:
        weights = self.row_weights[there]
        return np.asarray(rng.choice(there, n, p=weights / weights.sum()))

    @cached_property
    def row_weights(self) -> Floats:
        """(n,) weights of all rows."""
        weights = self.gaps.weights
        return np.ones(self.gaps.n_rows) if weights is None else weights

    def _design(
        self, numbers: Floats, codes: NDArray[np.integer], weights: Floats, rows: Ints | Small
    ) -> Design:
        schema = self.gaps.schema
        small: Codes = np.asarray(codes, dtype=code_dtype(schema))
        return Design(schema, numbers, small, weights, None, np.asarray(rows))

    # -- completing by a model ---------------------------------------------------------------------

    def completed(self, params: Params, *, redraw: bool = False) -> Design:
        """Complete the rows by a model; draw the states anew where not all of them stand."""
        gaps = self.gaps
        if not len(self.gappy):
            return self._design(gaps.numbers, gaps.codes, self.row_weights, self.complete)
        params = self._within(params)
        if gaps.schema.spans.n_spiked:
            rows, numbers, codes, weights = self._by_chains(params, self.gappy)
            return self._joined(rows, numbers, codes, weights)
        density = self._valid(params.joint)
        if self._skeleton is None or redraw:
            self._skeleton = self._drawn(density)
        skeleton = self._skeleton
        states = skeleton.states
        numbers = gaps.numbers[skeleton.row]
        weights = self._weighed(density, states, skeleton.lacking)[skeleton.state]
        for lacking in skeleton.lacking:
            self._place(density, lacking, skeleton, numbers, weights)
        weights *= self.row_weights[skeleton.row]
        return self._design(numbers, states.codes[skeleton.state], weights, skeleton.row)

    def _joined(self, rows: Ints, numbers: Floats, codes: Codes, weights: Floats) -> Design:
        """Complete rows first."""
        gaps, first = self.gaps, self.complete
        return self._design(
            np.vstack([gaps.numbers[first], numbers]),
            np.vstack([gaps.codes[first], codes]),
            np.concatenate([self.row_weights[first], weights]),
            np.concatenate([first, rows]),
        )

    def _valid(self, density: ConditionalGaussian) -> ConditionalGaussian:
        """The density; where it is none, with the nearest precision that has one."""
        try:
            factor(density.precision)
        except DistributionError:
            return replace(density, precision=repaired(density.precision)[0])
        return density

    def _within(self, params: Params) -> Params:
        """The parameters without levels that cannot occur here, though they do in other rows."""
        nodes = self.gaps.schema.spans
        possible = np.zeros(int(nodes.level_start[-1]), dtype=bool)
        for j, values in enumerate(self._possible):
            possible[nodes.level_start[j] + values] = True
        if possible.all():
            return params
        return with_all_levels(over_observed(params, possible), possible, nodes)

    @cached_property
    def _missing_states(self) -> MissingStates:
        return MissingStates(self.gaps, self._possible, self.limits)

    @cached_property
    def _n_draws(self) -> int:
        """Number of draws for every row that is not completed by all of its states."""
        if self.gaps.schema.spans.n_spiked:
            return self.limits.draws_for(len(self.gappy))
        return self.limits.draws_for(int((~self._missing_states.all_stand).sum()))

    def _drawn(self, density: ConditionalGaussian) -> Skeleton:
        """States that stand for the rows: all, or some that the density is asked for."""
        plan = self._missing_states
        parts = [plan.of(plan.all_stand)]
        if plan.too_many.any():
            parts.append(self._ends_of_chains(density, np.flatnonzero(plan.too_many)))
        many = np.flatnonzero(~plan.all_stand & ~plan.too_many)
        rng = np.random.default_rng([self.limits.seed, 2])
        uniforms, n_draws = rng.random(self.gaps.n_rows), self._n_draws
        for some in _blocks(many, plan.n_states):
            which = np.zeros(self.gaps.n_rows, dtype=bool)
            which[some] = True
            states = plan.of(which)
            share = self._weighed(density, states, Lacking.of(self._gap, states.row))
            rows = states.row[states.starts]
            parts.append(drawn(states, share, n_draws, uniforms[rows]))
        return self._skeleton_of(parts)

    def _ends_of_chains(self, density: ConditionalGaussian, rows: Ints) -> RowStates:
        """States of rows that have too many to be written out, by the joint distribution."""
        row, _, codes, _ = self._by_chains(density, rows)
        every, times = np.unique(np.column_stack([row, codes]), axis=0, return_counts=True)
        states = RowStates(
            every[:, 0].astype(np.int32),
            every[:, 1:].astype(code_dtype(self.gaps.schema)),
            np.zeros(len(every), dtype=np.float32),
            np.ones(len(every), dtype=bool),
        )
        log_weight = self._log_weights(density, states, Lacking.of(self._gap, states.row))
        return replace(states, log_drawn=_centred(log_weight - np.log(times), states.starts))

    def _skeleton_of(self, parts: list[RowStates]) -> Skeleton:
        order = np.argsort(np.concatenate([part.row for part in parts]), kind="stable")
        states = RowStates(
            np.concatenate([part.row for part in parts])[order],
            np.vstack([part.codes for part in parts])[order],
            np.concatenate([part.log_drawn for part in parts])[order],
            np.concatenate([part.drawn for part in parts])[order],
        )
        parts.clear()
        del order
        n_missing = self._gap.sum(axis=1)[states.row]
        n_states = np.diff(np.append(states.starts, len(states.row)))
        asked = np.column_stack([n_missing, np.repeat(n_states, n_states), states.drawn])
        kinds, kind = np.unique(asked, axis=0, return_inverse=True)
        counts = [
            2 if is_drawn and k else self.limits.n_points(k, n) for k, n, is_drawn in kinds.tolist()
        ]
        n_points = np.array(counts, dtype=np.int16)[kind.ravel()]
        return Skeleton(states, Lacking.of(self._gap, states.row), n_points)

    @cached_property
    def _gap(self) -> NDArray[np.bool_]:
        """(n, p) missing numbers."""
        return np.isnan(self.gaps.numbers)

    def _weighed(
        self, density: ConditionalGaussian, states: RowStates, lacking: tuple[Lacking, ...]
    ) -> Floats:
        """Probabilities of the states of every row."""
        return states.weighted(self._log_weights(density, states, lacking))

    def _log_weights(
        self, density: ConditionalGaussian, states: RowStates, lacking: tuple[Lacking, ...]
    ) -> Floats:
        """Log weights of states before normalisation; missing numbers are integrated out."""
        out, precision = np.empty(len(states.row)), density.precision
        for first in range(0, len(out), _STATES):
            part = slice(first, first + _STATES)
            numbers = self._known_numbers[states.row[part]]
            linear = self._linear_terms(density, states, part)
            out[part] = _discrete_terms(density, states.codes[part])
            out[part] += np.einsum("ij,ij->i", linear, numbers)
        for each in lacking:
            for at, missing, root in each.roots(precision):
                pull = self._pull(density, states, at, missing)
                out[at] += 0.5 * (np.einsum("mab,mb->ma", root, pull) ** 2).sum(axis=1)
        return out

    def _linear_terms(
        self, density: ConditionalGaussian, states: RowStates, some: slice | Small
    ) -> Floats:
        """(m, p) linear terms of all numbers in some states."""
        codes = states.codes[some]
        linear = np.tile(density.linear, (len(codes), 1))
        shift = np.ascontiguousarray(density.shift.T)
        add_level_rows(linear, codes, density.level_start, shift)
        return linear

    def _pull(
        self, density: ConditionalGaussian, states: RowStates, some: Small, missing: Ints
    ) -> Floats:
        """(m, k) linear terms of the missing numbers, with what known ones say."""
        linear = self._linear_terms(density, states, some)
        linear -= self._known_numbers[states.row[some]] @ density.precision
        return np.take_along_axis(linear, missing, axis=1)

    @cached_property
    def _known_numbers(self) -> Floats:
        """(n, p) zero where missing."""
        return np.nan_to_num(self.gaps.numbers, nan=0.0)

    def _place(
        self,
        density: ConditionalGaussian,
        lacking: Lacking,
        skeleton: Skeleton,
        numbers: Floats,
        weights: Floats,
    ) -> None:
        """Write missing numbers at their points, and multiply weights by those of these."""
        rows, k = skeleton.states.row, lacking.patterns.shape[1]
        for at, missing, root in lacking.roots(density.precision):
            pull = self._pull(density, skeleton.states, at, missing)
            mean = np.einsum("mba,mb->ma", root, np.einsum("mab,mb->ma", root, pull))
            n_points = skeleton.n_points[at]
            for n in np.unique(n_points).tolist():
                some = np.flatnonzero(n_points == n)
                points, shares = normal_points(k, n, self.limits.seed)
                values = mean[some, None, :] + points[rows[at[some]] % N_SETS] @ root[some]
                to = skeleton.first[at[some]][:, None] + np.arange(n)
                numbers[to[:, :, None], missing[some, None, :]] = values
                weights[to] *= shares

    def _by_chains(
        self, form: ConditionalGaussian | Params, rows: Ints
    ) -> tuple[Ints, Floats, Codes, Floats]:
        """Draws by the joint distribution, with the same random numbers every time."""
        spans, gaps = self.gaps.schema.spans, self.gaps
        parts: list[tuple[Ints, Floats, Codes]] = []
        for number, (members, gap) in enumerate(gaps.patterns()):
            members = np.intersect1d(members, rows)
            if not len(members):
                continue
            rng = np.random.default_rng([self.limits.seed, 3, number])
            several = np.repeat(members, self._n_draws)
            places, unknown = spans.places(np.flatnonzero(~gap)), spans.places(np.flatnonzero(gap))
            numbers, codes = gaps.numbers[several].copy(), gaps.codes[several].copy()
            known = KnownColumns(*places, numbers[:, places[0]], codes[:, places[1]])
            drawn_numbers, drawn_codes = posterior_draw(form, known, rng=rng, sweeps=_SWEEPS)
            numbers[:, unknown[0]], codes[:, unknown[1]] = drawn_numbers, drawn_codes
            parts.append((several, numbers, codes))
        row, numbers, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
        return row, numbers, codes, self.row_weights[row] / self._n_draws


def _values_seen(gaps: Gaps) -> list[Ints]:
    """Values of every discrete column that rows have, or that can occur without rows."""
    out, codes, schema = [], gaps.codes, gaps.schema
    for at, count in enumerate(schema.n_levels):
        seen = np.bincount(codes[codes[:, at] >= 0, at], minlength=count) > 0
        out.append(np.flatnonzero(seen | (not schema.spans.free[at])))
    return out


def with_constants_filled(gaps: Gaps) -> Gaps:
    """The rows, with values drawn from the same column in gaps of columns that do not vary.

    Such columns have no edges, and no model can say more about their gaps.  Were they completed by
    a model of other rows, they would vary, and have edges in some rounds and none in others.
    Raises TableError where a column has no values.

    Examples
    --------
    >>> from mixedgm.table.gaps import learn_gaps
    >>> gaps, _ = learn_gaps([[1.0, "b"], [None, "a"], [0.5, "a"], [1.0, "b"], [3.5, "a"]])
    >>> with_constants_filled(gaps.take(np.array([0, 1, 3]))).numbers.tolist()
    [[1.0], [1.0], [1.0]]
    """
    schema, rng = gaps.schema, np.random.default_rng([0, 4])
    numbers, codes = gaps.numbers.copy(), gaps.codes.copy()
    for node in np.flatnonzero(gaps.missing.any(axis=0)).tolist():
        known, lacking = (np.flatnonzero(gaps.missing[:, node] == gap) for gap in (False, True))
        if not len(known):
            what = f"all {gaps.total_weight:,.6g} values are missing in this part of the table"
            remedy = "leave the column out, or drop the rows with gaps (missing='drop')"
            raise TableError([Finding(schema.nodes[node].name, what, remedy)])
        if _varies(gaps, node, known):
            continue
        donors = rng.choice(known, len(lacking))
        real, discrete = schema.spans.places([node])
        numbers[lacking[:, None], real] = gaps.numbers[donors[:, None], real]
        codes[lacking[:, None], discrete] = gaps.codes[donors[:, None], discrete]
    return replace(gaps, numbers=numbers, codes=codes)


def _varies(gaps: Gaps, node: int, known: Ints) -> bool:
    """Whether a column can have edges; a hurdle column needs zeros and two other values."""
    spans = gaps.schema.spans
    real, discrete = spans.places([node])
    values = gaps.numbers[known][:, real].ravel()
    if spans.spiked_nodes[node]:
        there = gaps.codes[known][:, discrete].ravel() > 0
        return bool(not there.all() and there.any() and _differ(values[there]))
    if len(real):
        return _differ(values)
    return len(np.unique(gaps.codes[known][:, discrete])) > 1


def _differ(values: Floats) -> bool:
    """Whether numbers differ by more than rounding."""
    return bool(np.ptp(values) > 1e-13 * np.abs(values).max())


def _centred(values: Floats, starts: Ints) -> NDArray[np.float32]:
    """Less the largest of each row, so that little is lost in single precision."""
    counts = np.diff(np.append(starts, len(values)))
    less = values - np.repeat(np.maximum.reduceat(values, starts), counts)
    return np.asarray(less, dtype=np.float32)


def _discrete_terms(density: ConditionalGaussian, codes: Codes) -> Floats:
    """(m,) log density of the states without the numbers: own terms, and terms of pairs."""
    # Finite: of a level that the fit had no rows of, and that a row has, it cancels out.
    bias = np.maximum(density.bias, _IMPOSSIBLE)
    if density.seen is None:
        return np.asarray(level_terms(codes, density.level_start, bias, density.coupling))
    seen = density.seen.design_columns(np.zeros((len(codes), 0)), codes)
    terms = bias[density.level_start[:-1] + codes].sum(axis=1)
    return np.asarray(terms + 0.5 * ((seen @ density.coupling) * seen).sum(axis=1))


def _blocks(rows: Ints, sizes: Floats) -> Iterator[Ints]:
    """Yield rows so few at a time that their states together are not too many."""
    if not len(rows):
        return
    block = (np.cumsum(sizes[rows]) // _STATES).astype(np.int64)
    yield from np.split(rows, np.flatnonzero(np.diff(block)) + 1)


# -- states of discrete columns --------------------------------------------------------------------

Codes = NDArray[np.uint8 | np.uint16 | np.int32]
Small = NDArray[np.int32]
"""Numbers of rows, or of states: half the memory of usual ones."""

FEWEST_DRAWS, MOST_DRAWS = 20, 100
DRAWS_IN_ALL = 100_000
"""Draws for all rows together, as long as each row has enough of them."""
MOST_STATES = 4096
"""Largest number of states of a row that are written out in order to draw from them."""


@dataclass(frozen=True)
class CompletionLimits:
    """How many completions a row may have."""

    most: int = 64
    """Completions of a row up to which all states stand for it."""
    sigma: bool = False
    """Whether means and covariances of missing numbers are all that matters: so it is for the
    likelihood, whose statistics are quadratic in them."""
    seed: int = 0
    """Seed of everything that is drawn."""
    n_draws: int | None = None
    """States that are drawn for a row that has too many; by default the fewer, the more rows."""

    def draws_for(self, n_rows: int) -> int:
        """How many states are drawn for each of so many rows."""
        if self.n_draws is not None:
            return self.n_draws
        return int(np.clip(DRAWS_IN_ALL // max(n_rows, 1), FEWEST_DRAWS, MOST_DRAWS))

    def n_points(self, n_numbers: int, n_states: int) -> int:
        """Points for the missing numbers of a row, for each of its states."""
        if n_numbers == 0:
            return 1
        if self.sigma:
            return 2 * n_numbers
        if n_states == 1:
            return 7 if n_numbers == 1 else min(max(FEWEST_DRAWS, 2 * n_numbers), self.most)
        exactly = 3 if n_numbers == 1 else 2 * n_numbers
        return exactly if n_states * exactly <= self.most else 2


@dataclass(frozen=True, eq=False)
class RowStates:
    """Codes of all discrete columns, several for a row, in the order of the rows."""

    row: Small
    """(m,) the row that each belongs to."""
    codes: Codes
    """(m, q)"""
    log_drawn: NDArray[np.float32]
    """(m,) logarithm of what each was drawn by, and how often; zero where all states stand."""
    drawn: Mask
    """(m,) whether it is one of some that were drawn."""

    @property
    def starts(self) -> Ints:
        """Where every row begins."""
        return np.flatnonzero(np.diff(self.row, prepend=-1))

    def weighted(self, log_weight: Floats) -> Floats:
        """(m,) probabilities from what the model says, those of a row adding up to one."""
        return _shares(log_weight - self.log_drawn, self.starts)


def _shares(log_weight: Floats, starts: Ints) -> Floats:
    counts = np.diff(np.append(starts, len(log_weight)))
    top = np.repeat(np.maximum.reduceat(log_weight, starts), counts)
    out = np.exp(log_weight - top)
    return np.asarray(out / np.repeat(np.add.reduceat(out, starts), counts))


class MissingStates:
    """Which states the missing discrete columns of every row can be in.

    Values that nothing has been seen of, and that have terms of their own, cannot occur.
    """

    def __init__(self, gaps: Gaps, possible: list[Ints], limits: CompletionLimits) -> None:
        self.gaps, self.possible, self.limits = gaps, possible, limits
        self.dtype = code_dtype(gaps.schema)
        missing = gaps.codes < 0
        self.n_numbers = np.isnan(gaps.numbers).sum(axis=1)
        packed, group = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
        bits = np.unpackbits(packed, axis=1, count=missing.shape[1]).astype(bool)
        self.columns = [np.flatnonzero(each) for each in bits]
        self.group = group.ravel()
        sizes = [prod(len(possible[j]) for j in columns) for columns in self.columns]
        self.n_states = np.array(sizes, dtype=np.float64)[self.group]

    @cached_property
    def all_stand(self) -> Mask:
        """(rows,) whether all states of a row stand for it."""
        asked = np.column_stack([self.n_numbers, np.minimum(self.n_states, 2.0**31)])
        kinds, kind = np.unique(asked, axis=0, return_inverse=True)
        points = np.array([self.limits.n_points(int(k), int(n)) for k, n in kinds])
        return np.asarray(self.n_states * points[kind.ravel()] <= self.limits.most)

    @cached_property
    def too_many(self) -> Mask:
        """(rows,) whether a row has more states than can be written out."""
        return np.asarray(~self.all_stand & (self.n_states > MOST_STATES))

    def of(self, which: Mask) -> RowStates:
        """All states of some rows."""
        parts = [
            self._written_out(g, np.flatnonzero((self.group == g) & which))
            for g in np.unique(self.group[which]).tolist()
        ]
        row = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in parts)])
        none = np.zeros((0, self.gaps.codes.shape[1]), self.dtype)
        codes = np.vstack([none, *(part[1] for part in parts)])
        order = np.argsort(row, kind="stable")
        nothing = np.zeros(len(row), dtype=np.float32)
        return RowStates(row[order], codes[order], nothing, np.zeros(len(row), dtype=bool))

    def _written_out(self, group: int, members: Ints) -> tuple[Small, Codes]:
        columns = self.columns[group]
        grids = np.meshgrid(*(self.possible[j] for j in columns), indexing="ij")
        states = np.stack([grid.ravel() for grid in grids], axis=1) if len(columns) else None
        rows: Small = members.astype(np.int32)
        codes: Codes = np.asarray(np.maximum(self.gaps.codes[rows], 0), dtype=self.dtype)
        if states is None:
            return rows, codes
        codes = np.repeat(codes, len(states), axis=0)
        codes[:, columns] = np.tile(states, (len(rows), 1))
        return np.repeat(rows, len(states)), codes


def drawn(states: RowStates, chance: Floats, n_draws: int, uniforms: Floats) -> RowStates:
    """Some of all states of every row: systematic draws, a state that comes twice standing once.

    `chance` are their probabilities, `uniforms` one number for every row.
    """
    starts = states.starts
    counts = np.diff(np.append(starts, len(chance)))
    number = np.repeat(np.arange(len(starts)), counts)
    # Sums over all rows, in which row i covers the interval (i, i + 1).
    upper = np.cumsum(chance)
    before = np.repeat(np.concatenate([[0.0], upper[starts[1:] - 1]]), counts)
    upper = np.clip(upper - before, 0.0, 1.0)
    upper[np.append(starts[1:], len(chance)) - 1] = 1.0
    lower = np.concatenate([[0.0], upper[:-1]])
    lower[starts] = 0.0
    first = uniforms[number]
    times = np.ceil(n_draws * upper - first) - np.ceil(n_draws * lower - first)
    kept = np.flatnonzero(times > 0)
    log_drawn = np.log(np.maximum(chance[kept], 1e-300)) - np.log(times[kept])
    log_drawn = log_drawn.astype(np.float32)
    return RowStates(
        states.row[kept], states.codes[kept], log_drawn, np.ones(len(kept), dtype=bool)
    )


# -- points of a normal distribution ---------------------------------------------------------------

N_SETS = 64


@lru_cache(maxsize=256)
def normal_points(n_numbers: int, n_points: int, seed: int = 0) -> tuple[Floats, Floats]:
    """(sets, points, numbers) points, and (points,) weights that add up to one.

    Examples
    --------
    >>> points, weights = normal_points(3, 8)
    >>> points.shape, np.allclose(np.einsum("spj,spk,p->sjk", points, points, weights), np.eye(3))
    ((64, 8, 3), True)
    """
    if n_numbers == 0:
        return np.zeros((N_SETS, 1, 0)), np.ones(1)
    if n_numbers == 1:
        at, weights = np.polynomial.hermite_e.hermegauss(n_points)
        return np.tile(at[:, None], (N_SETS, 1, 1)), weights / weights.sum()
    half = n_points // 2
    assert 2 * half == n_points, "points come in pairs"
    rng = np.random.default_rng([seed, n_numbers, n_points])
    draws = rng.standard_normal((N_SETS, half, n_numbers))
    if half >= n_numbers:
        draws = np.array([_whitened(each) for each in draws])
    else:
        draws = _whitened(draws.reshape(-1, n_numbers)).reshape(draws.shape)
    return np.concatenate([draws, -draws], axis=1), np.full(n_points, 1.0 / n_points)


def _whitened(points: Floats) -> Floats:
    """The nearest points with mean square one, and uncorrelated."""
    left, _, right = np.linalg.svd(points, full_matrices=False)
    return np.asarray(np.sqrt(len(points)) * (left @ right))

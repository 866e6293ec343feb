"""A fitted model and rows in -> ModelCheck: where the rows are not as the model says."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from mixedgm.base.errors import DistributionError, NotYetError, SamplingWarning, level_of_caller
from mixedgm.base.parallel import RandomState, check_n_jobs, check_n_tasks, n_workers, run, seeds
from mixedgm.base.parameters import ensure, ensure_in, is_flag
from mixedgm.base.printable import cut, rows
from mixedgm.base.progress import announce
from mixedgm.families.finite import Scored
from mixedgm.fit.fitted import FittedModel
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Nodes
from mixedgm.penalty.weights import edge_kind
from mixedgm.studies.fit_check.discrepancy import (
    MOMENTS,
    PairOrder,
    Statistics,
    judged_pairs,
    pair_orders,
    statistics,
)
from mixedgm.studies.fit_check.graph_refit import GraphRefit, refit_graph
from mixedgm.studies.fit_check.result import (
    SHARE,
    ZEROS,
    Flag,
    LevelCheck,
    ModelCheck,
    NodeCheck,
    PairCheck,
    column_flag,
    pair_flag,
)
from mixedgm.table.checks.effort import effort
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Column, with_names

if TYPE_CHECKING:
    from mixedgm.joint.sampled import Draw

_FEWEST = 20
_CAUSES = {"kurtosis": "skewness", "residual sd": ZEROS}
_OFTEN = 5.0  # rows of a value whose frequency is judged
_SMALL = 0.01  # of the standard deviation of a mean: what varies less is fixed by the estimate
# Measured within a factor of about three: seconds of a simulated table, and its estimate as values
# of lam on a path.
_PER_TABLE, _LAMS_PER_TABLE = 0.03, 30.0
_EQUAL = 0.05  # standard deviations that say nothing about which of two is farther off


def check_model(
    fitted: FittedModel,
    design: Design | Gaps,
    *,
    refit: bool = True,
    n_sim: int = 200,
    alpha: float = 0.05,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    show: bool = False,
) -> ModelCheck:
    """Compare rows with tables of as many rows drawn from the model; covariates stay.

    With `refit` the model is the graph's estimate without shrinkage on these rows, and every
    simulated table is compared with its own.
    """
    check_n_tasks("n_sim", n_sim, _FEWEST)
    ensure_in("(0, 1)", alpha=alpha)
    ensure(is_flag(refit), "refit", "True or False", refit)
    n_rows = max(2, round(design.total_weight))
    _announce(fitted, n_rows, int(n_sim), n_jobs)
    again = None
    if refit:
        fitted.require_fixed_edges()
        again = refit_graph(fitted, design)
        fitted, design = again.fitted, again.design
    elif isinstance(design, Gaps):
        raise NotYetError(
            "refit=False is not available yet for rows with gaps; leave these rows out."
        )
    _require_distribution(fitted)
    comparison = _Comparison(fitted, design, n_rows, refit=bool(refit))
    simulated = simulate(
        fitted,
        design,
        n_rows,
        int(n_sim),
        comparison.orders,
        refit=again,
        random_state=random_state,
        n_jobs=n_jobs,
        show=show,
    )
    return comparison.result(simulated, float(alpha))


def _announce(fitted: FittedModel, n_rows: int, n_sim: int, n_jobs: int | None) -> None:
    """Say before a long check how long it takes."""
    check_n_jobs(n_jobs)
    lam = effort(fitted.schema.columns, n_rows, n_lams=1.0, speed=1.0).seconds
    seconds = (1 + n_sim / n_workers(n_jobs)) * (_PER_TABLE + _LAMS_PER_TABLE * lam)
    what = f"a check of the fit against {n_sim:,} simulated tables of {rows(n_rows)}"
    remedy = "fewer of them (n_sim=), or more processes (n_jobs=); in a report, check=False"
    announce(seconds, what, remedy)


def _require_distribution(fitted: FittedModel) -> None:
    from mixedgm.joint.validity import factor

    fitted.require_joint()
    schema = fitted.schema
    inside = schema.real_targets
    try:
        # Checked here once rather than in every process that simulates.
        factor(fitted.joint_params.real_precision[np.ix_(inside, inside)])
    except DistributionError as error:
        raise error.named([schema.nodes[s].name for s in inside]) from None


@dataclass(frozen=True, eq=False)
class _Aspect:
    """Statistics that are judged together: of one column."""

    names: Sequence[str]
    observed: Floats
    simulated: Floats
    floor: float


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Observed and simulated statistics of one model, item by item."""

    fitted: FittedModel
    design: Design
    n_rows: int
    refit: bool

    @cached_property
    def observed(self) -> Statistics:
        return statistics(self.fitted, self.design)

    @property
    def _spans(self) -> Nodes:
        return self.fitted.schema.spans

    @property
    def _floor(self) -> float:
        """Half a row, or what is small against the standard deviation of a mean."""
        return max(0.5 / self.n_rows, _SMALL / math.sqrt(self.n_rows))

    @cached_property
    def orders(self) -> dict[str, PairOrder]:
        """Statistics of pairs, by what they look at."""
        return pair_orders(self.fitted.schema)

    def result(self, simulated: Simulated, alpha: float) -> ModelCheck:
        schema = self.fitted.schema
        order = [schema.node_index(name) for name in schema.targets]
        of_nodes = [self._node(node, simulated) for node in order]
        of_pairs = {name: self._pair_oddities(name, simulated) for name in self.orders}
        # One rule for all columns and pairs: the smallest tail anywhere in a simulated table.
        every = [odd for _, odd in of_nodes] + [odd for odd, _ in of_pairs.values()]
        least = np.min([odd.least for odd in every], axis=0)
        all_tails = np.concatenate([odd.tail for odd in every])
        all_adjusted = adjusted(all_tails, least)
        sizes = np.cumsum([len(odd.tail) for odd in every])[:-1]
        parts = np.split(all_adjusted, sizes)
        nodes = tuple(
            self._node_check(node, aspects, odd, part, alpha)
            for node, (aspects, odd), part in zip(order, of_nodes, parts, strict=False)
        )
        checks = self._pair_checks(
            simulated.association.mean(axis=0, dtype=np.float64),
            of_pairs,
            dict(zip(of_pairs, parts[len(order) :], strict=True)),
            alpha,
        )
        how = (self.n_rows, simulated.n_tables, alpha, self.fitted.library)
        return ModelCheck(nodes, checks, self._levels(), *how, refit=self.refit)

    # -- columns -----------------------------------------------------------------------------------

    def _aspects(self, node: int, drawn: Simulated) -> Iterator[_Aspect]:
        """What is judged of a column, one thing after the other.

        Numbers are judged by the moments of their residuals, counts by their zeros and by the
        shares of the others, which quadratic thresholds have, too; levels without order, and zero
        or not, by their dispersion; all by whether they follow predictions in straight lines.
        Means, spreads and shares of levels are those of the rows in a refit; else they are judged
        as well.
        """
        spans, here, rare = self._spans, self.observed, 0.5 / self.n_rows
        if spans.numeric_nodes[node]:
            moments = _even(here.moments[node]), _even(drawn.moments[:, node])
            # The tails of few values, and of counts, vary too much to judge a column by.
            alone = ["skewness", "kurtosis"] if spans.is_real(node) else ["residual sd"]
            for name in alone:
                at = [MOMENTS.index(name)]
                yield _Aspect((name,), moments[0][at], moments[1][:, at], 1e-12)
            if not self.refit:
                names = [name for name in MOMENTS[:4] if name not in alone]
                at = [MOMENTS.index(name) for name in names]
                yield _Aspect(names, moments[0][at], moments[1][:, at], 1e-12)
        bends = spans.columns_of(node)
        parts = self.fitted.axis(node) if spans.width[node] > 1 else ("",)
        names = [f"bend {part}".strip() for part in parts]
        yield _Aspect(names, here.bend[bends], drawn.bend[:, bends], self._floor)
        if spans.is_gaussian(node):
            return
        column, place = self.fitted.schema.nodes[node], spans.place(node)
        first = int(spans.level_start[place])
        excess = here.shares - here.expected, drawn.shares - drawn.expected
        if not column.has_levels:
            yield _Aspect((ZEROS,), excess[0][[first]], excess[1][:, [first]], rare)
        if isinstance(column.node_kind, Scored) and not column.node_kind.is_free:
            values = np.arange(first + (not column.has_levels), first + len(column.value_names))
            often = values[drawn.shares[:, values].mean(axis=0) * self.n_rows >= _OFTEN]
            if len(often):
                names = [f"{SHARE} {column.value_names[at - first]}" for at in often]
                yield _Aspect(names, excess[0][often], excess[1][:, often], rare)
        if not self.refit:
            levels = column.level_names if column.has_levels else (ZEROS,)
            shares = slice(first, first + len(levels))
            yield _Aspect(levels, here.shares[shares], drawn.shares[:, shares], rare)
        if spans.spiked_nodes[node] or not spans.numeric_nodes[node]:
            dispersion = _log(here.dispersion[[place]]), _log(drawn.dispersion[:, [place]])
            yield _Aspect(("dispersion",), *dispersion, rare)

    def _node(self, node: int, simulated: Simulated) -> tuple[list[_Aspect], Oddities]:
        """Everything that is judged of a column, and how odd each is."""
        aspects = list(self._aspects(node, simulated))
        size = [len(aspect.observed) for aspect in aspects]
        observed = np.concatenate([aspect.observed for aspect in aspects])
        drawn = np.concatenate([aspect.simulated for aspect in aspects], axis=1)
        floor = np.repeat([aspect.floor for aspect in aspects], size)
        return aspects, oddities(observed, drawn, np.repeat(np.arange(len(size)), size), floor)

    def _node_check(
        self, node: int, aspects: list[_Aspect], odd: Oddities, adjusted: Floats, alpha: float
    ) -> NodeCheck:
        column, here, at = self.fitted.schema.nodes[node], self.observed, self._spans.place(node)
        gaussian, numeric = self._spans.is_gaussian(node), self._spans.numeric_nodes[node]
        moments = here.moments[node] if numeric else np.full(len(MOMENTS), np.nan)
        worst = _telling([aspect.names[0] for aspect in aspects], odd, adjusted <= alpha, moments)
        first = sum(len(aspect.names) for aspect in aspects[:worst])
        scaled = odd.scaled[first : first + len(aspects[worst].names)]
        name, size = _farthest(aspects[worst].names, scaled)
        flagged = bool(adjusted.min() <= alpha)
        flag = column_flag(column, name, size) if flagged else Flag.none()
        return NodeCheck(
            column.name,
            column.kind,
            residual_mean=float(moments[2]),
            residual_sd=float(moments[3]),
            skewness=float(moments[4]),
            kurtosis=float(moments[5]),
            largest=float(here.largest[node]) if numeric else np.nan,
            n_outliers=float(here.n_outliers[node]) if numeric else np.nan,
            dispersion=np.nan if gaussian else float(here.dispersion[at]),
            distance=float(odd.distance[worst]),
            p=float(min(1.0, len(aspects) * odd.p.min())),
            p_adjusted=float(adjusted.min()),
            flagged=flagged,
            where=_where(name, size),
            meaning=flag.meaning,
            advice=flag.advice,
        )

    # -- pairs -------------------------------------------------------------------------------------

    def _pair_oddities(self, name: str, simulated: Simulated) -> tuple[Oddities, Ints]:
        """How odd the pairs are that have such statistics, and their numbers."""
        order = self.orders[name]
        present, group = np.unique(order.pair, return_inverse=True)
        here = getattr(self.observed, name).ravel()[order.at]
        return oddities(here, getattr(simulated, name), group.ravel(), self._floor), present

    def _pair_checks(
        self,
        simulated: Floats,
        of_pairs: dict[str, tuple[Oddities, Ints]],
        adjusted: dict[str, Floats],
        alpha: float,
    ) -> tuple[PairCheck, ...]:
        """All pairs, oddest first; each by what is oddest about it."""
        u, v = judged_pairs(self.fitted.schema)
        names = list(of_pairs)
        shape = (len(names), len(u))
        tail, distance, p, adjusted_p = np.ones((4, *shape))
        for k, (name, (odd, present)) in enumerate(of_pairs.items()):
            tail[k, present], distance[k, present] = odd.tail, odd.distance
            p[k, present], adjusted_p[k, present] = odd.p, adjusted[name]
        n_aspects = np.zeros(len(u))
        for _, present in of_pairs.values():
            n_aspects[present] += 1
        worst = np.lexsort([-distance, tail], axis=0)[0]
        at = np.arange(len(u))
        chance = np.minimum(1.0, n_aspects * p.min(axis=0))
        tail, distance, adjusted_p = (part[worst, at] for part in (tail, distance, adjusted_p))
        order = np.lexsort([-distance, tail])
        seen, drawn = self.observed.association[u, v], simulated[u, v]
        edges = self.fitted.edge_norms[u, v] > 0.0
        checks = []
        for k in order.tolist():
            aspect, ends = names[worst[k]], (int(u[k]), int(v[k]))
            name, size, about = self._farthest_in_pair(aspect, of_pairs[aspect], k, ends)
            flagged, sizes = bool(adjusted_p[k] <= alpha), (float(seen[k]), float(drawn[k]))
            columns = self.fitted.schema.nodes[ends[0]], self.fitted.schema.nodes[ends[1]]
            kind, edge = edge_kind(self.fitted.schema, *ends), bool(edges[k])
            flag = Flag.none()
            if flagged:
                flag = pair_flag(aspect, columns, sizes, about, edge=edge, refit=self.refit)
            checks.append(
                PairCheck(
                    columns[0].name,
                    columns[1].name,
                    kind,
                    edge,
                    *sizes,
                    float(distance[k]),
                    float(chance[k]),
                    float(adjusted_p[k]),
                    flagged,
                    _where(name, size),
                    *flag,
                )
            )
        return tuple(checks)

    def _farthest_in_pair(
        self, aspect: str, judged: tuple[Oddities, Ints], pair: int, ends: tuple[int, int]
    ) -> tuple[str, float, Column | None]:
        """Name and size of the statistic that is farthest off, and which end it is about."""
        order, spans = self.orders[aspect], self._spans
        first, last = np.searchsorted(order.pair, [pair, pair + 1])
        if first == last:
            return "", 0.0, None
        scaled = judged[0].scaled[first:last]
        k = _most(scaled)
        width = getattr(self.observed, aspect).shape[1]
        row, column = divmod(int(order.at[first + k]), width)
        schema, size = self.fitted.schema, float(scaled[k])
        if aspect == "relation":
            cells = {int(spans.column_node[c]): self._cell(c) for c in (row, column)}
            return " & ".join(filter(None, (cells[node] for node in ends))), size, None
        if aspect == "curve":
            bent = schema.nodes[column]
            return " & ".join(filter(None, (self._cell(row), f"{bent.name} squared"))), size, bent
        uneven, cell = schema.nodes[row], self._cell(column)
        where = f"at {cell}" if cell else f"by {schema.nodes[int(spans.column_node[column])].name}"
        return f"sd of {uneven.name} {where}", size, uneven

    def _cell(self, column: int) -> str:
        """Name of a design column within its node; empty where there is only one."""
        node = int(self._spans.column_node[column])
        if self._spans.width[node] == 1:
            return ""
        return self.fitted.axis(node)[column - int(self._spans.column_start[node])]

    # -- levels ------------------------------------------------------------------------------------

    def _levels(self) -> tuple[LevelCheck, ...]:
        total, here, checks = self.design.total_weight, self.observed, []
        for discrete, column in enumerate(self.fitted.schema.discrete):
            if column.role == "covariate":
                continue
            levels = self._spans.levels_of(discrete)
            for name, at in zip(column.value_names, range(levels.start, levels.stop), strict=True):
                gap = total * (here.shares[at] - here.expected[at])
                spread = np.sqrt(total * here.spread[at])
                z = float(gap / spread) if spread > 0.0 else float("nan")
                counts = float(total * here.shares[at]), float(total * here.expected[at])
                if not column.has_levels and max(counts) < 0.5:  # far beyond what occurs
                    continue
                checks.append(LevelCheck(column.name, name, *counts, z))
        return tuple(checks)


def _even(moments: Floats) -> Floats:
    """Moments on scales on which they are nearly normal: logarithms of spread and of tails."""
    out = np.array(moments, dtype=np.float64)
    for at in (1, 3):
        out[..., at] = _log(out[..., at])
    out[..., 5] = _log(out[..., 5] + 3.0)
    return out


def _telling(
    names: Sequence[str], odd: Oddities, flagged: NDArray[np.bool_], moments: Floats
) -> int:
    """The oddest aspect of a column, or what it follows from, if that is flagged as well."""
    oddest = int(np.lexsort([-odd.distance, odd.tail])[0])
    cause = _CAUSES.get(names[oddest])
    if cause not in names or not flagged[names.index(cause)]:
        return oddest
    skewness, kurtosis = (moments[MOMENTS.index(name)] for name in ("skewness", "kurtosis"))
    # Gamma and log-normal columns have a ratio of 1/2 to 2/3, symmetric ones none.
    if cause == "skewness" and skewness**2 < kurtosis / 3.0:
        return oddest
    return names.index(cause)


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, 1e-300))


def _farthest(names: Sequence[str], scaled: Floats) -> tuple[str, float]:
    """The statistic that is farthest off, and by how many standard deviations."""
    at = _most(scaled)
    return names[at], float(scaled[at])


def _most(scaled: Floats) -> int:
    """Which is farthest off; the first of those that are equal but for how exactly a refit is.

    What two columns say about each other may differ from the rows by opposite amounts.
    """
    sizes = np.abs(scaled)
    return int((sizes >= sizes.max() - _EQUAL).argmax())


def _where(name: str, size: float) -> str:
    return f"{cut(name, 40)} {size:+.1f}".strip()


# -- simulated tables ------------------------------------------------------------------------------

_CELLS_PER_BATCH = 2**24
_TABLES_PER_BATCH = 25


@dataclass(frozen=True, eq=False)
class Simulated:
    """Statistics of S simulated tables; see `Statistics` for what they are.

    Parameters
    ----------
    association : float32 ndarray (S, p + q, p + q)
    relation, curve, uneven : float32 ndarray (S, k)
        Pair by pair, in the orders that were asked for.
    bend : ndarray (S, d)
    moments : ndarray (S, m, 6)
    shares, expected : ndarray (S, sum of values)
    dispersion : ndarray (S, q)
    """

    association: NDArray[np.float32]
    relation: NDArray[np.float32]
    curve: NDArray[np.float32]
    uneven: NDArray[np.float32]
    bend: Floats
    moments: Floats
    shares: Floats
    expected: Floats
    dispersion: Floats

    @property
    def n_tables(self) -> int:
        """Number of tables, S."""
        return len(self.shares)


def simulate(
    fitted: FittedModel,
    design: Design,
    n_rows: int,
    n_tables: int,
    orders: Mapping[str, PairOrder],
    *,
    refit: GraphRefit | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    show: bool = False,
) -> Simulated:
    """Draw tables of `n_rows` rows each and keep their statistics.

    With `refit` the graph is estimated anew in every table, which is compared with that estimate.
    Where the model has covariates, they are those of `design`, and the other columns are drawn
    given these.
    Tables are drawn in batches, whose size depends on shapes only: what is prepared for a draw is
    prepared once for a batch.
    """
    width = len(fitted.schema.columns) * n_rows
    size = int(np.clip(_CELLS_PER_BATCH // max(width, 1), 1, _TABLES_PER_BATCH))
    counts = [min(size, n_tables - first) for first in range(0, n_tables, size)]
    known = design if fitted.schema.covariates else None
    outcomes = run(
        partial(_batch, fitted, known, n_rows, refit, orders),
        list(zip(counts, seeds(random_state, len(counts)), strict=True)),
        n_jobs=n_jobs,
        what="batches of simulated tables",
        show=show,
    )
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    if not records:
        raise DistributionError(f"no table could be drawn and judged: {outcomes[0].error}")
    bad = sum(bool(record.pop("badly_mixed")) for record in records)
    if bad:
        warnings.warn(
            "the simulated tables come from Gibbs chains that have not mixed well in "
            f"{bad} of {len(records)} batches, so distances and p-values are rough",
            SamplingWarning,
            stacklevel=level_of_caller(),
        )
    return Simulated(**{name: np.concatenate([r[name] for r in records]) for name in records[0]})


def _batch(
    fitted: FittedModel,
    known: Design | None,
    n_rows: int,
    refit: GraphRefit | None,
    orders: Mapping[str, PairOrder],
    task: tuple[int, np.random.SeedSequence],
) -> dict[str, NDArray[np.generic]]:
    n_tables, seed = task
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SamplingWarning)
        rows = _rows(fitted, known, (n_tables, n_rows), np.random.default_rng(seed))
    tables = []
    for first in range(0, n_rows * n_tables, n_rows):
        cut = slice(first, first + n_rows)
        table = Design(fitted.schema, rows.numbers[cut], rows.codes[cut])
        tables.append(statistics(*((fitted, table) if refit is None else refit.again(table))))
    return {
        "association": np.array([table.association for table in tables], dtype=np.float32),
        **{
            name: np.array(
                [getattr(table, name).ravel()[order.at] for table in tables], dtype=np.float32
            )
            for name, order in orders.items()
        },
        **{
            name: np.array([getattr(table, name) for table in tables])
            for name in ("bend", "moments", "shares", "expected", "dispersion")
        },
        "badly_mixed": np.array(any(issubclass(w.category, SamplingWarning) for w in caught)),
    }


def _rows(
    fitted: FittedModel, known: Design | None, shape: tuple[int, int], rng: np.random.Generator
) -> Draw | Design:
    """All rows of a batch, one table after the other."""
    n_tables, n_rows = shape
    if known is None:
        return fitted.draw(n_tables * n_rows, rng)
    if known.weights is None and known.n_rows == n_rows:
        rows = np.tile(np.arange(n_rows), n_tables)
    else:
        chance = None if known.weights is None else known.weights / known.total_weight
        rows = rng.choice(known.n_rows, n_tables * n_rows, p=chance)
    return _targets_drawn(fitted, known.take(rows), rng)


def _targets_drawn(fitted: FittedModel, design: Design, rng: np.random.Generator) -> Design:
    """The same rows with their targets drawn given their covariates."""
    from mixedgm.joint.conditioning import KnownColumns
    from mixedgm.joint.posteriors import posterior_draw

    schema, places = fitted.schema, fitted.schema.spans.places
    drawn_numbers, drawn_discrete = places(set(range(len(schema.nodes))) - {*schema.covariates})
    numbers, codes = design.numbers.copy(), design.codes.copy()
    known = KnownColumns.among(places(schema.covariates), (numbers, codes))
    drawn = with_names(schema, posterior_draw, fitted.joint_form, known, rng=rng)
    numbers[:, drawn_numbers], codes[:, drawn_discrete] = drawn
    return Design(schema, numbers, codes)


# -- p-values among simulated tables ---------------------------------------------------------------

_ENOUGH = 10  # simulated tables beyond the observed one, for their share to be the p-value
_CELLS_AT_ONCE = 2**23
_HARDLY_VARIES = 0.01
_TIE = 1.0 + 1e-6  # factor within which tails are equal, but for rounding


@dataclass(frozen=True, eq=False)
class Oddities:
    """How far k statistics of one table, in G groups, are from those of S simulated tables.

    `scaled` is observed minus simulated mean, in standard deviations of the simulation; `distance`
    its root mean square over a group: about 1 when the model is right.  `p` is the chance of
    a larger distance under the model, and `tail` the same by a formula that is smooth however few
    simulated tables there are.
    """

    scaled: Floats  # (k,)
    distance: Floats  # (G,)
    p: Floats  # (G,)
    tail: Floats  # (G,)
    least: Floats  # (S,) smallest tail of every simulated table over all groups


def oddities(
    observed: Floats,
    simulated: NDArray[Any],
    group: Ints,
    floor: float | Floats,
    *,
    cells_at_once: int = _CELLS_AT_ONCE,
) -> Oddities:
    """Compare k statistics with their values in S simulated tables, an (S, k) array.

    The statistics of a group stand side by side: `group` counts on from 0 to G - 1.  Every table,
    observed or simulated, is judged by all others, so that which one was observed makes no
    difference to the tails.  The p-value is the share of tables that are at least as far from the
    others; where fewer than ten are, the tail of an F distribution whose degrees of freedom follow
    from the spread of the distances.  `floor` is the smallest standard deviation to divide by: what
    varies far less under the model is odd only if it differs by more than that.
    """
    n_groups = int(group[-1]) + 1 if len(group) else 0
    start = np.searchsorted(group, np.arange(n_groups + 1))
    floors = np.broadcast_to(np.asarray(floor, dtype=np.float64), observed.shape)
    # Rounded like the simulated ones, so that equal tables are equal.
    observed = observed.astype(simulated.dtype).astype(np.float64)
    scaled, least = np.zeros(len(observed)), np.ones(len(simulated))
    distance, p, tail = np.ones((3, n_groups))
    # Groups side by side, as many as fit.
    per_chunk = max(1, cells_at_once // max(len(simulated), 1))
    first = 0
    while first < n_groups:
        end = int(np.searchsorted(start, start[first] + per_chunk, side="right")) - 1
        end = min(max(end, first + 1), n_groups)
        cut, groups = slice(start[first], start[end]), slice(first, end)
        of_group = start[first:end] - start[first]
        parts = observed[cut], simulated[:, cut].astype(np.float64), of_group, floors[cut]
        scaled[cut], distance[groups], p[groups], tail[groups], others = _judged(*parts)
        least = np.minimum(least, others)
        first = end
    return Oddities(scaled, distance, p, tail, least)


def _judged(
    observed: Floats, simulated: Floats, start: Ints, floor: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Scaled statistics; distances, p-values and tails by group; smallest tails by table."""
    n, k = len(simulated), np.diff(np.append(start, len(observed)))
    tables = np.vstack([observed, simulated])
    mean, variance = _of_others(tables)
    divisor = np.maximum(np.sqrt(variance), floor)
    scaled = (tables - mean) / (divisor * np.sqrt(1.0 + 1.0 / n))
    square = np.add.reduceat(scaled**2, start, axis=1) / k
    tails = _tail(square, *_of_others(square), k, n - 1.0)
    beyond = np.count_nonzero(square[1:] * _TIE >= square[0], axis=0)
    p = np.where(beyond >= _ENOUGH, (beyond + 1.0) / (n + 1.0), tails[0])
    expected = np.add.reduceat(variance[0] / divisor[0] ** 2, start) / k
    distance = np.sqrt(square[0] / np.where(expected < _HARDLY_VARIES, 1.0, expected))
    return scaled[0], distance, p, tails[0], tails[1:].min(axis=1)


def _of_others(tables: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of all other rows, for every row."""
    m, centre = len(tables), tables.mean(axis=0)
    gaps = tables - centre
    squares = gaps**2
    mean = centre - gaps / (m - 1)
    variance = np.maximum(squares.sum(axis=0) - squares * m / (m - 1), 0.0) / (m - 2)
    # The farthest row can be so far off that these differences have no digits left.
    farthest = squares.argmax(axis=0), np.arange(tables.shape[1])
    rest = tables.copy()
    rest[farthest] = 0.0
    mean[farthest] = rest.sum(axis=0) / (m - 1)
    rest[farthest] = mean[farthest]
    variance[farthest] = np.sum((rest - mean[farthest]) ** 2, axis=0) / (m - 2)
    return mean, variance


def _tail(square: Floats, mean: Floats, variance: Floats, k: Ints, n: float) -> Floats:
    """Chance of a larger mean square of k correlated statistics, scaled by n tables' spread.

    Degrees of freedom are those of mean and variance of such squares in the other tables; k
    independent normals have k, correlated ones fewer.  The mean itself is 1 by the scaling, and
    less only where statistics hardly vary: these shall not be magnified.
    """
    ratio = variance / np.maximum(mean, 1e-100) ** 2
    freedom = np.minimum(2.0 / np.maximum(ratio, 1e-100), k)
    return np.asarray(fdtrc(np.maximum(freedom, 1e-3), n, square))


def adjusted(tails: Floats, least: Floats) -> Floats:
    """P-values for all groups together: the share of tables that have any tail as small as this.

    A table that is exchangeable with the simulated ones has one of at most alpha with chance at
    most alpha, for every alpha from 1 / (S + 1) on.  Where no simulated table has such a tail, it
    is Bonferroni's, if that is smaller.

    Examples
    --------
    >>> adjusted(np.array([0.001, 0.4]), np.array([0.3, 0.2, 0.02, 0.5])).tolist()
    [0.002, 0.8]
    """
    beyond = np.searchsorted(np.sort(least), tails * _TIE, side="right")
    share = (beyond + 1.0) / (len(least) + 1.0)
    return np.where(beyond == 0, np.minimum(share, len(tails) * tails), share)

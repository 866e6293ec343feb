"""A fitted model and rows in -> ModelCheck: where the rows are not as the model says."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import DistributionError, NotYetError
from mixedgm.base.parallel import RandomState, check_n_jobs, check_n_tasks, n_workers
from mixedgm.base.parameters import ensure
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
from mixedgm.studies.fit_check.graph_refit import refit_graph
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
from mixedgm.studies.fit_check.simulated import Oddities, Simulated, adjusted, oddities, simulate
from mixedgm.table.checks.effort import effort
from mixedgm.table.encode import Design
from mixedgm.table.gaps import Gaps
from mixedgm.table.schema import Column

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
    between = isinstance(alpha, numbers.Real) and 0.0 < alpha < 1.0
    ensure(between, "alpha", "a float in (0, 1)", alpha)
    ensure(isinstance(refit, bool | np.bool_), "refit", "True or False", refit)
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

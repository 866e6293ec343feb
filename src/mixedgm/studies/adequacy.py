"""A fitted model and rows in -> ModelCheck: where the rows are not as the model says."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mixedgm.errors import DistributionError
from mixedgm.fitted import FittedModel
from mixedgm.model.layout import Floats
from mixedgm.model.nodes import Nodes
from mixedgm.parallel import RandomState, check_n_tasks
from mixedgm.parameters import ensure
from mixedgm.penalty.factors import edge_kind
from mixedgm.printable import cut
from mixedgm.studies.discrepancy import MOMENTS, Oddity, Statistics, holm, oddity, statistics
from mixedgm.studies.model_check import ZEROS, LevelCheck, ModelCheck, NodeCheck, PairCheck
from mixedgm.studies.simulated import Simulated, simulate
from mixedgm.table.encode import Design

__all__ = ["check_model"]

_FEWEST = 20
_PairOddity = tuple[Oddity, float, float]


def check_model(
    fitted: FittedModel,
    design: Design,
    *,
    n_sim: int = 200,
    alpha: float = 0.05,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    show: bool = False,
) -> ModelCheck:
    """Compare rows with tables of as many rows drawn from the model; covariates stay."""
    check_n_tasks("n_sim", n_sim, _FEWEST)
    between = isinstance(alpha, numbers.Real) and 0.0 < alpha < 1.0
    ensure(between, "alpha", "a float in (0, 1)", alpha)
    n_rows = max(2, round(design.total_weight))
    _require_distribution(fitted)
    observed = statistics(fitted, design)
    simulated = simulate(
        fitted, design, n_rows, int(n_sim), random_state=random_state, n_jobs=n_jobs, show=show
    )
    return _Comparison(fitted, design, observed, simulated, n_rows).result(float(alpha))


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
class _Comparison:
    """Observed and simulated statistics of one model, item by item."""

    fitted: FittedModel
    design: Design
    observed: Statistics
    simulated: Simulated
    n_rows: int

    def result(self, alpha: float) -> ModelCheck:
        schema = self.fitted.schema
        order = [schema.node_index(name) for name in schema.targets]
        node_odds = [self._node(node) for node in order]
        pairs = [(u, v) for u, v in combinations(range(len(schema.nodes)), 2) if {u, v} & {*order}]
        pair_odds = [self._pair(u, v) for u, v in pairs]
        odds = (*node_odds, *(odd for odd, _, _ in pair_odds))
        adjusted = holm(np.array([odd.p_value for odd in odds])).tolist()
        of_nodes = zip(order, node_odds, adjusted[: len(order)], strict=True)
        of_pairs = zip(pairs, pair_odds, adjusted[len(order) :], strict=True)
        nodes = tuple(self._node_check(*node, alpha) for node in of_nodes)
        checks = [self._pair_check(*pair, alpha) for pair in of_pairs]
        checks.sort(key=lambda pair: (pair.p_value, -pair.distance))
        how = (self.n_rows, self.simulated.n_tables, alpha, self.fitted.library)
        return ModelCheck(nodes, tuple(checks), self._levels(), *how)

    @property
    def _spans(self) -> Nodes:
        return self.fitted.schema.spans

    def _looked_at(self, node: int) -> Iterator[tuple[Sequence[str], Floats, Floats, float]]:
        """Statistics of a column: names, observed, simulated, the least standard deviation.

        Numbers are judged by their moments, values by their shares (counts and hurdle columns by
        that of zero), and levels without order, and zero or not, by their dispersion besides.
        """
        spans, here, drawn, rare = self._spans, self.observed, self.simulated, 0.5 / self.n_rows
        if spans.numeric_nodes[node]:
            # The tails of few values, and of counts, vary too much to judge a column by.
            n = len(MOMENTS) if spans.is_real(node) else MOMENTS.index("skewness")
            moments = _even(here.moments[node]), _even(drawn.moments[:, node])
            yield MOMENTS[:n], moments[0][:n], moments[1][:, :n], 1e-12
        if spans.is_gaussian(node):
            return
        column, at = self.fitted.schema.nodes[node], spans.place(node)
        names = column.level_names if column.has_levels else (ZEROS,)
        first = int(spans.level_start[at])
        shares = slice(first, first + len(names))
        yield names, here.shares[shares], drawn.shares[:, shares], rare
        if spans.spiked_nodes[node] or not spans.numeric_nodes[node]:
            dispersion = _log(here.dispersion[[at]]), _log(drawn.dispersion[:, [at]])
            yield ("dispersion",), *dispersion, rare

    def _node(self, node: int) -> Oddity:
        _, observed, simulated, floor = zip(*self._looked_at(node), strict=True)
        least = np.repeat(floor, [len(part) for part in observed])
        return oddity(np.concatenate(observed), np.concatenate(simulated, axis=1), least)

    def _pair(self, u: int, v: int) -> _PairOddity:
        """How odd the pair is, its observed strength and its mean simulated one."""
        rows, columns = self._spans.columns_of(u), self._spans.columns_of(v)
        here = self.observed.covariance[rows, columns]
        drawn = self.simulated.block(rows, columns)
        odd = oddity(here.ravel(), drawn.reshape(len(drawn), -1), 0.5 / self.n_rows)
        observed = self._strength(here[None], self.observed.shares[None], u, v)
        simulated = self._strength(drawn, self.simulated.shares, u, v)
        return odd, float(observed[0]), float(simulated.mean())

    def _strength(self, blocks: Floats, shares: Floats, u: int, v: int) -> Floats:
        """Correlation, correlation ratio or Cramer's V of each table, from its covariances.

        Of a hurdle column, the multiple correlation with its two parts.
        """
        spans = self._spans
        if blocks.shape[1:] == (1, 1):
            return np.asarray(blocks[:, 0, 0])
        rows, columns = (
            np.ones((len(blocks), int(spans.width[node])))
            if spans.kinds[node].is_numeric
            else shares[:, spans.levels_of(spans.place(node))]
            for node in (u, v)
        )
        share = rows[:, :, None] * columns[:, None, :]
        # A level without rows has covariance zero.
        total = np.sum(blocks**2 / np.where(share > 0.0, share, 1.0), axis=(1, 2))
        return np.asarray(np.sqrt(total / max(spans.freedom[[u, v]].min(), 1)))

    def _node_check(self, node: int, odd: Oddity, adjusted: float, alpha: float) -> NodeCheck:
        column, here, at = self.fitted.schema.nodes[node], self.observed, self._spans.place(node)
        gaussian, numeric = self._spans.is_gaussian(node), self._spans.numeric_nodes[node]
        moments = here.moments[node] if numeric else np.full(len(MOMENTS), np.nan)
        names = [name for part in self._looked_at(node) for name in part[0]]
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
            distance=odd.distance,
            p_value=odd.p_value,
            p_adjusted=adjusted,
            flagged=adjusted <= alpha,
            where=_where(names, odd.scaled),
        )

    def _pair_check(
        self, pair: tuple[int, int], pair_odds: _PairOddity, adjusted: float, alpha: float
    ) -> PairCheck:
        schema, (u, v), (odd, observed, simulated) = self.fitted.schema, pair, pair_odds
        rows, columns = (
            self.fitted.axis(node) if self._spans.width[node] > 1 else () for node in pair
        )
        names = list(rows or columns or ("",))
        if rows and columns:
            names = [f"{a} & {b}" for a in rows for b in columns]
        return PairCheck(
            schema.nodes[u].name,
            schema.nodes[v].name,
            edge_kind(schema, u, v),
            bool(self.fitted.edge_weights[u, v] > 0.0),
            observed,
            simulated,
            odd.distance,
            odd.p_value,
            adjusted,
            adjusted <= alpha,
            _where(names, odd.scaled),
        )

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


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, 1e-300))


def _where(names: Sequence[str], scaled: Floats) -> str:
    """Name the statistic that is farthest off, and by how many standard deviations."""
    at = int(np.abs(scaled).argmax())
    return f"{cut(names[at], 40)} {scaled[at]:+.1f}".strip()

"""A task and a first graph -> the graph whose edges pass their tests and whose other pairs fail.

All pairs are tested given the present graph.  Edges that fail leave, the worst first; then pairs
that pass enter, the best first; at most one move per column at a time, because tests of pairs that
share a column depend on each other.  Where all agree, an edge and a rival of it change places.  A
move is made only if it raises the score

    log pseudolikelihood of the rows at the refit - sum over edges of m W* / 2,

where m counts the conditionals that an edge is in, and W* is the statistic with which it just
passes.  With one limit no graph is visited twice, so the search ends.  A single move that lowers
the score is not made, though the test of that pair asks for it: tests by estimates and by
likelihood ratios disagree where an estimate has run far out (Hauck and Donner 1977), and the
likelihood ratio decides.

Where columns have many levels, a refit takes as long as thousands of tests.  With more than 30,000
parameters of all pairs, and more than eight per pair, the search makes few of them:

- Only pairs enter whose ends have four rows outside their most frequent level for each parameter of
  the pair: a handful of rows is what refits are slow for.
- The graph first grows by rough tests, whose p-values must be below the third power of the limit,
  one in four of the wanted pairs of every column at once, until these do not raise the score.
- Up to three graphs are tested fully.  From each, as many pairs as are wanted of every column on
  average enter at once, then the next ones, until these do not raise the score (half of them may);
  then edges leave in the same way.
- Edges stay that need a ridge, or whose statistic in independent columns would be ten times W*:
  their estimates have run far out, so that their tests say little.

Pairs without a test (`pair_tests.untested`) have the price of EBIC instead: they enter and leave by
their likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mixedgm.base.progress import track
from mixedgm.model.layout import Floats, Ints
from mixedgm.model.nodes import Mask
from mixedgm.path.refits import Unshrunken, parameters
from mixedgm.path.task import Task
from mixedgm.select.criteria import EBIC
from mixedgm.select.pair_tests import (
    MANY_PAIRS,
    PairTests,
    noise_level,
    pairs_given,
    pairs_roughly,
    rough_refit,
    rows_per_parameter,
    untested,
)

MOST_GRAPHS = 200
OWN_LIMITS = 15
"""Graphs that are judged by limits of their own.  Later ones, and all after one that comes again,
are judged by the limit of the last of these, so that their scores can be compared."""
_ROWS_PER_PREDICTOR = 4.0
"""A graph is held only as far as every column has so many rows for each of its predictors."""

_MOST_SWAPS = 20
"""Swaps tried of a graph."""

MANY_PARAMETERS = 30_000
_MANY_PER_PAIR = 8
"""With more parameters of all pairs than these, and than so many per pair, refits are few."""
_BY_FAR = 3.0
"""Power of the largest p-value with which a pair enters by a rough test then."""
_ONE_OF = 4
"""One of so many pairs of a column that are wanted enters at once by rough tests."""
_MOST_TESTED = 3
"""Graphs that are tested fully then."""
_FAR_OUT = 10.0
"""Edges leave then whose statistic in independent columns is at most so many times W*."""

Limit = Callable[[PairTests], float]
"""Logarithm of the largest p-value that passes, given the tests of all pairs."""


@dataclass(frozen=True, eq=False)
class SettledGraph:
    """Where a search has ended."""

    tests: PairTests
    """All pairs given the graph; the p-value of a pair that two tests judge differently is that of
    its likelihood ratio."""
    graph: Ints
    ended: bool
    """Whether tests and graph agree; else the graph is the one with the highest score so far."""


def settled(
    task: Task,
    graph: Ints,
    limit: Limit,
    theta: Floats | None = None,
    *,
    many_pairs: int = MANY_PAIRS,
    many_parameters: int = MANY_PARAMETERS,
    own_limits: int = OWN_LIMITS,
) -> SettledGraph:
    """Move from a graph to better ones until tests and graph agree; refits begin at `theta`.

    With more than `many_pairs`, or with many levels and more than `many_parameters`, most have
    rough tests only, and no edges change places with rivals.
    """
    every = np.ones(task.layout.n_groups)
    graph = np.union1d(affordable(task, graph, every), task.penalty.free)
    theta = task.null.theta if theta is None else theta
    apart, hasty = untested(task), _has_many_levels(task, many_parameters)
    many = hasty or _has_more(task, many_pairs)
    search, loose = _Search(limit, not many, _with_rows(task) if hasty else None, own_limits), None
    if many:
        graph, theta, loose = search.grown(task, graph, theta, apart)
    most = _MOST_TESTED if hasty else MOST_GRAPHS
    for left in track(reversed(range(most)), what="graph", seconds=None):
        place = search.place(pairs_tested(task, graph, theta, loose, screened=many))
        if hasty and not left:
            break
        found = search.better(place)
        if found is None:
            return SettledGraph(place.judged(search.ratios), graph, ended=True)
        graph, fit = found
        theta, loose = task.theta_of(place.task.params(fit.solution.theta)), fit.ridge
    return SettledGraph(place.tests, place.graph, ended=False)


def pairs_tested(
    task: Task,
    graph: Ints,
    theta: Floats,
    loose: Ints | None = None,
    *,
    screened: bool | None = None,
) -> PairTests:
    """All pairs, tested as a search tests them; the refit begins at `theta`, as in `refit`."""
    if screened is None:
        screened = _has_more(task, MANY_PAIRS) or _has_many_levels(task, MANY_PARAMETERS)
    apart = untested(task)
    return pairs_given(task, graph, theta, loose, dtype=np.float32, apart=apart, screened=screened)


@dataclass(frozen=True, eq=False)
class _Place:
    """A graph with its tests."""

    tests: PairTests
    log_limit: float
    least: Floats
    """(n_groups,) statistics with which pairs pass, filled in as they are needed; NaN before."""

    @property
    def graph(self) -> Ints:
        """Edges, sorted."""
        return self.tests.graph

    @property
    def task(self) -> Task:
        """The rows that were tested, completed where they have gaps."""
        assert self.tests.task is not None
        return self.tests.task

    @cached_property
    def held(self) -> Mask:
        """(n_groups,) edges of the graph."""
        return np.isin(np.arange(len(self.tests.tested)), self.graph)

    @cached_property
    def wanted(self) -> Ints:
        """Edges that fail, the worst first; then pairs that pass, the best first."""
        log_p = self.tests.statistics.log_p
        passes = log_p <= self.log_limit
        groups = np.flatnonzero((self.held != passes) & self.tests.tested)
        urgency = np.where(self.held[groups], -np.inf, log_p[groups])
        return np.concatenate([groups[np.lexsort((-log_p[groups], urgency))], self._wanted_apart])

    @property
    def _wanted_apart(self) -> Ints:
        """Untested pairs to try: those whose gradient noise would not have, and all that are held.

        Their statistic is the likelihood ratio.
        """
        groups = np.array(list(self.tests.untested), dtype=np.int64)
        if not len(groups):
            return groups
        gradient = self.task.smooth.evaluate(self.tests.theta).gradient
        entries = self.task.layout.group_norms(gradient)[groups] / self.task.yardstick[groups]
        order = np.argsort(-entries, kind="stable")
        there = self.held[groups] | (entries > noise_level(self.task))
        return np.asarray(groups[order][there[order]])

    def price(self, groups: Ints) -> Floats:
        """Rise of the log pseudolikelihood that each of these edges has to bring."""
        new = groups[np.isnan(self.least[groups])]
        known = new[self.tests.tested[new]]
        self.least[known] = self.tests.statistics.least_statistic(known, self.log_limit)
        apart = new[np.isin(new, list(self.tests.untested))]
        each = EBIC().price(self.task)
        self.least[apart] = each.parameter * parameters(self.task, apart) + each.edge
        price = 0.5 * self.task.layout.conditionals[groups] * self.least[groups]
        return np.where(self.task.penalty.penalised[groups], price, 0.0)

    def near(self, edges: Ints) -> Ints:
        """Those of these edges whose estimates have not run far out, the smallest first.

        They need no ridge, and in independent columns their statistic would not be far above W*.
        """
        task, norms = self.task, self.task.layout.group_norms(self.tests.theta)[edges]
        alone = task.total_weight * (norms * task.yardstick[edges]) ** 2 / parameters(task, edges)
        ratio = 0.5 * alone / self.price(edges)
        sure = (ratio <= _FAR_OUT) & ~np.isin(edges, self.tests.ridge)
        return np.asarray(edges[sure][np.lexsort((edges[sure], ratio[sure]))])

    def moved(self, graph: Ints, groups: Ints) -> Ints:
        """A graph with these edges added or taken away, as far as the rows suffice."""
        there = np.zeros(len(self.tests.tested), dtype=bool)
        there[graph] = True
        there[groups] = ~there[groups]
        strength = np.nan_to_num(-self.tests.statistics.log_p, nan=0.0)
        graph = affordable(self.task, np.flatnonzero(there), strength)
        return np.union1d(graph, self.task.penalty.free)

    def swaps(self) -> list[list[int]]:
        """Edges and the rivals that should take their place, to second order; the best first."""
        found = self.tests.rivals
        rise = self.task.total_weight * found.rise + self.price(found.edge)
        some = np.flatnonzero((rise > 0.0) & self.tests.tested[found.rival])
        gain = rise[some] - self.price(found.rival[some])
        order = np.lexsort((some, -gain))
        ends = np.column_stack([found.edge, found.rival])[some[order]]
        return [each.tolist() for each in ends[gain[order] > 0.0][:_MOST_SWAPS]]

    def judged(self, ratios: dict[int, float]) -> PairTests:
        """The tests, with likelihood ratios for pairs that two tests judge differently."""
        statistics = self.tests.statistics
        groups = self.wanted[np.isin(self.wanted, list(ratios)) & self.tests.tested[self.wanted]]
        log_p = statistics.log_p.copy()
        own = {g: ratios[g] for g in groups.tolist()}
        log_p[groups] = statistics.log_p_at(groups, np.array(list(own.values())))
        return replace(self.tests, statistics=replace(statistics, log_p=log_p), ratios=own)


@dataclass(eq=False)
class _Search:
    """The memory of a search from graph to graph."""

    limit: Limit
    swaps: bool
    """Whether edges may change places with rivals."""
    known: Mask | None = None
    """(n_groups,) pairs that may enter where refits should be few; else None."""
    own_limits: int = OWN_LIMITS
    """How many graphs have limits of their own."""
    ratios: dict[int, float] = field(default_factory=dict)
    """Likelihood ratio statistics of pairs that did not raise the score when tried alone."""
    _places: list[_Place] = field(default_factory=list)
    """The first graphs."""

    def place(self, tests: PairTests) -> _Place:
        """A graph with its tests, judged by the limit of the first graphs if it comes later."""
        again = any(np.array_equal(tests.graph, each.graph) for each in self._places)
        if len(self._places) < self.own_limits and not again:
            place = _Place(tests, self.limit(tests), np.full(len(tests.tested), np.nan))
            self._places.append(place)
            return place
        last, self.own_limits = self._places[-1], len(self._places)
        return _Place(tests, last.log_limit, last.least)

    def grown(
        self, task: Task, graph: Ints, theta: Floats, apart: dict[int, str]
    ) -> tuple[Ints, Floats, Ints]:
        """The graph with pairs that pass a rough test and raise the score; its refit and its ridge.

        It ends with the first one that does not.
        """
        loose = None
        while True:
            tests = pairs_roughly(task, graph, theta, apart, loose)
            log_limit = (1.0 if self.known is None else _BY_FAR) * self.limit(tests)
            place = _Place(tests, log_limit, np.full(len(tests.tested), np.nan))
            entering = place.wanted[~place.held[place.wanted]]
            if self.known is not None:
                moves = _batch(task, entering[self.known[entering]], _ONE_OF)
                found = self._tried(place, moves) if moves else None
            else:
                new = [[g] for g in entering.tolist() if g not in self.ratios]
                found = self._all_better(place, new)
            if found is None:
                return graph, theta, tests.fit.ridge
            graph, fit = found
            theta, loose = fit.solution.theta, fit.ridge

    def better(self, place: _Place) -> tuple[Ints, Unshrunken] | None:
        """A graph with a higher score and its refit; None if no wanted move leads to one.

        All new moves that raise the score are made, at most one per column.  Swaps come next where
        there are none; moves that have been refused before are left for the end, where all are
        tried once more.
        """
        wanted = place.wanted.tolist()
        if self.known is not None:
            return self._better_soon(place, self.known)
        found = self._all_better(place, [[g] for g in wanted if g not in self.ratios])
        found = found or self._all_better(place, place.swaps() if self.swaps else [])
        for g in [] if found else wanted:
            found = found or self._tried(place, [g])
        return found

    def _better_soon(self, place: _Place, known: Mask) -> tuple[Ints, Unshrunken] | None:
        """`better` by few refits: first of known pairs that enter, then of edges that leave."""
        new = np.array([g for g in place.wanted.tolist() if g not in self.ratios], dtype=np.int64)
        held, found = place.held[new], None
        for groups in (new[~held & known[new]], place.near(new[held])):
            while len(groups):
                moves = _batch(place.task, groups)
                better = self._tried(place, moves, found)
                found = better or found
                half = np.isin(groups, moves[: len(moves) // 2])
                groups = groups[half] if better is None else groups[~np.isin(groups, moves)]
        return found

    def _all_better(self, place: _Place, moves: list[list[int]]) -> tuple[Ints, Unshrunken] | None:
        """Graph and refit after moves that raise the score, tried in halves; one per column."""
        found, taken = None, set[int]()
        while moves:
            some = _some_per_column(place.task, moves, 1, taken)
            if not some:
                break
            better = None
            while better is None and some:
                better = self._tried(place, [g for move in some for g in move], found)
                refused, some = some, some if better else some[: len(some) // 2]
            done = some if better else refused  # a single one that does not raise the score
            taken |= _columns(place.task, some)
            moves, found = [m for m in moves if m not in done], better or found
        return found

    def _tried(
        self, place: _Place, moves: list[int], base: tuple[Ints, Unshrunken] | None = None
    ) -> tuple[Ints, Unshrunken] | None:
        """Graph and refit after moves from `base`, or the place's graph, if the score rises."""
        before, known = base or (place.graph, place.tests.fit)
        graph = place.moved(before, np.array(moves))
        if np.array_equal(graph, before):  # too few rows for one edge more
            self.ratios.update(dict.fromkeys(moves, 0.0))
            return None
        loose = np.setdiff1d(graph, np.setdiff1d(before, known.ridge))
        fit = rough_refit(place.task, graph, known.solution.theta, loose)
        rise = place.task.total_weight * (known.loss - fit.loss)
        if rise > place.price(graph).sum() - place.price(before).sum():
            return graph, fit
        if len(moves) == 1:
            conditionals = place.task.layout.conditionals[moves[0]]
            self.ratios[moves[0]] = 2.0 * abs(rise) / float(conditionals)
        return None


def _has_more(task: Task, pairs: int) -> bool:
    """Whether there are so many pairs that most of them have rough tests only."""
    plain = task.incomplete is None and task.moderators is None and not task.layout.nodewise
    return plain and task.layout.n_groups > pairs


def _has_many_levels(task: Task, most: int) -> bool:
    """Whether pairs have so many parameters that a refit takes as long as thousands of tests."""
    plain = task.incomplete is None and task.moderators is None and not task.layout.nodewise
    pairs = task.layout.n_groups
    size = int(parameters(task, np.arange(pairs)).sum())
    return plain and size > max(most, _MANY_PER_PAIR * pairs)


def _with_rows(task: Task) -> Mask:
    """(n_groups,) pairs with enough rows for their parameters."""
    return rows_per_parameter(task) >= _ROWS_PER_PREDICTOR


def _batch(task: Task, groups: Ints, share: int = 1) -> list[int]:
    """The first of these pairs of every column: one of so many of an average column."""
    most = max(1, len(groups) // (share * task.layout.n_nodes))
    moves = _some_per_column(task, [[g] for g in groups.tolist()], most)
    return [g for move in moves for g in move]


def _some_per_column(
    task: Task, moves: list[list[int]], most: int, taken: Iterable[int] = ()
) -> list[list[int]]:
    """The first of these moves, at most so many of any column, and none of those `taken`."""
    left, out = dict.fromkeys(taken, 0), []
    for move in moves:
        ends = _columns(task, [move])
        if all(left.get(node, most) for node in ends):
            out.append(move)
            left.update({node: left.get(node, most) - 1 for node in ends})
    return out


def _columns(task: Task, moves: list[list[int]]) -> set[int]:
    """Columns of moves, each of one edge or of several."""
    return {node for move in moves for node in task.layout.pairs[move].ravel().tolist()}


def affordable(task: Task, graph: Ints, preference: Floats) -> Ints:
    """The preferred edges, as far as every column has enough rows for its predictors."""
    layout, freedom = task.layout, task.layout.nodes.freedom
    most = task.total_weight / _ROWS_PER_PREDICTOR
    u, v = layout.pairs[graph].T
    size = layout.n_blocks[graph]
    used = np.bincount(v, freedom[u] * size, layout.n_nodes).astype(np.float64)
    used += np.bincount(u, freedom[v] * size, layout.n_nodes)
    if (used <= most).all():
        return graph
    order, kept = np.argsort(-preference[graph], kind="stable"), []
    used = np.zeros(layout.n_nodes)
    for at in order.tolist():
        a, b = int(u[at]), int(v[at])
        if used[a] + freedom[b] * size[at] <= most and used[b] + freedom[a] * size[at] <= most:
            used[a] += freedom[b] * size[at]
            used[b] += freedom[a] * size[at]
            kept.append(int(graph[at]))
    return np.sort(np.array(kept, dtype=np.int64))

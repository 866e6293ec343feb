"""Evidence -> the pairs whose edges pass a test, with a stated rate of errors among them.

Estimates of the edges of a graph -> the variance of each edge's coefficients, by all of them.

The coefficients of an edge are taken as draws of a normal distribution with mean zero and a
variance of its own; variances are draws of an inverse gamma distribution, whose scale is fitted to
all edges (empirical Bayes).  So an edge of which well-measured coefficients are small does not get
a large one from a cell with hardly any rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from mixedgm.base.parameters import HasParams, ensure_in
from mixedgm.base.printable import few
from mixedgm.base.threads import single_threaded_blas
from mixedgm.inference.pairs import PairEstimates
from mixedgm.model.layout import Floats, Ints
from mixedgm.path.path import Path, PathPoint
from mixedgm.path.task import Task, prepare
from mixedgm.select.criteria import EBIC
from mixedgm.select.evidence import Choice, Evidence, TestedEdges
from mixedgm.select.graph_search import Limit, SettledGraph, pairs_tested, settled
from mixedgm.select.pair_tests import PairTests, fine_refit, noise_level, untestable


class _ErrorRate(HasParams, ABC):
    """Base class of criteria that test all pairs given the graph of those that pass."""

    by_parts = True
    part = EBIC.part
    refit = True

    @property
    @abstractmethod
    def label(self) -> str:
        """How the choice is described."""

    @abstractmethod
    def log_limit(self, tests: PairTests) -> float:
        """Logarithm of the largest p-value with which a pair passes."""

    def enough(self, task: Task, point: PathPoint) -> bool:
        """Where tests cannot be made, as EBIC says."""
        return EBIC().enough(task, point) if untestable(task, _NO_GROUPS) else False

    def choose(self, evidence: Evidence) -> Choice:
        """Test all pairs, starting from the graph at the lam that noise seldom passes."""
        task, path = _by_conditionals(evidence), evidence.path
        wanted = noise_level(task)
        reason = untestable(task, _NO_GROUPS)
        if evidence.grows and not reason and path.lams[-1] > wanted and not evidence.saturated:
            return Choice(len(path) - 1, self.label, _nothing(path), down_to=wanted)
        first = int(np.argmax(path.lams <= wanted)) if path.lams[-1] <= wanted else len(path) - 1
        names = task.layout.numbers_of(evidence.task.layout.triples)
        start = np.unique(names[path.points[first].groups])
        reason = reason or untestable(task, start)
        if reason:
            return _by_information(evidence, reason)
        theta = path.theta(first) if task is evidence.task else None
        found = settled(task, start, self.log_limit, theta)
        if found.ended:
            found = settled_from(task, found.graph, self.log_limit, found.tests.theta)
        tests, graph = found.tests, found.graph
        probability = 1.0 - tests.no_edge
        probability[task.penalty.free] = 1.0
        chosen = np.flatnonzero(np.isin(names, graph))
        counted = np.where(
            np.isnan(probability), np.isin(np.arange(len(probability)), graph), probability
        )
        errors = np.array([_errors(names[p.groups], counted) for p in path.points])
        return Choice(
            int(np.argmin(errors)),
            self.label,
            {"errors": errors, "errors_limit": np.full(len(path), _errors(graph, counted))},
            notes=(*_notes(task, tests), *(() if found.ended else (_NOT_ENDED,))),
            groups=chosen,
            tested=TestedEdges(
                probability[names], _variances(tests, found.graph)[names], _named(task, tests)
            ),
            refit=tests.theta if task is evidence.task and task.incomplete is None else None,
            params=None if task.incomplete is None else tests.params,
        )


@dataclass(frozen=True)
class LocalFDR(_ErrorRate):
    """Pairs that have no edge with a probability of at most `limit`.

    Every pair is tested given all edges that pass, until tests and graph agree.  Pairs are of two
    groups, with and without an edge; how many have one, and how strong edges are, is estimated from
    the tests of all pairs of the table.  So the limit adapts to tables of few strong and of many
    weak edges, and every edge has a probability, which `edges()` shows.

    Parameters
    ----------
    limit : float
        Largest probability, in (0, 1), that a pair that is kept has no edge.

    References
    ----------
    Efron, Tibshirani, Storey and Tusher (2001), "Empirical Bayes analysis of a microarray
    experiment".

    Examples
    --------
    >>> LocalFDR(0.2).label
    'local false discovery rate of at most 0.2'
    """

    limit: float = 0.5

    def __post_init__(self) -> None:
        ensure_in("(0, 1)", limit=self.limit)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"local false discovery rate of at most {self.limit:g}"

    def log_limit(self, tests: PairTests) -> float:
        """Logarithm of the p-value of the smallest z that a pair may have to be kept."""
        return float(np.log(2.0) + norm.logsf(tests.two_groups.least_z(self.limit)))


@dataclass(frozen=True)
class FDR(_ErrorRate):
    """Pairs that pass tests of which a share `level` at most is expected to be false.

    Every pair is tested given all edges that pass, until tests and graph agree; p-values are
    adjusted by Benjamini and Hochberg over all pairs.

    Parameters
    ----------
    level : float
        Expected share of false edges, in (0, 1).

    References
    ----------
    Benjamini and Hochberg (1995), "Controlling the false discovery rate".

    Examples
    --------
    >>> FDR().label
    'false discovery rate of 0.1'
    """

    level: float = 0.1

    def __post_init__(self) -> None:
        ensure_in("(0, 1)", level=self.level)

    @property
    def label(self) -> str:
        """How the choice is described."""
        return f"false discovery rate of {self.level:g}"

    def log_limit(self, tests: PairTests) -> float:
        """Logarithm of the largest level * k / m that k p-values reach (Benjamini, Hochberg)."""
        p = np.sort(tests.statistics.p[tests.tested])
        line = self.level * np.arange(1, len(p) + 1) / max(len(p), 1)
        n_passing = int(np.flatnonzero(p <= line)[-1]) + 1 if (p <= line).any() else 1
        return float(np.log(self.level * n_passing / max(len(p), 1)))


def settled_from(
    task: Task, graph: Ints, limit: Limit, theta: Floats | None = None
) -> SettledGraph:
    """Search on from a graph that is likely to be the last one.

    The search begins at a fine refit of the graph.  So the tests depend on the rows and the graph
    alone, not on how the graph was found, and a table that is tested again has the same numbers.
    Every graph has its own limit, so that searches can lead from one graph to the next and back:
    then the smallest graph of the circle is taken, wherever the circle was entered.
    """
    circle: list[tuple[int, tuple[int, ...]]] = []
    while True:
        theta = fine_refit(task, graph, task.null.theta if theta is None else theta)
        found = settled(task, graph, limit, theta, own_limits=1)
        if np.array_equal(found.graph, graph) or not found.ended:
            return found
        circle.append((len(graph), tuple(graph.tolist())))
        graph, theta = found.graph, found.tests.theta
        if (len(graph), tuple(graph.tolist())) in circle:
            break
    first = circle.index((len(graph), tuple(graph.tolist())))
    graph = np.array(min(circle[first:])[1], dtype=np.int64)
    tests = pairs_tested(task, graph, fine_refit(task, graph, theta))
    return SettledGraph(tests, graph, ended=False)


_NOT_ENDED = (
    "the search found no graph whose edges all pass their tests and whose other pairs all fail: "
    "the best of those visited was taken, and some of its edges may not pass"
)
_NO_GROUPS = np.zeros(0, dtype=np.int64)


def _variances(tests: PairTests, graph: Ints) -> Floats:
    """(n_groups,) variances of the coefficients of edges; infinite for other pairs."""
    assert tests.estimates is not None
    out = np.full(len(tests.tested), np.inf)
    out[tests.estimated] = block_variances(tests.estimates, np.searchsorted(tests.estimated, graph))
    return out


def _by_information(evidence: Evidence, reason: str) -> Choice:
    """Choice by EBIC, with the reason for it among the notes."""
    before = evidence.before
    if before is not None and before.memory is None:  # tests were wanted so far
        evidence = replace(evidence, before=None, n_before=0)
    choice = EBIC().choose(evidence)
    return replace(choice, notes=(*choice.notes, f"chosen by EBIC: {reason}"))


def _named(task: Task, tests: PairTests) -> tuple[tuple[str, str, str], ...]:
    """Names of the columns of edges without a test, and the reasons."""
    nodes, pairs = task.schema.nodes, task.layout.pairs
    chosen = [g for g in tests.untested if g in set(tests.graph.tolist())]
    ends = [(*(nodes[node].name for node in pairs[g].tolist()), tests.untested[g]) for g in chosen]
    return tuple((source, target, reason) for source, target, reason in ends)


def _notes(task: Task, tests: PairTests) -> tuple[str, ...]:
    """Note on the pairs without a test and the reason of each; empty if there are none."""
    if not tests.untested:
        return ()
    nodes = task.schema.nodes
    pairs = [
        " - ".join(nodes[node].name for node in task.layout.pairs[g].tolist()) + f" ({reason})"
        for g, reason in tests.untested.items()
    ]
    return (f"judged by {EBIC().label} instead of a test: {few(pairs, 3, str)}",)


def _by_conditionals(evidence: Evidence) -> Task:
    """The task whose edges are tested: that of the pseudolikelihood, whatever the loss."""
    if evidence.task.loss == "pseudolikelihood":
        return evidence.task
    recipe = replace(evidence.recipe, loss="pseudolikelihood", weights="calibrated")
    incomplete = evidence.task.incomplete
    if incomplete is not None:
        return incomplete.with_recipe(recipe).at(incomplete.rich)[1]
    return prepare(evidence.design, recipe, evidence.table, evidence.runtime.n_threads)


def _errors(groups: Ints, probability: Floats) -> float:
    """How many pairs of a graph, with or without an edge, are expected to be wrong."""
    there = np.isin(np.arange(len(probability)), groups)
    return float(np.where(there, 1.0 - probability, probability).sum())


def _nothing(path: Path) -> dict[str, Floats]:
    return {"errors": np.full(len(path), np.nan)}


# -- block variances -------------------------------------------------------------------------------

_SHAPE = 1.0
"""Of the inverse gamma distribution: its scale counts like two coefficients."""
_LOG_VARIANCES = np.linspace(np.log(1e-4), np.log(100.0), 120)


def block_variances(estimates: PairEstimates, graph: Ints) -> Floats:
    """(n_groups,) variances of coefficients, in contrasts of standardised columns.

    They are infinite for edges with one parameter, whose estimate says all that is known about its
    size, and outside the graph.
    """
    out = np.full(estimates.layout.n_groups, np.inf)
    groups, likelihoods = _likelihoods(estimates, graph)
    if len(groups) == 0:
        return out
    scales = np.exp(_LOG_VARIANCES)
    priors = _log_inverse_gamma(scales[:, None])
    evidence = [logsumexp(likelihoods + prior, axis=1).sum() for prior in priors]
    posterior = likelihoods + priors[int(np.argmax(evidence))]
    log_precision = logsumexp(posterior - _LOG_VARIANCES, axis=1) - logsumexp(posterior, axis=1)
    out[groups] = np.exp(-log_precision)
    return out


def _likelihoods(estimates: PairEstimates, graph: Ints) -> tuple[Ints, Floats]:
    """Edges with several parameters, and the log likelihood of each at every variance."""
    groups, rows = [], [np.zeros((0, len(_LOG_VARIANCES)))]
    for of_size, values, covariance in estimates.by_size():
        at = np.flatnonzero(np.isin(of_size, graph))
        if values.shape[1] == 1 or len(at) == 0:
            continue
        with single_threaded_blas():
            own, axes = np.linalg.eigh(covariance[at])
        squares = np.square(np.einsum("gab,ga->gb", axes, values[at]))
        total = np.maximum(own, 0.0)[:, :, None] + np.exp(_LOG_VARIANCES)
        rows.append(-0.5 * (np.log(total) + squares[:, :, None] / total).sum(axis=1))
        groups.append(of_size[at])
    found = np.concatenate([np.zeros(0, dtype=np.int64), *groups])
    return found, np.concatenate(rows)


def _log_inverse_gamma(scale: Floats) -> Floats:
    """Log densities of the logarithm of a variance, at every variance, for every scale."""
    ratio = np.log(_SHAPE * scale) - _LOG_VARIANCES
    return np.asarray(_SHAPE * ratio - np.exp(ratio) - gammaln(_SHAPE))

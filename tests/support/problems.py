"""Sizes and seeds -> tables, tasks and points at which to test the mathematical core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.parallel import Runtime
from mixedgm.families import CountKind, OrdinalKind, Scored
from mixedgm.model.layout import Layout
from mixedgm.model.nodes import Nodes
from mixedgm.model.pair_weights import PairWeights
from mixedgm.path.path import Path
from mixedgm.path.recipe import Recipe
from mixedgm.path.task import Task, prepare
from mixedgm.select.evidence import Evidence
from mixedgm.solve.choose import Auto
from mixedgm.solve.neighbour import Chord, Secant, neighbour_of
from mixedgm.solve.proximal_gradient import VARIANTS, ProximalGradient
from mixedgm.solve.proximal_newton import ProximalNewton
from mixedgm.solve.spectral_gradient import SpectralGradient
from mixedgm.solve.working_set import Solution, Start, solve
from mixedgm.table.encode import Design, code_dtype
from mixedgm.table.schema import Column, Schema

Floats = NDArray[np.float64]

# Ordinal columns come before counts, as nodes do.
SCORED = (
    OrdinalKind(level_scores=(-1.0, 0.0, 0.5, 4.0)),
    OrdinalKind(thresholds="quadratic"),
    CountKind(),
    CountKind(zero_term=True),
)

SOLVERS = {
    **{f"gradient-{name}": ProximalGradient(name) for name in VARIANTS},
    "newton-exact": ProximalNewton("exact"),
    "newton-sampled": ProximalNewton("sampled", sample_rows=20),
    "newton-limited-memory": ProximalNewton("limited-memory"),
    "newton-exact-by-gradient": ProximalNewton("exact", "proximal-gradient"),
    "newton-sampled-by-gradient": ProximalNewton("sampled", "proximal-gradient", sample_rows=20),
    "spectral": SpectralGradient(),
    "auto": Auto(),
    "chord": Chord(ProximalNewton()),
    "secant": Secant(Layout.without_edges(Nodes.mixed(0, ())), np.eye(0), ProximalNewton()),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns in their own units, level codes, and what a row counts."""

    X: Floats
    Y: NDArray[np.int64]
    n_levels: tuple[int, ...]
    row_weights: Floats | None = None
    covariates: tuple[int, ...] = ()
    scored: tuple[Scored, ...] = ()
    """Kinds of the first discrete columns, behind hurdle ones; all others are categorical."""
    n_spiked: int = 0
    """Hurdle columns: the last of X, and whether they are not zero the first of Y."""

    @property
    def n_gaussian(self) -> int:
        return self.X.shape[1] - self.n_spiked

    @property
    def locations(self) -> tuple[float, ...]:
        """Of hurdle columns: the mean of what is not zero, and of the second nothing."""
        amounts = self.X[:, self.n_gaussian :].T
        return tuple(float(x[x != 0].mean()) * (j == 0) for j, x in enumerate(amounts))

    @property
    def schema(self) -> Schema:
        numbers = [Column(f"c{s}", "continuous") for s in range(self.n_gaussian)]
        discrete = [self._discrete(r, m) for r, m in enumerate(self.n_levels)]
        columns = enumerate((*numbers, *discrete))
        roles = ("target", "covariate")
        return Schema(tuple(replace(c, role=roles[k in self.covariates]) for k, c in columns))

    def _discrete(self, r: int, n_values: int) -> Column:
        if r < self.n_spiked:
            return Column(f"k{r}", "hurdle", location=self.locations[r])
        at = r - self.n_spiked
        kind = self.scored[at] if at < len(self.scored) else None
        if isinstance(kind, CountKind):
            return Column(f"k{r}", "count", largest=n_values - 1, zero_term=kind.zero_term)
        column = Column(f"k{r}", "categorical", levels=tuple(f"l{a}" for a in range(n_values)))
        if not isinstance(kind, OrdinalKind):
            return column
        given = {"scores": kind.level_scores, "thresholds": kind.thresholds}
        return replace(column, kind="ordinal", **given)

    @property
    def design(self) -> Design:
        codes = np.ascontiguousarray(self.Y, dtype=code_dtype(self.schema))
        return Design(self.schema, np.ascontiguousarray(self.X), codes, self.row_weights)

    def task(self, n_threads=1, factors=None, **options) -> Task:
        """Penalty factors are a matrix over nodes."""
        if factors is not None:
            options["factors"] = factors_of(factors)
        return prepare(self.design, Recipe(**options), n_threads=n_threads)

    def take(self, rows) -> Table:
        weights = None if self.row_weights is None else self.row_weights[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], row_weights=weights)


def factors_of(matrix: Floats) -> PairWeights:
    """Penalty factors of all pairs, by a symmetric matrix over nodes."""
    u, v = np.triu_indices(len(matrix), 1)
    pairs = np.column_stack([u, v])
    return PairWeights.formula(np.ones(len(matrix))).excepting(pairs, matrix[u, v])


def draw(
    seed: int,
    n_rows: int,
    n_gaussian: int,
    n_levels: tuple[int, ...],
    weighted=False,
    scored: tuple[Scored, ...] = (),
    n_spiked: int = 0,
) -> Table:
    """Columns that share one hidden cause; every level has a row; units differ by column.

    The first discrete columns are `scored`: of these kinds, and rise or fall with the cause.
    Before them stand hurdle columns: the first with positive amounts, the second with any.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_rows, 1))
    X = hidden * rng.normal(size=n_gaussian) + rng.normal(size=(n_rows, n_gaussian))
    X = rng.normal(size=n_gaussian) * 3 + rng.uniform(0.3, 4, size=n_gaussian) * X
    Y = np.zeros((n_rows, len(n_levels)), dtype=np.int64)
    for r, m in enumerate(n_levels):
        tendency = rng.normal(size=m) * 1.2
        if r < len(scored):
            tendency = np.sort(tendency)
        if r < len(scored) and isinstance(scored[r], CountKind):
            mean = np.exp(0.6 + tendency[0] * hidden[:, 0] / 3)
            Y[:, r] = np.minimum(rng.poisson(mean) * (rng.random(n_rows) > 0.2), m - 1)
            continue
        Y[:, r] = np.argmax(hidden * tendency + rng.gumbel(size=(n_rows, m)), axis=1)
        Y[:m, r] = rng.permutation(m)
    weights = rng.integers(1, 4, size=n_rows).astype(float) if weighted else None
    amounts = np.zeros((n_rows, n_spiked))
    for j in range(n_spiked):
        there = rng.normal(size=n_rows) + 0.8 * hidden[:, 0] > 0.3 - 0.5 * j
        there[:2], there[2:5] = False, True
        much = rng.normal(size=n_rows) + (-1) ** j * 0.7 * hidden[:, 0]
        amounts[there, j] = (np.exp(2.0 + 0.6 * much) if j == 0 else 3.0 * much - 1.0)[there]
    X, Y = np.hstack([X, amounts]), np.hstack([amounts != 0.0, Y]).astype(np.int64)
    levels = (2,) * n_spiked + tuple(n_levels)
    return Table(X, Y, levels, weights, scored=scored, n_spiked=n_spiked)


def random_theta(layout: Layout, seed: int, size: float = 0.4) -> Floats:
    """A point inside the domain with every parameter in use."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(scale=size, size=layout.n_theta)
    theta[layout.positive] = rng.uniform(0.7, 2.0, size=len(layout.positive))
    return theta


def solved(task: Task, lam: float, solver="newton-exact", tol=1e-8, max_iter=30_000) -> Solution:
    """Solve one lam from the null model; the chord, from a solution that is not far away."""
    start, problem = Start(task.null.theta, task.null.evaluation, task.lam_max), task.problem(lam)
    if solver == "chord":
        near = task.problem(1.1 * lam)
        theta = solve(near, ProximalNewton(), start, tol=1e-6, max_iter=1000).theta
        neighbour = neighbour_of(near, SOLVERS[solver].solver, theta)
        start = neighbour.start(theta, task.smooth.evaluate(theta), task.layout)
    return solve(problem, SOLVERS[solver], start, tol=tol, max_iter=max_iter)


def evidence_of(table: Table, path: Path, task: Task | None = None, seed=0, **runtime) -> Evidence:
    """What a criterion sees of a table and its path."""
    recipe = Recipe(ProximalNewton(), 1e-8, 500)
    task = table.task() if task is None else task
    seed = np.random.SeedSequence(seed)
    return Evidence(table.design, recipe, task, path, seed, runtime=Runtime(**runtime))


def edges_of(task: Task, theta: Floats) -> set[tuple[int, int]]:
    """Pairs of nodes whose group is not exactly zero."""
    active = np.flatnonzero(task.layout.group_norms(theta))
    return {(int(u), int(v)) for u, v in task.layout.pairs[active]}


def estimate(table: Table, fraction: float, tol: float = 1e-9, **options):
    """Params, edges and objective in the data's own units, at a fraction of lam_max."""
    task = table.task(**options)
    lam = fraction * task.lam_max
    solution = solved(task, lam, tol=tol)
    assert solution.converged, solution.status.value
    objective = solution.objective + task.log_jacobian
    return task.params(solution.theta), edges_of(task, solution.theta), objective, lam

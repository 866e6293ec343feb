"""Columns, levels and a penalty -> the exact optimum, from a conic solver that knows only cones.

The penalised pseudolikelihood is handed to cvxpy as a convex problem and solved by Clarabel's
interior point method. Nothing here is shared with the package: this is what its solvers are
compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pair = tuple[int, int]

# Tightest first: where rounding keeps Clarabel from a tolerance, the next one is tried.
TOLERANCES = (1e-12, 1e-11, 1e-10, 1e-9)
# Long steps run into the boundary of the exponential cones and stall, on a few problems each.
STEP_FRACTIONS = (0.9, 0.99, 0.8)
# Calibrated norms of the solver's zeros stay far below this, those of edges far above; the
# references' own tests assert the empty space on both sides.
EDGE_THRESHOLD = 1e-5


@dataclass(frozen=True, eq=False)
class ConicOptimum:
    """The optimum in the data's own units; absent edges are exactly zero in the blocks.

    `strength` holds c_g * norm of every block before that rounding, `gap` the distance between
    the solver's primal and dual values, `tolerance` the one it was solved to.
    """

    n_levels: tuple[int, ...]
    value: float
    precision: Floats
    cont_bias: Floats
    category_shift: Floats
    cat_interaction: Floats
    cat_bias: Floats
    edges: frozenset[Pair]
    strength: Floats
    tolerance: float
    gap: float
    added: float = 0.0
    """What ridge and noise add to `value`."""


class _Columns:
    """Each node as a matrix of features: one standardised column, or one per observed level."""

    def __init__(self, X: Floats, Y: NDArray[np.int64], n_levels: tuple[int, ...], rows: Floats):
        self.n_gaussian, self.n_levels = X.shape[1], n_levels
        self.share = rows / rows.sum()
        self.mean = self.share @ X
        self.scale = np.sqrt(self.share @ (X - self.mean) ** 2)
        standard = (X - self.mean) / self.scale
        hot = [np.eye(m)[Y[:, j]] for j, m in enumerate(n_levels)]
        # A level without weight has no finite bias: the problem is posed without it.
        self.seen = [np.flatnonzero(self.share @ block > 0) for block in hot]
        self.features = [standard[:, [s]] for s in range(self.n_gaussian)]
        self.features += [block[:, keep] for block, keep in zip(hot, self.seen, strict=True)]
        self.unit = np.concatenate([self.scale, np.ones(len(n_levels))])
        # Root of the trace of each node's covariance: 1, or the root of sum p (1 - p).
        self.spread = np.sqrt(
            [self.share @ ((f - self.share @ f) ** 2).sum(axis=1) for f in self.features]
        )

    @property
    def n_nodes(self) -> int:
        return len(self.features)


def solve(
    X: Floats,
    Y: NDArray[np.int64],
    n_levels: tuple[int, ...],
    lam: float,
    weights: str | Floats = "calibrated",
    factors: Floats | None = None,
    row_weights: Floats | None = None,
    targets: Sequence[int] | None = None,
    ridge: float | dict[Pair, float] = 0.0,
    noise: Sequence[float] | None = None,
) -> ConicOptimum:
    """Minimise F over all parameters; `X` (n, p) in its own units, `Y` (n, q) level codes.

    With `targets`, only these nodes have a conditional, and only pairs with one of them exist;
    the weights are then to be given with the factors that such pairs need.

    `weights` and `factors` are symmetric over nodes, continuous before categorical; their
    product is the weight of a pair, 0 leaves it free and inf leaves it out.

    `ridge` is worth so many rows: on all pairs of categorical columns, or by pair.  `noise` has a
    variance for every continuous column, in standard units.
    """
    rows = np.ones(len(X)) if row_weights is None else np.asarray(row_weights, dtype=float)
    columns = _Columns(np.asarray(X, dtype=float), np.asarray(Y), tuple(n_levels), rows)
    if not isinstance(ridge, dict):
        categorical = range(columns.n_gaussian, columns.n_nodes)
        ridge = dict.fromkeys(combinations(categorical, 2), ridge)
    pair_weights = _pair_weights(columns, weights, factors)
    blocks = {
        (u, v): cp.Variable((columns.features[u].shape[1], columns.features[v].shape[1]))
        for u, v in combinations(range(columns.n_nodes), 2)
        if np.isfinite(pair_weights[u, v]) and (targets is None or {u, v} & set(targets))
    }
    biases = [cp.Variable((1, f.shape[1])) for f in columns.features]
    beta = [cp.Variable() for _ in range(columns.n_gaussian)]
    nodes = range(columns.n_nodes) if targets is None else targets
    loss = sum(_node_loss(columns, u, blocks, biases[u], beta) for u in nodes)
    penalty = sum(
        lam * pair_weights[pair] * cp.norm(block, "fro")
        for pair, block in blocks.items()
        if lam * pair_weights[pair] > 0
    )
    added = sum(
        worth * _curvature_of_a_row(columns, pair, nodes, rows.sum()) * cp.sum_squares(blocks[pair])
        for pair, worth in ridge.items()
        if worth > 0 and pair in blocks
    )
    added = added / 2
    for s, variance in enumerate(noise or ()):
        # Noise adds its variance to the square of every residual, and beta weighs that square.
        added = added + variance * beta[s] / 2
    problem = cp.Problem(
        cp.Minimize(loss + penalty + added), _centring(columns, blocks, biases, lam * pair_weights)
    )
    solved = solve_tightly(problem)
    value = float(added.value) if isinstance(added, cp.Expression) else 0.0
    return _in_own_units(columns, problem, solved, (blocks, biases, beta), value)


def _curvature_of_a_row(columns: _Columns, pair: Pair, targets, n_rows: float) -> float:
    """Mean over the free directions of a block of what one row in n adds to the curvature.

    Where u and v are independent, the second derivative of the conditional of v in the block is
    cov(z_v) times cov(z_u), Kronecker's product; so is that of the conditional of u.  Its trace is
    the product of the two traces; it has one non-zero eigenvalue for every free direction.
    """
    u, v = pair
    trace = columns.spread[u] ** 2 * columns.spread[v] ** 2
    free = [
        1 if node < columns.n_gaussian else columns.features[node].shape[1] - 1 for node in (u, v)
    ]
    conditionals = len({u, v} & set(targets))
    return conditionals * trace / (free[0] * free[1]) / n_rows


def _pair_weights(columns: _Columns, weights: str | Floats, factors: Floats | None) -> Floats:
    """Weights of the standardised blocks: calibrated, uniform in the own units, or given."""
    n_nodes = columns.n_nodes
    units = np.outer(columns.unit, columns.unit)
    if isinstance(weights, str):
        named = {
            "calibrated": units * np.outer(columns.spread, columns.spread),
            "uniform": np.ones((n_nodes, n_nodes)),
        }
        own = named[weights]
    else:
        own = np.asarray(weights, dtype=float)
    if factors is not None:
        own = own * np.asarray(factors, dtype=float)
    return own / units


def _node_loss(columns, u, blocks, bias, beta) -> cp.Expression:
    """Mean negative log conditional of node u, without the half log of two pi."""
    n_rows = len(columns.share)
    predictor = np.ones((n_rows, 1)) @ bias
    for (a, b), block in blocks.items():
        if a == u:
            predictor = predictor + columns.features[b] @ block.T
        elif b == u:
            predictor = predictor + columns.features[a] @ block
    own = columns.features[u]
    if u < columns.n_gaussian:
        residual = cp.multiply(np.sqrt(columns.share), cp.vec(predictor - beta[u] * own, order="F"))
        return cp.quad_over_lin(residual, 2 * beta[u]) - cp.log(beta[u]) / 2
    chosen = cp.sum(cp.multiply(own, predictor), axis=1)
    return columns.share @ (cp.log_sum_exp(predictor, axis=1) - chosen)


def _centring(columns, blocks, biases, strength) -> list[cp.Constraint]:
    """Sums over levels that no penalty settles: those of the biases and of free blocks."""
    constraints = [cp.sum(biases[r]) == 0 for r in range(columns.n_gaussian, columns.n_nodes)]
    for (u, v), block in blocks.items():
        if strength[u, v] == 0 and v >= columns.n_gaussian:
            constraints.append(cp.sum(block, axis=1) == 0)
            if u >= columns.n_gaussian:
                # The last column's sum follows from the rows' sums.
                constraints.append(cp.sum(block, axis=0)[:-1] == 0)
    return constraints


def solve_tightly(problem: cp.Problem) -> tuple[float, float]:
    """Solve to the tightest tolerance that Clarabel reports as reached; give it and the gap."""
    for tol, fraction in product(TOLERANCES, STEP_FRACTIONS):
        options = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
        options["max_step_fraction"] = fraction
        data, chain, inverse = problem.get_problem_data(cp.CLARABEL, solver_opts=options)
        raw = chain.solve_via_data(problem, data, solver_opts=options)
        if str(raw.status) == "Solved":
            problem.unpack_results(raw, chain, inverse)
            return tol, abs(raw.obj_val - raw.obj_val_dual)
    raise RuntimeError(f"Clarabel reached none of {TOLERANCES}: {raw.status}")


def _in_own_units(columns, problem, solved, variables, added) -> ConicOptimum:
    """Undo x = mean + scale * standardised, put unobserved levels back, round small blocks."""
    blocks, biases, beta = variables
    predicted = [variable.value is not None for variable in beta]
    for variable in (*biases, *beta):
        # The terms of a node without a conditional are not in the problem.
        variable.value = np.zeros(variable.shape) if variable.value is None else variable.value
    p, n_nodes, scale = columns.n_gaussian, columns.n_nodes, columns.scale
    ends = np.cumsum([0, *columns.n_levels])
    places = [ends[j] + keep for j, keep in enumerate(columns.seen)]
    total = int(ends[-1])
    precision = np.diag([float(b.value) for b in beta]) if p else np.zeros((0, 0))
    shift, interaction = np.zeros((p, total)), np.zeros((total, total))
    strength, edges = np.zeros((n_nodes, n_nodes)), set()
    for (u, v), block in blocks.items():
        norm = columns.spread[u] * columns.spread[v] * np.linalg.norm(block.value)
        strength[u, v] = strength[v, u] = norm
        if norm <= EDGE_THRESHOLD:
            continue
        edges.add((u, v))
        if v < p:
            precision[u, v] = precision[v, u] = -block.value[0, 0]
        elif u < p:
            shift[u, places[v - p]] = block.value[0]
        else:
            interaction[np.ix_(places[u - p], places[v - p])] = block.value
            interaction[np.ix_(places[v - p], places[u - p])] = block.value.T
    precision = precision / np.outer(scale, scale)
    shift = shift / scale[:, None]
    cat_bias = np.full(total, -np.inf)
    for j, place in enumerate(places):
        cat_bias[place] = biases[p + j].value[0] - columns.mean @ shift[:, place]
    standard_bias = np.array([b.value[0, 0] for b in biases[:p]]).reshape(p)
    return ConicOptimum(
        n_levels=columns.n_levels,
        value=float(problem.value + np.log(scale[predicted]).sum()),
        precision=precision,
        cont_bias=standard_bias / scale + precision @ columns.mean,
        category_shift=shift,
        cat_interaction=interaction,
        cat_bias=cat_bias,
        edges=frozenset(edges),
        strength=strength,
        tolerance=solved[0],
        gap=solved[1],
        added=added,
    )

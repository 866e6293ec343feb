"""The optimality conditions of moderated models, recomputed row by row from the user's numbers."""

import numpy as np
import pytest

from tests.reference import plain
from tests.reference.test_moderated import fit
from tests.support.problems import draw

CASES = {
    "continuous": ((50, 3, (2, 3), False), (0,)),
    "categorical, weighted": ((60, 2, (2, 3, 3), True), (3,)),
    "both": ((60, 3, (2, 3), True), (1, 4)),
}
pytestmark = pytest.mark.filterwarnings("ignore:sample_weight sums")


def blocks_at(params, x, y):
    """The ordinary blocks of one row: edges plus its deviations, columns less their means."""
    own, p = params.moderation, len(x)
    here = plain.copy(params)
    start = plain.starts(params.n_levels)
    for node, deviation in zip(own.nodes, own.deviations, strict=True):
        change = deviation[0 if node < p else y[node - p]]
        if node < p:
            change = (x[node] - own.middle[node]) * change
        here.precision -= change[:p, :p]
        here.category_shift += change[:p, p:]
        here.cat_interaction += change[p:, p:]
        for a in range(p):
            here.cont_bias[a] -= float(change[a] @ own.middle)
        for a in range(len(here.cat_bias)):
            here.cat_bias[a] -= float(change[p + a] @ own.middle)
    assert len(start) == len(params.n_levels)
    return here


def columns_of(table):
    """Per row: standardised design columns by node; means of these; sqrt(tr cov)."""
    mean, scale = plain.mean_and_scale(table.X, table.row_weights)
    shares = plain.frequencies(table.Y, table.n_levels, table.row_weights)
    middle = [np.zeros(1)] * table.n_gaussian + [np.array(row) for row in shares]
    spread = [1.0] * table.n_gaussian + [np.sqrt(sum(q * (1 - q) for q in row)) for row in shares]

    def design(x, y):
        numbers = [np.array([(x[s] - mean[s]) / scale[s]]) for s in range(table.n_gaussian)]
        return numbers + [np.eye(m)[y[r]] for r, m in enumerate(table.n_levels)]

    return design, middle, spread, scale


def certificate(model, table, moderators, lam):
    """The KKT number, by loops over rows."""
    params, p = model.params_, table.n_gaussian
    design, middle, spread, scale = columns_of(table)
    n_nodes = p + len(table.n_levels)
    targets = [k for k in range(n_nodes) if k not in moderators]
    keys = [(u, v) for u in range(n_nodes) for v in range(u + 1, n_nodes) if {u, v} & set(targets)]
    keys += [(u, v, m) for u, v in keys if {u, v} <= set(targets) for m in moderators]
    grads = dict.fromkeys(keys, 0.0)
    nodes = 0.0 * np.zeros(2 * p + sum(table.n_levels))
    for w, x, y in plain.rows_of(table.X, table.Y, table.row_weights):
        here, z = blocks_at(params, x, y), design(x, y)
        residual = {}
        for u in targets:
            if u < p:
                b = here.precision[u, u]
                e = (plain.eta(here, u, x, y) - b * x[u]) / b
                residual[u] = np.array([e / scale[u]])
                nodes[u] += w * e / scale[u]
                # In standardised units, with the bias held: the chain rule of x = mean + scale z.
                own = b * scale[u] ** 2
                slope = -0.5 / own - z[u][0] * e / scale[u] - 0.5 * (e / scale[u]) ** 2
                nodes[p + u] += w * slope
            else:
                chances = np.array(plain.conditional_probabilities(here, u - p, x, y))
                residual[u] = chances - z[u]
                first = 2 * p + plain.starts(table.n_levels)[u - p]
                nodes[first : first + len(chances)] += w * residual[u]
        for key in keys:
            u, v = key[:2]
            f = z[key[2]] - middle[key[2]] if key[2:] else np.ones(1)
            less = 1.0 if key[2:] else 0.0
            total = 0.0
            if v in residual:
                total = np.multiply.outer(f, np.outer(z[u] - less * middle[u], residual[v]))
            if u in residual:
                total = total + np.multiply.outer(f, np.outer(residual[u], z[v] - less * middle[v]))
            grads[key] = grads[key] + w * total
    worst = np.abs(nodes).max()
    for key in keys:
        theta = standard_block(model, table, key, scale)
        ends = len(set(key[:2]) & set(targets))
        own = 0.5 * ends * np.prod([spread[k] for k in key])
        size = np.linalg.norm(theta)
        if size == 0:
            distance = max(0.0, np.linalg.norm(grads[key]) - lam * own)
        else:
            distance = np.linalg.norm(grads[key].reshape(theta.shape) + lam * own * theta / size)
        worst = max(worst, distance / own)
    return worst


def standard_block(model, table, key, scale):
    """Parameters of an edge or a deviation in standardised units, as the penalty sees them."""
    params, p = model.params_, table.n_gaussian
    unit = [scale[k] if k < p else 1.0 for k in key]
    if not key[2:]:
        return params.block(*key) * np.prod(unit)
    own = params.moderation
    which = own.nodes.index(key[2])
    start = [*range(p), *(p + params.level_start)]
    rows, columns = (slice(start[k], start[k + 1]) for k in key[:2])
    block = own.deviations[which][:, rows, columns] * np.prod(unit)
    return block if key[2] < p else block - block.mean(axis=0)


@pytest.mark.parametrize("solver", ["proximal-newton", "proximal-gradient"])
@pytest.mark.parametrize("name", CASES)
def test_the_certificate_is_that_of_loops_over_rows(name, solver):
    shape, moderators = CASES[name]
    table = draw(31, *shape)
    for lam in (0.3, 0.1, 0.03):
        model = fit(table, moderators, lam=lam, tol=1e-6, solver=solver)
        assert model.converged_
        found = certificate(model, table, moderators, lam)
        assert found <= 1.01e-6
        assert found == pytest.approx(model.kkt_, abs=1e-9)
    assert any(edge.moderator for edge in model.edges_)

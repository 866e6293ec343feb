"""Every smooth function of theta: value, derivatives, convexity, restrictions, null, counters."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from mixedgm.model.params import Params
from mixedgm.objective.conditional import ConditionalLikelihood
from mixedgm.objective.contract import Evaluation, Smooth
from mixedgm.objective.likelihood import Likelihood
from mixedgm.objective.pseudolikelihood import Pseudolikelihood
from mixedgm.objective.ridge import Ridged
from mixedgm.objective.sampled import RidgedSample, SampledLikelihood
from mixedgm.solve.proximal_newton import ProductModel
from tests.reference import conditional, likelihood, plain
from tests.support import dense
from tests.support.moderated import moderated_task, written_out
from tests.support.problems import SCORED, draw, random_theta

# Rows, continuous columns, levels, weighted, scored kinds; then covariates, or moderators.
PLAIN = {
    "mixed": ((40, 2, (2, 3), False), ()),
    "mixed-weighted": ((40, 3, (2, 3), True), ()),
    "many-levels": ((45, 1, (2, 4, 5), False), ()),
    "continuous": ((30, 4, (), False), ()),
    "continuous-weighted": ((30, 4, (), True), ()),
    "categorical": ((40, 0, (2, 3, 4), False), ()),
    "categorical-weighted": ((40, 0, (2, 3, 4), True), ()),
}
GIVEN = {
    "mixed": ((40, 3, (2, 3, 2), False), (1, 5)),
    "weighted": ((40, 3, (2, 3, 2), True), (0, 4)),
    "continuous-targets": ((30, 4, (3, 2), True), (0, 4, 5)),
    "categorical-targets": ((40, 2, (2, 3, 2), False), (0, 1, 4)),
    "one-binary-target": ((40, 2, (3, 2), True), (0, 1, 2)),
    "one-continuous-target": ((30, 2, (3,), False), (1, 2)),
    "continuous-covariates": ((30, 3, (2, 2), False), (0, 2)),
    "many-states": ((45, 1, (4, 5, 3), False), (3,)),
}
MODERATED = {
    "number": ((80, 3, (2, 3), False), (0,)),
    "number-weighted": ((80, 3, (2, 3), True), (1,)),
    "binary": ((80, 2, (2, 3), True), (2,)),
    "many-levels": ((90, 2, (3, 8, 4), False), (3,)),
    "both-kinds": ((80, 3, (2, 3, 4), True), (0, 5)),
    "continuous": ((60, 4, (), True), (1,)),
    "categorical": ((80, 0, (2, 3, 4), True), (2,)),
}
SCORED_PLAIN = {
    "all-kinds": ((40, 2, (4, 5, 8, 9, 3), False, SCORED), ()),
    "all-kinds-weighted": ((40, 2, (4, 5, 8, 9, 3), True, SCORED), ()),
    "ordinal": ((40, 2, (4, 3, 2), True, SCORED[:1]), ()),
    "counts": ((40, 2, (8, 9), True, SCORED[2:]), ()),
}
SCORED_GIVEN = {
    "all-kinds": ((40, 2, (4, 5, 8, 9, 3), True, SCORED), (1, 2, 4, 6)),
    "scored-covariates": ((40, 2, (4, 5, 8, 9, 3), False, SCORED), (2, 3, 4, 5)),
    "one-count-target": ((40, 2, (4, 8, 3), True, SCORED[1:3]), (0, 1, 2, 4)),
}
SCORED_JOINT = {
    "all-kinds": ((40, 2, (4, 3, 4, 5, 2), True, SCORED), ()),
    "ordinal": ((40, 2, (4, 3, 2), False, SCORED[:1]), ()),
    "counts": ((40, 2, (8, 9), True, SCORED[2:]), ()),
}
SCORED_JOINT_GIVEN = {
    "all-kinds": ((40, 2, (4, 3, 4, 5, 2), True, SCORED), (1, 2, 4, 6)),
    "scored-covariates": ((40, 2, (4, 3, 4, 5, 2), False, SCORED), (2, 3, 4, 5)),
    "one-count-target": ((40, 2, (4, 8, 3), True, SCORED[1:3]), (0, 1, 2, 4)),
}
SCORED_MODERATED = {
    "number": ((80, 2, (4, 5, 8, 9, 3), True, SCORED), (0,)),
    "ordinal": ((80, 2, (4, 5, 8, 9, 3), False, SCORED), (2,)),
    "count-and-levels": ((80, 2, (4, 5, 8, 9, 3), True, SCORED), (5, 6)),
}
# The last number: hurdle columns.
SPIKED_PLAIN = {
    "all-kinds": ((40, 2, (4, 8, 3), False, SCORED[::3], 2), ()),
    "all-kinds-weighted": ((40, 2, (4, 8, 3), True, SCORED[::3], 2), ()),
    "hurdle": ((40, 2, (), True, (), 2), ()),
    "one-hurdle": ((40, 1, (2,), False, (), 1), ()),
}
SPIKED_GIVEN = {
    "all-kinds": ((40, 2, (4, 8, 3), True, SCORED[::3], 2), (1, 2, 4)),
    "one-hurdle-target": ((40, 2, (4, 3), True, SCORED[:1], 2), (0, 1, 3, 4, 5)),
}
SPIKED_MODERATED = {
    "number": ((80, 2, (4, 3), True, SCORED[:1], 2), (0,)),
    "hurdle": ((80, 2, (4, 3), False, SCORED[:1], 2), (3,)),
    "hurdle-and-levels": ((80, 2, (4, 3), True, SCORED[:1], 2), (2, 5)),
}


def some(tables):
    return {name: table for name, table in tables.items() if "weighted" not in name}


# Of every function: its class, the option `loss`, and tables.
FUNCTIONS = {
    "pseudolikelihood": (Pseudolikelihood, "pseudolikelihood", PLAIN),
    "pseudolikelihood-given": (Pseudolikelihood, "pseudolikelihood", GIVEN),
    "pseudolikelihood-moderated": (Pseudolikelihood, "pseudolikelihood", MODERATED),
    "wide": (Pseudolikelihood, "pseudolikelihood", PLAIN),
    "wide-given": (Pseudolikelihood, "pseudolikelihood", GIVEN),
    "wide-scored": (Pseudolikelihood, "pseudolikelihood", SCORED_PLAIN),
    "wide-spiked": (Pseudolikelihood, "pseudolikelihood", SPIKED_PLAIN),
    "nodewise": (Pseudolikelihood, "nodewise", some(PLAIN)),
    "nodewise-moderated": (Pseudolikelihood, "nodewise", some(MODERATED)),
    "scored": (Pseudolikelihood, "pseudolikelihood", SCORED_PLAIN),
    "scored-given": (Pseudolikelihood, "pseudolikelihood", SCORED_GIVEN),
    "scored-moderated": (Pseudolikelihood, "pseudolikelihood", SCORED_MODERATED),
    "scored-nodewise": (Pseudolikelihood, "nodewise", some(SCORED_PLAIN)),
    "scored-nodewise-moderated": (Pseudolikelihood, "nodewise", some(SCORED_MODERATED)),
    "spiked": (Pseudolikelihood, "pseudolikelihood", SPIKED_PLAIN),
    "spiked-given": (Pseudolikelihood, "pseudolikelihood", SPIKED_GIVEN),
    "spiked-moderated": (Pseudolikelihood, "pseudolikelihood", SPIKED_MODERATED),
    "spiked-nodewise": (Pseudolikelihood, "nodewise", some(SPIKED_PLAIN)),
    "spiked-nodewise-moderated": (Pseudolikelihood, "nodewise", some(SPIKED_MODERATED)),
    "likelihood": (Likelihood, "likelihood", PLAIN),
    "likelihood-given": (ConditionalLikelihood, "likelihood", GIVEN),
    "scored-likelihood": (Likelihood, "likelihood", SCORED_JOINT),
    "scored-likelihood-given": (ConditionalLikelihood, "likelihood", SCORED_JOINT_GIVEN),
}
# Which groups of the complete layout a function is restricted to; None: not restricted.
SETS = {"full": None, "every-group": 1, "every-second": 2, "no-group": 10_000}
EVERY = [(name, table) for name, (_, _, tables) in FUNCTIONS.items() for table in tables]
# Each as it is, on one set in turn, and with a ridge on all groups or on every second.
CASES = [
    *((*one, "full", "plain") for one in EVERY),
    *((*one, list(SETS)[1 + k % 3], "plain") for k, one in enumerate(EVERY)),
    *((*one, ("full", "every-second")[k % 2], "ridged") for k, one in enumerate(EVERY)),
]


@dataclass(eq=False)
class Case:
    """A function, and an independent one: theta -> value, and gradient or None."""

    smooth: Smooth
    reference: Callable
    joint: bool

    def theta(self, seed, size=0.4):
        """A point inside the domain with every parameter in use."""
        layout = self.smooth.layout
        theta = random_theta(layout, seed, size)
        if self.joint:
            theta[layout.diagonal] += 1.25 * size * layout.n_gaussian
        return theta


def task_of(name, table_name):
    """The function's task, its table with standardised columns, and the name of its kind."""
    _, loss, tables = FUNCTIONS[name]
    shape, nodes = tables[table_name]
    table = draw(7, *shape)
    if "moderated" in name:
        task = moderated_task(table, nodes, loss=loss)
    else:
        table = replace(table, covariates=nodes)
        task = table.task(loss=loss)
    numbers = slice(0, table.n_gaussian)
    mean, scale = plain.mean_and_scale(table.X[:, numbers], table.row_weights)
    X = table.X.copy()
    X[:, numbers] -= np.array(mean).reshape(1, -1)
    X[:, numbers] /= np.array(scale).reshape(1, -1)
    return task, replace(table, X=X), loss


def reference_of(task, table, loss):
    """(layout, theta) -> value and gradient (None: not known)."""
    if loss != "likelihood" or table.scored:
        share = dense.shares(len(table.Y), table.row_weights)
        values = dense.values_of(table, share)
        every = zip(values, table.Y.T, strict=True)
        scores = [node.observed(y)[:, node.n_terms :] for node, y in every]
        numbers = table.X[:, : table.n_gaussian]
        if loss == "likelihood":
            given = (np.hstack([numbers, *scores]), table.Y, share, values)
            return lambda layout, theta: (dense.joint(layout, theta, *given), None)
        columns = written_out(task, table)
        scores = np.hstack([numbers, *scores[: table.n_spiked + len(table.scored)]])
        columns[:, : scores.shape[1]] = scores
        given = (columns, table.Y, share, values)
        return lambda layout, theta: dense.conditionals(layout, theta, *given)
    rows = likelihood.rows_of(table.X, table.Y, table.n_levels, table.row_weights)
    values = dense.values_of(table, rows.share)
    if table.covariates:
        split = conditional.Split(rows, table.covariates)
        return lambda layout, theta: (
            conditional.loss(by_value(layout, theta, values), split),
            None,
        )
    return lambda layout, theta: (likelihood.loss(by_value(layout, theta, values), rows), None)


def by_value(layout, theta, values):
    """The same model with a category for every value, as named blocks."""
    p, coef = layout.n_gaussian, layout.to_matrix(theta)
    wide = block_diag(np.eye(p), *(node.columns for node in values))
    terms = block_diag(np.zeros((0, 0)), *(node.terms for node in values))
    base = np.concatenate([np.zeros(0), *(node.base for node in values)])
    coef = wide @ coef @ wide.T
    precision = np.diag(theta[layout.diagonal]) - coef[:p, :p]
    bias = base + terms @ theta[layout.biases]
    n_levels = tuple(len(node.base) for node in values)
    return Params.of_blocks(n_levels, precision, theta[:p], coef[:p, p:], coef[p:, p:], bias)


def make(name, table_name, which="full", ridged="plain"):
    task, table, loss = task_of(name, table_name)
    smooth, known = task.smooth, reference_of(task, table, loss)
    if name.startswith("wide"):  # second moments are asked for where they are needed
        smooth = replace(smooth, moments=smooth.moments.columns)
    assert type(smooth) is FUNCTIONS[name][0]
    if ridged == "ridged":
        smooth = Ridged(smooth, *ridge(smooth.layout))
    if SETS[which] is not None:
        smooth = smooth.restrict(np.arange(smooth.layout.n_groups)[SETS[which] - 1 :: SETS[which]])
    layout = smooth.layout

    def reference(theta):
        value, grad = known(layout, theta)
        if ridged == "plain":
            return value, grad
        blocks = np.split(theta, layout.starts[:-1])[1:]
        value += 0.5 * sum(r * b @ b for r, b in zip(smooth.edges, blocks, strict=True))
        value += 0.5 * smooth.numbers @ theta[layout.positive]
        if grad is not None:
            for r, a, b in zip(smooth.edges, layout.starts, layout.starts[1:], strict=False):
                grad[a:b] += r * theta[a:b]
            grad[layout.positive] += 0.5 * smooth.numbers
        return value, grad

    return Case(smooth, reference, loss == "likelihood")


def ridge(layout):
    """On two of three edges and one of two numbers, of different strengths."""
    rng = np.random.default_rng(3)
    edges, numbers = (rng.uniform(0.1, 2.0, n) for n in (layout.n_groups, len(layout.positive)))
    edges[::3] = numbers[1::2] = 0.0
    return edges, numbers * layout.is_target[: len(numbers)]


@pytest.fixture(params=CASES, ids="/".join)
def case(request):
    return make(*request.param)


@pytest.fixture(params=EVERY, ids="/".join)
def full(request):
    return make(*request.param)


def test_value_and_gradient_are_those_of_the_reference(case):
    theta = case.theta(1)
    value, grad = case.reference(theta)
    here = case.smooth.evaluate(theta)
    assert here.value == pytest.approx(value, abs=1e-10)
    assert case.smooth.evaluate(theta, gradient=False).value == pytest.approx(value, abs=1e-10)
    if grad is not None:
        np.testing.assert_allclose(here.gradient, grad, atol=1e-12)


def test_derivatives_are_central_differences(case):
    theta, step = case.theta(3), 1e-5
    grad, hessian = case.smooth.evaluate(theta).gradient, case.smooth.curvature(theta).dense()
    # Along lines that no entry is at right angles to, so that a wrong one shows in all of them.
    for line in np.random.default_rng(5).normal(size=(6, len(theta))):
        line /= np.linalg.norm(line)
        up, down = (case.smooth.evaluate(theta + sign * step * line) for sign in (1, -1))
        slope = (up.value - down.value) / (2 * step)
        assert grad @ line == pytest.approx(slope, abs=1e-8, rel=1e-8)
        change = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(hessian @ line, change, atol=1e-8, rtol=1e-8)


def test_curvature_multiplies_and_lists_whole_groups_of_every_node(case):
    theta = case.theta(5)
    curvature = case.smooth.curvature(theta)
    hessian, delta = curvature.dense(), np.random.default_rng(0).normal(size=len(theta))
    np.testing.assert_allclose(curvature.product(delta), hessian @ delta, atol=1e-10)
    case.smooth.evaluate(theta)
    np.testing.assert_array_equal(case.smooth.curvature(theta).dense(), hessian, "after a value")
    if not case.smooth.by_nodes:
        return
    layout = case.smooth.layout
    nodes = curvature.nodes
    assert len(nodes) == layout.n_nodes
    for v, node in enumerate(nodes):
        own = layout.node_terms_of(v)
        np.testing.assert_array_equal(node.index[: len(own)], own)
        mine = (layout.pairs == v).any(axis=1) if not layout.nodewise else layout.pairs[:, 1] == v
        mine = np.flatnonzero(mine & layout.is_target[v])
        expected = [np.arange(layout.starts[g], layout.starts[g + 1]) for g in mine]
        np.testing.assert_array_equal(
            np.sort(node.index[len(own) :]), np.concatenate([*expected, np.arange(0)])
        )


def test_slopes_of_conditionals_change_as_their_curvature_says(case):
    theta, step, layout = case.theta(6), 1e-5, case.smooth.layout
    delta = np.random.default_rng(2).normal(size=len(theta))
    ends = [case.smooth.evaluate(theta + sign * step * delta) for sign in (1, -1)]
    if not case.smooth.by_nodes:
        assert ends[0].slopes is None
        return
    slopes = [end.slopes.on(layout) for end in ends]
    for end, single in zip(ends, slopes, strict=True):
        total = np.bincount(layout.incidence.theta_index, single, layout.n_theta)
        np.testing.assert_allclose(total[layout.edges], end.gradient[layout.edges], atol=1e-12)
    entries = layout.incidence.node_entries
    for v, node in enumerate(case.smooth.curvature(theta).nodes):
        of_own = node.index[: len(node.index) - (entries[v + 1] - entries[v])]
        up, down = (
            np.concatenate([end.gradient[of_own], single[entries[v] : entries[v + 1]]])
            for end, single in zip(ends, slopes, strict=True)
        )
        change = (up - down) / (2 * step)
        np.testing.assert_allclose(node.matrix @ delta[node.index], change, atol=1e-7, rtol=1e-7)


def test_it_is_convex(case):
    for seed, size in enumerate((0.1, 0.5, 2.0)):
        a, b = case.theta(seed, size), case.theta(100 + seed, size)
        values = np.linalg.eigvalsh(case.smooth.curvature(a).dense())
        assert values[0] >= -1e-12 * max(1.0, values[-1])
        between, *ends = (
            case.smooth.evaluate(x, gradient=False).value for x in (0.3 * a + 0.7 * b, a, b)
        )
        assert between <= 0.3 * ends[0] + 0.7 * ends[1] + 1e-12


@pytest.mark.parametrize("bad", [0.0, -1e-300, -1.0, np.nan])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_is_infinite_where_a_diagonal_is_not_positive(name, bad):
    case = make(name, next(iter(FUNCTIONS[name][2])))
    theta = case.theta(8)
    small, kept = case.smooth.restrict(np.array([0])), theta.copy()
    for at in case.smooth.layout.positive[1:].tolist():
        theta[at] = bad
        for one, here in ((case.smooth, theta), (small, theta[: small.layout.n_theta])):
            assert one.evaluate(here).value == np.inf
        theta[at] = kept[at]


def test_an_evaluation_without_gradient_says_so_when_asked():
    with pytest.raises(ValueError, match="without a gradient"):
        _ = Evaluation(1.0).gradient


def test_a_restriction_is_the_function_with_zeros(case):
    layout = case.smooth.layout
    groups = np.flatnonzero(np.random.default_rng(1).random(layout.n_groups) < 0.5)
    index = layout.positions(groups)
    theta = case.theta(4)
    theta[np.setdiff1d(np.arange(layout.n_theta), index)] = 0.0
    small = case.smooth.restrict(groups)
    here, there = case.smooth.evaluate(theta), small.evaluate(theta[index])
    assert there.value == pytest.approx(here.value, abs=1e-12)
    np.testing.assert_allclose(there.gradient, here.gradient[index], atol=1e-12)
    wide = case.smooth.curvature(theta).dense()[np.ix_(index, index)]
    np.testing.assert_allclose(small.curvature(theta[index]).dense(), wide, atol=1e-12)


def test_null_is_the_optimum_without_edges(case):
    theta, layout = case.smooth.null(), case.smooth.layout
    np.testing.assert_array_equal(theta[layout.edges], 0.0)
    grad = case.smooth.evaluate(theta).gradient
    np.testing.assert_allclose(grad[: layout.n_node_terms], 0.0, atol=1e-13)


@pytest.mark.parametrize("name", [*PLAIN])
@pytest.mark.parametrize(("function", "times"), [("pseudolikelihood", 2), ("likelihood", 1)])
def test_null_gradient_is_the_covariance_in_every_term(function, times, name):
    task, table, _ = task_of(function, name)
    layout = task.layout
    grad = task.smooth.evaluate(task.smooth.null()).gradient
    rows = plain.rows_of(table.X, table.Y, table.row_weights)
    for g, (u, v) in enumerate(layout.pairs):
        shape = (int(layout.width[u]), int(layout.width[v]))
        cov = plain.covariance(rows, layout.n_gaussian, shape, (int(u), int(v)))
        found = grad[layout.starts[g] : layout.starts[g + 1]]
        np.testing.assert_allclose(found, -times * np.ravel(cov), atol=1e-12)


@pytest.mark.parametrize(("name", "table"), [one for one in EVERY if "given" in one[0]])
def test_nothing_depends_on_the_own_terms_of_covariates(name, table):
    case = make(name, table)
    layout, theta = case.smooth.layout, case.theta(5)
    inert = np.concatenate([layout.node_terms_of(node) for node in layout.covariates])
    other = theta.copy()
    other[inert] += 0.7
    a, b = case.smooth.evaluate(theta), case.smooth.evaluate(other)
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    assert not a.gradient[inert].any()
    assert not case.smooth.curvature(theta).dense()[inert].any()


@pytest.mark.parametrize("which", ["full", "every-group", "every-second"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_extreme_logits_stay_finite_and_right(name, which):
    case = make(name, next(iter(FUNCTIONS[name][2])), which)
    layout, theta = case.smooth.layout, case.theta(9, 1.0)
    theta[layout.biases] = np.resize([800.0, -800.0, 0.0, 400.0, -799.0], layout.n_level_terms)
    theta[layout.positive[layout.n_gaussian :]] = 1.5
    here, (value, grad) = case.smooth.evaluate(theta), case.reference(theta)
    assert here.value == pytest.approx(value, rel=1e-12)
    assert np.isfinite(here.gradient).all()
    if grad is not None:
        np.testing.assert_allclose(here.gradient, grad, atol=1e-11)
    hessian = case.smooth.curvature(theta).dense()
    assert np.all(np.isfinite(hessian))
    assert np.linalg.eigvalsh(hessian)[0] >= -1e-10


@pytest.mark.parametrize("size", [1e-8, 1e8])
@pytest.mark.parametrize("ridged", ["plain", "ridged"])
@pytest.mark.parametrize(
    "name", [one for one in FUNCTIONS if "likelihood" not in one or "pseudo" in one]
)
def test_infinitesimal_and_huge_diagonals(name, ridged, size):
    case = make(name, next(iter(FUNCTIONS[name][2])), ridged=ridged)
    theta = case.theta(10)
    theta[case.smooth.layout.positive] = size
    here, (value, grad) = case.smooth.evaluate(theta), case.reference(theta)
    assert here.value == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(here.gradient, grad, rtol=1e-8, atol=1e-9 * np.abs(grad).max())


def test_counters_count_with_those_of_restrictions(full):
    """The likelihood needs no pass, and no other function one where no target is categorical."""
    smooth, n_rows = full.smooth, full.smooth.n_rows
    layout = smooth.layout
    needed = len(layout.softmax_targets) > 0 and type(smooth) is not Likelihood
    for one in (smooth, Ridged(smooth, *ridge(layout))):
        small, before = one.restrict(np.array([0])), smooth.passes
        one.evaluate(one.null(), gradient=False)
        small.evaluate(small.null())
        assert one.passes == smooth.passes == before + 1.5 * needed
        before = smooth.curvature_passes
        small.curvature(small.null(), stride=2)
        added = one.curvature_passes - before
        assert 0.0 < added <= 0.5 if needed else added == 0.0
        assert one.n_rows == small.n_rows == n_rows
        assert one.terms_per_edge == (1 if full.joint else 2)
        assert one.by_nodes == (not full.joint)
        assert one.exact_curvature
        assert one.curvature_rows > 0
        assert min(one.part_seconds) >= 0.0
    assert n_rows in (30, 40, 45, 60, 80, 90)


def test_sampled_curvature_takes_softmax_terms_from_every_kth_row():
    task, table, _ = task_of("pseudolikelihood", "mixed-weighted")
    layout, theta = task.layout, random_theta(task.layout, 11)
    sampled, exact = task.smooth.curvature(theta, stride=3), task.smooth.curvature(theta)
    for s in range(layout.n_gaussian):
        np.testing.assert_array_equal(sampled.nodes[s].matrix, exact.nodes[s].matrix)
    rows = task.smooth.rows
    thin = replace(
        rows,
        numbers=np.ascontiguousarray(rows.numbers[::3]),
        codes=np.ascontiguousarray(rows.codes[::3]),
        weights=np.ascontiguousarray(table.row_weights[::3]),
    )
    thinned = Pseudolikelihood(thin, layout, thin.moments()).curvature(theta)
    for v in range(layout.n_gaussian, layout.n_nodes):
        np.testing.assert_allclose(sampled.nodes[v].matrix, thinned.nodes[v].matrix, atol=1e-13)


# --- sampled: exact without edges, and without categorical columns -------------------------------


@pytest.mark.parametrize("ridged", [False, True])
@pytest.mark.parametrize("name", ["mixed", "continuous-weighted", "all-kinds"])
def test_a_sampled_likelihood_is_the_exact_one_where_nothing_is_sampled(name, ridged):
    tables = PLAIN | SCORED_JOINT
    task, table, _ = task_of("likelihood" if name in PLAIN else "scored-likelihood", name)
    exact = task.smooth
    sampled = draw(7, *tables[name][0]).task(loss="likelihood-mc").smooth
    assert type(sampled) is SampledLikelihood
    if ridged:
        sampled = RidgedSample.of(sampled, *ridge(sampled.layout))
        exact = Ridged(exact, *ridge(exact.layout))
    groups = np.arange(0, exact.layout.n_groups, 2)
    for one, other in ((sampled, exact), (sampled.restrict(groups), exact.restrict(groups))):
        theta = one.null()
        np.testing.assert_array_equal(theta, other.null())
        value = other.evaluate(theta).value
        assert one.evaluate(theta).value == pytest.approx(value, abs=1e-13 if table.scored else 0)
        if not table.n_levels:
            theta[one.layout.edges] = 0.1
        here, there = one.evaluate(theta), other.evaluate(theta)
        np.testing.assert_allclose(here.gradient, there.gradient, atol=1e-12)
        if not table.n_levels:
            hessian = other.curvature(theta).dense()
            np.testing.assert_allclose(one.curvature(theta).dense(), hessian, atol=1e-12)
        theta[one.layout.diagonal.start] = -1.0
        assert one.evaluate(theta).value == np.inf
        assert (one.n_rows, one.terms_per_edge, one.by_nodes) == (len(table.Y), 1, False)
        assert not one.exact_curvature
        assert one.passes == one.curvature_passes == 0.0


# --- inside solvers ---------------------------------------------------------------------------


def test_a_model_by_products_is_the_quadratic_one():
    """It has no curvature of its own and is not restricted; solvers of it need neither."""
    layout = draw(7, 40, 2, (2, 3)).task().layout
    root = np.random.default_rng(0).normal(size=(layout.n_theta, layout.n_theta))
    hessian, centre, grad = root @ root.T, random_theta(layout, 1), root[0]
    model = ProductModel(layout, lambda delta: hessian @ delta, centre, grad)
    np.testing.assert_array_equal(model.null(), centre)
    theta, step = random_theta(layout, 2), 1e-3
    here = model.evaluate(theta)
    delta = theta - centre
    assert here.value == pytest.approx(grad @ delta + 0.5 * delta @ hessian @ delta, rel=1e-12)
    for k, one in enumerate(np.eye(len(theta)) * step):  # exact, but for rounding
        up, down = (model.evaluate(theta + sign * one).value for sign in (1, -1))
        assert here.gradient[k] == pytest.approx((up - down) / (2 * step), abs=1e-9)
    theta[layout.diagonal.start] = 0.0
    assert model.evaluate(theta).value == np.inf

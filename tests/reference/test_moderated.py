"""Moderated edges reach the optimum that a conic solver finds, and are what their formulas say."""

import numpy as np
import pytest

from tests.reference import moderated
from tests.reference.test_conditional import fit as fit_conditional
from tests.reference.test_conditional import frame_of
from tests.support.problems import draw

# Rows, continuous columns, levels, weighted rows; moderators and other covariates by node; lam.
PROBLEMS = {
    "continuous": ((60, 3, (2, 3), False), (0,), (), 0.1),
    "continuous, weighted": ((60, 3, (2, 3), True), (1,), (4,), 0.08),
    "binary": ((60, 3, (2, 3), False), (3,), (), 0.08),
    "three levels, weighted": ((60, 2, (2, 3), True), (3,), (), 0.05),
    "both kinds": ((70, 3, (2, 2, 3), True), (0, 5), (), 0.09),
    "all continuous": ((50, 4, (), False), (2,), (), 0.1),
    "all categorical": ((70, 0, (2, 3, 2), True), (2,), (), 0.04),
    "no deviation": ((40, 3, (2,), False), (0,), (), 0.9),
}
SOLVERS = ("proximal-newton", "proximal-gradient")
pytestmark = pytest.mark.filterwarnings("ignore:sample_weight sums")


def names_of(frame, nodes):
    return [frame.columns[k] for k in nodes]


def fit(table, moderators, covariates=(), **options):
    import mixedgm as mg

    frame = frame_of(table)
    model = mg.MixedGraphicalModel(
        moderators=names_of(frame, moderators),
        covariates=names_of(frame, covariates),
        max_iter=20_000,
        **options,
    )
    return model.fit(frame, sample_weight=table.row_weights)


@pytest.fixture(scope="module", params=PROBLEMS)
def case(request):
    shape, moderators, covariates, lam = PROBLEMS[request.param]
    table = draw(11, *shape)
    optimum = moderated.solve(
        table.X, table.Y, table.n_levels, lam, moderators, covariates, table.row_weights
    )
    return table, moderators, covariates, lam, optimum


def found_in(model):
    """Edges and deviations as the reference names them."""
    at = model.schema_.node_index
    return {
        (
            *sorted((at(edge.source), at(edge.target))),
            *([at(edge.moderator)] if edge.moderator else []),
        )
        for edge in model.edges_
    }


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_moderated_model_reaches_the_conic_optimum(case, solver):
    table, moderators, covariates, lam, optimum = case
    model = fit(table, moderators, covariates, lam=lam, tol=1e-8, solver=solver)
    assert model.converged_
    assert model.objective_ == pytest.approx(optimum.value, abs=1e-7)
    assert found_in(model) == optimum.found


def test_weights_of_edges_and_deviations_are_the_calibrated_norms(case):
    table, moderators, covariates, lam, optimum = case
    model = fit(table, moderators, covariates, lam=lam, tol=1e-9)
    at = model.schema_.node_index
    for edge in model.edges_:
        key = tuple(sorted((at(edge.source), at(edge.target))))
        key = (*key, at(edge.moderator)) if edge.moderator else key
        assert edge.norm == pytest.approx(optimum.strength[key], abs=2e-4)


def test_uniform_weights(case):
    table, moderators, covariates, lam, _ = case
    optimum = moderated.solve(
        table.X, table.Y, table.n_levels, lam, moderators, covariates, table.row_weights, "uniform"
    )
    model = fit(table, moderators, covariates, lam=lam, tol=1e-8, penalty_weights="uniform")
    assert model.objective_ == pytest.approx(optimum.value, abs=1e-7)


def test_without_deviations_it_is_the_conditional_model(case):
    table, moderators, covariates, lam, _ = case
    frame = frame_of(table)
    fixed = {*moderators, *covariates}
    targets = [name for k, name in enumerate(frame.columns) if k not in fixed]
    triples = [
        (a, b, m)
        for m in names_of(frame, moderators)
        for k, a in enumerate(targets)
        for b in targets[k + 1 :]
    ]
    without = fit(table, moderators, covariates, lam=lam, tol=1e-8, forbid=triples)
    plain = fit_conditional(table, (*moderators, *covariates), lam=lam, tol=1e-8)
    assert without.objective_ == pytest.approx(plain.objective_, abs=1e-10)
    np.testing.assert_allclose(without.params_.coef, plain.params_.coef, atol=1e-7)
    values = {name: frame[name].iloc[3] for name in names_of(frame, moderators)}
    np.testing.assert_allclose(
        without.at(values).params_.coef, plain.condition(values).params_.coef, atol=1e-7
    )


def standardised_columns(table):
    """Every node as centred columns, and sqrt(tr cov) of each."""
    rows = np.ones(len(table.Y)) if table.row_weights is None else table.row_weights
    share = rows / rows.sum()
    blocks = [table.X[:, [s]] for s in range(table.n_gaussian)]
    blocks += [np.eye(m)[table.Y[:, r]] for r, m in enumerate(table.n_levels)]
    centred = [block - share @ block for block in blocks]
    scale = [np.sqrt((share @ block**2).sum()) for block in centred]
    return share, centred, scale


def test_the_largest_penalty_is_that_of_the_moments(case):
    """A deviation has twice the third central moment of its three columns as gradient."""
    import mixedgm as mg

    table, moderators, covariates, _, _ = case
    frame = frame_of(table)
    path = mg.fit_path(
        frame,
        moderators=names_of(frame, moderators),
        covariates=names_of(frame, covariates),
        n_lams=2,
        sample_weight=table.row_weights,
    )
    share, centred, scale = standardised_columns(table)
    fixed = {*moderators, *covariates}
    sizes = []
    for u in range(len(centred)):
        for v in range(u):
            if {u, v} <= fixed:
                continue
            cov = centred[u].T @ (share[:, None] * centred[v])
            sizes.append(2 * np.linalg.norm(cov) / (scale[u] * scale[v]))
            for m in moderators if not {u, v} & fixed else ():
                third = np.einsum("i,ia,ib,ik->abk", share, centred[u], centred[v], centred[m])
                sizes.append(2 * np.linalg.norm(third) / (scale[u] * scale[v] * scale[m]))
    assert path.lam_max == pytest.approx(max(sizes), rel=1e-10)


def test_deviations_sum_to_zero_over_the_levels_of_all_three_columns(case):
    table, moderators, covariates, lam, _ = case
    for factors in (None, dict.fromkeys(
        ("continuous-continuous", "continuous-categorical", "categorical-categorical"), 0.0
    )):  # fmt: skip
        if factors is not None and (moderators != (0,) or lam > 0.5):
            continue  # one table is enough for deviations that no penalty centres
        model = fit(table, moderators, covariates, lam=lam, tol=1e-8, penalty_factors=factors)
        own, p = model.params_.moderation, table.n_gaussian
        start = [*range(p), *(p + model.params_.level_start)]
        share, _, _ = standardised_columns(table)
        for node, deviation in zip(own.nodes, own.deviations, strict=True):
            assert deviation.any() == any(edge.moderator for edge in model.edges_)
            if node >= p:
                levels = np.eye(table.n_levels[node - p])[table.Y[:, node - p]]
                np.testing.assert_allclose(
                    np.tensordot(share @ levels, deviation, 1), 0.0, atol=1e-10
                )
            for first, last in zip(start[p:-1], start[p + 1 :], strict=True):
                sums = deviation[:, first:last].sum(axis=1)
                np.testing.assert_allclose(sums, 0.0, atol=1e-6)

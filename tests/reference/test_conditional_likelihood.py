"""Maximum likelihood given covariates: conic optima, recomputed KKT, integrals, known cases."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

import mixedgm as mg
from tests.reference import conditional as reference
from tests.reference.conic import solve as conic_pseudolikelihood
from tests.reference.likelihood import rows_of
from tests.reference.test_conditional import fit, frame_of
from tests.support.problems import draw

# Rows, continuous columns, levels, weighted; covariates by node; lam.
PROBLEMS = {
    "mixed": ((30, 3, (2, 2, 3), False), (1, 4), 0.1),
    "weighted": ((32, 3, (2, 3), True), (0, 4), 0.05),
    "categorical targets": ((40, 2, (2, 3, 2), False), (0, 1, 4), 0.06),
    "continuous targets": ((30, 4, (3,), True), (0, 4), 0.1),
    "one binary target": ((40, 2, (3, 2), False), (0, 1, 2), 0.05),
    "no edge": ((30, 2, (2, 2), False), (0, 3), 5.0),
}
SOLVERS = ("proximal-newton", "proximal-gradient")


def likelihood(table, covariates, **options):
    return fit(table, covariates, loss="likelihood", **options)


def split_of(table, covariates):
    rows = rows_of(table.X, table.Y, table.n_levels, table.row_weights)
    return reference.Split(rows, covariates)


def own_units(table, model):
    """What the objective in the data's own units has in addition."""
    names = [node.name for node in model.schema_.nodes][: table.n_gaussian]
    inside = [name not in model.covariates for name in names]
    return float(np.log(model.path_.units.scale[inside]).sum())


def kkt_of(table, covariates, model, factor=lambda u, v: 1.0):
    split = split_of(table, covariates)
    scales, params = split.rows.scales, model.path_.units.to_standard(model.params_)
    return reference.kkt(
        params, split, model.lam_, lambda u, v: factor(u, v) * scales[u] * scales[v]
    )


@pytest.fixture(scope="module", params=PROBLEMS)
def case(request):
    shape, covariates, lam = PROBLEMS[request.param]
    table = draw(11, *shape)
    return table, covariates, lam, reference.optimum(split_of(table, covariates), lam)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_estimate_reaches_the_conic_optimum(case, solver):
    table, covariates, lam, optimum = case
    model = likelihood(table, covariates, lam=lam, tol=1e-8, solver=solver)
    assert model.converged_
    assert model.objective_ - own_units(table, model) == pytest.approx(optimum, abs=1e-7)
    assert kkt_of(table, covariates, model) <= 1.1e-8


def test_the_certificate_holds_along_a_path(case):
    table, covariates, _, _ = case
    model = likelihood(table, covariates, n_lams=6, lams=None)
    path = model.path_
    assert path.converged.all()
    split = split_of(table, covariates)
    scales = split.rows.scales
    for k, point in enumerate(path.points):
        params = path.units.to_standard(path.params(k))
        found = reference.kkt(params, split, point.lam, lambda u, v: scales[u] * scales[v])
        assert found == pytest.approx(point.kkt, abs=1e-9)


def test_without_penalty_on_covariates_and_with_wishes():
    table, covariates = draw(5, 40, 2, (2, 3, 2), True), (1, 4)
    model = likelihood(
        table,
        covariates,
        lam=0.1,
        tol=1e-8,
        penalize_covariates=False,
        forbid=[("c0", "k0")],
        require=[("k0", "k1")],
        penalty_factors={("c0", "k1"): 0.5},
    )
    wished = {(0, 2): np.inf, (2, 3): 0.0, (0, 3): 0.5}

    def factor(u, v):
        return wished.get((u, v), 0.0 if {u, v} & set(covariates) else 1.0)

    assert model.converged_
    assert kkt_of(table, covariates, model, factor) <= 1.1e-8
    expected = reference.optimum(split_of(table, covariates), 0.1, factor)
    assert model.objective_ - own_units(table, model) == pytest.approx(expected, abs=1e-7)


def test_lam_max_is_the_largest_covariance_on_the_calibrated_scale(case):
    table, covariates, _, _ = case
    frame = frame_of(table)
    names = [frame.columns[k] for k in covariates]
    path = mg.fit_path(
        frame, covariates=names, n_lams=2, loss="likelihood", sample_weight=table.row_weights
    )
    rows = split_of(table, covariates).rows
    p, starts, scales = table.n_gaussian, rows.starts, rows.scales
    z = np.hstack([rows.X, rows.D])
    cov = z.T @ (rows.share[:, None] * z) - np.outer(rows.share @ z, rows.share @ z)
    columns = [[s] for s in range(p)] + [
        list(range(p + starts[j], p + starts[j + 1])) for j in range(len(table.n_levels))
    ]
    sizes = [
        np.linalg.norm(cov[np.ix_(columns[u], columns[v])]) / (scales[u] * scales[v])
        for u in range(len(columns))
        for v in range(u)
        if not (u in covariates and v in covariates)
    ]
    assert path.lam_max == pytest.approx(max(sizes), rel=1e-10)
    assert path.n_edges[0] == 0


def test_a_refit_is_the_optimum_of_its_graph():
    table, covariates = draw(5, 60, 2, (2, 3, 2)), (1, 4)
    model = likelihood(table, covariates, lam=0.12, refit=True, tol=1e-8)
    names = [node.name for node in model.schema_.nodes]
    kept = {frozenset(edge[:2]) for edge in model.edges_}
    assert 0 < len(kept) < 9

    def factor(u, v):
        return 0.0 if frozenset((names[u], names[v])) in kept else np.inf

    assert kkt_of(table, covariates, model, factor) <= 1.1e-8


def test_no_covariates_are_the_joint_likelihood_to_the_last_bit():
    table = draw(5, 60, 2, (2, 3))
    joint, conditional = likelihood(table, ()), likelihood(table, [])
    plain = mg.MixedGraphicalModel(loss="likelihood", max_iter=20_000).fit(frame_of(table))
    assert joint.objective_ == conditional.objective_ == plain.objective_
    np.testing.assert_array_equal(plain.params_.coef, conditional.params_.coef)


@pytest.mark.parametrize("target", [1, 3])
def test_one_target_is_its_regression(target):
    """The pseudolikelihood of one column is its likelihood; its weights are half as large."""
    table = draw(8, 60, 2, (3, 2), True)
    covariates = tuple(k for k in range(4) if k != target)
    one = likelihood(table, covariates, lam=0.04, tol=1e-9)
    other = fit(table, covariates, lam=0.08, tol=1e-9)
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-9)
    np.testing.assert_allclose(one.params_.coef, other.params_.coef, atol=1e-6)
    rows = table.row_weights
    conic = conic_pseudolikelihood(
        table.X, table.Y, table.n_levels, 0.04, row_weights=rows, targets=[target]
    )
    assert one.objective_ == pytest.approx(conic.value, abs=1e-7)


def test_a_binary_target_without_penalty_is_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = (x @ [1.0, -0.5] + rng.logistic(size=300) > 0).astype(int)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": pd.Categorical(y)})
    options = {"loss": "likelihood", "covariates": ["a", "b"], "tol": 1e-9}
    model = mg.MixedGraphicalModel(lam=0.0, **options).fit(frame)
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(x, y)
    shift = model.params_.category_shift
    np.testing.assert_allclose(shift[:, 1] - shift[:, 0], plain.coef_[0], atol=1e-6)
    expected = plain.predict_proba(x)[np.arange(300), y]
    np.testing.assert_allclose(model.log_density(frame), np.log(expected), atol=1e-6)


# --- densities of rows ----------------------------------------------------------------------------


def test_the_density_given_covariates_integrates_to_one():
    table = draw(5, 60, 2, (2, 3))
    model = likelihood(table, (1, 3), lam=0.03)
    frame = frame_of(table)
    assert model.covariates == ["c1", "k1"]
    centre, scale = frame["c0"].mean(), frame["c0"].std()
    grid = np.linspace(centre - 12 * scale, centre + 12 * scale, 2001)
    for row in (0, 7):
        total = 0.0
        for level in ("l0", "l1"):
            rows = pd.concat([frame.iloc[[row]]] * len(grid), ignore_index=True)
            rows = rows.assign(c0=grid, k0=pd.Categorical([level] * len(grid), ["l0", "l1"]))
            total += integrate.simpson(np.exp(model.log_density(rows)), x=grid)
        assert total == pytest.approx(1.0, abs=1e-8)


def test_log_likelihood_is_that_of_rows_normalised_one_by_one():
    table, other = draw(5, 60, 3, (2, 3, 2)), draw(6, 20, 3, (2, 3, 2), True)
    covariates = (1, 4)
    model = likelihood(table, covariates, lam=0.03)
    n_cont_targets = 2
    hot = [np.eye(m)[other.Y[:, j]] for j, m in enumerate(other.n_levels)]
    rows = reference.Rows(
        other.X, np.hstack(hot), other.row_weights / other.row_weights.sum(), other.n_levels
    )
    expected = reference.loss(model.params_, reference.Split(rows, covariates))
    expected += 0.5 * n_cont_targets * np.log(2 * np.pi)
    found = model.log_likelihood(frame_of(other), sample_weight=other.row_weights)
    assert found == pytest.approx(-expected, abs=1e-10)
    by_path = model.path_.log_likelihood(frame_of(other), other.row_weights)
    assert by_path.tolist() == pytest.approx([found], abs=1e-12)
    smooth = model.objective_ - 0.03 * sum(edge.norm for edge in model.edges_)
    constant = 0.5 * n_cont_targets * np.log(2 * np.pi)
    assert model.log_likelihood(frame_of(table)) == pytest.approx(-smooth - constant, abs=1e-9)

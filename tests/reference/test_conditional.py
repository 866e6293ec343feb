"""Conditional models and single regressions reach the optimum that a conic solver finds."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from tests.reference import conic
from tests.support.problems import draw

# Rows, continuous columns, levels, weighted rows; covariates by node; lam.
PROBLEMS = {
    "mixed": ((60, 3, (2, 3), False), (1, 4), 0.1),
    "weighted": ((60, 2, (2, 3, 3), True), (0, 2), 0.08),
    "continuous covariates": ((50, 4, (3,), False), (0, 1), 0.15),
    "categorical covariates": ((60, 1, (2, 3, 4), False), (2, 3), 0.05),
    "one target": ((60, 2, (3, 2), False), (0, 1, 3), 0.05),
    "one continuous target": ((60, 2, (3, 2), False), (1, 2, 3), 0.1),
    "no edge": ((40, 2, (2, 2), False), (0, 3), 5.0),
}
SOLVERS = ("proximal-newton", "proximal-gradient")


def factors_of(n_nodes, covariates):
    """Half the weight where one end is a covariate; none where both are."""
    is_covariate = np.isin(np.arange(n_nodes), covariates).astype(float)
    return 1.0 - 0.5 * np.add.outer(is_covariate, is_covariate)


def frame_of(table):
    import pandas as pd

    columns = {f"c{s}": x for s, x in enumerate(table.X.T)}
    for r, m in enumerate(table.n_levels):
        levels = [f"l{a}" for a in range(m)]
        columns[f"k{r}"] = pd.Categorical.from_codes(table.Y[:, r], categories=levels)
    return pd.DataFrame(columns)


def fit(table, covariates, **options):
    import mixedgm as mg

    frame = frame_of(table)
    model = mg.MixedGraphicalModel(
        covariates=[frame.columns[k] for k in covariates], max_iter=20_000, **options
    )
    return model.fit(frame, sample_weight=table.row_weights)


@pytest.fixture(scope="module", params=PROBLEMS)
def case(request):
    shape, covariates, lam = PROBLEMS[request.param]
    table = draw(11, *shape)
    n_nodes = table.n_gaussian + len(table.n_levels)
    targets = [k for k in range(n_nodes) if k not in covariates]
    optimum = conic.solve(
        table.X,
        table.Y,
        table.n_levels,
        lam,
        factors=factors_of(n_nodes, covariates),
        row_weights=table.row_weights,
        targets=targets,
    )
    return table, covariates, lam, optimum


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_conditional_model_reaches_the_conic_optimum(case, solver):
    table, covariates, lam, optimum = case
    model = fit(table, covariates, lam=lam, tol=1e-8, solver=solver)
    assert model.converged_
    assert model.objective_ == pytest.approx(optimum.value, abs=1e-7)
    names = [node.name for node in model.schema_.nodes]
    expected = {frozenset((names[u], names[v])) for u, v in optimum.edges}
    assert {frozenset(edge[:2]) for edge in model.edges_} == expected
    assert all(edge.directed == (edge.source in model.covariates) for edge in model.edges_)


def test_without_penalty_on_covariates(case):
    table, covariates, lam, _ = case
    n_nodes = table.n_gaussian + len(table.n_levels)
    is_covariate = np.isin(np.arange(n_nodes), covariates)
    factors = np.where(is_covariate[:, None] ^ is_covariate, 0.0, 1.0)
    optimum = conic.solve(
        table.X,
        table.Y,
        table.n_levels,
        lam,
        factors=factors,
        row_weights=table.row_weights,
        targets=np.flatnonzero(~is_covariate).tolist(),
    )
    model = fit(table, covariates, lam=lam, tol=1e-8, penalize_covariates=False)
    assert model.converged_
    assert model.objective_ == pytest.approx(optimum.value, abs=1e-7)


def test_no_covariates_are_the_joint_model_to_the_last_bit(case):
    table, _, lam, _ = case
    joint, conditional = fit(table, (), lam=lam), fit(table, [], lam=lam)
    plain = fit(table, (), lam=lam).set_params(covariates=None)
    plain.fit(frame_of(table), sample_weight=table.row_weights)
    assert joint.objective_ == conditional.objective_ == plain.objective_
    np.testing.assert_array_equal(plain.params_.coef, conditional.params_.coef)


def test_the_largest_penalty_is_that_of_the_covariances(case):
    """|cov| over half the weight for a covariate's edge is twice |cov| over the whole weight."""
    import mixedgm as mg

    table, covariates, _, _ = case
    frame = frame_of(table)
    names = [frame.columns[k] for k in covariates]
    path = mg.fit_path(frame, covariates=names, n_lams=2, sample_weight=table.row_weights)
    rows = np.ones(len(frame)) if table.row_weights is None else table.row_weights
    blocks = [frame[[c]].to_numpy() if c[0] == "c" else None for c in frame.columns]
    for k, block in enumerate(blocks):
        if block is None:
            r = k - table.n_gaussian
            blocks[k] = np.eye(table.n_levels[r])[table.Y[:, r]]
    centred = [b - np.average(b, axis=0, weights=rows) for b in blocks]
    share = rows / rows.sum()
    scale = [np.sqrt((share @ b**2).sum()) for b in centred]
    sizes = [
        2 * np.linalg.norm(centred[u].T @ (share[:, None] * centred[v])) / (scale[u] * scale[v])
        for u in range(len(blocks))
        for v in range(u)
        if not (u in covariates and v in covariates)
    ]
    assert path.lam_max == pytest.approx(max(sizes), rel=1e-10)


def test_covariates_are_not_predicted_and_not_scored():
    table = draw(3, 80, 2, (2, 3))
    model = fit(table, (0, 3), lam=0.1)
    assert set(model.node_scores(frame_of(table))) == {"c1", "k0"}
    assert list(model.predict(frame_of(table)).columns) == ["c1", "k0"]
    assert set(model.predict_proba(frame_of(table))) == {"k0"}
    with pytest.raises(ParameterError, match="'c0' is a covariate"):
        model.predict(frame_of(table), "c0")
    with pytest.raises(ParameterError, match="all columns are covariates"):
        fit(table, range(4))


def test_conditional_models_are_kept(tmp_path):
    import mixedgm as mg

    table = draw(3, 80, 2, (2, 3))
    model = fit(table, (0, 3), n_lams=5)
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    assert again.edges_ == model.edges_
    assert again.path_.layout.covariates == (0, 3)
    assert again.score(frame_of(table)) == model.score(frame_of(table))

"""Any small table, any lam -> a certified fit whose views agree with each other."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import mixedgm as mg
from tests.reference import plain
from tests.support.dense import kkt
from tests.support.people import assert_same_params


@st.composite
def tables(draw):
    """2 to 5 columns, 2 to 5 levels, 20 to 60 rows, related through one hidden cause."""
    kinds = draw(st.lists(st.sampled_from(["number", 2, 3, 4, 5]), min_size=2, max_size=5))
    n_rows = draw(st.integers(20, 60))
    strength = draw(st.sampled_from([0.0, 0.5, 2.0]))
    unit = draw(st.sampled_from([1e-3, 1.0, 1e4]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hidden = rng.normal(size=n_rows)
    columns = {}
    for at, kind in enumerate(kinds):
        if kind == "number":
            columns[f"c{at}"] = unit * (1 + strength * hidden + rng.normal(size=n_rows))
            continue
        noise = rng.gumbel(size=(n_rows, kind))
        codes = np.argmax(strength * hidden[:, None] * rng.normal(size=kind) + noise, axis=1)
        codes[:kind] = rng.permutation(kind)  # every level has a row
        levels = [f"l{a}" for a in range(kind)]
        columns[f"c{at}"] = pd.Categorical.from_codes(codes, levels)
    return pd.DataFrame(columns)


def numbers(frame, schema):
    X = np.column_stack([frame[c.name] for c in schema.continuous] or [np.zeros((len(frame), 0))])
    Y = [[int(v[1:]) for v in frame[c.name]] for c in schema.categorical]
    return X, np.array(Y, dtype=np.int64).reshape(len(Y), len(frame)).T


def fit(model, frame):
    """The fitted model and whether it warned about convergence; other warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(frame)
    return bool(caught)


CALM = settings(max_examples=25, derandomize=True)


@CALM
@given(tables(), st.floats(0.001, 2.0), st.sampled_from(["auto", "proximal-gradient"]))
def test_every_table_gets_a_certified_model(frame, lam, solver):
    model = mg.MixedGraphicalModel(lam=lam, solver=solver)
    warned = fit(model, frame)
    assert model.converged_ == (model.kkt_ <= 1e-5)
    assert model.converged_ or warned
    X, Y = numbers(frame, model.schema_)
    assert kkt(model.params_, X, Y, lam) == pytest.approx(model.kkt_, abs=1e-8)
    assert np.isfinite(model.score(frame))
    assert model.score(frame) == pytest.approx(
        -plain.smooth(model.params_, X, Y) - 0.5 * X.shape[1] * np.log(2 * np.pi), rel=1e-9
    )


@CALM
@given(tables(), st.floats(0.01, 1.0))
def test_views_of_the_graph_agree(frame, lam):
    model = mg.MixedGraphicalModel(lam=lam)
    fit(model, frame)
    params, names = model.params_, [column.name for column in model.schema_.nodes]
    np.testing.assert_array_equal(params.precision, params.precision.T)
    np.testing.assert_array_equal(params.cat_interaction, params.cat_interaction.T)
    assert (np.diagonal(params.precision) > 0).all()
    present = {
        (names[u], names[v])
        for u, v in plain.pairs(model.schema_.n_gaussian, model.schema_.n_discrete)
        if np.any(plain.block(params, u, v))
    }
    assert {(edge.source, edge.target) for edge in model.edges_} == present
    matrix = model.to_adjacency()
    np.testing.assert_array_equal(matrix, matrix.T)
    for edge in model.edges_:
        assert matrix.loc[edge.source, edge.target] == edge.strength > 0
    assert np.count_nonzero(matrix) == 2 * len(present) == model.nodes()["degree"].sum()
    assert list(model.predict(frame).columns) == list(frame.columns)
    for name, table in (model.predict_proba(frame) if model.schema_.n_discrete else {}).items():
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-9, err_msg=name)


@settings(CALM, max_examples=15)
@given(tables(), st.sampled_from(["ebic", "bic", "aic"]))
def test_every_table_gets_a_choice(frame, select):
    model = mg.MixedGraphicalModel(select=select, n_lams=6, lam_min_ratio=0.05)
    fit(model, frame)
    scores = model.fitted_.scores[select]
    assert model.lam_ == model.path_.lams[int(np.argmin(scores))]
    assert np.isfinite(model.score(frame))


@settings(CALM, max_examples=15)
@given(frame=tables(), lam=st.floats(0.01, 1.0))
def test_every_model_survives_its_file(frame, lam, tmp_path_factory):
    model = mg.MixedGraphicalModel(lam=lam)
    fit(model, frame)
    path = tmp_path_factory.mktemp("models") / "any.mgm"
    model.save(path)
    twin = mg.load(path)
    assert_same_params(twin.params_, model.params_)
    assert twin.score(frame) == model.score(frame)
    assert twin.edges_ == model.edges_

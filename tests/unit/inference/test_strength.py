"""Strengths: against partial correlations, enumerated states, and tables in other shapes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mixedgm as mg
from mixedgm.families import CATEGORICAL, CountKind, OrdinalKind
from mixedgm.inference.strength import ConditionalInformation, RestRows, freedom, strength
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params


def survey(n=600, seed=0):
    """A table of all kinds in which neighbours are related."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    group = np.digitize(x + rng.normal(size=n), [-0.6, 0.7])
    visits = rng.poisson(np.exp(0.3 * group))
    pain = np.digitize(0.5 * visits + rng.normal(size=n), [0.5, 1.5])
    spent = np.where(rng.random(n) < 0.3 + 0.2 * pain, 1.0 + x + rng.normal(size=n), 0.0)
    y = 0.5 * x + 0.4 * (spent > 0) + rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "y": y,
            "spent": spent,
            "pain": pain,
            "visits": visits,
            "group": np.array(["a", "b", "c"])[group],
        }
    )


TYPES = {"pain": "ordinal", "visits": "count", "spent": "hurdle"}


def fitted(table, types=TYPES, **options):
    return mg.MixedGraphicalModel(types=types, lam=0.0, **options).fit(table)


def by_pair(model):
    return {frozenset((e.source, e.target)): e.strength for e in model.fitted_.edges}


def test_of_two_numbers_it_is_the_absolute_partial_correlation():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    model = mg.MixedGraphicalModel(lam=0.0, tol=1e-10).fit(x)
    found = model.fitted_.strengths_from(model.fitted_.rows, np.inf)
    expected = np.abs([e.partial_correlation for e in model.fitted_._plain_edges()])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    inverse = np.linalg.inv(np.cov(x.T))
    scale = np.sqrt(np.diag(inverse))
    exact = np.abs(inverse / np.outer(scale, scale))[np.triu_indices(4, 1)]
    np.testing.assert_allclose(found, exact, atol=1e-8)
    # Corrected: less by 1 / 2n nats.
    nats = -0.5 * np.log1p(-(expected**2)) - 1.0 / 1000.0
    np.testing.assert_allclose(
        model.fitted_.strengths, np.sqrt(1 - np.exp(-2 * np.maximum(nats, 0))), atol=1e-12
    )


def test_a_mean_over_all_states_is_the_conditional_mutual_information():
    rng = np.random.default_rng(5)
    kinds = (OrdinalKind(level_scores=(0.0, 1.0, 4.0)), CountKind(), CATEGORICAL, CATEGORICAL)
    nodes = Nodes(kinds, (3, 4, 2, 3))
    coef = rng.normal(size=(7, 7)) * 0.7
    coef = coef + coef.T
    for node in range(4):
        coef[nodes.columns_of(node), nodes.columns_of(node)] = 0.0
    params = Params(nodes, rng.normal(size=int(nodes.n_biases.sum())) * 0.5, np.zeros(0), coef)
    codes = np.array(list(itertools.product(*map(range, nodes.n_values))))
    seen = nodes.design_columns(np.zeros((len(codes), 0)), codes)
    logits = 0.5 * np.einsum("na,ab,nb->n", seen, coef, seen)
    for node in range(4):
        own = params.logits[nodes.levels_of(node)]
        logits += own[codes[:, node]]
    share = np.exp(logits) / np.exp(logits).sum()
    table = share.reshape(nodes.n_values)
    rows = RestRows(np.zeros((len(codes), 0)), codes, share)
    u, v = np.triu_indices(4, 1)
    found = ConditionalInformation(params, rows).of(u, v, coef)
    for at, (a, b) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        rest = table.sum(axis=(a, b), keepdims=True)
        of_a, of_b = table.sum(axis=b, keepdims=True), table.sum(axis=a, keepdims=True)
        expected = (table * np.log(table * rest / (of_a * of_b))).sum()
        assert found[at] == pytest.approx(expected, abs=1e-12)


def test_units_order_and_names_of_levels_change_nothing():
    table = survey()
    expected = by_pair(fitted(table))
    other = table[["group", "visits", "y", "pain", "x", "spent"]].copy()
    other["x"] = 100.0 - 1000.0 * other["x"]
    other["spent"] *= 0.01
    other["group"] = other["group"].map({"a": "zz", "b": "m", "c": "aa"})
    found = by_pair(fitted(other))
    assert found.keys() == expected.keys()
    for pair, value in expected.items():
        assert found[pair] == pytest.approx(value, abs=2e-4)


def test_repeated_rows_are_weights():
    table = survey(200)
    count = np.random.default_rng(2).integers(1, 4, size=200)
    model = fitted(table.loc[table.index.repeat(count)].reset_index(drop=True))
    with pytest.warns(mg.TableWarning, match="sample_weight sums"):
        weighed = mg.MixedGraphicalModel(types=TYPES, lam=0.0).fit(table, sample_weight=count)
    expected = by_pair(model)
    for pair, value in by_pair(weighed).items():
        assert value == pytest.approx(expected[pair], abs=2e-4)


def test_a_level_that_never_occurs_changes_nothing():
    table = survey(300)
    levels = ["a", "b", "c", "never"]
    more = table.assign(group=pd.Categorical(table["group"], categories=levels))
    less = table.assign(group=pd.Categorical(table["group"], categories=levels[:3]))
    expected = by_pair(fitted(less))
    with pytest.warns(mg.TableWarning, match="never"):
        found = by_pair(fitted(more))
    for pair, value in found.items():
        assert value == pytest.approx(expected[pair], abs=1e-6)


def test_a_covariate_has_the_strength_of_its_partial_correlation():
    rng = np.random.default_rng(3)
    n = 1_000
    z, w = rng.normal(size=(2, n))
    x = 0.5 * z + 0.3 * w + rng.normal(size=n)
    table = pd.DataFrame({"x": x, "w": w, "z": z})
    model = mg.MixedGraphicalModel(covariates=["z"], lam=0.0).fit(table)
    inside = model.fitted_
    nats = inside.strengths_from(inside.rows, np.inf)
    found = dict(
        zip([frozenset((e.source, e.target)) for e in inside._plain_edges()], nats, strict=True)
    )
    left = [stats.linregress(w, column) for column in (x, z)]
    a, b = (c - f.intercept - f.slope * w for c, f in zip((x, z), left, strict=True))
    assert found[frozenset("xz")] == pytest.approx(abs(np.corrcoef(a, b)[0, 1]), abs=1e-5)


def test_a_covariate_of_a_category_has_about_the_likelihood_ratio_per_row():
    rng = np.random.default_rng(4)
    n = 2_000
    z, w = rng.normal(size=(2, n))
    group = (0.6 * z + 0.5 * w + rng.logistic(size=n) > 0).astype(int)
    table = pd.DataFrame({"group": group.astype(str), "w": w, "z": z})
    inside = mg.MixedGraphicalModel(covariates=["z", "w"], lam=0.0).fit(table).fitted_
    found = dict(
        zip(
            [e.source for e in inside._plain_edges()],
            inside.strengths_from(inside.rows, np.inf),
            strict=True,
        )
    )
    from sklearn.linear_model import LogisticRegression

    def loss(columns):
        model = LogisticRegression(C=np.inf).fit(columns, group)
        return -model.predict_log_proba(columns)[np.arange(n), group].mean()

    both = np.column_stack([z, w])
    for name, other in (("z", w), ("w", z)):
        ratio = loss(other[:, None]) - loss(both)
        assert found[name] == pytest.approx(np.sqrt(1 - np.exp(-2 * ratio)), rel=0.02)


def test_noise_is_weak_and_a_relation_is_not():
    # 60 pairs of noise with 6 parameters: their mean strength is .01 here; it exceeds .03 with a
    # probability below 1e-6.
    values = []
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        table = pd.DataFrame({name: rng.integers(0, 3, 1_000).astype(str) for name in "abc"})
        values += list(by_pair(fitted(table, types=None)).values())
    assert np.mean(values) < 0.03
    assert min(by_pair(fitted(survey(2_000)))[frozenset(p)] for p in (("x", "y"),)) > 0.3


def test_penalised_estimates_are_not_corrected_and_refits_are():
    table = survey()
    shrunken = mg.MixedGraphicalModel(types=TYPES, lam=0.1).fit(table).fitted_
    assert np.array_equal(
        shrunken.strengths, shrunken.strengths_from(shrunken.rows, np.inf), equal_nan=True
    )
    free = fitted(table).fitted_
    assert (free.strengths < free.strengths_from(free.rows, np.inf)).all()


def test_separate_regressions_have_the_mean_of_both_coefficients():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]]
    inside = mg.MixedGraphicalModel(loss="nodewise", lam=0.0).fit(x).fitted_
    found = inside.strengths_from(inside.rows, np.inf)
    expected = [abs(e.partial_correlation) for e in inside._plain_edges()]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_moderated_edges_have_a_mean_over_rows_and_deviations_how_much_they_vary():
    rng = np.random.default_rng(7)
    n = 4_000
    age = rng.normal(size=n)
    x = rng.normal(size=n)
    relation = 0.3 * np.tanh(age)
    y = relation * x + rng.normal(size=n)
    table = pd.DataFrame({"x": x, "y": y, "age": age})
    inside = mg.MixedGraphicalModel(moderators=["age"], lam=0.0).fit(table).fitted_
    edges = {(e.source, e.target, e.moderator): e for e in inside.edges}
    varying = edges[("x", "y", "age")]
    correlation = relation / np.sqrt(1 + relation**2)
    assert varying.strength == pytest.approx(np.std(correlation), abs=0.05)
    whole = edges[("x", "y", None)]
    expected = np.sqrt(1 - np.exp(np.log1p(-(correlation**2)).mean()))
    assert whole.strength == pytest.approx(expected, abs=0.05)


def test_given_parameters_take_rows_drawn_from_the_model():
    columns = {"x": "continuous", "group": 3, "sex": 2}
    params = {
        "category_shift": [[0.0, 0.5, -0.5, 0.0, 0.3]],
        "cat_interaction": np.block(
            [
                [np.zeros((3, 3)), np.array([[0.2, -0.2], [-0.4, 0.4], [0.2, -0.2]])],
                [np.array([[0.2, -0.4, 0.2], [-0.2, 0.4, -0.2]]), np.zeros((2, 2))],
            ]
        ),
    }
    model = mg.from_params(columns, params)
    found = by_pair(model)
    assert all(0.0 < value < 1.0 for value in found.values())
    rows = model.sample(200_000, random_state=1)
    again = model.fitted_.strengths_from(
        RestRows(
            rows[["x"]].to_numpy(),
            np.column_stack([pd.Categorical(rows[c]).codes for c in ("group", "sex")]),
        ),
        np.inf,
    )
    np.testing.assert_allclose(model.fitted_.strengths, again, atol=0.02)


def test_a_loaded_model_has_the_strengths_of_its_fit(tmp_path):
    model = mg.MixedGraphicalModel(types=TYPES).fit(survey())
    model.save(tmp_path / "model.mgm")
    again = mg.load(tmp_path / "model.mgm")
    assert again.fitted_.rows is None
    pd.testing.assert_frame_equal(again.edges(), model.edges())
    for k in range(len(model.path_)):
        assert again.fitted_.edges_at(k) == model.fitted_.edges_at(k)


def test_a_table_in_parts_has_the_strengths_of_the_whole(tmp_path):
    table = survey(5_000)
    table.to_parquet(tmp_path / "a.parquet")
    whole = by_pair(mg.MixedGraphicalModel(types=TYPES).fit(table))
    from mixedgm.inference.strength import MOST_ROWS

    assert MOST_ROWS < 5_000
    import pyarrow.dataset as ds

    parted = by_pair(mg.MixedGraphicalModel(types=TYPES).fit(ds.dataset(tmp_path / "a.parquet")))
    assert parted.keys() == whole.keys()
    for pair, value in whole.items():
        assert parted[pair] == pytest.approx(value, abs=1e-4)


def test_freedom_counts_levels_that_can_occur():
    nodes = Nodes.mixed(1, (3, 2))
    bias = np.array([0.0, 0.0, 0.0, -np.inf, 0.0, 0.0])
    params = Params(nodes, bias, np.ones(1), np.zeros((6, 6)))
    assert freedom(params, np.array([0, 1]), np.array([1, 2])).tolist() == [1, 1]
    assert strength(np.array([0.001]), 0.002)[0] == 0.0

"""What a fitted model says about its parameters: weights, signs, partial correlations, blocks."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.fit.fitted import FitReport, FittedModel
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.solve.loop import Certificate, Cost
from mixedgm.table.encode import Design
from mixedgm.table.schema import Column, Schema

REPORT = FitReport(
    Certificate(1.0, 1e-6, converged=True, message=""),
    Cost(3),
    lam=0.1,
    tol=1e-5,
    n_rows=50,
    total_weight=50.0,
)

# The table's order is not that of the blocks: kinds are mixed.
SCHEMA = Schema(
    (
        Column("sex", "categorical", levels=("f", "m")),
        Column("age", "continuous"),
        Column("stage", "categorical", levels=("i", "ii", "iii")),
        Column("wage", "continuous"),
        Column("owner", "categorical", levels=(False, True)),
    )
)
SCALES = np.array([2.0, 10.0, 0.7, 0.8, 0.6])  # age, wage, sex, stage, owner


def params() -> Params:
    """Blocks with entries to be read off by hand; level columns f m | i ii iii | False True."""
    precision = np.array([[4.0, 1.0], [1.0, 9.0]])
    shift = np.zeros((2, 7))
    shift[0, :2] = -0.3, 0.3  # age - sex
    shift[1, 2:5] = 3.0, 0.0, -4.0  # wage - stage
    phi = np.zeros((7, 7))
    phi[:2, 5:] = [[-0.5, 0.5], [0.5, -0.5]]  # sex - owner
    phi = phi + phi.T
    bias = np.array([0.1, -0.1, 0.0, 0.2, -0.2, 0.3, -0.3])
    return Params.of_blocks((2, 3, 2), precision, np.array([1.0, 2.0]), shift, phi, bias)


@pytest.fixture
def fitted():
    return FittedModel(SCHEMA, params(), SCALES, REPORT, "pandas")


def test_edges_are_the_nonzero_blocks_strongest_first(fitted):
    by_norm = sorted(fitted.edges, key=lambda edge: -edge.norm)
    assert [(edge.source, edge.target) for edge in by_norm] == [
        ("wage", "stage"),  # 10 * 0.8 * 5
        ("age", "wage"),  # 2 * 10 * 1
        ("age", "sex"),  # 2 * 0.7 * 0.3 * sqrt 2
        ("sex", "owner"),  # 0.7 * 0.6 * 1
    ]
    strengths = [edge.strength for edge in fitted.edges]
    assert strengths == sorted(strengths, reverse=True)
    expected = [40.0, 20.0, 2 * 0.7 * 0.3 * np.sqrt(2), 0.42]
    np.testing.assert_allclose([edge.norm for edge in by_norm], expected, rtol=1e-12)


def test_kinds_signs_and_partial_correlations(fitted):
    found = {(e.source, e.target): (e.kind, e.sign, e.partial_correlation) for e in fitted.edges}
    assert found == {
        # A positive precision entry is a negative relation: -1 / sqrt(4 * 9).
        ("age", "wage"): ("continuous-continuous", "-", pytest.approx(-1 / 6)),
        ("age", "sex"): ("continuous-categorical", "+", None),
        ("wage", "stage"): ("continuous-categorical", None, None),
        ("sex", "owner"): ("categorical-categorical", "-", None),
    }


def test_weights_are_a_symmetric_matrix_in_the_order_of_the_blocks(fitted):
    weights = fitted.edge_norms
    assert weights.shape == (5, 5)
    np.testing.assert_array_equal(weights, weights.T)
    assert not np.diagonal(weights).any()
    assert np.count_nonzero(weights) == 8
    assert weights[1, 3] == pytest.approx(40.0)


def test_weights_do_not_depend_on_units():
    """Age in months instead of years: parameters shrink by what the scale grows."""
    own = params()
    c = np.array([12.0, 1.0])
    months = Params.of_blocks(
        own.n_levels,
        own.precision / np.outer(c, c),
        own.cont_bias / c,
        own.category_shift / c[:, None],
        own.cat_interaction,
        own.cat_bias,
    )
    scales = SCALES * np.array([12.0, 1, 1, 1, 1])
    one = FittedModel(SCHEMA, own, SCALES, REPORT, "pandas").edges
    two = FittedModel(SCHEMA, months, scales, REPORT, "pandas").edges
    for a, b in zip(one, two, strict=True):
        assert a[:3] == b[:3]
        assert a.sign == b.sign
        assert a.norm == pytest.approx(b.norm, rel=1e-12)
        assert a.partial_correlation == pytest.approx(b.partial_correlation)


@pytest.mark.parametrize(
    ("a", "b", "rows", "columns", "values"),
    [
        ("age", "wage", ("age",), ("wage",), [[-1.0]]),
        ("age", "sex", ("age",), ("f", "m"), [[-0.3, 0.3]]),
        ("stage", "wage", ("i", "ii", "iii"), ("wage",), [[3.0], [0.0], [-4.0]]),
        ("owner", "sex", ("False", "True"), ("f", "m"), [[-0.5, 0.5], [0.5, -0.5]]),
        ("sex", "stage", ("f", "m"), ("i", "ii", "iii"), np.zeros((2, 3))),
    ],
)
def test_interactions_have_names_on_both_axes(fitted, a, b, rows, columns, values):
    found = fitted.interaction(a, b)
    assert (found.row, found.column) == (a, b)
    assert found.row_names == rows
    assert found.column_names == columns
    np.testing.assert_array_equal(found.values, values)


def test_an_interaction_is_a_copy(fitted):
    fitted.interaction("age", "sex").values[:] = 99.0
    np.testing.assert_array_equal(fitted.params.category_shift, params().category_shift)


def test_a_column_with_itself_has_no_interaction(fitted):
    with pytest.raises(ParameterError, match="two different columns. Got 'age' twice"):
        fitted.interaction("age", "age")


def test_a_model_without_edges_has_none():
    empty = FittedModel(
        SCHEMA, Params.independent(Nodes.mixed(2, (2, 3, 2))), SCALES, REPORT, "pandas"
    )
    assert empty.edges == ()
    assert not empty.edge_norms.any()


@pytest.mark.parametrize("kind", ["continuous", "categorical"])
def test_models_of_one_kind(kind):
    if kind == "continuous":
        schema = Schema((Column("a", "continuous"), Column("b", "continuous")))
        own = Params.independent(Nodes.mixed(2, ()))
        own.coef[0, 1] = own.coef[1, 0] = 0.5
        weight = 0.5
    else:
        levels = ("no", "yes")
        schema = Schema(tuple(Column(n, "categorical", levels=levels) for n in "ab"))
        own = Params.independent(Nodes.mixed(0, (2, 2)))
        own.cat_interaction[:2, 2:] = [[0.25, -0.25], [-0.25, 0.25]]
        own.cat_interaction[2:, :2] = own.cat_interaction[:2, 2:].T
        weight = 0.5
    fitted = FittedModel(schema, own, np.ones(2), REPORT, "numpy")
    assert [(e.source, e.target, e.sign) for e in fitted.edges] == [("a", "b", "+")]
    assert fitted.edges[0].norm == pytest.approx(weight)


def design(numbers, codes):
    return Design(SCHEMA, np.array(numbers, dtype=float), np.array(codes, dtype=np.uint8))


def test_conditionals_by_hand(fitted):
    """One row: age 30, wage 2; m, iii, owner."""
    rows = design([[30.0, 2.0]], [[1, 2, 1]])
    (age,), (wage,), (sex,), *_ = fitted.predict(rows).values()
    assert age == pytest.approx((1.0 + 0.3 - 1.0 * 2.0) / 4.0)
    assert wage == pytest.approx((2.0 - 4.0 - 1.0 * 30.0) / 9.0)
    logits = np.array([0.1 - 0.3 * 30 + 0.5, -0.1 + 0.3 * 30 - 0.5])
    chances = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(fitted.predict_proba(rows, "sex")[0], chances, rtol=1e-12)
    assert sex == 1
    losses = fitted.node_losses(rows)
    assert list(losses) == ["sex", "age", "stage", "wage", "owner"]
    assert losses["sex"] == pytest.approx(-np.log(chances[1]))
    loss = 0.5 * np.log(2 * np.pi / 4.0) + 0.5 * 4.0 * (30 - age) ** 2
    assert losses["age"] == pytest.approx(loss)


def test_a_level_without_rows_gets_half_a_row():
    own = params()
    own.cat_bias[3] = -np.inf
    fitted = FittedModel(SCHEMA, own, SCALES, REPORT, "pandas")
    rows = design([[30.0, 0.1]], [[0, 1, 0]])
    found = fitted.predict_proba(rows, "stage")[0]
    assert found[1] == pytest.approx(0.5 / 50.5)
    logits = np.array([3.0 * 0.1, -0.2 - 4.0 * 0.1])
    rest = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(found[[0, 2]], rest * 50 / 50.5, rtol=1e-12)
    assert fitted.node_losses(rows)["stage"] == pytest.approx(np.log(50.5 / 0.5))


def test_probabilities_of_a_continuous_column_are_refused(fitted):
    with pytest.raises(ParameterError, match="'age' is continuous"):
        fitted.predict_proba(design([[1.0, 1.0]], [[0, 0, 0]]), "age")

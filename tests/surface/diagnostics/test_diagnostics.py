"""mg.diagnostics: what it takes, what it refuses, and how the result shows itself."""

import numpy as np
import pytest

import mixedgm as mg
from tests.support.people import people

ODD = "<b>hub</b>"


@pytest.fixture(scope="module")
def model():
    columns = {ODD: ["a", "b", "c"], "u": "continuous", "v": "continuous", "w": "continuous"}
    shift = 0.5 * np.outer([1.0, -1.0, 1.0], [1.0, 0.0, -1.0])
    shift[2] = 0.0
    return mg.from_params(columns, {"category_shift": shift}, frame="pandas")


@pytest.fixture(scope="module")
def found(model):
    return mg.diagnostics.consistency(model)


def test_the_result_says_what_it_found(found):
    text = repr(found)
    assert text == found.summary()
    assert text.splitlines()[0] == "Consistency of the pseudolikelihood with calibrated weights"
    assert f"{found.upper:.3g}, of u - v: below 1, the condition holds" in text
    assert "exact, 3 states of y" in text
    assert "(estimates)" in text
    assert max(map(len, text.splitlines())) <= 80
    assert found.gradient_at_truth < 1e-8


def test_a_failing_condition_is_said_loudly(model):
    strong = mg.from_params(model.schema_, {"category_shift": 4.0 * model.params_.category_shift})
    found = mg.diagnostics.consistency(strong)
    assert found.verdict == "fails"
    assert "THE CONDITION FAILS" in repr(found)
    assert "it does not apply" in repr(found)
    assert np.isnan(found.theorem(1000).lam)


def test_pairs_as_a_frame(found, model):
    frame = found.frame()
    assert list(frame) == ["source", "target", "kind", "at_truth", "lower", "upper"]
    assert len(frame) == 6 - len(model.edges_) == 4
    assert np.diff(frame["upper"]).max() < 1e-7
    assert (frame["source"][0], frame["target"][0]) == ("u", "v")


def test_names_are_escaped_in_html(found):
    html = found._repr_html_()
    assert "<b>hub" not in html
    assert "&lt;b&gt;hub" in html
    assert "irrepresentability" in html


def test_the_picture_has_a_dot_per_pair_and_the_limit(found):
    ax = found.plot()
    worst, true = (part.get_offsets() for part in ax.collections[1:])
    np.testing.assert_allclose(worst[:, 0], [pair.upper for pair in found.pairs])
    np.testing.assert_allclose(true[:, 0], [pair.at_truth for pair in found.pairs])
    assert [label.get_text() for label in ax.get_yticklabels()][0] == "u – v"
    assert ax.lines[0].get_xdata()[0] == 1.0
    assert len(found.plot(max_pairs=2, ax=ax).get_yticks()) == 2
    with pytest.raises(mg.ParameterError, match="max_pairs must be"):
        found.plot(max_pairs=0)
    ax.figure.clear()


def test_a_fitted_model_is_taken_as_the_truth():
    model = mg.MixedGraphicalModel(lam=0.15).fit(people(400))
    found = mg.diagnostics.consistency(model)
    assert len(found.pairs) == 10 - len(model.edges_)
    assert found.exact
    assert mg.diagnostics.consistency(model.fitted_).upper == found.upper


def test_the_theorem_scales_with_the_rows(found):
    one, four = found.theorem(1e4), found.theorem(4e4)
    assert one.lam == pytest.approx(2 * four.lam)
    assert one.error_bound == pytest.approx(2 * four.error_bound)
    assert found.theorem().n_rows == found.constants.n_rows > 1e4
    with pytest.raises(mg.ParameterError, match="n_rows must be a positive number"):
        found.theorem(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "nodewise"}, "loss must be 'pseudolikelihood' or 'likelihood'"),
        ({"penalty_weights": "none"}, "penalty_weights must be 'calibrated' or 'uniform'"),
        ({"n_draws": 10}, "n_draws must be an integer of at least 1,000"),
        ({"n_draws": 1e5}, "n_draws must be an integer of at least 1,000"),
    ],
)
def test_bad_options(model, options, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.diagnostics.consistency(model, **options)


def test_what_is_no_model():
    with pytest.raises(mg.ParameterError, match="model must be a fitted MixedGraphicalModel"):
        mg.diagnostics.consistency(people(50))
    with pytest.raises(mg.ParameterError, match="model must be a fitted MixedGraphicalModel"):
        mg.diagnostics.consistency(mg.MixedGraphicalModel())


def test_models_without_a_distribution_of_all_columns():
    given = mg.MixedGraphicalModel(lam=0.2, covariates=["height"]).fit(people(200))
    with pytest.raises(mg.ParameterError, match="none of its covariates 'height'"):
        mg.diagnostics.consistency(given)
    apart = mg.MixedGraphicalModel(lam=0.2, loss="nodewise").fit(people(200))
    with pytest.raises(mg.DistributionError, match="separate regressions have no joint"):
        mg.diagnostics.consistency(apart)


def test_too_many_parameters():
    wide = mg.from_params({f"x{k}": "continuous" for k in range(112)}, {"precision": np.eye(112)})
    with pytest.raises(mg.TooLargeError, match="6,440 free parameters.*limit is 6,000. To fix"):
        mg.diagnostics.consistency(wide)


@pytest.mark.parametrize("order", ["vwx", "vxw", "wvx"])
def test_a_column_with_a_single_level_is_left_out(order):
    levels = {"v": ["a", "b"], "w": ["only", "never"], "x": ["a", "b"]}
    bias, phi = np.zeros(6), np.zeros((6, 6))
    first = {name: 2 * order.index(name) for name in order}
    bias[first["w"] + 1] = -np.inf
    v, x = (slice(first[name], first[name] + 2) for name in "vx")
    phi[v, x] = phi[x, v] = [[0.5, -0.5], [-0.5, 0.5]]
    columns = {"u": "continuous"} | {name: levels[name] for name in order}
    blocks = {"cat_bias": bias, "cat_interaction": phi}
    found = mg.diagnostics.consistency(mg.from_params(columns, blocks))
    assert {frozenset(pair[:2]) for pair in found.pairs} == {frozenset("uv"), frozenset("ux")}
    assert found.upper == 0.0
    assert found.convexity > 0.3

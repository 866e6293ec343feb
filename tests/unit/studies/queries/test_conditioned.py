"""Given parameters -> a model: what is checked, what is centred, what is reported."""

import math

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit.given_parameters import centred, checked_params, schema_of
from tests.support.people import assert_same_params

COLUMNS = {"y": ["u", "v", "w"], "a": "continuous", "b": "continuous", "z": 2}


def params() -> mg.Params:
    rng = np.random.default_rng(0)
    phi = np.zeros((5, 5))
    phi[:3, 3:] = rng.normal(size=(3, 2))
    return mg.Params.of_blocks(
        (3, 2),
        np.array([[2.0, -0.5], [-0.5, 1.0]]),
        rng.normal(size=2),
        rng.normal(size=(2, 5)),
        phi + phi.T,
        rng.normal(size=5),
    )


def log_density(params: mg.Params, x: np.ndarray, y: list[int]) -> float:
    """Up to the constant, term by term."""
    levels = [start + code for start, code in zip(params.level_start, y, strict=False)]
    value = -0.5 * x @ params.precision @ x + params.cont_bias @ x
    value += sum(params.category_shift[:, level] @ x + params.cat_bias[level] for level in levels)
    return value + params.cat_interaction[levels[0], levels[1]]


def test_centring_keeps_the_distribution_and_makes_sums_zero():
    before, after = params(), centred(params())
    assert abs(after.category_shift[:, :3].sum(axis=1)).max() < 1e-14
    assert abs(after.category_shift[:, 3:].sum(axis=1)).max() < 1e-14
    block = after.cat_interaction[:3, 3:]
    assert abs(block.sum(axis=0)).max() < 1e-14
    assert abs(block.sum(axis=1)).max() < 1e-14
    rng = np.random.default_rng(1)
    gaps = [
        log_density(before, x, [a, b]) - log_density(after, x, [a, b])
        for x in rng.normal(size=(4, 2))
        for a in range(3)
        for b in range(2)
    ]
    assert np.ptp(gaps) < 1e-12  # only the constant may differ


def test_a_centred_model_stays_as_it_is_to_the_last_bit():
    once = centred(params())
    assert_same_params(centred(once), once)


def test_a_shift_that_is_the_same_for_all_levels_is_no_edge():
    truth = mg.from_params({"a": "continuous", "y": 3}, {"category_shift": [[0.3, 0.3, 0.3]]})
    assert truth.edges_ == ()
    assert truth.params_.cont_bias[0] == pytest.approx(0.3)


def test_a_level_that_cannot_occur_has_no_parameters_and_never_appears():
    shift = [[0.5, -0.5, 9.0]]
    truth = mg.from_params(
        {"a": "continuous", "y": 3}, {"category_shift": shift, "cat_bias": [0.0, 0.0, -np.inf]}
    )
    assert truth.params_.category_shift.tolist() == [[0.5, -0.5, 0.0]]
    table = truth.sample(500, random_state=0)
    assert set(table["y"]) == {"a", "b"}
    assert list(table["y"].cat.categories) == ["a", "b", "c"]


def test_the_report_is_honest():
    truth = mg.from_params(COLUMNS, params())
    assert all(math.isnan(value) for value in (truth.lam_, truth.kkt_, truth.objective_))
    assert (truth.converged_, truth.n_iter_, truth.path_) == (False, 0, None)
    assert truth.fitted_.report.message == "given, not fitted"
    text = str(truth.summary())
    assert "given, not fitted" in text
    assert "lam" not in text
    assert "certificate" not in text
    assert "given, not fitted" in truth._repr_html_()
    assert truth.feature_names_in_.tolist() == ["y", "a", "b", "z"]
    assert "lam" not in truth.to_networkx().graph


def test_empty_model_says_so_without_a_lam():
    assert "No edges: every column" in str(mg.from_params({"a": "continuous"}, {}).summary())


def test_save_and_load(tmp_path):
    truth = mg.from_params(COLUMNS, params(), frame="polars")
    truth.save(tmp_path / "truth.mgm")
    again = mg.load(tmp_path / "truth.mgm")
    assert_same_params(again.params_, truth.params_)
    assert again.edges_ == truth.edges_
    assert math.isnan(again.lam_)
    assert again.sample(5, random_state=1).equals(truth.sample(5, random_state=1))
    for name in ("graph.graphml", "graph.json", "graph.csv"):
        again.export(tmp_path / name)


def test_it_predicts_and_scores():
    truth = mg.from_params(COLUMNS, params())
    table = truth.sample(50, random_state=0)
    assert truth.predict(table).shape == (50, 4)
    assert np.isfinite(truth.score(table))
    np.testing.assert_allclose(truth.predict_proba(table, "y").sum(axis=1), 1.0)


def test_scales_are_those_of_the_distribution():
    # y is fair; x has mean +1 or -1 given y and variance 1/2, so that its variance is 3/2.
    truth = mg.from_params(
        {"x": "continuous", "y": 2}, {"precision": [[2.0]], "category_shift": [[2.0, -2.0]]}
    )
    np.testing.assert_allclose(truth.fitted_.node_scales, [np.sqrt(1.5), np.sqrt(0.5)], rtol=1e-12)
    norm = truth.edges_[0].norm
    assert norm == pytest.approx(np.sqrt(8.0) * np.sqrt(1.5) * np.sqrt(0.5), rel=1e-12)


def test_scales_are_simulated_where_tables_do_not_fit():
    """Of 25 binary columns, all neighbours; by symmetry each of them is fair."""
    pairs = np.kron(np.ones((25, 25)) - np.eye(25), [[0.02, -0.02], [-0.02, 0.02]])
    exact, simulated = (
        mg.from_params({f"y{k}": 2 for k in range(n)}, {"cat_interaction": pairs[: 2 * n, : 2 * n]})
        for n in (3, 25)
    )
    assert exact.summary().values.notes == ()
    assert "simulated" in simulated.summary().values.notes[0]
    np.testing.assert_allclose(exact.fitted_.node_scales, np.sqrt(0.5), rtol=1e-12)
    np.testing.assert_allclose(simulated.fitted_.node_scales, np.sqrt(0.5), rtol=0.03)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "numpy"])
def test_frames(frame):
    table = mg.from_params(COLUMNS, params(), frame=frame).sample(4, random_state=0)
    module = type(table).__module__.partition(".")[0]
    assert module == frame
    with pytest.raises(mg.ParameterError, match="frame must be one of 'auto'"):
        mg.from_params(COLUMNS, params(), frame="excel")


BLOCKS = ("precision", "cont_bias", "category_shift", "cat_interaction", "cat_bias")


def wrong(message, **blocks):
    given = {name: getattr(params(), name) for name in BLOCKS} | blocks
    with pytest.raises(mg.ParameterError, match=message):
        checked_params(schema_of(COLUMNS), given)


def test_everything_wrong_is_named():
    wrong(r"cont_bias has shape \(3,\), but the columns need \(2,\)", cont_bias=np.zeros(3))
    wrong("precision is not symmetric: 0.5 at .'a', 'b'.", precision=np.array([[1, 0.5], [0, 1]]))
    wrong("positive, above 1e-100, and is -1 at 'b'", precision=np.diag([1.0, -1.0]))
    wrong("positive, above 1e-100, and is 4.94066e-324 at 'a'", precision=np.diag([5e-324, 1.0]))
    wrong(r"cont_bias holds 1 values .* below 1e\+100", cont_bias=np.array([1e300, 0.0]))
    wrong("cont_bias holds 2 values", cont_bias=[10**400, np.longdouble("1e400")])
    wrong("smallest eigenvalue is -1", precision=np.array([[1.0, 2.0], [2.0, 1.0]]))
    wrong("levels of 'z' itself", cat_interaction=np.diag([0.0, 0, 0, 0, 1]))
    wrong("'y=u', 'z=a'", cat_interaction=np.eye(5, k=3))
    wrong("cat_bias holds 1 values", cat_bias=np.array([np.nan, 0, 0, 0, 0]))
    wrong("without any level", cat_bias=np.array([0, 0, 0, -np.inf, -np.inf]))
    wrong("category_shift holds 10 values", category_shift=np.full((2, 5), np.inf))
    with pytest.raises(mg.ParameterError, match="n_levels"):
        checked_params(schema_of({**COLUMNS, "y": 4}), params())


def test_several_mistakes_come_at_once():
    with pytest.raises(mg.ParameterError) as caught:
        mg.from_params({"a": "continuous", "b": "continuous"}, {"precision": [[1, 2], [0, -1]]})
    assert "not symmetric" in str(caught.value)
    assert "positive" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "blocks", "message"),
    [
        ({"a": "number"}, {}, "column 'a' must be"),
        ({"a": 1}, {}, "column 'a' must be"),
        ({"a": ["u"]}, {}, "at least two levels"),
        ({}, {}, "schema must be"),
        ("a", {}, "schema must be"),
        ({"a": 2}, {"rho": 1}, "no block 'rho'"),
        ({"a": 2}, {"cat_bias": "high"}, "cat_bias must be an array"),
        ({"a": 2}, [1.0], "params must be"),
    ],
)
def test_bad_arguments(columns, blocks, message):
    with pytest.raises(mg.ParameterError, match=message):
        mg.from_params(columns, blocks)


def test_many_levels_sort_in_their_order():
    names = schema_of({"y": 120}).columns[0].level_names
    assert len(names) == 120
    assert sorted(names) == list(names)

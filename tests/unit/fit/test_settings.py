"""Parameters to plain values and back: through real JSON text, nothing lost, nothing executed."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixedgm as mg
from mixedgm.fit.options import from_plain, to_plain


def through_json(value):
    return from_plain(json.loads(json.dumps(to_plain(value))))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        float("inf"),
        "ebic",
        "",
        [],
        [0.1, 0.2],
        ["continuous", None],
        {},
        {"stage": "categorical"},
        {0: "categorical", "x": "continuous"},
        {("age", "wage"): 0.5, "continuous-categorical": float("inf")},
        {("a", "b"): 0.0},
        [["age", "wage"], ["a", "b"]],
        {"mapping": [["x", 1]]},
        {"object": "EBIC", "options": {"gamma": 0.1}},
        {"text": "nonsense"},
        {"deep": {"deeper": [{"x": 1}]}},
        [("age", "wage")],
        ("age", "wage"),
    ],
    ids=repr,
)
def test_values_survive(value):
    found = through_json(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        mg.EBIC(),
        mg.EBIC(gamma=0.125),
        mg.BIC(),
        mg.AIC(),
        mg.Holdout(fraction=0.3),
        mg.CV(cv=3, one_se=False),
        mg.StARS(beta=0.1, n_subsamples=7, ratio=0.5),
        mg.StabilitySelection(threshold=0.9, max_false=2.5, n_subsamples=10, bound="worst-case"),
        mg.ProximalGradient(),
        mg.ProximalGradient("nesterov-2007", lengthen=0.8, shorten=1.5, restart=False),
        mg.ProximalNewton(),
        mg.ProximalNewton("exact", "proximal-gradient", sample_rows=11, memory=3),
    ],
    ids=repr,
)
def test_criteria_and_solvers_survive(value):
    found = through_json(value)
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.True_, True),
        (np.str_("ebic"), "ebic"),
        (np.array([0.1, 0.2]), [0.1, 0.2]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    ],
    ids=repr,
)
def test_numpy_values_become_plain_ones(value, plain):
    assert through_json(value) == plain


def test_every_default_parameter_survives():
    params = mg.MixedGraphicalModel().get_params()
    assert {name: through_json(value) for name, value in params.items()} == params


def test_other_objects_become_their_text():
    rng = np.random.default_rng(0)
    assert through_json(rng) == repr(rng)
    assert through_json([rng, 1]) == [repr(rng), 1]


def test_rows_and_groups_of_a_criterion_survive():
    found = through_json(mg.CV(cv=[([0, 1], [2])], groups=np.array(["a", "b", "a"])))
    assert found.cv == [([0, 1], [2])]
    assert found.groups == ["a", "b", "a"]
    assert through_json(mg.Holdout(rows=np.array([3, 1]))).rows == [3, 1]


def test_a_criterion_with_a_splitter_becomes_its_text():
    from sklearn.model_selection import GroupKFold

    criterion = mg.CV(cv=GroupKFold(3))
    assert through_json(criterion) == repr(criterion)


def test_only_known_classes_are_made():
    """A file that names another class, or code, gets neither."""
    for name in ("Popen", "__import__"):
        with pytest.raises(mg.ModelFileError, match=name):
            from_plain({"object": name, "options": {}})
    assert from_plain({"text": "__import__('os')"}) == "__import__('os')"


keys = st.text(max_size=5) | st.integers() | st.tuples(st.text(max_size=4), st.text(max_size=4))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_nested_values_survive(value):
    assert through_json(value) == value

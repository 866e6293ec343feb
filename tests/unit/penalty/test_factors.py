"""penalty_factors, require and forbid become one matrix; each mistake has its message."""

import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.penalty.weights import EDGE_KINDS, edge_kind, pair_factors
from mixedgm.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("sex", "categorical", levels=("f", "m")),
        Column("age", "continuous"),
        Column("race", "categorical", levels=("a", "b", "c")),
        Column("wage", "continuous"),
    )
)
AGE, WAGE, SEX, RACE = range(4)


def factor_matrix(*args, **options):
    return pair_factors(*args, **options).matrix()


def test_factors_are_one_by_default():
    np.testing.assert_array_equal(factor_matrix(SCHEMA), np.ones((4, 4)))


def test_edge_kinds_by_the_number_of_categorical_ends():
    assert edge_kind(SCHEMA, AGE, WAGE) == "continuous-continuous"
    assert edge_kind(SCHEMA, AGE, SEX) == "continuous-categorical"
    assert edge_kind(SCHEMA, SEX, RACE) == "categorical-categorical"


@pytest.mark.parametrize(
    ("kind", "pairs"),
    [
        ("continuous-continuous", {(AGE, WAGE)}),
        ("continuous-categorical", {(AGE, SEX), (AGE, RACE), (WAGE, SEX), (WAGE, RACE)}),
        ("categorical-categorical", {(SEX, RACE)}),
    ],
)
def test_a_kind_sets_all_its_pairs(kind, pairs):
    found = factor_matrix(SCHEMA, {kind: 3.0})
    for u in range(4):
        for v in range(u + 1, 4):
            assert found[u, v] == found[v, u] == (3.0 if (u, v) in pairs else 1.0)


@pytest.mark.parametrize("kind", EDGE_KINDS)
def test_the_kinds_of_both_ends_name_an_edge_whatever_the_order_of_columns(kind):
    """Two columns of every kind, in an order that is not that of nodes."""
    names = ("count", "categorical", "ordinal", "hurdle", "continuous")
    given = {"count": {"largest": 9}, "continuous": {}, "hurdle": {}}
    columns = [
        Column(f"{name}{k}", name, **given.get(name, {"levels": ("a", "b", "c")}))
        for k in range(2)
        for name in names
    ]
    found = factor_matrix(schema := Schema(tuple(columns)), {kind: 3.0})
    ends = sorted(kind.split("-"))
    for u, first in enumerate(schema.nodes):
        for v, second in enumerate(schema.nodes):
            wanted = u != v and sorted((first.kind, second.kind)) == ends
            assert found[u, v] == (3.0 if wanted else 1.0)


@pytest.mark.parametrize("pair", [("age", "sex"), ("sex", "age"), ["sex", "age"]])
def test_a_pair_is_found_by_name_in_any_order(pair):
    found = factor_matrix(SCHEMA, {tuple(pair): 0.5})
    assert found[AGE, SEX] == found[SEX, AGE] == 0.5
    assert (found == 0.5).sum() == 2


def test_a_pair_overrides_a_kind_whatever_the_order():
    for factors in (
        {("sex", "race"): 2.0, "categorical-categorical": 5.0},
        {"categorical-categorical": 5.0, ("sex", "race"): 2.0},
    ):
        assert factor_matrix(SCHEMA, factors)[SEX, RACE] == 2.0


def test_require_is_free_and_forbid_is_absent_and_both_override():
    found = factor_matrix(
        SCHEMA,
        {("age", "wage"): 4.0, ("sex", "race"): 4.0},
        require=[("wage", "age")],
        forbid=[("sex", "race")],
    )
    assert found[AGE, WAGE] == found[WAGE, AGE] == 0.0
    assert found[SEX, RACE] == found[RACE, SEX] == np.inf


def test_zero_and_infinity_are_factors():
    found = factor_matrix(SCHEMA, {("age", "wage"): 0, ("age", "sex"): np.inf})
    assert found[AGE, WAGE] == 0.0
    assert np.isinf(found[SEX, AGE])


MISTAKES = {
    "not-a-mapping": (
        {"factors": [("age", "wage")]},
        r"penalty_factors must be a mapping from a pair of column names or an edge kind\. Got",
    ),
    "negative": (
        {"factors": {("age", "wage"): -1}},
        r"penalty_factors\[\('age', 'wage'\)\] must be a number in \[0, inf\]\. Got -1",
    ),
    "nan": (
        {"factors": {"continuous-continuous": np.nan}},
        r"penalty_factors\['continuous-continuous'\] must be a number in \[0, inf\]\. Got nan",
    ),
    "text": (
        {"factors": {("age", "wage"): "big"}},
        r"must be a number in \[0, inf\]\. Got 'big'",
    ),
    "unknown-kind": (
        {"factors": {"cont-cat": 2.0}},
        r"has the key 'cont-cat', which is neither .* \(continuous-continuous, continuous-hurdle",
    ),
    "unknown-name": (
        {"factors": {("age", "wagee"): 2.0}},
        r"there is no column 'wagee'; did you mean 'wage'",
    ),
    "three-names": (
        {"factors": {("age", "wage", "sex"): 2.0}},
        r"a pair in penalty_factors must be two different column names\. Got \('age'",
    ),
    "number-as-key": (
        {"factors": {3: 2.0}},
        r"a pair in penalty_factors must be two column names\. Got 3",
    ),
    "same-twice": (
        {"require": [("age", "age")]},
        r"a pair in require must be two different column names\. Got \('age', 'age'\)",
    ),
    "flat-pair": (
        {"forbid": ("age", "wage")},
        r"a pair in forbid must be two column names\. Got 'age'",
    ),
    "text-for-require": (
        {"require": "age"},
        r'require must be a list of pairs such as \[\("age", "wage"\)\]\. Got \'age\'',
    ),
    "number-for-forbid": ({"forbid": 3}, r"forbid must be a list of pairs such as .* Got 3"),
    "unknown-in-forbid": (
        {"forbid": [("zzz", "age")]},
        r"there is no column 'zzz'; the columns are",
    ),
    "conflict": (
        {"require": [("age", "sex")], "forbid": [("sex", "age")]},
        r"the pair \('age', 'sex'\) is in both require and forbid; keep one of them",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name):
    options, message = MISTAKES[name]
    with pytest.raises(ParameterError, match=message):
        factor_matrix(SCHEMA, **options)


def test_a_pair_with_two_factors_is_refused():
    schema = Schema((Column("a", "continuous"), Column("b", "continuous")))
    with pytest.raises(ParameterError, match=r"names the pair \('b', 'a'\) twice: 1 and 2"):
        factor_matrix(schema, {("a", "b"): 1, ("b", "a"): 2})

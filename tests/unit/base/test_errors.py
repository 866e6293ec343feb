"""The error family: who is caught by what, and how it reads."""

import pickle

import pytest

from mixedgm.base.errors import (
    Finding,
    MixedGMError,
    ModelFileError,
    NotYetError,
    ParameterError,
    TableError,
    TableTypeError,
    TableWarning,
    near_matches,
)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (TableError("x"), ValueError),
        (TableTypeError("x"), TypeError),
        (ParameterError("x"), ValueError),
        (ModelFileError("x"), ValueError),
        (NotYetError("x"), NotImplementedError),
    ],
)
def test_every_error_is_of_the_family_and_of_a_builtin_kind(error, builtin):
    assert isinstance(error, MixedGMError)
    assert isinstance(error, builtin)
    assert str(error) == "x"


def test_many_findings_end_with_where_all_of_them_are():
    words = ["".join(chr(97 + int(d)) for d in f"{k:03}") for k in range(99)]
    error = TableError([Finding(word, f"{word} {'x' * 80} is wrong", "mend it") for word in words])
    assert str(error).endswith("...; mixedgm.check_table(table).findings has all of them")
    assert str(error).count("...") == 1, "nothing else is cut"


def test_one_finding_reads_as_one_line():
    error = TableError(Finding("age", "2 infinite values", "replace them"))
    assert str(error) == "column 'age': 2 infinite values. To fix: replace them"


def test_several_findings_are_listed():
    error = TableError([Finding("a", "bad", "mend it"), Finding(None, "worse", "")])
    assert str(error).splitlines() == [
        "2 problems with this table:",
        "  - column 'a': bad. To fix: mend it",
        "  - worse",
    ]
    assert [finding.column for finding in error.findings] == ["a", None]


def test_errors_survive_pickling():
    error = TableError([Finding("a", "bad", "mend it"), Finding("b", "bad", "mend it")])
    again = pickle.loads(pickle.dumps(error))
    assert again.findings == error.findings
    assert str(again) == str(error)


def test_warning_reads_like_an_error_but_offers_a_change():
    warning = TableWarning([Finding("a", "so", 'types={"a": "categorical"}', "warning")])
    assert str(warning) == 'column \'a\': so. To change it: types={"a": "categorical"}'


def test_parameter_error_says_what_is_wanted_and_what_came():
    error = ParameterError.must_be("lam", "a float in (0, inf)", -1)
    assert str(error) == "lam must be a float in (0, inf). Got -1 instead."


@pytest.mark.parametrize(
    ("wrong", "known", "hint"),
    [
        ("AGE", ["age", "sex"], "did you mean 'age'?"),
        ("q", ["age", "sex"], "the columns are 'age', 'sex'"),
        ("q", [], "there are no columns"),
        ("zz", list("abcdefghij"), "'h' and 2 more"),
    ],
)
def test_near_matches(wrong, known, hint):
    assert near_matches(wrong, known).endswith(hint)

"""A few cases of the campaign of bootstrap, comparison and tests; `make stress` has 2,500."""

import numpy as np
import pytest

from stress.inquiry import WrongAnswerError
from stress.mild_tables import KINDS, mild_table
from stress.studies import attempt
from stress.study_checks import _check_p, require

SEEDS = (3, 5, 7, 13)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_study_answers_or_says_why_not(seed, tmp_path):
    assert attempt(seed, tmp_path).findings == []


def test_tables_have_all_kinds_and_gaps():
    tables = [mild_table(seed) for seed in range(60)]
    assert {kind for table in tables for kind in table.types.values()} == set(KINDS)
    gaps = {table.gaps for table in tables if table.options.get("missing") == "model"}
    assert {"few", "one column", "many"} <= gaps


def test_wrong_numbers_are_found():
    with pytest.raises(WrongAnswerError, match="p is not that"):
        _check_p("tests", np.array([3.84]), np.array([1.0]), np.array([0.06]))
    _check_p("tests", np.array([3.841459]), np.array([1.0]), np.array([0.05000000]))
    with pytest.raises(WrongAnswerError, match="no share"):
        require(np.array([True, False]), "no share")

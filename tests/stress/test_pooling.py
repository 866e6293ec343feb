"""A part of the campaign of pooled results: those that are good, or refused already."""

import numpy as np
import pytest

import mixedgm as mg
from stress.inquiry import WrongAnswerError
from stress.pooling import ODD, Numbers, _same_as_rubin, attempt

GOOD = ("plain", "permuted", "other terms", "fewer terms", "name twice", "other forms", "few")


@pytest.mark.parametrize("odd", [*GOOD, "options", "no results", "error is a word"])
def test_rubins_rules_or_an_error(odd, tmp_path):
    first = ODD.index(odd)
    for seed in range(first, first + 20 * len(ODD), len(ODD)):
        assert attempt(seed, tmp_path).findings == [], seed


def test_another_rule_is_found():
    numbers = Numbers(np.array([[1.0], [1.4], [0.8]]), np.array([[0.5], [0.4], [0.6]]), ["x"])
    pooled = mg.pool([(1.0, 0.5), (1.4, 0.4), (0.8, 0.6)])
    _same_as_rubin(pooled, numbers, {})
    with pytest.raises(WrongAnswerError, match="upper"):
        _same_as_rubin(pooled, numbers, {"level": 0.9})

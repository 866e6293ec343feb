"""A few cases of the campaign of tables in parts; `make stress` has 1,000."""

import pytest

from stress.hostile_parts import SORTS, Parts
from stress.inquiry import WrongAnswerError
from stress.parts import _judge, attempt

# One seed of every sort: the remainder by the number of sorts says which.
SEEDS = (0, 1, 2, 3, 4, 5, 7, 10, 13, 15, 19)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_whole_tables_answer_or_one_clear_error(seed, tmp_path):
    found = attempt(seed, tmp_path)
    assert found.findings == [], found.kind
    assert found.kind.startswith(list(SORTS)[seed % len(SORTS)])


def test_wrong_outcomes_are_found():
    model = object()
    with pytest.raises(WrongAnswerError, match="it was fitted"):
        _judge(Parts(list, "refused"), model, model, [])
    with pytest.raises(WrongAnswerError, match="nothing was said of part-1"):
        _judge(Parts(list, "told", "part-1"), model, model, ["column 'a' is skewed"])
    with pytest.raises(WrongAnswerError, match="it was not fitted"):
        _judge(Parts(list, "equal"), model, None, ["no"])

"""Some tables of the campaign: every way of wrapping cells, answered and refused, every option."""

import pytest

from stress.inquiry import Inquiry, WrongAnswerError, finite
from stress.tables import attempt

# fmt: off
SEEDS = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 22, 24, 25, 26, 27, 31, 32, 35,
    36, 37, 38, 41, 42, 45, 46, 51, 52, 54, 58, 61, 62, 64, 65, 67, 70, 75, 76, 80, 82, 83, 85, 91,
    100, 101, 102, 111, 119, 120, 121, 122, 123, 124, 129, 131, 148, 156, 182, 191, 231, 247, 264,
    302, 310, 423,
)
# fmt: on


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_with_finite_numbers_or_an_error_of_the_family(seed, tmp_path):
    assert attempt(seed, tmp_path).findings == []


def test_what_should_not_be_is_found():
    import warnings

    import numpy as np

    inquiry = Inquiry(__file__)
    inquiry.ask("crash", lambda: {}["key"])
    inquiry.ask("number", lambda: finite(np.array([1.0, np.nan])))
    inquiry.ask("warning", lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1))
    inquiry.ask("escape", lambda: inquiry.text("\x1b[31m"))
    assert [finding.partition(":")[0] for finding in inquiry.findings] == [
        "crash",
        "number",
        "warning",
        "escape",
    ]
    with pytest.raises(WrongAnswerError):
        finite(np.array([[np.inf]]))

"""What the library says, in the words of the command line."""

import pytest

from mixedgm.cli.console import in_options


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ('types={"a b": "categorical"}', "--types 'a b=categorical'"),
        ('missing="drop" drops 3 rows', "--missing drop drops 3 rows"),
        ("leave column 'id' out", "--drop id"),
        ("sample_weight has 2 negative entries", "--weights-column has 2 negative entries"),
        ("nothing to change", "nothing to change"),
    ],
)
def test_python_remedies_become_options(python: str, options: str) -> None:
    assert in_options(python) == options

"""A few cases of the campaign of reports; `make stress` has 400."""

from pathlib import Path

import pytest

import mixedgm as mg
from stress.inquiry import WrongAnswerError
from stress.reports import _check, attempt

SEEDS = (0, 1, 3, 4, 7)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_page_that_says_what_the_model_has(seed, tmp_path):
    found = attempt(seed, tmp_path)
    assert found.findings == []
    assert found.kind.endswith("page")


def test_wrong_pages_are_found(tmp_path: Path):
    columns = {"x": "continuous", "y": "continuous"}
    model = mg.from_params(columns, {"precision": [[2, 1], [1, 2]]})
    file = tmp_path / "report.html"
    model.report(file)
    page = file.read_text(encoding="utf-8")
    _check(page, model)
    for wrong, what in (
        (page.replace("</body>", "<script>1</script></body>"), "3 scripts"),
        (page.replace("</body>", "<img></body>"), "markup from elsewhere"),
        (page.replace("</html>", ""), "not complete"),
        (page.replace('"name":"x"', '"name":"z"'), "other columns"),
    ):
        with pytest.raises(WrongAnswerError, match=what):
            _check(wrong, model)

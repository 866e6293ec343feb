"""300 columns and 2,000 edges: every kind of movement is followed, frame by frame.

How long frames take is measured by ``python -m benchmarks --only frames``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.report_browser import Page
from tests.support.wide_report import FRAMES


@pytest.mark.parametrize("move", ["hover", "drag", "wheel"])
def test_movements_are_followed(page: Page, wide_report: Path, move: str) -> None:
    page.open(wide_report)
    assert "300 columns, 2,000 edges" in page.text("#details")
    picture = "return document.querySelector('#stage canvas').toDataURL()"
    before = page.run(picture)
    assert len(page.driver.execute_async_script(FRAMES, move)) == 55
    page.settle()
    if move != "wheel":  # which ends where it began
        assert page.run(picture) != before

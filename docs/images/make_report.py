"""The report of the wage survey in Chromium -> its pictures at three widths and in two themes.

Run it from the root of the repository when the report changes; it needs Chromium, its driver and
selenium: ``python -m docs.images.make_report``.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image

import mixedgm as mg
from tests.support.report_browser import Page, started_browser

HERE = Path(__file__).resolve().parent
SIZES = {"phone": (390, 844), "tablet": (800, 1100), "desktop": (1400, 1000)}


def write_report(file: Path) -> None:
    """Fit the survey, and test, resample and compare it."""
    wage = mg.datasets.load_wage()
    model = mg.MixedGraphicalModel().fit(wage)
    model.report(
        file,
        wage,
        mg.bootstrap(model, wage, n_boot=100, random_state=0),
        mg.edge_tests(model, wage, random_state=0),
        mg.compare(wage, "jobclass", random_state=0),
        title="Wage survey of 3,000 men",
    )


def take(page: Page, name: str) -> None:
    """Write what the page shows, in the 256 colours that lose least."""
    picture = Image.open(io.BytesIO(page.picture())).convert("RGB")
    look = {"method": Image.Quantize.MAXCOVERAGE, "dither": Image.Dither.NONE, "kmeans": 1}
    picture.quantize(256, **look).save(HERE / f"{name}.png", optimize=True)


def main() -> None:
    """Write the report, and take its pictures."""
    with tempfile.TemporaryDirectory() as folder, started_browser() as driver:
        file, page = Path(folder) / "wage.html", Page(driver)
        write_report(file)
        for theme in ("light", "dark"):
            for device, size in SIZES.items():
                page.resize(*size)
                page.prefer(theme)
                page.open(file)
                take(page, f"report-{device}-{theme}")
        page.resize(*SIZES["desktop"])
        page.prefer("light")
        page.open(file)
        page.click("#details .edge-button", 2)
        take(page, "report")
        page.run("document.getElementById('trust-section').scrollIntoView({behavior: 'instant'})")
        page.settle()
        take(page, "report-trust")


if __name__ == "__main__":
    main()

"""The report in Chromium: graph, details, path, tables, trust, methods; keys, themes, paper."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import pytest

import mixedgm as mg
from mixedgm.pictures.network.sizes import Scale
from mixedgm.report.document import page_file
from tests.support.report_browser import Page
from tests.support.report_page import read_content

POSITIVE, NEGATIVE = "0,114,178", "213,94,0"


def near(colours: dict[str, int], wanted: str, reach: int = 12) -> int:
    """Pixels of about this colour, however solid."""
    goal = [int(part) for part in wanted.split(",")]
    count = 0
    for key, n in colours.items():
        parts = [int(part) for part in key.split(",")]
        if parts[3] > 100 and all(abs(a - b) <= reach for a, b in zip(parts, goal, strict=False)):
            count += n
    return count


def test_everything_is_there_and_nothing_is_asked_for(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    assert page.text("h1") == "Patients"
    assert page.texts("h2") == ["Graph", "Tables", "Can I trust it?", "Methods", "Words"]
    assert page.texts("[role=tab]") == [
        *("Edges", "Columns", "Tests", "Intervals", "Found again"),
        *("Groups", "Whole graphs", "Differences"),
    ]
    assert len(page.texts("#trust .card")) == 6
    colours = page.colours()
    assert near(colours, POSITIVE) > 50
    assert near(colours, NEGATIVE) > 50
    requests = [each for each in page.requests() if not each.startswith("data:")]
    assert requests == [patients_report.as_uri()]


def test_the_legend_tells_what_is_drawn(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    legend = page.texts("#legend li")
    for word in ("continuous", "hurdle", "ordinal", "count", "categorical", "positive", "negative"):
        assert word in legend
    assert "no single sign" in legend
    assert not any("covariate" in each or "moderator" in each for each in legend)
    page.run("document.getElementById('path-slider').value = 0")
    page.type_into("#path-slider", "0")  # no edges: no lines in the legend
    assert not {"positive", "negative", "no single sign"} & set(page.texts("#legend li"))


@pytest.mark.parametrize("cut", [None, 0.2])
def test_lines_have_the_widths_and_opacities_of_static_pictures(
    page: Page, patients_report: Path, cut: float | None
) -> None:
    scale, sizes = Scale(0.8, cut), [0.01, 0.1, 0.2, 0.35, 0.8, 0.9]
    page.open(patients_report)
    code = page_file("scale.js").replace("export ", "")
    script = f"{code}; const s = new Scale(arguments[0]);"
    script += "return arguments[1].map((size) => [s.width(size), s.opacity(size)]);"
    found = page.run(script, scale.look(), sizes)
    for size, (width, opacity) in zip(sizes, found, strict=True):
        assert width == pytest.approx(scale.width(size))
        assert opacity == pytest.approx(scale.opacity(size))


def test_an_unsigned_edge_has_a_colour_of_its_own(page: Page, folder: Path) -> None:
    columns = {"x": "continuous", "a": ["p", "q", "r"]}
    blocks = {"precision": [[1.0]], "category_shift": [[-1.0, 0.0, 1.0]]}
    model = mg.from_params(columns, blocks)
    assert model.edges_[0].sign is None
    file = folder / "unsigned.html"
    model.report(file)
    page.open(file)
    colours = page.colours()
    assert near(colours, "0,158,115") > 200
    assert near(colours, POSITIVE) == 0
    assert near(colours, NEGATIVE) == 0


def test_a_click_on_an_edge_opens_what_it_consists_of(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    page.click("#details .edge-button")
    text = page.text("#details")
    assert "are directly related" in text
    assert "Parameters" in text
    assert "Tests" in text
    assert "Intervals" in text
    assert page.run("return document.querySelectorAll('#details svg, #details .grid').length") >= 4
    page.click("#details .close")
    assert "Strongest edges" in page.text("#details")


HINTS = """
const stage = document.getElementById('stage');
const hint = document.getElementById('hint');
const box = stage.getBoundingClientRect();
const found = {};
for (let x = 20; x < box.width; x += 9) for (let y = 20; y < box.height; y += 9) {
  const where = {clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true};
  stage.dispatchEvent(new PointerEvent('pointermove', where));
  if (!hint.hidden) (found[hint.textContent] ??= []).push([x, y]);
}
return found;
"""


def test_the_pointer_finds_every_column_and_edge(page: Page, patients_report: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    page.open(patients_report)
    graph = read_content(patients_report)["graph"]
    names = [node["name"] for node in graph["nodes"]]
    hints = page.run(HINTS)
    assert {hint.split("\n")[0] for hint in hints} == {
        *names,
        *(f"{names[edge['a']]} – {names[edge['b']]}" for edge in graph["edges"]),
    }
    title, places = max(
        ((hint, at) for hint, at in hints.items() if "–" in hint), key=lambda each: len(each[1])
    )
    x, y = places[len(places) // 2]
    stage = page.driver.find_element("id", "stage")
    left, top = x - stage.size["width"] / 2, y - stage.size["height"] / 2
    ActionChains(page.driver).move_to_element_with_offset(stage, left, top).click().perform()
    page.settle()
    assert page.text("#details h3") == title.split("\n")[0]


def test_dragging_and_zooming(page: Page, patients_report: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    page.open(patients_report)
    stage = page.driver.find_element("id", "stage")
    before = page.picture()
    hand = ActionChains(page.driver).move_to_element_with_offset(stage, 60, 150).click_and_hold()
    hand.move_by_offset(80, 30).release().perform()
    page.settle()
    panned = page.picture()
    assert panned != before
    page.press("#stage", "+", "+")
    zoomed = page.picture()
    assert zoomed != panned
    page.press("#stage", "0")
    page.run("document.activeElement.blur()")
    page.settle()


def test_search_marks_and_chooses(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    page.type_into("#search", "sm")
    assert page.text("#status") == "1 columns match"
    page.press("#search", "Enter")
    assert page.text("#details h3") == "smoker"
    assert "Its neighbours" in page.text("#details")
    assert "Its values" in page.text("#details")
    assert "predict its level" in page.text("#details")


def test_the_path_slider_shows_the_graph_of_each_penalty(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    path = read_content(patients_report)["path"]
    assert page.text(".path-text") == "the chosen graph is shown"
    for step in (0, 5, len(path["lams"]) - 1):
        page.type_into("#path-slider", str(step))
        edges = path["nEdges"][step]
        assert page.text(".path-text").endswith(f": {edges} edge{'s' if edges != 1 else ''}")
        empty = near(page.colours(), POSITIVE, 4) == 0
        assert empty == (edges == 0)
    page.click(".path-row button")
    assert page.text(".path-text") == "the chosen graph is shown"
    assert near(page.colours(), POSITIVE) > 50


def test_tables_sort_filter_and_copy(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    page.run("window.copied = []; navigator.clipboard.writeText = async (t) => { copied.push(t); }")
    content = read_content(patients_report)
    edges = content["graph"]["edges"]
    page.click("#panel-edges th button", 0)  # by name
    names = page.texts("#panel-edges tbody tr td:first-child")
    assert names == sorted(names)
    assert page.run("return document.querySelector('#panel-edges th').ariaSort") == "ascending"
    page.click("#panel-edges th button", 0)
    assert page.texts("#panel-edges tbody tr td:first-child") == sorted(names, reverse=True)
    page.type_into("#filter-edges", "pain")
    kept = [e for e in edges if content["graph"]["nodes"][e["a"]]["name"] == "pain"]
    kept += [e for e in edges if content["graph"]["nodes"][e["b"]]["name"] == "pain"]
    assert len(page.texts("#panel-edges tbody tr")) == len(kept) > 0
    page.click("#panel-edges .tools button")
    (copied,) = page.run("return window.copied")
    read = list(csv.DictReader(io.StringIO(copied)))
    assert len(read) == len(kept)
    assert all("pain" in (row["source"], row["target"]) for row in read)
    page.click("[role=tab]", 2)
    assert page.run("return document.getElementById('panel-edges').hidden")
    assert "verdict" in page.texts("#panel-tests th button")[-2]


def test_a_row_of_a_table_opens_its_edge(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    page.click("#panel-edges tbody tr", 1)
    edge = read_content(patients_report)["graph"]["edges"][1]
    nodes = read_content(patients_report)["graph"]["nodes"]
    assert page.text("#details h3") == f"{nodes[edge['a']]['name']} – {nodes[edge['b']]['name']}"


def test_it_works_without_a_mouse(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    page.press("#stage", "ArrowRight")
    first = page.text("#status")
    assert "edge" in first
    heard = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.press("#stage", key)
        heard.add(page.text("#status").split("\n")[0])
    assert len(heard) >= 2
    page.press("#stage", "Enter")
    assert "Its neighbours" in page.text("#details")
    page.press("#stage", "Escape")
    assert "Strongest edges" in page.text("#details")
    page.press("#tab-edges", "ArrowRight")
    assert page.run("return document.activeElement.id") == "tab-columns"
    unnamed = page.run(
        "return [...document.querySelectorAll('button, input, [tabindex=\"0\"]')].filter(e =>"
        " !(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.placeholder)).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_every_width_in_both_themes(
    page: Page, patients_report: Path, width: int, theme: str
) -> None:
    page.prefer(theme)
    page.resize(width, 900)
    page.open(patients_report)
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.run("return document.getElementById('stage').clientHeight") > 200
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(244, 245, 243)") == (theme == "light")
    page.click("#theme")
    assert page.run("return getComputedStyle(document.body).backgroundColor") != ground
    # Text and what it stands on differ enough to be read (WCAG AA: 4.5).
    assert page.run(CONTRAST) >= 4.5
    page.prefer("light")


CONTRAST = """
const light = (colour) => {
  const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const style = getComputedStyle(document.documentElement);
const probe = document.body.appendChild(document.createElement('i'));
const value = (name) => {
  probe.style.color = `var(--${name})`;
  return light(getComputedStyle(probe).color);
};
let least = Infinity;
for (const ink of ['ink', 'muted', 'accent']) for (const ground of ['surface', 'ground']) {
  const [a, b] = [value(ink), value(ground)].sort((x, y) => y - x);
  least = Math.min(least, (a + 0.05) / (b + 0.05));
}
probe.remove();
return least;
"""


def test_it_prints(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")
    assert page.run("return document.getElementById('panel-tests').children.length") > 1


BEYOND = """
return [...document.querySelectorAll('.data')].map((table) =>
  table.getBoundingClientRect().right - table.closest('.card').getBoundingClientRect().right);
"""


def test_no_table_is_wider_than_paper(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    try:
        page.resize(688, 1000)  # A4 without its margins
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        page.run("dispatchEvent(new Event('beforeprint'))")
        page.settle()
        beyond = page.run(BEYOND)
        assert len(beyond) > 5
        assert max(beyond) <= 0
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_strengths_of_the_legend_stay_together(page: Page, patients_report: Path) -> None:
    page.open(patients_report)
    for width in range(360, 1400, 60):
        page.resize(width, 900)
        page.settle()
        script = "return [...arguments[0].children].map(e => e.getBoundingClientRect().top)"
        item = page.driver.find_element("xpath", "//*[@id='legend']/li[contains(., 'strength')]")
        tops = page.run(script, item)
        assert len(tops) == 6  # three lines and their strengths
        assert max(tops) - min(tops) < 8


def test_the_frame_of_a_notebook(page: Page, model: mg.MixedGraphicalModel, folder: Path) -> None:
    file = folder / "notebook.html"
    shown = model.view(height=420)._repr_html_()
    file.write_text(f"<!doctype html><title>notebook</title>{shown}", encoding="utf-8")
    page.open(file)
    page.driver.switch_to.frame(0)
    try:
        page.settle()
        assert near(page.colours(), POSITIVE) > 50
        assert page.run("return document.getElementById('stage').clientHeight") > 200
        assert page.run("return document.querySelectorAll('#tables').length") == 0
        assert page.run("return window.origin") == "null"
        blocked = "try { parent.document.title; return 'reached' } catch { return 'blocked' }"
        assert page.run(blocked) == "blocked"
    finally:
        page.driver.switch_to.default_content()


def test_moderators_and_covariates_are_drawn(page: Page, folder: Path) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    sex, x = rng.integers(0, 2, 500), rng.normal(size=500)
    y = np.where(sex == 1, 1.4, 0.2) * x + sex + rng.normal(size=500)
    rows = pd.DataFrame({"x": x, "y": y, "sex": np.array(["f", "m"])[sex]})
    model = mg.MixedGraphicalModel(lam=0.02, moderators=["sex"]).fit(rows)
    file = folder / "moderated.html"
    model.report(file, rows)
    page.open(file)
    legend = page.texts("#legend li")
    assert "varies with a moderator" in legend
    assert any(each.startswith("covariate") for each in legend)
    page.click("#panel-edges tbody tr")
    assert "How the parameters deviate" in page.text("#details")
    assert json.loads(page.text("#content"))["graph"]["edges"]

"""The report as people read it: findings, words with units, links, pictures to keep, groups."""

from __future__ import annotations

import base64
import io
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

import mixedgm as mg
from tests.support.report_browser import Page
from tests.support.report_page import read_content
from tests.unit.pictures.network.test_labels import random_graph

AXE = Path(__file__).resolve().parents[2] / "tools/js/node_modules/axe-core/axe.min.js"
SVG = "{http://www.w3.org/2000/svg}"
SAVED = """
const [at, done] = arguments;
const made = [];
URL.createObjectURL = (blob) => { made.push(blob); return 'blob:none'; };
HTMLAnchorElement.prototype.click = function () {};
document.querySelectorAll('#save-tools button')[at].click();
const wait = async () => {
  if (made.length === 0) { setTimeout(wait, 20); return; }
  let text = '';
  for (const byte of new Uint8Array(await made[0].arrayBuffer())) text += String.fromCharCode(byte);
  done([made[0].type, btoa(text)]);
};
wait();
"""


def saved(page: Page, at: int) -> tuple[str, bytes]:
    """What a button of the downloads would write."""
    kind, content = page.driver.execute_async_script(SAVED, at)
    return kind, base64.b64decode(content)


@pytest.fixture(scope="session")
def grouped_report(folder: Path) -> Path:
    """Twelve continuous columns in three groups."""
    file = folder / "grouped.html"
    model = random_graph(12, 20, 0)
    names = model.schema_.names
    model.report(file, groups={f"group {k}": list(names[k::3]) for k in range(3)}, title="Groups")
    return file


def test_it_opens_with_what_was_found_and_what_an_edge_means(
    page: Page, patients_report: Path
) -> None:
    page.open(patients_report)
    lead, meaning = page.text(".lead"), page.text(".meaning")
    content = read_content(patients_report)
    names = [node["name"] for node in content["graph"]["nodes"]]
    total = dict.fromkeys(names, 0.0)
    for edge in content["graph"]["edges"]:
        for end in ("a", "b"):
            total[names[edge[end]]] += edge["strength"]
    assert lead.startswith(f"{max(total, key=lambda name: total[name])} is most directly related")
    assert 2 <= lead.count(". ") + 1 <= 4
    assert "alike in all other columns" in meaning
    first = page.run("return document.querySelector('main').innerText")
    assert "KKT" not in first.split("Can I trust it?")[0]
    says = page.texts("#details .says")
    assert says == [edge["says"] for edge in content["graph"]["edges"][:8]]


@pytest.mark.parametrize(
    ("width", "first"), [(1400, "findings"), (800, "findings"), (390, "graph")]
)
def test_the_first_screen(page: Page, patients_report: Path, width: int, first: str) -> None:
    page.resize(width, 900 if width > 500 else 844)
    page.open(patients_report)
    tops = page.run(
        "return ['findings', 'stage'].map((id) => "
        "document.getElementById(id).getBoundingClientRect().top)"
    )
    assert (tops[0] < tops[1]) == (first == "findings")
    assert tops[1] < 450, "the graph begins on the first screen"


def test_a_link_opens_an_edge_and_a_choice_can_be_linked_to(
    page: Page, patients_report: Path, folder: Path
) -> None:
    content = read_content(patients_report)
    names = [node["name"] for node in content["graph"]["nodes"]]
    edge = content["graph"]["edges"][2]
    a, b = names[edge["a"]], names[edge["b"]]
    page.driver.get(f"{patients_report.as_uri()}#edge={quote(a)}&with={quote(b)}")
    page.driver.refresh()
    page.settle()
    assert page.text("#details h3") == f"{a} – {b}"
    (address,) = page.run("return [...document.querySelectorAll('.to-edge')].map((e) => e.href)")
    page.click("#details .close")
    assert page.run("return location.hash") == ""
    page.click("#panel-edges tbody tr", 2)
    assert page.run("return location.href") == address
    page.run("location.hash = 'column=age'")
    page.settle()
    assert page.text("#details h3") == "age"
    page.run("location.hash = 'edge=nothing&with=age'")  # a link of another report
    page.settle()
    assert page.text("#details h3") == "age"


def test_the_panel_tells_how_certain_an_edge_is_and_the_rows_behind_its_cells(
    page: Page, patients_report: Path, rows: Any
) -> None:
    content = read_content(patients_report)
    names = [node["name"] for node in content["graph"]["nodes"]]
    page.open(patients_report)
    seen = 0
    for at, edge in enumerate(content["graph"]["edges"]):
        a, b = names[edge["a"]], names[edge["b"]]
        page.click("#panel-edges tbody tr", at)
        text = page.text("#details")
        assert ("as good as certain" in text) == (edge["probability"] >= 0.995)
        if {a, b} == {"ward", "smoker"}:
            counts = rows.groupby([a, b], observed=False).size().to_numpy()
            shown = [int(cell) for cell in page.texts("#details .behind")]
            assert sorted(shown) == sorted(counts)
            seen += 1
        elif "ward" in (a, b):
            shown = [int(cell) for cell in page.texts("#details .behind")]
            assert set(rows["ward"].value_counts()) <= set(shown)
            seen += 1
    assert seen > 0


def test_edges_are_filtered_by_strength_and_certainty(page: Page, patients_report: Path) -> None:
    edges = read_content(patients_report)["graph"]["edges"]
    page.open(patients_report)
    for name in ("strength", "probability"):
        values = sorted(edge[name] for edge in edges)
        least = round((values[2] + values[3]) / 2, 2)
        page.type_into(f"#least-edges-{name}", str(least))
        kept = sum(value >= least for value in values)
        assert len(page.texts("#panel-edges tbody tr")) == kept < len(edges)
        page.type_into(f"#least-edges-{name}", "0")
    assert len(page.texts("#panel-edges tbody tr")) == len(edges)
    before = page.texts("#legend li")
    page.type_into("#minimum", "50")
    assert any("not drawn" in text for text in page.texts("#legend li"))
    assert not any("not drawn" in text for text in before)


def test_pictures_can_be_kept(page: Page, grouped_report: Path) -> None:
    page.open(grouped_report)
    kind, content = saved(page, 0)
    assert kind == "image/svg+xml"
    root = ET.fromstring(content)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    names = [node["name"] for node in read_content(grouped_report)["graph"]["nodes"]]
    assert set(names) <= set(texts)
    assert set(page.texts("#legend span")) <= set(texts)
    page.open(grouped_report)
    kind, content = saved(page, 1)
    assert kind == "image/png"
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    assert picture.width == 3 * int(float(root.attrib["width"]))
    assert len(picture.getcolors(1_000_000) or []) > 50


def test_widths_in_the_live_graph_never_fall_with_strength(
    page: Page, grouped_report: Path
) -> None:
    page.open(grouped_report)
    root = ET.fromstring(saved(page, 0)[1])
    signs = {"#0072b2", "#d55e00", "#009e73"}
    lines = [path for path in root.iter(f"{SVG}path") if path.get("stroke") in signs]
    curves = [line for line in lines if "Q" in line.get("d", "")]
    edges = read_content(grouped_report)["graph"]["edges"]
    assert len(curves) == len(edges)  # weakest first
    looks = [(float(c.get("stroke-width", 0)), float(c.get("opacity", 1))) for c in curves]
    assert looks == sorted(looks)
    assert looks[-1][1] == 1.0


def test_groups_have_colours_and_areas_and_kinds_can_have_them_instead(
    page: Page, grouped_report: Path
) -> None:
    page.open(grouped_report)
    assert {"group 0", "group 1", "group 2"} <= set(page.texts("#legend li"))
    first = page.colours()
    assert first.get("119,170,221,255", 0) > 100  # the first colour of groups
    area = "217,231,245,255"
    assert first.get(area, 0) > 1000
    page.run(
        "const e = document.getElementById('colour'); e.value = 'kind';"
        "e.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    page.settle()
    assert page.colours().get(area, 0) == 0
    assert "group 0" not in page.texts("#legend li")


def test_what_is_flagged_is_grouped_by_what_to_do(page: Page, patients_report: Path) -> None:
    content = read_content(patients_report)
    (fit,) = (answer for answer in content["trust"] if answer["key"] == "fit")
    page.open(patients_report)
    shown = page.texts("#trust-fit .remedies > li > strong")
    assert shown == [remedy["meaning"].capitalize() for remedy in fit.get("remedies", [])]
    ticks = page.run(
        "return [...document.querySelectorAll('#trust .state.good')]"
        ".map((e) => e.closest('article').id)"
    )
    good = [answer["key"] for answer in content["trust"] if answer["status"] == "good"]
    assert ticks == [f"trust-{key}" for key in good]
    words = page.texts("#words-section dt")
    for word in ("edge", "strength", "penalty λ, path", "certificate", "pseudolikelihood"):
        assert word in words


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, patients_report: Path, width: int, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: npm ci --prefix tools/js")
    page.prefer(theme)
    page.resize(width, 900)
    page.open(patients_report)
    page.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})
    run = (
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})"
        ".then((r) => done(r.violations.map((v) => v.id + ': ' + v.nodes[0].html)))"
    )
    for opened in (None, "#details .edge-button"):
        if opened:
            page.click(opened)
            page.run("for (const e of document.querySelectorAll('details')) e.open = true")
        assert page.driver.execute_async_script(run) == []
    page.prefer("light")


# -- names in the live graph -----------------------------------------------------------------------

BOXES = """
const host = document.createElement('div');
host.innerHTML = arguments[0];
document.body.append(host);
const found = [...host.querySelectorAll('text')].map((e) => {
  const box = e.getBBox();
  return [e.textContent, box.x, box.y, box.x + box.width, box.y + box.height];
});
host.remove();
return found;
"""


def shapes(content: str, fills: set[str], count: int) -> tuple[np.ndarray, float]:
    """Middles of the nodes, in the table's order, and their radius."""
    middles, radius = [], 0.0
    for path in ET.fromstring(content).iter(f"{SVG}path"):
        if path.get("fill") in fills and len(middles) < count:
            d = path.get("d", "")
            corners = np.array(re.findall(r"[ML]([\d.-]+) ([\d.-]+)", d), dtype=float)
            if circle := re.search(r"A([\d.]+) ", d):
                middles.append(corners[0] - [float(circle[1]), 0.0])
                radius = max(radius, float(circle[1]))
            else:
                middles.append(corners.mean(axis=0))
    return np.array(middles), radius


def name_faults(page: Page, names: list[str], fills: set[str]) -> list[str]:
    """What is wrong with the names that the live graph shows, measured in its picture."""
    content = saved(page, 0)[1].decode("utf-8")
    nodes, radius = shapes(content, fills, len(names))
    boxes = {text: np.array(box) for text, *box in page.run(BOXES, content) if text in names}
    assert len(nodes) == len(names)
    wrong = []
    for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] - 3 and b[1] < a[3] - 3:
            wrong.append(f"{one} on {other}")
    for name, box in boxes.items():
        beyond = np.maximum(np.maximum(box[:2] - nodes, nodes - box[2:]), 0.0)
        away = np.linalg.norm(beyond, axis=1)
        own = away[names.index(name)]
        others = np.delete(away, names.index(name))
        wrong += [f"{name} on a node"] * bool(others.min() < 0.9 * radius)
        wrong += [f"{name} nearer to another node"] * bool(others.min() <= own)
    return [*wrong, *(["names are missing"] * (len(boxes) < 0.7 * len(names)))]


@pytest.mark.parametrize(("n", "n_edges", "width"), [(9, 14, 1400), (25, 60, 800), (60, 90, 1400)])
def test_names_in_the_live_graph_are_clear(
    page: Page, folder: Path, n: int, n_edges: int, width: int
) -> None:
    model: mg.MixedGraphicalModel = random_graph(n, n_edges, 1)
    file = folder / f"names-{n}.html"
    model.report(file)
    page.resize(width, 900)
    page.open(file)
    fills = {kind["fill"] for kind in read_content(file)["graph"]["kinds"]}
    assert name_faults(page, list(model.schema_.names), fills) == []

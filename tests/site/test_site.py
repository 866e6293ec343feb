"""The site, without building it: every page has its place, and what is built is checked well."""

import ast
import csv
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import mixedgm as mg

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def pages() -> dict[str, str]:
    """Every page of the site that is a file in the repository, by its name there."""
    apart = {"_templates", "examples", "gallery", "generated", "studies"}
    found = [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    inside = [path.relative_to(DOCS) for path in found]
    return {
        path.with_suffix("").as_posix(): (DOCS / path).read_text(encoding="utf-8")
        for path in inside
        if path.parts[0] not in apart and path.name != "sg_execution_times.rst"
    }


def listed(text: str) -> list[str]:
    """What the tables of contents of a page name."""
    blocks = re.findall(r":::\{toctree\}\n(.*?):::", text, re.DOTALL)
    blocks += re.findall(r"^\.\. toctree::\n((?:   .*\n|\n)*)", text, re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_has_one_place_in_the_contents() -> None:
    texts = pages()
    named = [name for text in texts.values() for name in listed(text)]
    assert sorted(named) == sorted((set(texts) - {"index"}) | {"gallery/index"})


def test_every_public_name_has_a_page() -> None:
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    named = re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)
    old = {"check"}
    wanted = {*mg.__all__, "__version__"} - {"datasets", "diagnostics", "__version__"} - old
    wanted |= {f"datasets.{name}" for name in mg.datasets.__all__}
    wanted |= {f"diagnostics.{name}" for name in mg.diagnostics.__all__}
    assert sorted(set(named) - {"api"}) == sorted(wanted)
    assert len(named) == len(set(named))


def test_pages_with_an_origin_point_to_it() -> None:
    origins = module(DOCS / "conf.py").ORIGINS
    assert len(origins) > 4
    for page, origin in origins.items():
        assert (ROOT / origin).is_file()
        assert f"](../{origin})" in (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("link", "origin", "expected"),
    [
        ("docs/guide.md", "CHANGELOG.md", "guide.md"),
        ("stress/README.md", "CONTRIBUTING.md", "stress.md"),
        ("record/table.md", "stress/README.md", "stress_record.md"),
        ("../benchmarks/README.md", "docs/why.md", "benchmarks.md"),
        ("examples/wage_survey.py", "docs/index.md", "gallery/wage_survey.rst"),
        ("../mathematics.md", "docs/experiments/consistency.md", "../mathematics.md"),
        ("../experiments/solvers.py", "docs/experiments.md", "../experiments/solvers.py"),
    ],
)
def test_links_of_the_repository_lead_to_pages_of_the_site(
    link: str, origin: str, expected: str
) -> None:
    page = origin.removeprefix("docs/").removesuffix(".md")
    page = page if origin.startswith("docs/") else "somewhere"
    assert module(DOCS / "conf.py").target(link, ROOT / origin, page) == expected


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_pages(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert len(title) > 3
    assert title[1] == "=" * len(title[0])
    assert "# %%" in text


SITE = {
    "index.html": '<h1 id="top">x</h1><a href="a%20b.html#there">x</a><a href="#top">x</a>'
    '<a href="https://example.org/">x</a><img src="data:image/png;base64,xx">',
    "a b.html": '<p id="there"></p><script src="static/x.js"></script>',
    "static/x.js": "",
    "static/x.css": "a { background: url(x.png) }",
}


def faults(site: dict[str, str], folder: Path) -> list[str]:
    for name, text in site.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found: list[str] = module(DOCS / "build.py").site_faults(folder)
    return found


def test_a_whole_site_has_no_faults(tmp_path: Path) -> None:
    assert faults(SITE, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("index.html", '<a href="b.html">x</a>', "which does not exist"),
        ("index.html", '<a href="a b.html#gone">x</a>', "no such heading"),
        ("index.html", '<a href="#gone">x</a>', "no such heading"),
        ("index.html", '<script src="https://example.org/a.js"></script>', "loads https://example"),
        ("index.html", '<link rel="stylesheet" href="//example.org/a.css">', "loads //example"),
        ("index.html", '<img src="http://example.org/a.png">', "loads http://example"),
        ("static/x.css", "@import 'https://example.org/font.css'", "loads https://example"),
        ("static/x.css", "a { src: url(//example.org/font.woff) }", "loads //example"),
    ],
)
def test_faults_of_a_site_are_found(name: str, text: str, expected: str, tmp_path: Path) -> None:
    (fault,) = faults({**SITE, name: text}, tmp_path)
    assert expected in fault


def test_numbers_beside_those_of_r_are_the_recorded_ones() -> None:
    page = (DOCS / "from_r.md").read_text(encoding="utf-8")
    with (DOCS / "studies" / "qgraph.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = {(r["method"], r["source"], r["target"]): float(r["value"]) for r in rows}
    version = next(row["target"] for row in rows if row["method"] == "version")
    assert f"qgraph {version} on" in page
    lines = re.findall(r"^\| (?:pair|\w+ – \w+) \|.*$", page, re.MULTILINE)
    head, *pairs = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert len(pairs) == 6
    for pair, *values in pairs:
        source, target = pair.split(" – ")
        shown = dict(zip(head[1:], map(float, values), strict=True))
        assert shown == {name: round(known[name, source, target], 3) for name in head[1:]}

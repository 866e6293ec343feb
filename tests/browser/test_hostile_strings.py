"""Names, levels, titles, files and notes of any origin: nothing of them runs, nothing breaks."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from tests.support.report_browser import Page

SCRIPT = "<script>window.hacked = 'script'; alert(1)</script>"
CLOSING = "</script><script>window.hacked = 'closing'</script>"
HANDLER = "<img src=x onerror=\"window.hacked = 'handler'\">"
QUOTES = "\"'`><svg onload=window.hacked='quotes'> javascript:window.hacked=1"
SECTION = "]]><!-- --!> &lt;b&gt; </style></title></textarea>"
MARKS = "\u202eright to left\u202c\u2066\u2069\ufeff\u2028\u2029"
CONTROL = "a\x00b\x1b[31m\x07\r\n\tc"
LONG = "=HYPERLINK(1)" + "x" * 10_000
PROTO = "__proto__"
ALL = (SCRIPT, CLOSING, HANDLER, QUOTES, SECTION, MARKS, CONTROL, LONG, PROTO, "constructor")


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile text wherever there is text from outside."""
    rng = np.random.default_rng(0)
    n = 400
    x = rng.normal(size=n)
    codes = (x + rng.normal(size=n) > 0).astype(int)
    levels = np.array(ALL, dtype=object)
    columns: dict[str, object] = {}
    for at, name in enumerate(ALL):
        if at % 2:
            columns[name] = x + rng.normal(size=n)
        else:
            own = np.where(rng.random(n) < 0.5, 3 * codes, rng.integers(0, 4, n))
            columns[name] = np.roll(levels, at)[own]
    rows = pd.DataFrame(columns)
    rows["groups"] = np.array([SCRIPT, HANDLER + LONG], dtype=object)[codes]
    rows[f"{CLOSING} id"] = [f"{HANDLER}{k}" for k in range(n)]  # left out, with a note
    rows.loc[::11, QUOTES] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mg.MixedGraphicalModel(lam=0.12, missing="drop").fit(rows)
        tests = mg.edge_tests(model, rows.dropna(), method="graph", random_state=0)
        boot = mg.bootstrap(
            model, rows.dropna(), n_boot=4, random_state=0, n_jobs=1, intervals=False
        )
        groups = mg.compare(
            rows.dropna(), "groups", lam=0.2, n_perm=2, test="permutation", n_jobs=1
        )
        check = model.check_fit(rows.dropna(), n_sim=20, random_state=0, n_jobs=1)
        folder = tmp_path_factory.mktemp("hostile")
        file = folder / "report <b>&'.html"
        model.report(file, rows, boot, tests, groups, check=check, title=CLOSING + HANDLER)
    return file


def test_nothing_runs_and_nothing_breaks(page: Page, hostile_report: Path) -> None:
    page.open(hostile_report)
    assert page.run("return window.hacked === undefined")
    assert page.text("h1").startswith("</script><script>window.hacked")
    # Open every column, every edge and every table.
    n_columns = page.run("return document.querySelectorAll('#names option').length")
    assert n_columns == len(ALL) + 1
    for at in range(n_columns):
        name = page.run("return document.querySelectorAll('#names option')[arguments[0]].value", at)
        page.type_into("#search", name)
        assert page.text("#details h3") == name
        assert len(name) <= 120
    n_rows = page.run("return document.querySelectorAll('#panel-edges tbody tr').length")
    assert n_rows > 10
    for at in range(n_rows):
        page.click("#panel-edges tbody tr", at)
        assert "given all other columns" in page.text("#details")
    for at in range(len(page.texts("[role=tab]"))):
        page.click("[role=tab]", at)
    page.settle()
    assert page.run("return window.hacked === undefined")
    # What the page consists of are the elements of the page, and none from a name.
    made = page.run("return document.querySelectorAll('img, iframe, object, textarea, b').length")
    assert made == 0
    assert page.run("return document.scripts.length") == 2
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    requests = [each for each in page.requests() if not each.startswith("data:")]
    assert requests == [hostile_report.as_uri()]


def test_the_name_of_a_file_is_text(page: Page, tmp_path: Path) -> None:
    odd = tmp_path / "<img src=x onerror=alert(1)>&\"'.csv"
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": rng.normal(size=50), "y": rng.normal(size=50)}).to_csv(odd, index=False)
    model = mg.MixedGraphicalModel(lam=0.5).fit(odd)
    model.report(tmp_path / "a.html", odd, check=False)
    page.open(tmp_path / "a.html")
    assert page.text("#source") == odd.name


def test_marks_and_controls_are_shown_as_escapes(page: Page, hostile_report: Path) -> None:
    page.open(hostile_report)
    everything = page.run("return document.documentElement.textContent")
    shown = page.run("return document.body.innerText")
    for character in "\x00\x1b\x07\u202e\u2066\u2028\u2029\ufeff":
        assert character not in everything
    assert "a\\x00b\\x1b[31m" in shown
    assert "\\u202eright to left" in shown


def test_copied_tables_hold_no_formulas(page: Page, hostile_report: Path) -> None:
    page.open(hostile_report)
    page.run("window.copied = []; navigator.clipboard.writeText = async (t) => { copied.push(t); }")
    page.click("[role=tab]", 1)
    page.click("#panel-columns .tools button")
    (copied,) = page.run("return window.copied")
    assert "'=HYPERLINK" in copied
    assert "\n=HYPERLINK" not in copied


def test_the_policy_is_in_force(page: Page, hostile_report: Path) -> None:
    """The test would notice: what the page itself must not do is stopped, and reported."""
    page.open(hostile_report)
    page.run(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        "document.body.append(s)"
    )
    assert page.run("return window.hacked === undefined")
    log = page.driver.get_log("browser")
    assert any("Content Security Policy" in entry["message"] for entry in log)

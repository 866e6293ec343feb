"""A seed -> a report of a model with hostile names: does its page say what the model has?"""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import mixedgm as mg
from mixedgm.report.plain import shown
from stress.campaign import Campaign, Found
from stress.hostile_columns import NAMES
from stress.inquiry import Inquiry
from stress.mild_tables import MildTable, mild_table
from stress.study_checks import require

_NAMES = (
    *NAMES,
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "@@CONTENT@@",
    "@@",
    "__proto__",
    "constructor",
    "${x}",
    "\\u003cb\\u003e",
    "'; drop table",
    "\u2028line",
    "%s %d {}",
)


def attempt(seed: int, folder: Path) -> Found:
    """Fit the table of a seed and write its report."""
    rng = np.random.default_rng([38, seed])
    case, inquiry = _hostile(rng, mild_table(seed)), Inquiry(__file__)
    model = inquiry.ask("fit", lambda: _fit(case))
    if model is None:
        return Found("not fitted", inquiry.findings)
    options, kind = _options(rng, inquiry, case, model)
    path = folder / "report.html"
    inquiry.ask("report", lambda: model.report(path, **options))
    if path.exists():
        inquiry.ask("page", lambda: _check(path.read_text(encoding="utf-8"), model))
    elif "report" not in inquiry.refused and not inquiry.findings:
        inquiry.findings.append("report: there is no file")
    if rng.random() < 0.1:
        inquiry.ask("the same again", lambda: _same(model, path, options))
    if rng.random() < 0.2:
        inquiry.ask("live graph", lambda: _live(model, case.table))
    end = "page" if path.exists() else inquiry.end("report", None)
    return Found(f"{kind}: {end}", list(dict.fromkeys(inquiry.findings)))


def _fit(case: MildTable) -> Any:
    model = mg.MixedGraphicalModel(**case.options)
    return model.fit(case.table, sample_weight=case.sample_weight)


def _hostile(rng: np.random.Generator, case: MildTable) -> MildTable:
    """The table with other names of columns and levels, and perhaps a moderator."""
    chosen = rng.permutation(np.array(_NAMES, dtype=object))
    names = {
        name: str(odd) if rng.random() < 0.6 else name
        for name, odd in zip(case.columns, chosen, strict=False)
    }
    columns = {names[name]: cells.copy() for name, cells in case.columns.items()}
    for name, kind in case.types.items():
        if kind == "categorical" and rng.random() < 0.5:
            level = str(rng.choice(np.array(_NAMES, dtype=object)))
            cells = columns[names[name]]
            cells[np.array([cell == "a" for cell in cells])] = level
    types = {names[name]: kind for name, kind in case.types.items()}
    options = {**case.options, "types": types}
    if "covariates" in options:
        options["covariates"] = [names[name] for name in options["covariates"]]
    elif rng.random() < 0.3 and options.get("loss") != "nodewise":
        options["moderators"] = [list(types)[int(rng.integers(len(types)))]]
        options["missing"] = "drop"  # and not yet "model"
    return replace(case, columns=columns, types=types, options=options)


def _options(
    rng: np.random.Generator, inquiry: Inquiry, case: MildTable, model: Any
) -> tuple[dict[str, Any], str]:
    """What the report is given, and in a word."""
    titles = (None, "", "A title", _NAMES[int(rng.integers(len(_NAMES)))])
    options: dict[str, Any] = {"title": titles[int(rng.integers(4))], "n_jobs": 1}
    if rng.random() < 0.2:
        return options, "no table"
    options |= {"data": case.table, "sample_weight": case.sample_weight}
    options["check"] = [False, None, True][int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
    known: dict[str, Any] = {"sample_weight": case.sample_weight, "n_jobs": 1, "random_state": 0}
    if rng.random() < 0.3:
        options["tests"] = inquiry.ask("tests", lambda: mg.edge_tests(model, case.table, **known))
    if rng.random() < 0.3:
        options["bootstrap"] = inquiry.ask(
            "bootstrap", lambda: mg.bootstrap(model, case.table, n_boot=5, **known)
        )
    if rng.random() < 0.15:
        groups = np.resize(["<b>north</b>", "\x1b[31msouth"], case.n)
        given = {k: v for k, v in case.options.items() if k not in ("n_jobs", "random_state")}
        options["comparison"] = inquiry.ask(
            "comparison", lambda: mg.compare(case.table, groups, n_perm=3, **known, **given)
        )
    return options, "table, not checked" if options["check"] is False else "table, checked"


# -- the page --------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Tags of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


def _check(text: str, model: Any) -> None:
    """The page has its own markup only, and the columns and edges of the model."""
    page = _Page(text)
    require(len(page.scripts) == 2, f"{len(page.scripts)} scripts")
    others = {"img", "iframe", "object", "embed", "b", "form", "link"} & set(page.tags)
    require(not others, f"markup from elsewhere: {sorted(others)}")
    require(text.rstrip().endswith("</html>"), "the page is not complete")
    require("\x1b" not in text and "\x00" not in text, "control characters on the page")
    content = json.loads(page.scripts[0], parse_constant=_refuse)
    nodes = [node["name"] for node in content["graph"]["nodes"]]
    require(nodes == [shown(name) for name in model.schema_.names], "other columns")
    require(all(name.isprintable() for name in nodes), "a name cannot be printed")
    edges = content["graph"]["edges"]
    require(len(edges) == len(model.edges_), f"{len(edges)} edges instead of {len(model.edges_)}")
    ours = sorted(float(f"{edge.norm:.4g}") for edge in model.edges_)
    theirs = sorted(float(edge["norm"]) for edge in edges)
    require(np.allclose(ours, theirs), "other weights")
    _walk(content)


def _refuse(constant: str) -> None:
    require(False, f"{constant} in the content")


def _walk(value: Any) -> None:
    """No text of the content is a number that is none, or could do harm on the page."""
    if isinstance(value, dict):
        for key, each in value.items():
            _walk(key)
            _walk(each)
    elif isinstance(value, list):
        for each in value:
            _walk(each)
    elif isinstance(value, str):
        require(value not in ("nan", "inf", "-inf"), f"the content says {value}")
        require("\x1b" not in value and "\x00" not in value, "control characters in the content")


def _same(model: Any, path: Path, options: dict[str, Any]) -> None:
    again = path.with_name("again.html")
    model.report(again, **options)
    require(again.read_bytes() == path.read_bytes(), "another page")


def _live(model: Any, table: Any) -> None:
    text = model.view(table)._repr_html_()
    require(text.count("<iframe") == 1 and "<script" not in text, "markup outside of the frame")


CAMPAIGN = Campaign(
    what="reports of models with hostile names, with and without a table, a check and studies",
    cases=400,
    seconds=60.0,
    attempt=attempt,
)

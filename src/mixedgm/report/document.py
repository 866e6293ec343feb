"""Content in -> one HTML document with its own script and style, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from mixedgm.base.printable import number_of
from mixedgm.report.details import column_details, edge_details
from mixedgm.report.findings import findings_content
from mixedgm.report.graph import graph_content
from mixedgm.report.material import Material
from mixedgm.report.methods import methods_content
from mixedgm.report.path_content import path_content
from mixedgm.report.plain import Json, embedded, shown
from mixedgm.report.tabulated import tables_content
from mixedgm.report.trust import trust_content
from mixedgm.results.text import facts
from mixedgm.store import library_version

_TITLE = "Mixed graphical model"


def content(material: Material, *, whole: bool = True) -> dict[str, Json]:
    """Return all that the page shows as one value of JSON; not `whole`: the graph and its details.

    Names and levels are on one line and not longer than the page can show; everything that comes
    from data is a text or a number in it, never markup.
    """
    shared: dict[str, Json] = {
        "title": shown(material.title or _TITLE),
        "source": shown(material.source),
        "version": library_version(),
        "whole": whole,
        "graph": graph_content(material),
        "edgeDetails": edge_details(material),
        "columnDetails": column_details(material),
        "hasTable": material.gaps is not None,
    }
    if not whole:
        return shared
    return {
        **shared,
        "findings": findings_content(material),
        "facts": [[name, text] for name, text in facts(material.summary)],
        "path": path_content(material),
        "tables": tables_content(material),
        "trust": trust_content(material),
        "methods": methods_content(material),
    }


def document(material: Material) -> str:
    """Return the report."""
    return _filled(content(material))


def frame_document(material: Material) -> str:
    """Return a page with the graph alone."""
    return _filled(content(material, whole=False))


def inline_frame(page: str, height: int) -> str:
    """Return a frame for a notebook that holds a page: it runs scripts, and can reach nothing.

    It can write files that the reader downloads.

    Examples
    --------
    >>> print(inline_frame("<p>a</p>", 300)[:48])
    <iframe sandbox="allow-scripts allow-downloads"
    """
    return (
        '<iframe sandbox="allow-scripts allow-downloads" '
        'title="Live graph of a mixed graphical model" '
        f'style="width:100%;height:{int(height)}px;border:0" srcdoc="{escape(page)}"></iframe>'
    )


def _filled(value: dict[str, Json]) -> str:
    """Return the template with content, script, style and the policy that allows these alone."""
    script, style = bundled(), page_file("page.css")
    parts = {
        "POLICY": (
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "TITLE": escape(str(value["title"])),
        "STYLE": style,
        "SCRIPT": script,
        "CONTENT": embedded(value),
    }
    page = page_file("page.html")
    pieces = page.split("@@")  # text, name, text, name, ..., text
    return "".join(parts[piece] if at % 2 else piece for at, piece in enumerate(pieces))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


# -- LiveGraph -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class LiveGraph:
    """The live graph of a model; notebooks show it in a frame that can reach nothing else."""

    material: Material
    height: int

    def __repr__(self) -> str:
        fitted = self.material.fitted
        columns = number_of(len(fitted.schema.columns), "column")
        return f"LiveGraph({columns}, {number_of(len(fitted.edges), 'edge')})"

    def _repr_html_(self) -> str:
        return inline_frame(frame_document(self.material), self.height)


# -- the script of the page ------------------------------------------------------------------------

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b", re.MULTILINE)
_FIRST = "main"


@cache
def page_file(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("mixedgm.report") / "page" / name).read_text(encoding="utf-8")


@cache
def bundled(first: str = _FIRST) -> str:
    """Return a module and all that it imports as one script, imported modules first.

    Modules name what they import in braces, and export functions, constants and classes.
    """
    parts: list[str] = []
    seen: set[str] = set()

    def add(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        text = page_file(f"{name}.js")
        for _, needed in _IMPORT.findall(text):
            add(needed)
        parts.append(_scoped(name, text))

    add(first)
    body = "\n".join(parts)
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{body}}})();\n'


def _scoped(name: str, text: str) -> str:
    r"""Return a module as a function that is called once, and returns what it exports.

    Examples
    --------
    >>> print(_scoped("b", 'import { x } from "./a.js";\nexport const y = x + 1;\n'))
    modules.b = (() => {
    const { x } = modules.a;
    const y = x + 1;
    return { y };
    })();
    """
    exports = ", ".join(_EXPORT.findall(text))
    text = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = modules.\2;\n", text)).strip()
    if _OTHER.search(text):
        raise ValueError(f"{name}.js imports or exports in a form that is not bundled")
    return f"modules.{name} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();\n"

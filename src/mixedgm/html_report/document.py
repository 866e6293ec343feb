"""Content in -> one HTML document with its own script and style, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from mixedgm.html_report.bundle import bundled, page_file
from mixedgm.html_report.details import column_details, edge_details
from mixedgm.html_report.findings import findings_content
from mixedgm.html_report.graph import graph_content
from mixedgm.html_report.material import Material
from mixedgm.html_report.methods import methods_content
from mixedgm.html_report.path_content import path_content
from mixedgm.html_report.plain import Json, embedded, shown
from mixedgm.html_report.tabulated import tables_content
from mixedgm.html_report.trust import trust_content
from mixedgm.store import library_version
from mixedgm.views.text import facts

__all__ = ["content", "document", "frame_document", "inline_frame"]

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

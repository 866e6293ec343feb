"""Names that could do harm: every view stays valid, readable and quick."""

from __future__ import annotations

import csv
import io
import json
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from mixedgm.base.errors import ParameterError
from mixedgm.base.printable import one_line
from mixedgm.fit.fitted import FittedModel
from mixedgm.pictures.matrices import plot_parameters
from mixedgm.pictures.network.plot import plot_network
from mixedgm.results.export import csv_text, write
from mixedgm.results.summary import summarise
from mixedgm.results.text import edges_text, table_text
from tests.support.load import n_calls
from tests.support.models import REPORT, by_hand, chain

NAMES = [
    ("a\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\x7f"),
    ("\u202eevil", "zero\u200bwidth", "\u2066x", "\ufeffbom"),
    ("two\nlines", "car\rriage", "tab\tbed", "\u2028"),
    ("<script>alert(1)</script>", "&amp;", "\"quoted'", "]]>"),
    ("$x$", "$\\frac{1}{0}$", "$", "_^{}"),
    ("nul\0", "\0", "\ud800half", "\udcff"),
    ("你好", "😀", "é", "e\u0301"),
    ("x" * 10_000, "x" * 9_999 + "y", "字" * 10_000, "\u202e" * 10_000),
    ("=1+2", "@cmd", "+x", "-x"),
]

TAGS = {"table", "thead", "tbody", "tr", "td", "th", "div", "strong", "span", "details", "summary"}


@pytest.fixture(params=NAMES, ids=lambda names: ascii(names[0])[:12])
def fitted(request: pytest.FixtureRequest) -> FittedModel:
    model = by_hand("numpy", request.param)
    sort = request.param[0]
    columns = list(model.schema.columns)
    columns[0] = replace(columns[0], levels=(sort, f"{sort}2"))
    report = replace(
        REPORT,
        certificate=replace(REPORT.certificate, message=sort),
        notes=(sort,),
        criterion=sort,
        loss=sort,
    )
    return replace(model, schema=replace(model.schema, columns=tuple(columns)), report=report)


def shown(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def test_text(fitted: FittedModel) -> None:
    summary, schema, edges = str(summarise(fitted)), str(fitted.schema), edges_text(fitted.edges)
    calls = n_calls(lambda: [str(summarise(fitted)), str(fitted.schema), edges_text(fitted.edges)])
    assert calls < 10_000 + 50 * sum(len(column.name) for column in fitted.schema.columns)
    assert shown(summary)
    assert shown(schema)
    assert shown(edges)
    assert len(schema.splitlines()) == 5
    assert max(map(len, schema.splitlines())) < 200
    assert len(edges.splitlines()) <= len(fitted.edges) + 2
    assert len(summary) < 20_000


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_html(fitted: FittedModel) -> None:
    for html in (summarise(fitted)._repr_html_(), fitted.schema._repr_html_()):
        page = _Page()
        page.feed(html)
        assert page.tags <= TAGS
        assert shown(html)
        for name in fitted.schema.names:
            if len(name) < 60:
                assert any(one_line(name) in cell for cell in page.cells)


def test_files(fitted: FittedModel, tmp_path: Path) -> None:
    for ending in ("graphml", "json", "csv"):
        write(fitted, tmp_path / f"graph.{ending}")
    root = ElementTree.parse(tmp_path / "graph.graphml").getroot()
    assert len(root.findall(".//{*}node")) == 4
    assert nx.read_graphml(tmp_path / "graph.graphml").number_of_edges() == len(fitted.edges)
    content = (tmp_path / "graph.json").read_text("utf-8")
    assert shown(content)
    told = [(edge["source"], edge["target"]) for edge in json.loads(content)["edges"]]
    assert told == [(edge.source, edge.target) for edge in fitted.edges]
    text = (tmp_path / "graph.csv").read_bytes().decode("utf-8")
    records = list(csv.DictReader(io.StringIO(text, newline="")))
    expected = [edge.source.encode("utf-8", "backslashreplace").decode() for edge in fitted.edges]
    assert [record["source"] for record in records] == expected


def test_pictures(fitted: FittedModel, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    for draw in (plot_network, plot_parameters):
        files = [tmp_path / f"{draw.__name__}.{ending}" for ending in ("svg", "png", "pdf")]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # the font has not every letter
            drawing = draw(fitted)
            ax = getattr(drawing, "ax", drawing)
            for file in files:
                ax.get_figure(root=True).savefig(file)
        texts = [text.get_text() for text in ax.texts]
        plt.close("all")
        assert all(len(text) <= 60 for text in texts)
        assert all(file.stat().st_size > 1000 for file in files)
        ElementTree.parse(files[0])


def test_formulas_are_marked_where_asked(tmp_path: Path) -> None:
    rows = [
        ["=1+2", "@x", "+x", "-x", "\tx", "\rx", "＝1"],
        ["-", "+", "-1.5", "1e3", "a=b", "", -2.0],
    ]
    kept = list(csv.reader(io.StringIO(csv_text(rows), newline="")))
    marked = list(csv.reader(io.StringIO(csv_text(rows, "mark"), newline="")))
    assert kept == [list(map(str, row)) for row in rows]
    assert marked == [[f"'{cell}" for cell in rows[0]], kept[1]]
    model = by_hand("numpy", ("=1+2", "age", "edu", "wage"))
    write(model, tmp_path / "e.csv", formulas="mark")
    text = (tmp_path / "e.csv").read_text()
    assert "'=1+2" in text
    assert text.replace("'=", "=") == _written(model, tmp_path)
    with pytest.raises(ParameterError, match="formulas must be 'keep' or 'mark'. Got 'x' instead"):
        write(model, tmp_path / "e.csv", formulas="x")  # type: ignore[arg-type]


def _written(model: FittedModel, folder: Path) -> str:
    write(model, folder / "kept.csv")
    return (folder / "kept.csv").read_text()


def test_tables_keep_to_their_width() -> None:
    columns = {"a" * 900: ["x" * 4000, "y"], "b": ["z" * 30, "w"], "number": [1.5, 2.0]}
    for width in (30, 80, 500, 10_000):
        lines = table_text(columns, width).splitlines()
        assert max(map(len, lines)) <= max(width, 24 + 8 + 6 + 4)
    assert "z" * 30 in table_text(columns, 80)  # the longest is cut first
    many = {str(k): [str(k) * 50] for k in range(500)}
    assert len(table_text(many, 80).splitlines()) == 2


def test_edges_of_many_columns_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(0)
    pairs = [tuple(sorted(map(int, rng.choice(600, 2, replace=False)))) for _ in range(300)]
    fitted = chain(600, pairs)
    expected = np.zeros((600, 600))
    for u, v in pairs:
        expected[u, v] = expected[v, u] = 0.5
    assert np.array_equal(fitted.edge_norms, expected)
    told = {(int(edge.source[1:]), int(edge.target[1:])) for edge in fitted.edges}
    assert told == set(pairs)


def test_schema_of_very_many_columns_is_short() -> None:
    text = str(chain(3000, []).schema)
    assert len(text.splitlines()) == 502
    assert text.endswith("... and 2,500 more columns; of all 3,000: 3,000 continuous")

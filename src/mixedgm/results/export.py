"""A fitted model in -> a networkx graph, an adjacency matrix, or a GraphML, JSON or CSV file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from mixedgm.base.atomic import write_bytes
from mixedgm.base.errors import ParameterError
from mixedgm.base.parameters import ensure
from mixedgm.base.printable import json_text
from mixedgm.fit.fitted import FittedModel
from mixedgm.results.result import square_frame
from mixedgm.results.tables import edges_columns
from mixedgm.table.read import unused_name

if TYPE_CHECKING:
    import networkx as nx


JSON_FORMAT = "mixedgm graph"
JSON_VERSION = 1

# What XML 1.0 cannot hold, and the carriage return, which its readers turn into a line feed.
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(fitted: FittedModel) -> nx.Graph[str]:
    """Return the graph for networkx.

    Nodes are the names of the columns, in the table's order, with `kind`, `role` and `levels` (a
    JSON list as text, in order; empty for numbers), `largest` for counts, and `lam` where each has
    its own. Edges have `kind`, `weight` (their strength), `sign`
    ("+", "-" or "none"), for two continuous columns `partial_correlation`, and, where the model has
    covariates, `directed`: from a covariate. An edge that varies with a moderator has the strength
    of that deviation as `deviation_` and the moderator's name; one that is zero on average has the
    weight 0. All values can be written to GraphML.
    """
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    if fitted.report.was_fitted:
        graph.graph["n_rows"] = fitted.report.n_rows
    lam = _lam(fitted)
    if isinstance(lam, float) and fitted.report.was_fitted:
        graph.graph["lam"] = lam
    for column in fitted.schema.columns:
        levels = json.dumps(list(column.levels), ensure_ascii=False)
        graph.add_node(column.name, kind=column.kind, role=column.role, levels=levels)
        if column.largest is not None:
            graph.nodes[column.name]["largest"] = column.largest
    if isinstance(lam, dict):
        nx.set_node_attributes(graph, lam, "lam")
    for edge in sorted(fitted.edges, key=lambda edge: edge.moderator is not None):
        if edge.moderator is not None:
            if not graph.has_edge(edge.source, edge.target):
                graph.add_edge(edge.source, edge.target, kind=edge.kind, weight=0.0, sign="none")
            graph.edges[edge.source, edge.target][f"deviation_{edge.moderator}"] = edge.strength
            continue
        sign = edge.sign or "none"
        attributes: dict[str, Any] = {"kind": edge.kind, "weight": edge.strength, "sign": sign}
        if edge.partial_correlation is not None:
            attributes["partial_correlation"] = edge.partial_correlation
        if fitted.schema.covariates:
            attributes["directed"] = edge.directed
        graph.add_edge(edge.source, edge.target, **attributes)
    return graph


def _lam(fitted: FittedModel) -> float | dict[str, float]:
    """Return the penalty, or that of every column that has one."""
    lam = fitted.report.lam
    if not isinstance(lam, tuple):
        return float(lam)
    named = zip(fitted.schema.names, lam, strict=True)
    return {name: value for name, value in named if not math.isnan(value)}


def to_adjacency(fitted: FittedModel, *, signed: bool = False) -> Any:
    """Return the matrix of edge strengths in the table's order, zero where there is no edge.

    With `signed`, negative edges get a negative number; edges without sign stay positive. A model
    of an array returns an array; pandas has the names on both axes; polars and pyarrow have them
    in the first column, "column".
    """
    schema = fitted.schema
    at = [schema.node_index(name) for name in schema.names]
    matrix = fitted.edge_strengths[np.ix_(at, at)]
    if signed:
        position = {name: k for k, name in enumerate(schema.names)}
        for edge in fitted.edges:
            if edge.sign == "-" and edge.moderator is None:
                u, v = position[edge.source], position[edge.target]
                matrix[u, v] = matrix[v, u] = -edge.strength
    if fitted.library == "numpy":
        return matrix
    return square_frame(schema.names, matrix, fitted.library)


def write(fitted: FittedModel, path: str | os.PathLike[str], formulas: Formulas = "keep") -> None:
    """Write the graph to a file whose suffix says how; the file is complete or not written.

    ``.graphml`` is for other network programs, ``.json`` holds everything (schema, edges,
    parameters with level names, lam, certificate), ``.csv`` the list of edges. `formulas` is as in
    `csv_text`.
    """
    ensure(formulas in get_args(Formulas), "formulas", "'keep' or 'mark'", formulas)
    writers: dict[str, Callable[[FittedModel], bytes]]
    writers = {".graphml": _graphml, ".json": _json, ".csv": partial(_csv, formulas=formulas)}
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise ParameterError.must_be(
            "path", f"a file name that ends in {', '.join(writers)}", os.fspath(path)
        )
    write_bytes(path, writers[suffix](fitted))


def _graphml(fitted: FittedModel) -> bytes:
    import networkx as nx

    graph = to_networkx(fitted)
    names: dict[str, str] = {}
    for name in graph:
        names[name] = unused_name(_xml_text(name), list(names.values()))
    for _, attributes in graph.nodes(data=True):
        attributes["levels"] = _xml_text(attributes["levels"])
    file = io.BytesIO()
    nx.write_graphml(nx.relabel_nodes(graph, names), file, encoding="utf-8")
    return file.getvalue()


def _xml_text(text: str) -> str:
    """Return the text with what XML cannot hold written as an escape of Python."""
    return _NOT_XML.sub(lambda match: repr(match[0])[1:-1], text)


def _csv(fitted: FittedModel, formulas: Formulas) -> bytes:
    columns = edges_columns(fitted)
    cells = zip(*columns.values(), strict=True)
    rows = [["" if value is None or value != value else value for value in row] for row in cells]
    return csv_text([list(columns), *rows], formulas).encode("utf-8", "backslashreplace")


def _json(fitted: FittedModel) -> bytes:
    told = (
        *("criterion", "objective", "kkt", "tol", "converged", "message"),
        *("n_iter", "n_rows", "total_weight", "notes"),
    )
    fit = {"lam": _lam(fitted), **{name: getattr(fitted.report, name) for name in told}}
    content = {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "fit": fit,
        "schema": fitted.schema.to_dict(),
        "edges": _edges(fitted),
        "nodes": _node_terms(fitted),
    }
    return json_text(_finite(content), indent=1).encode("utf-8")


def _edges(fitted: FittedModel) -> list[dict[str, Any]]:
    """Return every edge with its parameters; rows are levels of the source."""
    edges = []
    for edge in fitted.edges:
        block = fitted.interaction(edge.source, edge.target, edge.moderator)
        parameters = {
            "source_levels": block.row_names,
            "target_levels": block.column_names,
            "values": block.values.tolist(),
        }
        edges.append({**edge._asdict(), "parameters": parameters})
    return edges


def _node_terms(fitted: FittedModel) -> list[dict[str, Any]]:
    """Return the node terms of every column; the bias of a level without rows is null.

    Those of a count, and of ordinal columns with quadratic thresholds, multiply its score (of a
    count, the square root) and the square of it.
    """
    params, terms = fitted.params, []
    for column in fitted.schema.columns:
        at = fitted.schema.node_index(column.name)
        entry: dict[str, Any] = {"column": column.name, "kind": column.kind}
        bias = params.terms_of(at)
        if params.nodes.is_gaussian(at):
            entry["bias"], entry["precision"] = bias[0], params.diagonal[at]
        else:
            names = params.nodes.kinds[at].term_names(column.level_names)
            entry["bias"] = dict(zip(names, bias, strict=True))
        terms.append(entry)
    return terms


def _finite(value: object) -> Any:
    """Return the value with plain numbers, and null for those that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- CSV -------------------------------------------------------------------------------------------

Formulas = Literal["keep", "mark"]

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(rows: Iterable[Sequence[object]], formulas: Formulas = "keep") -> str:
    r"""Return the rows as CSV, lines ended by a newline.

    A carriage return is quoted, too: Python's writer quotes what ends its own lines only, and its
    reader then takes the rest of the cell for another row.

    A spreadsheet runs text that starts with =, +, -, @, a tab or a line break as a formula. "keep"
    writes it as it is, so that reading gives it back; "mark" puts an apostrophe before it, so that
    a spreadsheet shows it as text. Numbers, and a sign on its own, stay as they are.

    Examples
    --------
    >>> csv_text([["a", "b"], ["x\ry", 1]])
    'a,b\n"x\ry","1"\n'
    >>> csv_text([["=1+2", "-", "-3.5", -3.5]], formulas="mark")
    "'=1+2,-,-3.5,-3.5\n"
    """
    file = io.StringIO(newline="")
    plain = csv.writer(file, lineterminator="\n")
    quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [_marked(cell) for cell in row] if formulas == "mark" else row
        returns = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoting if returns else plain).writerow(cells)
    return file.getvalue()


def _marked(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_STARTS) or cell in ("+", "-"):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
